import { parseArgs } from 'node:util';
import { type BenchRow, printRows } from './row.ts';

/** A bench of several parts with its own command: any of them, or all, and one table at the end. */

export interface Part {
  readonly says: string;
  readonly run: (quick: boolean) => Promise<readonly BenchRow[]>;
}

interface Bench {
  /** `make bench-<name>`. */
  readonly name: string;
  readonly parts: Readonly<Record<string, Part>>;
  /** Its duration and its requirements. */
  readonly about: string;
  /** Lines about the machine. */
  readonly machine: () => Promise<readonly string[]>;
}

const helpOf = ({
  name,
  parts,
  about,
}: Bench): string => `usage: make bench-${name} ARGS="[part]…"      (or: npm run bench-${name} -- [part]…)

${Object.entries(parts)
  .map(([part, { says }]) => `  ${part.padEnd(11)} ${says}`)
  .join('\n')}

${about}
The exit code is 0 also when a goal is missed: the table says MISSED.`;

export const runParts = async (
  { name, parts }: Pick<Bench, 'name' | 'parts'>,
  quick: boolean,
  names: readonly string[] = Object.keys(parts),
): Promise<readonly BenchRow[]> => {
  const rows: BenchRow[] = [];
  for (const part of names) {
    console.log(`${name}, ${part}: ${parts[part]?.says} …`);
    const own = (await parts[part]?.run(quick)) ?? [];
    if (names.length > 1) printRows(own);
    rows.push(...own);
  }
  return rows;
};

/** The command itself. */
export const benchCommand = async (bench: Bench): Promise<void> => {
  const { parts, machine } = bench;
  const { values, positionals } = parseArgs({ options: { help: { type: 'boolean' } }, allowPositionals: true });
  if (values.help === true) return console.log(helpOf(bench));
  const unknown = positionals.find((part) => parts[part] === undefined);
  if (unknown !== undefined)
    throw new Error(`no part is called ${unknown}: there are ${Object.keys(parts).join(', ')}`);
  const quick = process.env.QUICK === '1';
  if (quick) console.log('QUICK=1: the short form');
  for (const line of await machine()) console.log(line);
  const rows = await runParts(bench, quick, positionals.length === 0 ? Object.keys(parts) : positionals);
  console.log();
  printRows(rows);
};
