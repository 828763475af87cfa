/**
 * `make sdk`: makes a client of the contract with each generator, compiles it, and runs a tour of the main job through
 * it. `--help` lists the options.
 */
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { faultsOf } from './checks.ts';
import { type Generator, root } from './client.ts';
import { go } from './go.ts';
import { java } from './java.ts';
import { nswag } from './nswag.ts';
import { openapiPythonClient, python } from './python.ts';
import { startServer } from './server.ts';
import { MissingTool, run, stopAll } from './shell.ts';
import { openapiFetch, typescriptFetch } from './typescript.ts';

const generators: readonly Generator[] = [openapiFetch, openapiPythonClient, python, typescriptFetch, java, go, nswag];

const help = `make sdk ARGS="[--only <name>] [--all] [--keep]"

  --only <name>   one client: ${generators.map(({ name }) => name).join(', ')}; what is not checked counts as a failure
  --all           all of them; what is not checked counts as a failure
  --keep          leaves the generated clients in node_modules/.cache/sdk/clients
  --help          print this

Fetches the pinned generators once, through npm, pip, Maven, Go and .NET as they are set up on this machine. A client whose
tools are missing or whose registry cannot be reached is not checked.`;

const options = {
  help: { type: 'boolean', default: false },
  only: { type: 'string' },
  all: { type: 'boolean', default: false },
  keep: { type: 'boolean', default: false },
} as const;
const print = (line: string): void => void process.stdout.write(`${line}\n`);
const cache = path.join(root, 'node_modules/.cache/sdk');
const clients = path.join(cache, 'clients');
const contract = path.join(root, 'contracts/openapi.json');

let isLeaving = false;
const leave = (): void => {
  isLeaving = true;
  stopAll();
};

type Result = 'whole' | 'failed' | 'not checked';

const attempt = async (generator: Generator, env: Readonly<Record<string, string>>): Promise<Result> => {
  const { name } = generator;
  const folder = path.join(clients, name);
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const log = path.join(cache, `${name}.log`);
  rmSync(log, { force: true });
  const began = performance.now();
  const step = (what: string): void => print(`  ${name}: ${what}`);
  try {
    const made = await generator.make({ contract, folder, tools: path.join(cache, 'tools'), log, step });
    const faults = faultsOf(contract, made);
    if (faults.length > 0) throw new Error(faults.join('\n'));
    let checks = 'no tour';
    if (made.tour !== null) {
      step('the tour');
      const { program, args, cwd, env: own = {} } = made.tour;
      const said = await run(program, args, { cwd, log, env: { ...env, ...own }, within: 180_000 });
      const passed = said.split('\n').filter((line) => line.startsWith('ok')).length;
      if (passed === 0) throw new Error('the tour checked nothing');
      checks = `${passed} checks of the tour`;
    }
    const seconds = ((performance.now() - began) / 1_000).toFixed(0);
    const counts = `${new Set(made.types).size} types, ${checks}`;
    print(`ok ${name}: ${counts}, ${seconds} s`);
    return 'whole';
  } catch (error) {
    if (isLeaving) return 'not checked';
    if (error instanceof MissingTool) {
      print(`-- ${name}: not checked, ${error.message}`);
      return 'not checked';
    }
    print(`FAILED ${name}: ${error instanceof Error ? error.message : String(error)}`);
    return 'failed';
  }
};

const main = async (): Promise<void> => {
  const { values } = parseArgs({ options });
  if (values.help) return print(help);
  const wanted = generators.filter(({ name }) => values.only === undefined || name === values.only);
  if (wanted.length === 0) throw new Error(`there is no client ${values.only}; ${help.split('\n')[2]?.trim()}`);
  const data = path.join(cache, 'data');
  rmSync(data, { recursive: true, force: true });
  mkdirSync(cache, { recursive: true });
  process.once('SIGINT', leave).once('SIGTERM', leave);
  print('  starting a service for the tours');
  const server = await startServer(data);
  const results: Result[] = [];
  try {
    for (const generator of wanted) {
      if (!isLeaving) results.push(await attempt(generator, server.env));
    }
  } finally {
    await server.stop();
    rmSync(data, { recursive: true, force: true });
    if (!values.keep) rmSync(clients, { recursive: true, force: true });
  }
  if (isLeaving) {
    process.exitCode = 130;
    return;
  }
  const count = (result: Result): number => results.filter((one) => one === result).length;
  print(`${count('whole')} whole, ${count('failed')} failed, ${count('not checked')} not checked`);
  const isEachNeeded = values.all || values.only !== undefined;
  process.exitCode = count('failed') > 0 || (isEachNeeded && count('not checked') > 0) ? 1 : 0;
};

await main().catch((error: unknown) => {
  print(error instanceof Error ? error.message : String(error));
  process.exitCode = 1;
});
