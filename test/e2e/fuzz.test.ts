/**
 * A short seeded run of `make fuzz`: generated calls of every operation against a standalone service, valid and not. No
 * answer is a 5xx, and each is one that the contract promises.
 */
import assert from 'node:assert/strict';
import { fuzz, install, prepare, type Service } from '#test/fuzz/recipe.ts';
import { startToured } from '#test/fuzz/service.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import type { Process } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';

const minCalls = 500;

const name = `at least ${minCalls} get the answers that it promises`;

/** Without Python, or where pip reaches no packages, a machine other than CI leaves the run out. */
const found = await install(() => undefined).then(
  (bin) => ({ bin }),
  (error: Error) => ({ missing: error.message }),
);

suite('generated calls of the contract', { timeoutMs: 420_000 }, (t) => {
  if ('missing' in found) return t.skip(name, found.missing);
  let service: Service;
  let running: Process;
  t.before(async () => {
    const started = await startToured((await preparedDatabase()).url, dataFolder().dataDir);
    ({ service, process: running } = started);
    await prepare(service);
  });
  t.after(async () => void (await running.stop()));

  t(name, async () => {
    const phases = ['examples', 'coverage', 'fuzzing', 'stateful'] as const;
    const report = await fuzz(found.bin, service, { seed: 20_261, phases, examples: 1, everyNth: 16, within: 360_000 });
    assert.equal(report.failure, null, report.output);
    assert.ok(report.cases >= minCalls, `only ${report.cases} calls were made`);
    assert.ok(running.running, running.output());
  });
});
