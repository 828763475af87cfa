import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ReportCommand, report } from '#domain/report.ts';
import { execute } from '#runtime/execute.ts';
import { contextOf } from '#runtime/provision.ts';
import type { ReportDefinition } from '#schemas/report.ts';
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

  t('are listed page by page without their runs, the newest first, and none that was removed', async () => {
    const ids = [await define(), await define({ name: 'Second' }), await define({ name: 'Third', schedule: null })];
    const gone = await define({ name: 'Gone' });
    await command(gone, { type: 'Remove' });
    const first = await world.owner.get('/reports?limit=2');
    assert.deepEqual(
      first.rows.map(({ id }) => id),
      [ids[2], ids[1]],
    );
    const next = await world.owner.get(`/reports?limit=2&cursor=${first.body.page?.nextCursor}`);
    const [row, ...rest] = next.rows;
    assert.ok(row !== undefined);
    assert.deepEqual(rest, []);
    const { name, kind, filters, window, formats, schedule } = definition;
    const { createdAt, updatedAt } = row;
    assert.deepEqual(row, {
      ...{ id: ids[0], object: 'report', name, kind, filters, window, formats, schedule },
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
    await command(id, { type: 'Complete', runId: done, asOf, exports });
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
      failure: null,
    });
    assert.notEqual(completedAt, null);
    assert.deepEqual([runs[1]?.failure, runs[1]?.bytes, runs[0]?.asOf], [failure, null, null]);
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
    await command(id, { type: 'Complete', runId, asOf: null, exports });
    for (const [query, format] of [
      ['', 'pdf'],
      ['?format=pdf', 'pdf'],
      ['?format=csv', 'csv'],
    ] as const) {
      const { data } = await world.owner.get(`${path}${query}`);
      const { url, expiresAt, ...shown } = data as unknown as { url: string; expiresAt: string };
      const told = exports.find((one) => one.format === format);
      const { key: _, ...own } = told ?? assert.fail();
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

  t('another tenant’s, and the other mode’s, are unknown; the scope is asked for', async () => {
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
