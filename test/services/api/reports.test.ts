import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { client } from '#domain/client.ts';
import { exportsEndAt, type ReportCommand, report } from '#domain/report.ts';
import { maxRuns } from '#projections/models/reports.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { exportDays, type ReportDefinition } from '#schemas/report.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

const definition: ReportDefinition = {
  name: 'Monthly',
  kind: 'workspace',
  filters: { clientId: null, socialAccountId: null, platform: 'x' },
  window: 'last_30_days',
  formats: ['pdf', 'csv'],
  schedule: { every: 'week', weekday: 1, dayOfMonth: null, hour: 6 },
};

const final = { complete: true, provisionalDays: [] };

suite('reports over HTTP', (t) => {
  let world: World;
  let other: Caller;
  t.before(async () => {
    world = await startWorld();
    other = (await world.agency('Southern Cross')).owner;
  });
  t.after(() => world?.close());

  const command = async (id: string, what: ReportCommand, workspaceId = world.workspaceId): Promise<void> => {
    await execute(world.store, report, id, what, contextOf(world.operator, workspaceId), {
      positions: world.operator.positions,
    });
    await world.settled();
  };
  const tell = async (id: string, command: ReportCommand, at = Date.now()): Promise<void> => {
    const operator = { ...world.operator, clock: () => at };
    const { positions } = operator;
    await execute(world.store, report, id, command, contextOf(operator, world.workspaceId), { positions });
  };
  const define = async (over: Partial<ReportDefinition> = {}, workspaceId?: string): Promise<string> => {
    const id = randomUUID();
    await command(id, { type: 'Define', definition: { ...definition, ...over } }, workspaceId);
    return id;
  };
  const request = async (id: string): Promise<string> => {
    const runId = randomUUID();
    const at = '2026-03-03T12:00:00.000Z';
    await command(id, { type: 'RequestRun', runId, at, timezone: 'UTC', by: 'request', formats: null });
    return runId;
  };
  const file = (runId: string, format: 'pdf' | 'csv', contentType: string, bytes: Buffer) => ({
    ...{ format, contentType, bytes: bytes.length, sha256: (format === 'pdf' ? 'a' : 'b').repeat(64) },
    key: `${world.workspaceId}/reports/${runId}/report-1.${format}`,
  });

  t('are listed page by page without their runs, the newest first, without removed ones', async () => {
    const ids = [
      await define(),
      await define({ name: 'Second' }),
      await define({ name: 'Third', schedule: null, bom: false }),
    ];
    const gone = await define({ name: 'Gone' });
    await command(gone, { type: 'Remove' });
    const first = await world.owner.get('/reports?limit=2');
    assert.deepEqual(
      first.rows.map(({ id }) => id),
      [ids[2], ids[1]],
    );
    assert.deepEqual(
      first.rows.map(({ bom }) => bom),
      [false, true],
    );
    const next = await world.owner.get(`/reports?limit=2&cursor=${first.body.page?.nextCursor}`);
    const [row, ...rest] = next.rows;
    assert.ok(row !== undefined);
    assert.deepEqual(rest, []);
    const { name, kind, filters, window, formats, schedule } = definition;
    const { createdAt, updatedAt } = row;
    assert.deepEqual(row, {
      ...{ id: ids[0], object: 'report', name, kind, filters, window, formats, schedule, bom: true },
      ...{ createdAt, updatedAt, revision: 0 },
    });
    assert.equal((await world.owner.get('/reports?cursor=nonsense')).body.code, 'invalid_cursor');
    assert.equal((await world.owner.get(`/reports/${gone}`)).status, 404);
  });

  t('one shows its runs, newest first, and how each ended', async () => {
    const id = await define();
    const [done, broken, open] = [await request(id), await request(id), await request(id)];
    const asOf = '2026-03-02T23:00:00.000Z';
    const exports = [
      file(done, 'pdf', 'application/pdf', Buffer.from('%PDF')),
      file(done, 'csv', 'text/csv; charset=utf-8', Buffer.from('a,b\r\n')),
    ];
    const completeness = { complete: false, provisionalDays: ['2026-03-02'] };
    await command(id, { type: 'Complete', runId: done, asOf, exports, completeness });
    const failure = { code: 'report_failed', message: 'It could not be made.' };
    await command(id, { type: 'Fail', runId: broken, ...failure });
    const { data, headers, text } = await world.owner.get(`/reports/${id}`);
    assert.equal(headers.get('etag'), '"5"');
    const runs = data.runs as readonly Record<string, unknown>[];
    assert.deepEqual(
      runs.map(({ runId, status }) => [runId, status]),
      [
        [open, 'running'],
        [broken, 'failed'],
        [done, 'completed'],
      ],
    );
    const days = { from: '2026-02-01', to: '2026-03-02', by: 'request', format: 'pdf' };
    const { startedAt, completedAt } = runs[2] ?? {};
    assert.deepEqual(runs[2], {
      ...{ runId: done, status: 'completed', ...days, asOf, bytes: 4, sha256: 'a'.repeat(64), startedAt, completedAt },
      exports: exports.map(({ key: _, ...shown }) => shown),
      ...{ name: 'Monthly', exportsUntil: exportsEndAt(String(completedAt)), failure: null, completeness },
    });
    assert.notEqual(completedAt, null);
    assert.deepEqual([runs[1]?.failure, runs[1]?.bytes, runs[0]?.asOf], [failure, null, null]);
    assert.deepEqual([runs[1]?.completeness, runs[0]?.completeness], [null, null]);
    assert.ok(!text.includes('report-1.'), 'where it lies is nobody’s business');
    assert.equal((await world.anonymous.get('/errors/report_failed')).status, 200);
  });

  t('an export is fetched by its address, the first format unless another is asked for', async () => {
    const id = await define({ name: 'Übersicht "März"' });
    const runId = await request(id);
    const path = `/reports/${id}/exports/${runId}`;
    assert.equal((await world.owner.get(path)).body.code, 'run_not_completed');
    const contents = { pdf: Buffer.from('%PDF-1.7 x'), csv: Buffer.from('a,b\r\n') };
    const exports = [
      file(runId, 'pdf', 'application/pdf', contents.pdf),
      file(runId, 'csv', 'text/csv; charset=utf-8', contents.csv),
    ];
    for (const { key, contentType, format } of exports) {
      const bytes = contents[format];
      await world.deps.blobs.put(key, bytes, { contentType, bytes: bytes.length });
    }
    await command(id, { type: 'Complete', runId, asOf: null, exports, completeness: final });
    const { runs } = (await world.owner.get(`/reports/${id}`)).data as unknown as {
      readonly runs: readonly { readonly exportsUntil: string }[];
    };
    const until = runs[0]?.exportsUntil;
    for (const [query, format] of [
      ['', 'pdf'],
      ['?format=pdf', 'pdf'],
      ['?format=csv', 'csv'],
    ] as const) {
      const { data } = await world.owner.get(`${path}${query}`);
      const { url, expiresAt, exportsUntil, ...shown } = data as unknown as Record<string, string> & {
        readonly url: string;
        readonly expiresAt: string;
      };
      assert.equal(exportsUntil, until);
      const reported = exports.find((one) => one.format === format);
      const { key: _, ...own } = reported ?? assert.fail();
      assert.deepEqual(shown, { object: 'report_export', reportId: id, runId, ...own });
      const inMs = Date.parse(expiresAt) - Date.now();
      assert.ok(inMs > 14 * 60_000 && inMs <= 15 * 60_000, expiresAt);
      const fetched = await fetch(url);
      assert.equal(fetched.status, 200);
      assert.equal(fetched.headers.get('content-type'), own.contentType);
      assert.match(fetched.headers.get('content-disposition') ?? '', new RegExp(`2026-02-01.*\\.${format}`));
      assert.ok(Buffer.from(await fetched.arrayBuffer()).equals(contents[format]));
    }
    assert.equal((await world.owner.get(`${path}?format=json`)).status, 404);
    assert.equal((await world.owner.get(`${path}?format=docx`)).status, 400);
    assert.equal((await world.owner.get(`/reports/${id}/exports/${randomUUID()}`)).status, 404);
    const failed = await request(id);
    await command(id, { type: 'Fail', runId: failed, code: 'report_failed', message: 'No.' });
    const refused = await world.owner.get(`/reports/${id}/exports/${failed}`);
    assert.deepEqual([refused.status, refused.body.code, refused.body.runStatus], [409, 'run_not_completed', 'failed']);
    await command(id, { type: 'Remove' });
    assert.equal((await world.owner.get(path)).status, 404);
  });

  t('a run that GET /reports/{id} no longer shows is found, and is unchanged', async () => {
    const id = await define();
    const old = await request(id);
    const exports = [file(old, 'pdf', 'application/pdf', Buffer.from('%PDF'))];
    await command(id, { type: 'Complete', runId: old, asOf: null, exports, completeness: final });
    await command(id, { type: 'Define', definition: { ...definition, name: 'Renamed' } });
    const at = '2026-03-03T12:00:00.000Z';
    const broken = randomUUID();
    for (let run = 0; run <= maxRuns; run += 1) {
      const runId = run === 0 ? broken : randomUUID();
      await tell(id, { type: 'RequestRun', runId, at, timezone: 'UTC', by: 'request', formats: null });
      if (run === 0) await tell(id, { type: 'Fail', runId, code: 'report_failed', message: 'No.' });
    }
    await world.settled();
    const { runs } = (await world.owner.get(`/reports/${id}`)).data as unknown as {
      readonly runs: readonly { readonly runId: string }[];
    };
    assert.equal(runs.length, maxRuns);
    assert.ok(!runs.some(({ runId }) => runId === old || runId === broken));
    const { status, data } = await world.owner.get(`/reports/${id}/exports/${old}`);
    assert.deepEqual([status, data.runId, data.sha256], [200, old, 'a'.repeat(64)]);
    assert.match(decodeURIComponent(String(data.url)), /Monthly/);
    assert.equal((await world.owner.get(`/reports/${id}/exports/${broken}`)).body.code, 'run_not_completed');
    assert.equal((await world.owner.get(`/reports/${id}/exports/${randomUUID()}`)).status, 404);
  });

  t('exports beyond their retention and of an erased client answer 404', async () => {
    const clientId = randomUUID();
    const fields = {
      ...({ name: `Erased ${clientId}`, type: 'brand', defaultPostMode: 'now', timezone: null } as const),
      ...{ approvalRequired: false, rules: {}, brandVoice: {} },
    };
    const { positions } = world.operator;
    const context = contextOf(world.operator, world.workspaceId);
    await execute(world.store, client, clientId, { type: 'Create', fields }, context, { positions });
    const id = await define();
    const runsOf = async () =>
      (await world.owner.get(`/reports/${id}`)).data.runs as readonly Record<string, unknown>[];
    const completed = async (at?: number): Promise<string> => {
      const runId = await request(id);
      const exports = [file(runId, 'pdf', 'application/pdf', Buffer.from('%PDF'))];
      await tell(id, { type: 'Complete', runId, asOf: null, exports, completeness: final }, at);
      await world.settled();
      return runId;
    };
    const old = await completed(Date.now() - exportDays * 86_400_000 - 1_000);
    const young = await completed();
    const its = { clientId, socialAccountId: null, platform: null };
    await command(id, { type: 'Define', definition: { ...definition, kind: 'client', filters: its } });
    const ofClient = await completed();
    const answers = async () =>
      Promise.all(
        [old, young, ofClient].map(async (runId) => (await world.owner.get(`/reports/${id}/exports/${runId}`)).status),
      );
    assert.deepEqual(await answers(), [404, 200, 200]);
    await execute(world.store, client, clientId, { type: 'Erase' }, context, { positions });
    await world.settled();
    assert.deepEqual(await answers(), [404, 200, 404]);
    assert.deepEqual(
      (await runsOf()).map((run) => [
        run.status,
        (run.exports as unknown[]).length,
        run.exportsUntil === null,
        run.bytes,
      ]),
      [
        ['completed', 0, true, null],
        ['completed', 1, false, 4],
        ['completed', 0, true, null],
      ],
    );
  });

  t('a file keeps its days and its ending, however long the report’s name is', async () => {
    for (const name of ['N'.repeat(200), `${'N'.repeat(149)}${'🙂'.repeat(20)}`, '報'.repeat(200)]) {
      const id = await define({ name });
      const runId = await request(id);
      const exported = file(runId, 'pdf', 'application/pdf', Buffer.from('%PDF'));
      const { key, contentType, bytes } = exported;
      await world.deps.blobs.put(key, Buffer.from('%PDF'), { contentType, bytes });
      await command(id, { type: 'Complete', runId, asOf: null, exports: [exported], completeness: final });
      const { data } = await world.owner.get(`/reports/${id}/exports/${runId}`);
      const said = (await fetch(String(data.url))).headers.get('content-disposition') ?? '';
      assert.match(said, /filename="[^"]* 2026-02-01 2026-03-02\.pdf"/);
      assert.ok(!said.includes('%EF%BF%BD'), said);
    }
  });

  t('reports of another tenant or of the other mode are unknown; the scope is required', async () => {
    const id = await define();
    const runId = await request(id);
    for (const caller of [other, world.tester]) {
      assert.ok(!(await caller.get('/reports?limit=100')).rows.some((row) => row.id === id));
      for (const path of [`/reports/${id}`, `/reports/${id}/exports/${runId}`]) {
        const foreign = await caller.get(path);
        const unknown = await caller.get(path.replace(id, randomUUID()));
        assert.deepEqual([foreign.status, foreign.body.detail], [404, unknown.body.detail]);
      }
    }
    const { caller } = await world.keyOf(world.workspaceId, world.memberId, { scopes: ['posts.read'] });
    assert.equal((await caller.get('/reports')).body.code, 'insufficient_scope');
  });
});
