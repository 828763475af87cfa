import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';

/** Asks the person at the terminal; null: there is none. Anything but yes, and the end of the input, is a no. */
export const onTerminal = (
  signal: AbortSignal,
  input: NodeJS.ReadableStream & { readonly isTTY?: boolean } = process.stdin,
  output: NodeJS.WritableStream = process.stderr,
): ((question: string) => Promise<boolean>) | null => {
  if (input.isTTY !== true) return null;
  return async (question) => {
    const terminal = createInterface({ input, output });
    try {
      const closed = once(terminal, 'close').then(() => '');
      const answer = await Promise.race([terminal.question(`${question} [y/N] `, { signal }), closed]);
      return /^y(?:es)?$/i.test(answer.trim());
    } finally {
      terminal.close();
    }
  };
};
