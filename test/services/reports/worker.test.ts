import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { BlobError, type BlobStore } from '#contracts/ports/blob-store.ts';
import { client } from '#domain/client.ts';
import { markDirty } from '#projections/analytics/dirty.ts';
import { analyticsStore, liveVersion } from '#projections/analytics/live.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { type CounterName, counters } from '#schemas/insights.ts';
import { exportDays, type ReportDefinition } from '#schemas/report.ts';
import { issuesOf } from '#schemas/validator.ts';
import { ReportJson } from '#services/reports/exports/json.ts';
import type { Account } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';
import { definition, ReportsWorld } from './world.ts';

suite('reports worker', { timeoutMs: 180_000, waits: true }, (t) => {
  let world: ReportsWorld;
  let clientId: string;
  let account: Account;
  let targetId: string;
  t.before(async () => {
    world = await ReportsWorld.open();
    clientId = await world.posts.client();
    account = await world.posts.connect(clientId, 'instagram', 'canary-name');
    targetId = await world.observe(account, '2026-02-10', {
      impressions: 100,
      likes: 10,
      shares: null,
      totalInteractions: 10,
    });
    await world.observe(
      account,
      '2026-02-12',
      { impressions: 150, likes: 9, shares: null, totalInteractions: 9 },
      targetId,
    );
  });
  t.after(() => world?.close());

  const jsonOf = async (key: string): Promise<ReportJson> =>
    JSON.parse((await world.bytes(key)).toString()) as ReportJson;

  t('a requested run is made, and its exports match their description and the analytics', async () => {
    const worker = world.start();
    const id = await world.define({ kind: 'client', filters: { ...definition.filters, clientId } });
    const runId = await world.request(id);
    const run = await world.ended(id, runId, 'completed');
    assert.equal(run.asOf, '2026-02-12T06:00:00.000Z');
    assert.deepEqual(
      run.exports.map(({ format }) => format),
      ['json', 'csv', 'pdf'],
    );
    assert.deepEqual(await world.keys(runId), run.exports.map(({ key }) => key).sort());
    for (const { key, bytes, sha256, contentType } of run.exports) {
      const found = await world.bytes(key);
      assert.equal(found.length, bytes);
      assert.equal(createHash('sha256').update(found).digest('hex'), sha256);
      assert.equal((await world.posts.blobs.head(key))?.contentType, contentType);
    }
    const [file] = run.exports;
    const json = await jsonOf(file?.key ?? '');
    assert.deepEqual(issuesOf(ReportJson, json), []);
    assert.equal(json.client, `client ${clientId}`);
    assert.equal(json.workspace, 'Agency');
    assert.deepEqual([json.from, json.to, json.series.length], ['2026-02-01', '2026-03-02', 30]);
    const { impressions, likes, shares, engagementRate } = json.totals;
    assert.deepEqual({ impressions, likes, shares }, { impressions: 150, likes: 9, shares: null });
    assert.equal(engagementRate, 9 / 150);
    const of = (day: string) => json.series.find((one) => one.day === day);
    assert.equal(of('2026-02-12')?.likes, -1);
    assert.equal(of('2026-02-11')?.impressions, undefined);
    assert.deepEqual(
      json.byPlatform.map(({ platform }) => platform),
      ['instagram'],
    );
    const fetched = ['impressions', 'likes', 'shares', 'totalInteractions'];
    assert.deepEqual(Object.keys(json.totals).sort(), [...fetched, 'engagementRate', 'followerCount'].sort());
    assert.deepEqual([json.topPosts?.length, json.topPosts?.[0]?.interactions], [1, 9]);
    // One number asked for in two ways: the report, and the read of the same days.
    const reader = analyticsReader(analyticsStore(world.clickhouse.client, world.posts.pool));
    const read = await reader.client(world.posts.workspaceId, clientId, { from: json.from, to: json.to }, {});
    assert.deepEqual([json.totals, json.byPlatform, json.series], [read.totals, read.byPlatform, read.series]);
    const lines = (await world.bytes(run.exports[1]?.key ?? '')).toString().replace('\ufeff', '').split('\r\n');
    const [header = [], ...cells] = lines.map((line) => line.split(','));
    const figuresIn = (scope: string) =>
      cells
        .filter((row) => row[header.indexOf('scope')] === scope)
        .map((row) => counters.map((name) => row[header.indexOf(name)]));
    const shownAs = (of: Partial<Record<CounterName, number | null>>) => counters.map((name) => String(of[name] ?? ''));
    assert.deepEqual(figuresIn('total'), [shownAs(json.totals)]);
    assert.deepEqual(figuresIn('day'), json.series.map(shownAs));
    assert.deepEqual(figuresIn('platform'), json.byPlatform.map(shownAs));
    const csv = (await world.bytes(run.exports[1]?.key ?? '')).toString();
    assert.ok(csv.startsWith('\ufeffreport,'), 'a spreadsheet knows that it is UTF-8');
    const bare = await world.define({ formats: ['csv'], bom: false });
    const [unmarked] = (await world.ended(bare, await world.request(bare), 'completed')).exports;
    assert.ok((await world.bytes(unmarked?.key ?? '')).toString().startsWith('report,'));
    await worker.stop();
  });

  t('a later correction does not change a finished run; the next run has it', async () => {
    const worker = world.start();
    const id = await world.define({ formats: ['json'] });
    const first = await world.request(id);
    const before = await world.ended(id, first, 'completed');
    const bytes = await world.bytes(before.exports[0]?.key ?? '');
    await world.observe(account, '2026-02-14', { impressions: 90, likes: 9, shares: null }, targetId);
    const second = await world.request(id);
    const after = await world.ended(id, second, 'completed');
    assert.equal((await jsonOf(after.exports[0]?.key ?? '')).totals.impressions, 90);
    assert.equal(after.asOf, '2026-02-14T06:00:00.000Z');
    assert.deepEqual(await world.run(id, first), before);
    assert.ok((await world.bytes(before.exports[0]?.key ?? '')).equals(bytes));
    await worker.stop();
  });

  t('reports of an account, of one network and without data are made', async () => {
    const worker = world.start();
    const filters = { clientId, socialAccountId: account.id, platform: null };
    const ofAccount = await world.define({ kind: 'account', filters, formats: ['json', 'pdf', 'csv'] });
    const narrowed = await world.define({
      filters: { ...definition.filters, platform: 'x' },
      formats: ['json', 'pdf'],
    });
    const runs = [await world.request(ofAccount), await world.request(narrowed)] as const;
    const one = await world.ended(ofAccount, runs[0], 'completed');
    const json = await jsonOf(one.exports[0]?.key ?? '');
    assert.deepEqual(issuesOf(ReportJson, json), []);
    assert.equal(json.platform, 'instagram');
    assert.equal(json.totals.impressions, 90);
    assert.ok('followerCount' in json.totals);
    const none = await world.ended(narrowed, runs[1], 'completed');
    assert.equal(none.asOf, null);
    assert.equal((await jsonOf(none.exports[0]?.key ?? '')).totals.impressions, undefined);
    // Who is behind an account is personal, and a file is kept.
    for (const { key } of one.exports) assert.ok(!(await world.bytes(key)).includes('canary'));
    await worker.stop();
  });

  t('a report about another workspace’s client or account has neither names nor figures', async () => {
    const worker = world.start();
    const stranger = randomUUID();
    await world.workspace(stranger, 'UTC');
    const ids = await Promise.all([
      world.define({ kind: 'client', filters: { ...definition.filters, clientId }, formats: ['json'] }, stranger),
      world.define(
        { kind: 'account', filters: { clientId, socialAccountId: account.id, platform: null }, formats: ['json'] },
        stranger,
      ),
    ]);
    for (const id of ids) {
      const runId = await world.request(id, randomUUID(), stranger);
      const run = await world.ended(id, runId, 'completed');
      assert.deepEqual(
        await world.keys(runId, stranger),
        run.exports.map(({ key }) => key),
      );
      const json = await jsonOf(run.exports[0]?.key ?? '');
      assert.deepEqual([json.client, json.platform, json.asOf, json.totals.impressions], [null, null, null, undefined]);
    }
    await worker.stop();
  });

  t('a removed report no longer runs, and its exports are deleted', async () => {
    const worker = world.start();
    const id = await world.define({ formats: ['json', 'csv'] });
    const runId = await world.request(id);
    await world.ended(id, runId, 'completed');
    assert.equal((await world.keys(runId)).length, 2);
    await world.command(id, { type: 'Remove' });
    await until('they are gone', async () => (await world.keys(runId)).length === 0 && (await world.job(id)) === null);
    await worker.stop();
    // Removed before anybody worked on the run.
    const other = await world.define({ formats: ['csv'] });
    const open = await world.request(other);
    await world.command(other, { type: 'Remove' });
    const next = world.start();
    const marker = await world.define({ formats: ['csv'] });
    await world.ended(marker, await world.request(marker), 'completed');
    await until('no job is left', async () => (await world.job(open)) === null && (await world.job(other)) === null);
    assert.deepEqual(await world.keys(open), []);
    assert.deepEqual(await world.story(other), ['ReportDefined', 'ReportRunRequested', 'ReportRemoved']);
    await next.stop();
  });

  t('a run uses the definition of its report at the time of the request', async () => {
    const other = await world.posts.client();
    const its = {
      name: 'His',
      kind: 'client',
      filters: { ...definition.filters, clientId },
      formats: ['json'],
    } as const;
    const id = await world.define({ ...its, formats: ['json'] });
    const runId = await world.request(id);
    const filters = { ...definition.filters, clientId: other };
    const theirs: ReportDefinition = { ...definition, name: 'Theirs', kind: 'client', filters, formats: ['json'] };
    await world.command(id, { type: 'Define', definition: theirs });
    const worker = world.start();
    const { exports } = await world.ended(id, runId, 'completed');
    const json = await jsonOf(exports[0]?.key ?? '');
    assert.deepEqual([json.name, json.client, json.totals.impressions], ['His', `client ${clientId}`, 90]);
    await worker.stop();
  });

  t('an erased client’s exports are deleted and none is made; other runs and the workspace’s stay', async () => {
    const { posts } = world;
    const [gone, other] = [await posts.client(), await posts.client()];
    const one = await posts.connect(gone, 'x');
    const of = (id: string, over: Partial<ReportDefinition> = {}) =>
      ({
        ...{ ...definition, formats: ['json'], filters: { ...definition.filters, clientId: id } },
        ...over,
      }) as ReportDefinition;
    const worker = world.start();
    const ofAccount = of(gone, {
      ...{ kind: 'account', filters: { clientId: gone, socialAccountId: one.id, platform: null } },
    });
    const [its, accounts, whole, archived] = [
      await world.define(of(gone)),
      await world.define(ofAccount),
      await world.define({ formats: ['json'] }),
      await world.define(of(other)),
    ];
    const ran = async (id: string): Promise<string> => {
      const runId = await world.request(id);
      await world.ended(id, runId, 'completed');
      return runId;
    };
    const theirs = [await ran(its), await ran(accounts)];
    const kept = [await ran(whole), await ran(archived)];
    // One report, about another client by now: each of its runs is about whom it was about.
    await world.command(its, { type: 'Define', definition: of(other) });
    kept.push(await ran(its));
    await posts.archive(other);
    await execute(posts.store, client, gone, { type: 'Erase' }, posts.context());
    await until('they are gone', async () => {
      const left = await Promise.all(theirs.map((runId) => world.keys(runId)));
      return left.flat().length === 0;
    });
    for (const id of [its, accounts]) await until('it is done', async () => (await world.job(id)) === null);
    for (const runId of kept) assert.equal((await world.keys(runId)).length, 1);
    const refused = await world.request(accounts);
    assert.equal((await world.ended(accounts, refused, 'failed')).code, 'client_erased');
    assert.deepEqual(await world.keys(refused), []);
    // Figures of an archived client are still those of the agency.
    await ran(archived);
    await worker.stop();
  });

  t('a client that is erased while a run about it is made leaves no export behind', async () => {
    const gone = await world.posts.client();
    const filters = { ...definition.filters, clientId: gone };
    const id = await world.define({ formats: ['json'], filters });
    const { blobs: own, store, pool } = world.posts;
    // Erased when it is written; heard of, and looked for by another worker, before the run is complete.
    const others: ReturnType<typeof world.start>[] = [];
    const put: BlobStore['put'] = async (key, body, options) => {
      const info = await own.put(key, body, options);
      await execute(store, client, gone, { type: 'Erase' }, world.posts.context());
      const head = async () => {
        const { rows } = await pool.query(
          `select (select max(position) from es.events where topic = 'workspace') <=
             (select max(position) from ops.consumer_positions where consumer_group = 'reports') as there`,
        );
        return rows[0].there === true;
      };
      others.push(world.start());
      await until('it is heard of', head);
      await until('its exports were looked for', async () => (await world.job(id)) === null);
      return info;
    };
    const worker = world.start({ blobs: withMembers(own, { put }) });
    const runId = await world.request(id);
    await world.ended(id, runId, 'completed');
    await until('it is gone', async () => (await world.keys(runId)).length === 0);
    await Promise.all([worker, ...others].map((one) => one.stop()));
  });

  t('exports are deleted when they were kept for 400 days, and no others', async () => {
    const id = await world.define({ formats: ['json'] });
    const daysAgo = (days: number) => () => Date.now() - days * 86_400_000;
    const past = world.start({ now: daysAgo(exportDays - 1) });
    const young = await world.request(id);
    await world.ended(id, young, 'completed');
    await past.stop();
    const longPast = world.start({ now: daysAgo(exportDays + 1) });
    const old = await world.request(id);
    await until('it is made', async () => (await world.run(id, old))?.status === 'completed');
    await until('its files are gone', async () => (await world.keys(old)).length === 0);
    await until('nothing is left to do', async () => (await world.job(old)) === null);
    assert.equal((await world.keys(young)).length, 1);
    assert.deepEqual((await world.story(id)).filter((type) => type === 'ReportRunCompleted').length, 2);
    await longPast.stop();
  });

  t('the worker waits for an unavailable dependency and counts no try', async () => {
    const gone = new Unavailable('The analytics store does not answer.');
    let asked = 0;
    const away = async () => {
      asked += 1;
      throw gone;
    };
    const id = await world.define({ formats: ['json'] });
    const worker = world.start({ analytics: { overview: away, client: away, account: away, top: away } });
    const runId = await world.request(id);
    await until('it was tried more often than a run may fail', () => asked > 7);
    await worker.stop();
    assert.ok(((await world.job(runId))?.attempts ?? 9) <= 1);
    const next = world.start();
    await world.ended(id, runId, 'completed');
    await next.stop();
  });

  t('a run that cannot be made fails after five tries, with a code and words and nothing left behind', async () => {
    const broken = async () => {
      throw new TypeError('a fault of ours');
    };
    const { blobs: own } = world.posts;
    let puts = 0;
    /** The store, which refuses to keep a PDF after it has taken it. */
    const blobs: BlobStore = {
      ...{
        served: own.served,
        head: (key) => own.head(key),
        get: (key) => own.get(key),
        delete: (key) => own.delete(key),
      },
      ...{ localFile: (key, to) => own.localFile(key, to), copy: (from, to, etag) => own.copy(from, to, etag) },
      ...{
        presignPut: (key, options) => own.presignPut(key, options),
        presignGet: (key, one) => own.presignGet(key, one),
        presignOwn: (key, one) => own.presignOwn(key, one),
      },
      ...{ ping: () => own.ping(), close: async () => undefined },
      put: async (key, body, options) => {
        puts += 1;
        const info = await own.put(key, body, options);
        if (options.contentType === 'application/pdf') throw new BlobError('refused', 'no');
        return info;
      },
    };
    // A try that loses its lease is not counted, so no lease may lapse on a slow machine.
    const config = { leaseTtlMs: 60_000, reportWaitMs: 6 * 3_600_000 };
    for (const over of [{ analytics: { overview: broken, client: broken, account: broken, top: broken } }, { blobs }]) {
      const worker = world.start({ ...over, config });
      const id = await world.define();
      const runId = await world.request(id);
      const { code, message } = await world.ended(id, runId, 'failed');
      assert.equal(code, 'report_failed');
      assert.match(message, /Ask for another run/);
      assert.deepEqual(await world.keys(runId), []);
      assert.equal((await world.story(id)).filter((type) => type === 'ReportRunFailed').length, 1);
      await worker.stop();
    }
    assert.equal(puts, 15);
  });

  const laidAside = (worker: ReturnType<typeof world.start>, times: number) =>
    until('it was looked at and laid aside', async () => {
      const found = /report_runs_total\{outcome="waiting"\} (\d+)/.exec(await worker.registry.metrics());
      return Number(found?.[1] ?? 0) >= times;
    });
  const isUntouched = async (id: string, runId: string): Promise<void> => {
    assert.deepEqual(await world.story(id), ['ReportDefined', 'ReportRunRequested']);
    assert.deepEqual(await world.keys(runId), []);
    assert.deepEqual(await world.job(runId), { attempts: 0, written: [] });
    const { rows } = await world.posts.pool.query('select from ops.work_leases where id = $1 and until > now()', [
      runId,
    ]);
    assert.equal(rows.length, 0);
  };

  t('a run waits without a lease for the look that ends its last day, also after its worker stopped', async () => {
    const open = await world.lookedAtYesterday(account);
    const id = await world.define({ formats: ['json'] });
    const runId = await world.request(id, randomUUID(), undefined, open.askedAt);
    const first = world.start();
    await laidAside(first, 6);
    // Other runs of the workspace are made while this one waits.
    const other = await world.define({ formats: ['csv'] });
    await world.ended(other, await world.request(other), 'completed');
    await first.stop();
    await isUntouched(id, runId);
    await open.closed();
    const next = world.start();
    const { completeness, exports } = await world.ended(id, runId, 'completed');
    assert.deepEqual(completeness, { complete: true, provisionalDays: [] });
    const json = await jsonOf(exports[0]?.key ?? '');
    assert.deepEqual(issuesOf(ReportJson, json), []);
    assert.deepEqual(json.completeness, completeness);
    assert.deepEqual([json.to, json.series.at(-1)?.provisional], [open.yesterday, false]);
    await next.stop();
  });

  t('a run of past days waits only until they are counted', async () => {
    const { pool, workspaceId } = world.posts;
    const version = await liveVersion(pool);
    const holder = await pool.connect();
    const lock = `hashtextextended('analytics ' || $1::text || ' ' || $2::text, 0)`;
    const worker = world.start();
    try {
      // Nobody counts the workspace while its lock is held.
      await holder.query(`select pg_advisory_lock(${lock})`, [version, workspaceId]);
      await markDirty(holder, version, [{ workspaceId, day: '2026-02-20', post: true, position: null }]);
      const id = await world.define({ formats: ['json'] });
      const runId = await world.request(id);
      await laidAside(worker, 2);
      assert.equal((await world.run(id, runId))?.status, 'open');
      await holder.query(`select pg_advisory_unlock(${lock})`, [version, workspaceId]);
      const { completeness } = await world.ended(id, runId, 'completed');
      assert.deepEqual(completeness, { complete: true, provisionalDays: [] });
    } finally {
      await holder.query('select pg_advisory_unlock_all()');
      holder.release();
    }
    await worker.stop();
  });

  t('six hours after its request a run is made in any case and names the days that may change', async () => {
    const open = await world.lookedAtYesterday(account);
    const id = await world.define({ formats: ['json', 'csv'] });
    const runId = await world.request(id, randomUUID(), undefined, open.askedAt);
    const asked = Date.parse((await world.run(id, runId))?.requestedAt ?? '');
    const early = world.start({ now: () => asked + 6 * 3_600_000 - 1 });
    await laidAside(early, 2);
    await early.stop();
    await isUntouched(id, runId);
    const late = world.start({ now: () => asked + 6 * 3_600_000 });
    const { completeness, exports } = await world.ended(id, runId, 'completed');
    assert.deepEqual(completeness, { complete: false, provisionalDays: [open.yesterday] });
    const json = await jsonOf(exports[0]?.key ?? '');
    assert.deepEqual(json.completeness, completeness);
    assert.deepEqual(
      json.series.flatMap(({ day, provisional }) => (provisional ? [day] : [])),
      [open.yesterday],
    );
    await late.stop();
    await open.closed();
  });

  t('metrics count completed runs and the length of the queue', async () => {
    const worker = world.start();
    const id = await world.define({ formats: ['csv'] });
    await world.ended(id, await world.request(id), 'completed');
    const tells = (what: RegExp) => until(String(what), async () => what.test(await worker.registry.metrics()));
    await tells(/report_runs_total\{outcome="completed"\} 1/);
    await tells(/report_queue_length 0/);
    // Its days were final: it was made at its first look.
    assert.ok(!(await worker.registry.metrics()).includes('outcome="waiting"'));
    await worker.stop();
  });
});
