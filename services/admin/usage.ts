import { parseArgs } from 'node:util';
import { configHelp } from '#runtime/process/config.ts';
import { callsOut, networks, stores } from '#runtime/process/settings/reads.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { type Command, commands } from './commands.ts';
import type { Given } from './context.ts';

/** Finds the command of a command line in the table. */

export interface Asked {
  readonly command: Command;
  readonly given: Given;
  readonly dataDir: string | undefined;
  readonly json: boolean;
}

/** The settings that a command may read. */
export const adminReads = [
  ...stores,
  ...callsOut,
  ...networks,
  ...(['publishing', 'mediaQuota', 'logLevel', 'logFile'] as const),
] as const;

const common = ['--data DIR', '--json'];

/** `key rotate <key> [--x X]` → words, places and flags. */
const read = ({ usage }: Command) => {
  const words = /^[a-z -]+?(?= <| --| \[|$)/.exec(usage)?.[0].trim().split(' ') ?? [];
  const places = [...usage.matchAll(/<(\w+)>/g)].map(([, name]) => name ?? '');
  const flags = [...usage.matchAll(/(\[)?--([a-z-]+) /g)].map(([, open, name]) => ({
    name: name ?? '',
    required: open === undefined,
  }));
  const switches = [...usage.matchAll(/\[--([a-z-]+)\]/g)].map(([, name]) => name ?? '');
  return { words, places, flags, switches };
};

/** @param args of the command line: a word before --help leaves its commands alone */
export const help = (args: readonly string[] = []): string => {
  const named = commands.filter(({ usage }) => usage.startsWith(`${args[0]} `));
  const listed = named.length > 0 ? named : commands;
  const width = Math.max(...listed.map(({ usage }) => (usage.length <= 48 ? usage.length : 0)));
  const lines = listed.map(({ usage, about }) =>
    usage.length > width ? `  ${usage}\n  ${' '.repeat(width)}  ${about}` : `  ${usage.padEnd(width)}  ${about}`,
  );
  return `Usage: npm run admin -- <command> [${common.join('] [')}]

Works on the data folder of npm start (running or not), or on DATABASE_URL and its companions.
--workspace may be left out where there is only one, those of tours aside.

${lines.join('\n')}

  --data DIR  folder of npm start (default ./data, or DATA_DIR)
  --json      the answer as JSON on standard output

Exit code: 0 done, 1 refused or failed (audit verify, verify-export and replay-bundle: something is not as it was), 2 not
understood.

Environment:

${configHelp(adminReads)}
`;
};

const begins = (words: readonly string[], args: readonly string[]): boolean =>
  words.every((word, at) => args[at] === word);

/** Null asks for the help. @throws UsageError that says what to write instead. */
export const readCommand = (args: readonly string[]): Asked | null => {
  if (args.length === 0 || args.includes('--help') || args.includes('-h')) return null;
  const command = commands.find((one) => begins(read(one).words, args));
  if (command === undefined) {
    const near = commands.filter(({ usage }) => usage.startsWith(`${args[0]} `)).map(({ usage }) => `  ${usage}`);
    throw new UsageError(
      near.length === 0
        ? `There is no command ${JSON.stringify(args[0])}.`
        : `There is no command ${JSON.stringify(args.slice(0, 2).join(' '))}. There are:\n${near.join('\n')}`,
    );
  }
  const { words, places, flags, switches } = read(command);
  const options = Object.fromEntries([
    ...['data', ...flags.map(({ name }) => name)].map((name) => [name, { type: 'string' }] as const),
    ...switches.map((name) => [name, { type: 'boolean' }] as const),
  ]);
  const { values, positionals } = parsed(command, [...args.slice(words.length)], options);
  const given = (name: string): unknown => (values as Readonly<Record<string, unknown>>)[name];
  const has = (name: string): boolean => given(name) === true;
  const flag = (name: string): string | undefined => {
    const value = given(name);
    return typeof value === 'string' ? value : undefined;
  };
  const lacking = [
    ...places.slice(positionals.length).map((name) => `<${name}>`),
    ...flags.filter(({ name, required }) => required && flag(name) === undefined).map(({ name }) => `--${name}`),
  ];
  if (lacking.length > 0) throw new UsageError(`Missing: ${lacking.join(', ')}.\nUsage: ${command.usage}`);
  if (positionals.length > places.length) {
    throw new UsageError(`Too much: ${positionals.slice(places.length).join(' ')}.\nUsage: ${command.usage}`);
  }
  const at = (place: number): string => positionals[place] ?? '';
  return { command, given: { at, flag, has }, dataDir: flag('data'), json: values.json === true };
};

const parsed = (command: Command, args: string[], options: Record<string, { type: 'string' | 'boolean' }>) => {
  try {
    return parseArgs({ args, options: { ...options, json: { type: 'boolean' } }, allowPositionals: true });
  } catch (error) {
    const [why] = (error instanceof Error ? error.message : String(error)).split('. ');
    throw new UsageError(`${why}.\nUsage: ${command.usage}`);
  }
};
