import { once } from 'node:events';
import { createInterface } from 'node:readline/promises';
import type { CommandOutput, Shown } from './context.ts';

/** An answer for a person: `name  value` lines for one thing, a table for several. */

const text = (value: unknown): string => (value === null || value === undefined ? '–' : String(value));

/** Of one thing: a list within it has a line for each of its rows. */
const member = (value: unknown, width: number): string => {
  if (!Array.isArray(value)) return text(value);
  const rows = value.map((row: object) => Object.values(row).map(text).join('  '));
  return rows.length === 0 ? 'nothing' : rows.join(`\n${' '.repeat(width + 2)}`);
};

const lines = (one: Shown): string => {
  const width = Math.max(...Object.keys(one).map((name) => name.length));
  return Object.entries(one)
    .map(
      ([name, value]) =>
        `${name.padEnd(width)}  ${member(value, width)}${name === 'secret' ? '   (shown this once)' : ''}`,
    )
    .join('\n');
};

const table = (rows: readonly Shown[]): string => {
  const names = Object.keys(rows[0] ?? {});
  const grid = [names, ...rows.map((row) => names.map((name) => text(row[name])))];
  const widths = names.map((_, column) => Math.max(...grid.map((row) => row[column]?.length ?? 0)));
  return grid
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
};

export const printed = (answer: CommandOutput, json: boolean): string => {
  if (json) return JSON.stringify(answer);
  if (!Array.isArray(answer)) return lines(answer as Shown);
  return answer.length === 0 ? 'none' : table(answer);
};

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
