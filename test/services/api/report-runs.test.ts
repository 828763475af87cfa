import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { type ReportCommand, report } from '#domain/report.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { maxOptionalEvents } from '#runtime/eventing/stream-room.ts';
import type { ReportDefinition } from '#schemas/report.ts';
import { maxWaiting, requireRoomForRun } from '#services/api/reports/run-places.ts';
import { startServer } from '#services/api/server.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Caller, callerOf, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const definition: ReportDefinition = {
  name: 'Monthly',
  kind: 'workspace',
  filters: { clientId: null, socialAccountId: null, platform: null },
  window: 'last_7_days',
  formats: ['pdf', 'csv'],
  schedule: { every: 'week', weekday: 1, dayOfMonth: null, hour: 6 },
};

suite('runs of reports over HTTP', (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world?.close());

  const command = async (workspaceId: string, id: string, what: ReportCommand): Promise<void> => {
    await execute(world.store, report, id, what, contextOf(world.operator, workspaceId), {
      positions: world.operator.positions,
    });
  };
  const define = async (workspaceId: string, over: Partial<ReportDefinition> = {}): Promise<string> => {
    const id = randomUUID();
    await command(workspaceId, id, { type: 'Define', definition: { ...definition, ...over } });
    await world.settled();
    return id;
  };
  const requestsOf = async (id: string) =>
    (await world.store.readStream(`report-${id}`)).filter(({ type }) => type === 'ReportRunRequested');
  const complete = (workspaceId: string, id: string, runId: unknown) => {
    const key = `${workspaceId}/reports/${runId}/report-1.pdf`;
    const file = { format: 'pdf', key, contentType: 'application/pdf', bytes: 4, sha256: 'a'.repeat(64) } as const;
    return command(workspaceId, id, {
      type: 'Complete',
      runId: String(runId),
      asOf: null,
      exports: [file],
      completeness: { complete: true, provisionalDays: [] },
    });
  };
  const agency = async () => {
    const made = await world.agency();
    return { ...made, id: await define(made.workspaceId) };
  };

  t('a run begins now, over the days of the window in the zone of the workspace, and the report shows it', async () => {
    const { owner, workspaceId, id } = await agency();
    const zoned = { type: 'ChangeProfile', name: 'North', timezone: 'Pacific/Kiritimati' } as const;
    await execute(world.store, workspace, workspaceId, zoned, contextOf(world.operator, workspaceId));
    const { status, data, text } = await owner.post(`/reports/${id}/runs`);
    assert.equal(status, 200, text);
    const day = (ms: number) => new Date(ms + 14 * 3_600_000).toISOString().slice(0, 10);
    const now = world.deps.clock();
    assert.deepEqual(
      [data.object, data.reportId, data.status, data.by, data.name, data.from, data.to, data.format],
      ['report_run', id, 'running', 'request', 'Monthly', day(now - 7 * 86_400_000), day(now - 86_400_000), 'pdf'],
    );
    assert.deepEqual([data.exports, data.completedAt, data.failure], [[], null, null]);
    const [event, ...more] = await requestsOf(id);
    assert.deepEqual([event?.data.runId, event?.data.formats, more.length], [data.runId, ['pdf', 'csv'], 0]);
    assert.equal(event?.metadata.actor.type, 'apikey');
    // The caller reads its own run at once.
    const shown = (await owner.get(`/reports/${id}`)).data.runs as Readonly<Record<string, unknown>>[];
    const { object: _object, reportId: _reportId, ...run } = data;
    assert.deepEqual(shown, [run]);
    const asked = await owner.get(`/reports/${id}/exports/${data.runId}`);
    assert.deepEqual([asked.status, asked.body.code], [409, 'run_not_completed']);
    await complete(workspaceId, id, data.runId);
    await world.settled();
    assert.equal((await owner.get(`/reports/${id}/exports/${data.runId}`)).status, 200);
  });

  t('formats may be named, each once; a wrong one is refused', async () => {
    const { owner, id } = await agency();
    const { data } = await owner.post(`/reports/${id}/runs`, { formats: ['json', 'json'] });
    assert.equal(data.format, 'json');
    assert.deepEqual((await requestsOf(id))[0]?.data.formats, ['json']);
    for (const body of [{ formats: [] }, { formats: ['xls'] }, { formats: 'pdf' }]) {
      assert.equal((await owner.post(`/reports/${id}/runs`, body)).body.code, 'validation_failed');
    }
    const warned = await owner.post(`/reports/${id}/runs`, { format: 'pdf' });
    assert.match(warned.text, /unknown_member/);
  });

  t('a repeat under its key is the same run, also of many at once; another request under it is refused', async () => {
    const { owner, workspaceId, id } = await agency();
    const key = randomUUID();
    const path = `/reports/${id}/runs`;
    const answers = await Promise.all(Array.from({ length: 10 }, () => owner.post(path, {}, { key })));
    const runIds = new Set(answers.map(({ data }) => data.runId));
    assert.equal(runIds.size, 1);
    assert.equal((await requestsOf(id)).length, 1);
    const [runId] = runIds;
    await complete(workspaceId, id, runId);
    await world.settled();
    const again = await owner.post(path, {}, { key });
    assert.deepEqual([again.data.runId, again.data.status], [runId, 'running'], 'the first answer');
    assert.equal((await requestsOf(id)).length, 1);
    assert.equal((await owner.post(path, { formats: ['csv'] }, { key })).body.code, 'idempotency_key_reused');
    const { rows } = await world.pool.query('select from ops.report_run_places where workspace_id = $1', [workspaceId]);
    assert.equal(rows.length, 1, 'callers of one key take one place');
    // Without a key nobody can repeat it: each call is a run.
    const free = await Promise.all([owner.post(path, {}, { key: null }), owner.post(path, {}, { key: null })]);
    assert.notEqual(free[0]?.data.runId, free[1]?.data.runId);
  });

  t('of many at once, on two servers and two reports, so many wait as may; ended ones leave their place', async () => {
    const { owner, tester, workspaceId, id } = await agency();
    const ids = [id, await define(workspaceId), await define(testTwinIdOf(workspaceId))];
    // As another process has it: nothing in common but the database.
    const second = await startServer(
      { ...world.deps, pool: Object.create(world.pool) },
      { host: '127.0.0.1', port: 0 },
    );
    const elsewhere = callerOf(() => `http://127.0.0.1:${second.port}/v1`, owner.token);
    try {
      const callers: readonly Caller[] = [owner, elsewhere];
      const raced = await Promise.all(
        Array.from({ length: 60 }, (_, n) => callers[n % 2]?.post(`/reports/${ids[n % 3 === 0 ? 0 : 1]}/runs`)),
      );
      const codes = raced.map((one) => (one?.status === 200 ? 'made' : `${one?.status} ${one?.body.code}`));
      assert.deepEqual(
        [codes.filter((one) => one === 'made').length, codes.filter((one) => one === '409 too_many_runs').length],
        [maxWaiting, 60 - maxWaiting],
        String([...new Set(codes)]),
      );
      assert.equal((await requestsOf(ids[0] ?? '')).length + (await requestsOf(ids[1] ?? '')).length, maxWaiting);
      assert.equal((await tester.post(`/reports/${ids[2]}/runs`)).status, 200, 'the sandbox has its own');
      const [made] = raced.filter((one) => one?.status === 200);
      await complete(workspaceId, String(made?.data.reportId), made?.data.runId);
      await world.settled();
      const after = await Promise.all([1, 2, 3].map(() => elsewhere.post(`/reports/${ids[0]}/runs`)));
      assert.deepEqual(after.map(({ status }) => status).sort(), [200, 409, 409]);
      // A removed report leaves the places of all its runs.
      await command(workspaceId, ids[1] ?? '', { type: 'Remove' });
      await world.settled();
      assert.equal((await owner.post(`/reports/${ids[0]}/runs`)).status, 200);
    } finally {
      await second.stop(500);
    }
  });

  t('of a flood, so many runs as may wait are made, and the others are refused or asked to come again', async () => {
    const { owner, id } = await agency();
    const flood = await Promise.all(Array.from({ length: 300 }, () => owner.post(`/reports/${id}/runs`)));
    const codes = new Set(flood.map(({ status, body: { code = 'made' } }) => `${status} ${code}`));
    assert.deepEqual(
      [...codes].filter((one) => !['200 made', '409 too_many_runs', '503 unavailable'].includes(one)),
      [],
    );
    const made = flood.filter(({ status }) => status === 200);
    assert.equal(made.length, maxWaiting, 'no caller that has a place is sent away');
    assert.equal((await requestsOf(id)).length, maxWaiting);
  });

  t(
    'a place whose caller died before the append lapses after a minute; that of a run that waits does not',
    async () => {
      const { owner, workspaceId, id } = await agency();
      const ask = (runId: string) =>
        requireRoomForRun({ deps: world.deps, workspaceId, behind: async () => false }, id, runId).then(
          () => 'taken',
          ({ code }: { readonly code: string }) => code,
        );
      const { data } = await owner.post(`/reports/${id}/runs`);
      const dead = Array.from({ length: maxWaiting - 1 }, () => randomUUID());
      for (const runId of dead) assert.equal(await ask(runId), 'taken');
      assert.deepEqual([await ask(dead[0] ?? ''), await ask(randomUUID())], ['taken', 'too_many_runs']);
      const age = `update ops.report_run_places set taken_at = now() - interval '2 minutes' where workspace_id = $1`;
      await world.pool.query(age, [workspaceId]);
      // The row of the report shows its newest runs alone: the stream decides.
      await world.pool.query(`update read.reports set runs = '[]' where id = $1`, [id]);
      assert.equal(await ask(randomUUID()), 'taken');
      const left = await world.pool.query('select run_id from ops.report_run_places where workspace_id = $1', [
        workspaceId,
      ]);
      assert.equal(left.rowCount, 2);
      assert.ok(left.rows.some(({ run_id }) => run_id === data.runId));
    },
  );

  t('a report of another workspace, of the sandbox, a removed and an unknown one are no report', async () => {
    const { owner, tester, workspaceId, id } = await agency();
    const gone = await define(workspaceId);
    await command(workspaceId, gone, { type: 'Remove' });
    for (const [caller, name] of [
      [world.owner, id],
      [tester, id],
      [owner, gone],
      [owner, randomUUID()],
    ] as const) {
      const { status, body } = await caller.post(`/reports/${name}/runs`);
      assert.deepEqual([status, body.code], [404, 'not_found']);
    }
    assert.equal((await world.store.readStream(`report-${id}`)).length, 1);
  });

  t('a full report takes no more requested runs, and runs by itself as before', async () => {
    const { owner, workspaceId, id } = await agency();
    const context = contextOf(world.operator, workspaceId);
    const { state } = await world.store.load(report, id);
    const many = Array.from({ length: maxOptionalEvents - 1 }, (_, n) => ({
      type: 'ReportDefined',
      data: { definition: { ...definition, name: `Monthly ${n}` } },
    }));
    assert.equal(state.status, 'live');
    for (let at = 0; at < many.length; at += 500) {
      await world.store.append(`report-${id}`, at, many.slice(at, at + 500), context, id, new Map());
    }
    assert.equal((await owner.post(`/reports/${id}/runs`)).body.code, 'stream_full');
    const at = '2026-03-03T12:00:00.000Z';
    await command(workspaceId, id, {
      ...{ type: 'RequestRun', runId: randomUUID(), at, timezone: 'UTC', by: 'schedule', formats: null },
    });
    assert.equal((await requestsOf(id)).length, 1);
  });

  t('a key needs the scope, its member a role that carries it, and a key for some clients starts none', async () => {
    const { workspaceId, memberId, id } = await agency();
    const path = `/reports/${id}/runs`;
    const refused = async (caller: Caller, code: string): Promise<void> =>
      assert.equal((await caller.post(path)).body.code, code);
    const reader = await world.keyOf(workspaceId, memberId, { scopes: ['reports.read', 'analytics.read'] });
    await refused(reader.caller, 'insufficient_scope');
    const writer = await world.keyOf(workspaceId, memberId, { scopes: ['reports.manage'] });
    assert.equal((await writer.caller.post(path)).status, 200);
    assert.equal((await writer.caller.get('/reports')).body.code, 'insufficient_scope', 'to start is not to read');
    const { data: client } = await (await world.keyOf(workspaceId, memberId)).caller.post('/clients', {
      ...{ name: 'Acme', type: 'brand' },
    });
    const limited = await world.keyOf(workspaceId, memberId, { clientIds: [client.id] });
    await refused(limited.caller, 'client_limited');
    const manager = await world.memberOf(workspaceId, 'manager');
    const { caller } = await world.keyOf(workspaceId, manager, { scopes: ['reports.manage'] });
    assert.equal((await caller.post(path)).status, 200);
    for (const role of ['creator', 'viewer'] as const) {
      const other = await world.keyOf(workspaceId, await world.memberOf(workspaceId, role));
      await refused(other.caller, 'role_required');
    }
    const remove = { type: 'RemoveMember', memberId: manager } as const;
    await execute(world.store, workspace, workspaceId, remove, contextOf(world.operator, workspaceId));
    await world.settled();
    await until('the key has ended', async () => (await caller.post(path)).body.code === 'token_revoked');
  });
});
