/** Warnings before a network ends the version of its API that an installation asks for. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { ApiVersion, ApiVersions } from '#contracts/ports/api-version.ts';
import { workspace } from '#domain/workspace.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createRegistry, Readiness } from '#runtime/process/telemetry.ts';
import { versionsLine, watchVersions } from '#runtime/work/api-versions.ts';
import { NetworkRests } from '#runtime/work/network-rests.ts';
import { reportVersions } from '#services/outcomes/versions.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const dayMs = 86_400_000;
const at = (day: string): number => Date.parse(`${day}T00:00:00.000Z`);
const linkedin: ApiVersion = { version: '202511', endsAt: '2026-11-16', source: 'learn.microsoft.com' };
const x: ApiVersion = { version: 'API v2', endsAt: null, source: 'docs.x.com' };

suite('versions of networks that end', { timeoutMs: 120_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    const owner = { memberId: randomUUID(), name: 'Ann' };
    const born = { type: 'Create', name: 'Agency', timezone: 'UTC', owner } as const;
    await execute(world.store, workspace, world.workspaceId, born, world.context());
    clientId = await world.client();
  });
  t.after(() => world?.close());

  const versions: ApiVersions = { linkedin, x };
  const rounds = (known = new Map<string, true>()) => ({
    ...{ pool: world.pool, store: world.store, logger: world.logger, versions, reported: known },
    config: { sweepIntervalMs: 1_000, leaseTtlMs: 1_000 },
  });
  const tell = (now: number, deps = rounds()) =>
    reportVersions({ ...deps, now: () => now }, AbortSignal.timeout(10_000));
  const reported = async () =>
    (await world.store.readStream(`workspace-${world.workspaceId}`))
      .filter(({ type }) => type === 'NetworkVersionEndReported')
      .map(({ data }) => data as unknown);

  t('a workspace with live accounts hears it 90 and 30 days before and at the end, once each', async () => {
    await world.connect(clientId, 'linkedin', 'of the sandbox');
    await world.connect(clientId, 'x', 'elsewhere', 'live');
    await until('the accounts are there', async () => {
      const { rows } = await world.pool.query<{ n: number }>(`select count(*)::int as n from ${view('accounts')} a`);
      return rows[0]?.n === 2;
    });
    await tell(at('2026-11-20'));
    assert.deepEqual(await reported(), [], 'it has no live account there');
    await world.connect(clientId, 'linkedin', 'live', 'live');
    await until('the account is there', async () => {
      const { rows } = await world.pool.query<{ n: number }>(`select count(*)::int as n from ${view('accounts')} a`);
      return rows[0]?.n === 3;
    });
    const days: readonly [string, readonly string[]][] = [
      ['2026-08-17', []],
      ['2026-08-18', ['ends_in_90_days']],
      ['2026-10-16', ['ends_in_90_days']],
      ['2026-10-17', ['ends_in_90_days', 'ends_in_30_days']],
      ['2026-11-15', ['ends_in_90_days', 'ends_in_30_days']],
      ['2026-11-16', ['ends_in_90_days', 'ends_in_30_days', 'ended']],
      ['2027-01-01', ['ends_in_90_days', 'ends_in_30_days', 'ended']],
    ];
    const kept = rounds();
    for (const [day, stages] of days) {
      // Another process, and the same one again: nothing is known twice.
      await tell(at(day));
      await tell(at(day), kept);
      const { version, endsAt } = linkedin;
      assert.deepEqual(
        await reported(),
        stages.map((stage) => ({ platform: 'linkedin', version, endsAt, stage })),
        day,
      );
    }
  });

  t('what the network itself says comes before the day that it had named', async () => {
    const next: ApiVersions = { linkedin: { ...linkedin, version: '202602', endsAt: '2027-02-15' } };
    const now = at('2026-11-29');
    const rests = new NetworkRests({
      ...{ pool: world.pool, now: () => now, versionOf: () => '202602', logger: world.logger },
    });
    const before = (await reported()).length;
    await tell(now, { ...rounds(), versions: next });
    await rests.rest('live/linkedin', 'Requested version 202602 is not active');
    await tell(now, { ...rounds(), versions: next });
    const stages = (await reported()).slice(before).map((one) => (one as { readonly stage: string }).stage);
    assert.deepEqual(stages, ['ends_in_90_days', 'ended']);
  });

  t('/readyz and the metrics name it from 90 days before on', async () => {
    let now = at('2026-08-17');
    const [registry, readiness] = [createRegistry('test'), new Readiness()];
    watchVersions({ versions, now: () => now, registry, readiness });
    const detail = async () => (await readiness.ask()).find(({ name }) => name === 'network versions')?.detail;
    const left = async () => {
      const found = /^network_version_days_left\{(?=.*linkedin).*\} (-?\d+)$/m.exec(await registry.metrics());
      return Number(found?.[1]);
    };
    assert.deepEqual([await detail(), await left()], [undefined, 91]);
    now += dayMs;
    assert.equal(await detail(), 'linkedin: 202511 ends on 2026-11-16, in 90 days; set a newer version');
    now = at('2026-11-17');
    assert.deepEqual([await left(), /ended on 2026-11-16/.test((await detail()) ?? '')], [-1, true]);
    assert.ok(!(await registry.metrics()).includes('API v2'), 'a network without an end is not measured');
    assert.equal(versionsLine({ x }, now), null);
  });
});
