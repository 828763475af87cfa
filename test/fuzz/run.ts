/** `make fuzz`: at least 100,000 generated calls against a service of its own. `--help` lists the options. */
import { parseArgs } from 'node:util';
import { MissingTool, stopAll } from '#contracts/sdk/shell.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { runCleanups } from '#test/support/suite.ts';
import { fuzz, install, prepare } from './recipe.ts';
import { startToured } from './service.ts';

const HELP = `usage: npm run fuzz -- [options]      (or: make fuzz ARGS="[options]")

Calls every operation of a standalone service with generated input, valid and not, walks the links of the contract, and fails at any
5xx and at any answer that the contract does not promise. Rounds of a seed of their own follow each other until there were enough calls.
Needs Python 3.11; fetches the pinned schemathesis once, through pip as it is set up on this machine.

  --calls <n>      begins no further round after so many calls (default 100,000)
  --seed <n>       of the first round; the next ones count on from it (default: the environment's SEED, else random)
  --examples <n>   generated calls of each operation in a round (default 200)
  --help           this text

Ends with "fuzz: N calls, R rounds, F failed, seed S"; exit code 1 when a round failed.`;

const roundMs = 3_600_000;

const readOptions = () => {
  const { values } = parseArgs({
    options: {
      calls: { type: 'string', default: '100000' },
      seed: { type: 'string', default: process.env.SEED ?? String(Math.floor(Math.random() * 2 ** 31)) },
      examples: { type: 'string', default: '200' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return null;
  const number = (name: 'calls' | 'seed' | 'examples'): number => {
    const value = Number(values[name]);
    if (!Number.isInteger(value) || value < 0) throw new Error(`--${name} must be a whole number, not ${values[name]}`);
    return value;
  };
  return { calls: number('calls'), seed: number('seed'), examples: number('examples') };
};

const began = performance.now();
const say = (what: string): void =>
  void process.stdout.write(`${((performance.now() - began) / 1_000).toFixed(0).padStart(5)} s  ${what}\n`);

const main = async (): Promise<void> => {
  const options = readOptions();
  if (options === null) return void process.stdout.write(`${HELP}\n`);
  const { calls, seed, examples } = options;
  const bin = await install(say);
  say('starting a service, which takes its tour');
  const { service, process: child } = await startToured((await testDatabase()).url, dataFolder().dataDir);
  await prepare(service);
  let total = 0;
  let rounds = 0;
  let failed = 0;
  while (total < calls && child.running) {
    const phases = ['examples', 'coverage', 'fuzzing', 'stateful'] as const;
    const report = await fuzz(bin, service, { seed: seed + rounds, phases, examples, everyNth: 1, within: roundMs });
    rounds += 1;
    total += report.cases;
    if (report.failure !== null) {
      failed += 1;
      process.exitCode = 1;
      process.stdout.write(`${report.output}\n`);
    }
    say(
      `round ${rounds}, seed ${seed + rounds - 1}: ${report.cases} calls, ${report.failure === null ? 'clean' : 'failed'}`,
    );
  }
  if (!child.running) {
    process.exitCode = 1;
    say(`the service ended:\n${child.output()}`);
  }
  process.stdout.write(`fuzz: ${total} calls, ${rounds} rounds, ${failed} failed, seed ${seed}\n`);
};

for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, stopAll);
try {
  await main();
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`${error instanceof MissingTool ? error.message : (error as Error).stack}\n`);
} finally {
  await runCleanups();
}
