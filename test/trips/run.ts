/**
 * `make trips`: counts the functions and the files of ours that run for one call, from its request until the read models
 * show it. `--help` lists the options.
 */
import { parseArgs } from 'node:util';
import { Coverage, sizeOf } from './coverage.ts';
import { measure } from './measure.ts';
import { trips } from './table.ts';
import { openTripWorld } from './world.ts';

const help = `make trips ARGS="[--only <text>] [--files <text>] [--json]"

  --only <text>   trips that have it in their name
  --files <text>  these trips alone, with their files and how many functions ran in each; files that run
                  without a call too are in brackets
  --json          one line of JSON a trip
  --help          print this

trips: ${trips.map(({ name }) => name).join(', ')}`;

const { values } = parseArgs({
  options: {
    ...{ help: { type: 'boolean' }, only: { type: 'string', default: '' } },
    ...{ files: { type: 'string' }, json: { type: 'boolean' } },
  },
});
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const cells = (name: string, ...counts: readonly (number | string)[]): string =>
  [name.padEnd(24), ...counts.map((one) => String(one).padStart(10))].join('');

const run = async (): Promise<void> => {
  const text = values.files ?? values.only;
  const chosen = trips.filter(({ name }) => name.includes(text));
  if (chosen.length === 0) {
    print(`no trip has "${text}" in its name\n\n${help}`);
    process.exitCode = 64;
    return;
  }
  const coverage = await Coverage.start();
  const world = await openTripWorld();
  if (values.json !== true) {
    print(cells('', 'all', '', 'without idle loops', ''));
    print(cells('trip', 'files', 'functions', 'files', 'functions'));
  }
  for (const trip of chosen) {
    const { name, all, own } = await measure(trip, world, coverage);
    const [whole, without] = [sizeOf(all), sizeOf(own)];
    if (values.json === true) {
      print(JSON.stringify({ name, all: whole, own: without, files: [...own.keys()].sort() }));
      continue;
    }
    print(cells(name, whole.files, whole.functions, without.files, without.functions));
    if (values.files === undefined) continue;
    for (const [file, keys] of [...all].sort(([a], [b]) => a.localeCompare(b))) {
      const mine = own.get(file)?.size ?? 0;
      print(mine === 0 ? `  (${file})` : `  ${file} ${mine === keys.size ? mine : `${mine} of ${keys.size}`}`);
    }
  }
  coverage.stop();
  await world.close();
};

if (values.help === true) print(help);
else await run();
