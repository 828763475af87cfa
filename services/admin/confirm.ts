import { createInterface } from 'node:readline/promises';

/** Asks the person at the terminal; null: there is none. Anything but yes is a no. */
export const onTerminal = (signal: AbortSignal): ((question: string) => Promise<boolean>) | null => {
  if (process.stdin.isTTY !== true) return null;
  return async (question) => {
    const terminal = createInterface({ input: process.stdin, output: process.stderr });
    try {
      return /^y(?:es)?$/i.test((await terminal.question(`${question} [y/N] `, { signal })).trim());
    } finally {
      terminal.close();
    }
  };
};
