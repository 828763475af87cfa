import assert from 'node:assert/strict';
import { check, untilQuiet } from '#test/faults/check.ts';
import { mutated } from '#test/faults/mutants.ts';
import type { Point } from '#test/faults/points.ts';
import { oversleep, type Woken } from '#test/faults/sleeper.ts';
import { FaultWorld } from '#test/faults/world.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { patience } from '#test/support/patience.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { run } from '#test/support/processes.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

/**
 * Runs the checks of the fault tests against broken builds: a check that stays green proves nothing. faults.test.ts shows
 * that the same checks are silent about an intact build.
 */
suite('mutants', { timeoutMs: 240_000 }, (t) => {
  const random = seeded('mutants');
  const worlds: FaultWorld[] = [];

  const opened = async (): Promise<FaultWorld> => {
    const [{ url: databaseUrl }, { url: analyticsUrl }] = await Promise.all([preparedDatabase(), testClickHouse()]);
    const made = await FaultWorld.open({ databaseUrl, analyticsUrl, random });
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

  /** Of the publishers: whole ones first, for the others leave violations in it. */
  let sleepers: FaultWorld;
  const fine: Woken = { target: '', violations: [] };

  t('a publisher that overslept its lease changes nothing', async () => {
    sleepers = await opened();
    await sleepers.begin(['api', 'projections', 'outcomes']);
    const naps = ['publisher:before-claim', 'publisher:before-boundary'] as const;
    for (const nap of naps) assert.deepEqual(await oversleep(sleepers, nap), fine, nap);
  });

  t('claim without revision: the sleeping publisher claims a published target and publishes it twice', async () => {
    sleepers.breakBy('claim without revision');
    const woken = await oversleep(sleepers, 'publisher:before-claim');
    assert.match(woken.violations.join('\n'), /was created 2 times/);
  });

  t('takeover without append: the sleeping publisher crosses the boundary of another one', async () => {
    sleepers.breakBy('takeover without append');
    const woken = await oversleep(sleepers, 'publisher:before-boundary');
    assert.notEqual(woken.target, '');
    await closed(sleepers);
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

  /** Kills the only process of its role there. */
  const dies = (made: FaultWorld, at: Point): Promise<void> => made.dieAtEach([made.role(at.role)], [at]);

  /** Clients are made while the one dispatcher dies in the middle of a batch, and a receiver is gone for a while. */
  const hooked = async (made: FaultWorld): Promise<void> => {
    await dies(made, { name: 'dispatcher:before-mint', role: 'webhooks-1', by: ['race'] });
    made.breakBy('enabled without catching up');
    await made.role('webhooks-1').kill();
    await made.hooks.leave(made.load);
    await made.load.run('race');
  };

  /** In one world, for what each of them leaves behind is told from what the others do. */
  let reported = '';

  t('one world of broken workers: senders, files and reports, killed where their fault shows', async () => {
    const made = await opened();
    made.breakBy('hand-over before the commit');
    made.breakBy('rendition recorded before its file is there');
    made.breakBy('report completed before its files are there');
    await made.begin(['api', 'projections', 'outcomes', 'webhooks-1']);
    await Promise.all([
      hooked(made),
      dies(made, { name: 'media:after-rendition', role: 'media', by: ['upload'] }),
      dies(made, { name: 'reports:after-outcome', role: 'reports', by: ['report'] }),
    ]);
    reported = await reportedOf(made, 60_000 * patience);
    assert.notEqual(reported, '');
  });

  t('hand-over before the commit: an uncommitted delivery is sent, and sent again as the same attempt', () =>
    assert.match(reported, /came as attempts 1, 1/),
  );

  t('enabled without catching up: events missed while the endpoint was off are never minted', () =>
    assert.match(reported, /was never minted/),
  );

  t('rendition recorded before its file is there: a crash in between leaves a name without a file', () =>
    assert.match(reported, /^media-\S+ names the blob (?!.*report-).* which is not there/m),
  );

  t('report completed before its files are there: a crash in between leaves names without files', () =>
    assert.match(reported, /names the blob .*report-.* which is not there/),
  );

  t('position before the observations: a crash in between loses observations', async () => {
    const made = await opened();
    made.breakBy('position before the observations');
    const lost = async (): Promise<string> => {
      await made.begin(['api', 'projections', 'outcomes', 'insights']);
      await dies(made, { name: 'analytics:before-recount', role: 'projections', by: ['refresh'] });
      // The loss may keep the world from becoming quiet.
      return reportedOf(made, 20_000);
    };
    // A reader may detect the loss first.
    const found = await lost().catch(String);
    assert.match(found, /is not in (account_)?observations|ClickHouse lost observations/);
  });

  t('recount without lock: two partitions at once give a wrong count', async () => {
    assert.equal(await projected({}), '[]');
    assert.match(await projected(mutated('recount without lock')), /"account_count":1/);
  });
});
