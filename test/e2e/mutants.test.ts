import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { check, untilQuiet } from '#test/faults/check.ts';
import { type MutantName, mutantNames, mutants, mutate, mutated } from '#test/faults/mutants.ts';
import type { Point, RoleName } from '#test/faults/points.ts';
import { type Nap, oversleep, type Woken } from '#test/faults/sleeper.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { patience } from '#test/support/patience.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/** How many broken builds a run takes, other ones each time: a build starts four or five processes from its sources. */
const TAKEN = 3;

/**
 * Runs the checks of the fault tests against broken builds: a check that stays green proves nothing. faults.test.ts shows
 * that the same checks are silent about an intact build. `MUTANTS=all` takes every build: before a release, and after a change to
 * these checks.
 */
suite('mutants', { drawn: true, costs: 20, timeoutMs: 240_000 }, (t) => {
  const random = seeded('mutants');
  const taken = process.env.MUTANTS === 'all' ? mutantNames : random.shuffle(mutantNames).slice(0, TAKEN);
  const declared: MutantName[] = [];
  /** What the checks say about one broken build, where this run takes it. */
  const broken = (mutant: MutantName, consequence: string, says: () => Promise<void>): void => {
    declared.push(mutant);
    if (taken.includes(mutant)) t(`${mutant}: ${consequence}`, says);
  };
  const worlds: FaultWorld[] = [];

  const opened = async (mutant: MutantName | null): Promise<FaultWorld> => {
    const [{ url: databaseUrl }, { url: analyticsUrl }] = await Promise.all([preparedDatabase(), testClickHouse()]);
    const broken = mutant === null ? {} : { env: mutated(mutant), brokenMain: mutants[mutant].main };
    const made = await FaultWorld.open({ databaseUrl, analyticsUrl, random, ...broken });
    worlds.push(made);
    return made;
  };
  const closed = async (one: FaultWorld): Promise<void> => {
    await one.close();
    worlds.splice(worlds.indexOf(one), 1);
  };
  t.after(async () => {
    for (const one of worlds) await one.close();
  });

  const asleep = async (mutant: MutantName | null, ...naps: readonly Nap[]): Promise<readonly Woken[]> => {
    const its = await opened(mutant);
    await its.begin(['api', 'projections', 'outcomes']);
    const woken: Woken[] = [];
    for (const nap of naps) woken.push(await oversleep(its, nap));
    await closed(its);
    return woken;
  };
  const fine: Woken = { target: '', violations: [] };

  t('a publisher that overslept its lease changes nothing', async () => {
    assert.deepEqual(await asleep(null, 'publisher:before-claim', 'publisher:before-boundary'), [fine, fine]);
  });

  broken(
    'claim without revision',
    'the sleeping publisher claims a published target and publishes it twice',
    async () => {
      const [woken] = await asleep('claim without revision', 'publisher:before-claim');
      assert.match(woken?.violations.join('\n') ?? '', /was created 2 times/);
    },
  );

  broken('takeover without append', 'the sleeping publisher crosses the boundary of another one', async () => {
    const [woken] = await asleep('takeover without append', 'publisher:before-boundary');
    assert.notEqual(woken?.target, '');
  });

  const projected = async (env: Readonly<Record<string, string>>): Promise<string> => {
    const { url } = await preparedDatabase();
    const { code, output } = await run('test/faults/two-projectors.ts', { args: [url], env });
    assert.equal(code, 0, output);
    return output.trim();
  };

  /** What the checks say when all is quiet, or when it was not within this time; ends the world. */
  const reportedOf = async (made: FaultWorld, limitMs: number): Promise<string> => {
    const open = await untilQuiet(made.checked, limitMs);
    const { violations } = await check(made.checked);
    await closed(made);
    return [...open, ...violations, ...made.violations].join('\n');
  };

  /** Clients are made while the one dispatcher dies in the middle of a batch, and a receiver is gone for a while. */
  const hooked = async (mutant: MutantName): Promise<string> => {
    const made = await opened(mutant);
    await made.begin(['api', 'projections', 'outcomes', 'webhooks-1']);
    await made.dieAtEach(
      [made.role('webhooks-1')],
      [{ name: 'dispatcher:before-mint', role: 'webhooks-1', by: ['race'] }],
    );
    await made.hooks.leave(made.load);
    await made.load.run('race');
    return reportedOf(made, 30_000 * patience);
  };

  broken(
    'hand-over before the commit',
    'an uncommitted delivery is sent, and sent again as the same attempt',
    async () => {
      assert.match(await hooked('hand-over before the commit'), /came as attempts 1, 1/);
    },
  );

  broken('enabled without catching up', 'events missed while the endpoint was off are never minted', async () => {
    assert.match(await hooked('enabled without catching up'), /was never minted/);
  });

  /** Uploads a file and kills the only worker at its rendition. */
  const worked = async (mutant: MutantName): Promise<string> => {
    const made = await opened(mutant);
    await made.begin(['api', 'projections', 'outcomes']);
    await made.dieAtEach([made.role('media')], [{ name: 'media:after-rendition', role: 'media', by: ['upload'] }]);
    return reportedOf(made, 60_000 * patience);
  };

  broken('rendition recorded before its file is there', 'a crash in between leaves a name without a file', async () => {
    assert.match(await worked('rendition recorded before its file is there'), /names the blob .* which is not there/);
  });

  /** Kills one worker at one fault point under load. The loss may keep the world from becoming quiet. */
  const died = async (mutant: MutantName, others: readonly RoleName[], at: Point): Promise<string> => {
    const made = await opened(mutant);
    await made.begin(['api', 'projections', 'outcomes', ...others]);
    await made.dieAtEach([made.role(at.role)], [at]);
    return reportedOf(made, 20_000);
  };

  broken('position before the observations', 'a crash in between loses observations', async () => {
    const at: Point = { name: 'analytics:before-recount', role: 'projections', by: ['refresh'] };
    // A reader may detect the loss first.
    const reported = await died('position before the observations', ['insights'], at).catch(String);
    assert.match(reported, /is not in (account_)?observations|ClickHouse lost observations/);
  });

  broken('report completed before its files are there', 'a crash in between leaves names without files', async () => {
    const at: Point = { name: 'reports:after-outcome', role: 'reports', by: ['report'] };
    const reported = await died('report completed before its files are there', [], at);
    assert.match(reported, /names the blob .*report-.* which is not there/);
  });

  broken('recount without lock', 'two partitions at once give a wrong count', async () => {
    assert.equal(await projected({}), '[]');
    assert.match(await projected(mutated('recount without lock')), /"account_count":1/);
  });

  t('each broken build has its test, and its statement stands in the sources', () => {
    assert.deepEqual([...declared].sort(), [...mutantNames].sort());
    for (const name of mutantNames) {
      const { file, to } = mutants[name];
      const source = readFileSync(path.resolve(import.meta.dirname, '../..', file), 'utf8');
      assert.notEqual(mutate(source, name, to), source, name);
    }
  });
});
