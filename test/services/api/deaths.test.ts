import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { externalRefIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import { report } from '#domain/report.ts';
import { sandboxCall } from '#infra/platforms/sandbox/index.ts';
import { rotationsOf } from '#projections/webhooks/rotations.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { ReportDefinition } from '#schemas/report.ts';
import { pointsInSource } from '#test/faults/points.ts';
import { Due, FaultWorld } from '#test/faults/world.ts';
import { commandContext } from '#test/support/domain.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { failure } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const ofThreads = 'the secret of an app of Threads';

interface Target {
  readonly id: string;
  readonly scheduledAt: string;
  readonly status: string;
}
type Json = Readonly<Record<string, unknown>> & { readonly id: string };

const tomorrow = { type: 'at', scheduledAt: new Date(Date.now() + 86_400_000).toISOString() };

/** An api that is killed inside a call, and the caller who repeats the call under the same key. */
suite('an api killed between two durable effects of a call', { drawn: true, costs: 20, timeoutMs: 240_000 }, (t) => {
  let world: FaultWorld;
  let store: DomainStore;
  let clientId = '';
  let workspaceId = '';
  const dir = mkdtempSync(path.join(tmpdir(), 'postline-deaths-'));
  const due = Due.later(pointsInSource(), dir);

  t.before(async () => {
    const { url } = await preparedDatabase();
    // No figures are read here, so no analytics store needs to run.
    world = await FaultWorld.open({
      ...{ databaseUrl: url, random: seeded('deaths'), analyticsUrl: 'http://127.0.0.1:1' },
      env: { THREADS_CLIENT_ID: '1', THREADS_CLIENT_SECRET: ofThreads },
    });
    world.role('api').dieAt(due);
    await world.begin(['api', 'projections']);
    store = new DomainStore(world.adapters.store, world.codec, world.adapters.log.partitions);
    const [account] = await accounts();
    clientId = String(account?.clientId);
    workspaceId = (await store.readStream(`account-${account?.id}`))[0]?.metadata.workspaceId ?? '';
  });
  t.after(async () => {
    await world?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const accounts = async () =>
    (await world.load.get('/accounts?limit=100')).data as unknown as readonly Readonly<Record<string, string>>[];
  const post = async (route: string, body: unknown, key: string): Promise<Json> => {
    const { status, code, data } = await world.load.call('POST', route, body, key);
    assert.equal(status, 200, `${route}: ${status} ${code}`);
    return data;
  };
  const body = (more: Record<string, unknown> = {}) => ({
    clientId,
    content: 'A word from us.',
    targets: { mode: 'group', clientId, platforms: ['x', 'bluesky', 'linkedin'] },
    schedule: tomorrow,
    ...more,
  });
  const types = async (stream: string) => (await store.readStream(stream)).map(({ type }) => type);

  /** Makes one call, during which the api dies there, and waits for the next api. */
  const dies = async (at: string, method: string, route: string, sent?: unknown, key?: string): Promise<void> => {
    const api = world.role('api');
    const { up } = api;
    due.arm(at);
    const call = fetch(`${world.origin()}/v1${route}`, {
      method,
      headers: {
        authorization: `Bearer ${world.token}`,
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined ? {} : { 'idempotency-key': key }),
      },
      ...(sent === undefined ? {} : { body: JSON.stringify(sent) }),
    });
    await assert.rejects(call, TypeError, `the api answered and did not die at ${at}`);
    assert.deepEqual(due.open, [], `no process died at ${at}`);
    await until('the next api is up', () => api.up !== null && api.up !== up, { withinMs: 60_000 });
  };

  t('inside a bulk of posts: the repeat finds those that exist and creates the rest', async () => {
    const key = randomUUID();
    const own = randomUUID();
    const externalRef = `ref ${randomUUID()}`;
    const posts: Record<string, unknown>[] = Array.from({ length: 30 }, (_, n) => body({ content: `${key} ${n}` }));
    posts[25] = body({ content: ' ' });
    posts[10] = body({ content: `${key} keyed`, idempotencyKey: own });
    posts[20] = body({ content: `${key} keyed`, idempotencyKey: own });
    posts[11] = body({ content: `${key} ref`, externalRef });
    posts[12] = body({ content: `${key} ref again`, externalRef });
    const streams = async (): Promise<readonly string[]> => {
      const { rows } = await world.adapters.pool.query("select stream from es.events where type = 'PostScheduled'");
      const found: string[] = [];
      for (const { stream } of rows) {
        const [first] = await store.readStream(stream);
        if (JSON.stringify(first?.data.body).includes(key)) found.push(stream);
      }
      return found.toSorted();
    };
    await dies('bulk:between-posts', 'POST', '/posts/bulk', { posts }, key);
    const before = await streams();
    assert.ok(before.length >= 1 && before.length < 27, `${before.length} posts`);
    const done = await post('/posts/bulk', { posts }, key);
    const results = done.results as readonly { index: number; status: string; post?: Json; error?: { code: string } }[];
    assert.deepEqual(
      results.map(({ index }) => index),
      [...posts.keys()],
    );
    const rejected = results.flatMap(({ index, error }) => (error === undefined ? [] : [[index, error.code]]));
    assert.deepEqual(rejected.length, 2, JSON.stringify(rejected));
    // Either of the two has the reference, whichever was first.
    assert.ok([11, 12].includes(Number(rejected[0]?.[0])) && rejected[0]?.[1] === 'already_exists', `${rejected}`);
    assert.deepEqual(rejected[1], [25, 'validation_failed']);
    assert.deepEqual([done.created, done.rejected], [28, 2]);
    assert.equal(results[10]?.post?.id, results[20]?.post?.id);
    for (const [index, result] of results.entries())
      if (result.post !== undefined) assert.equal(result.post.content, posts[index]?.content);
    const after = await streams();
    const ids = new Set(results.flatMap(({ post: one }) => (one === undefined ? [] : [`post-${one.id}`])));
    assert.deepEqual(after, [...ids].toSorted());
    assert.ok(before.every((stream) => ids.has(stream)));
    for (const id of ids) {
      const shown = (results.find(({ post: one }) => `post-${one?.id}` === id)?.post?.targets ?? []) as Target[];
      assert.equal(shown.length, 3);
      for (const one of shown) assert.deepEqual(await types(`target-${one.id}`), ['TargetScheduled']);
    }
    assert.deepEqual(await post('/posts/bulk', { posts }, key), done);
    assert.deepEqual(await post('/posts', { ...posts[10], idempotencyKey: undefined }, own), results[10]?.post);
  });

  t('inside a bulk of targets: the repeat moves the rest, and none twice', async () => {
    const made: Target[] = [];
    for (let n = 0; n < 10; n += 1) made.push(...((await post('/posts', body(), randomUUID())).targets as Target[]));
    const unknown = randomUUID();
    const ids = made.map(({ id }) => id);
    const asked = {
      action: 'reschedule',
      targetIds: [...ids.slice(0, 5), unknown, ...ids.slice(5), ids[0]],
      shiftMinutes: 60,
    };
    const key = randomUUID();
    await dies('bulk:between-targets', 'POST', '/post-targets/bulk', asked, key);
    const streams = async () => Promise.all(ids.map((id) => types(`target-${id}`)));
    const moved = (await streams()).filter((one) => one.length === 2).length;
    assert.ok(moved >= 1 && moved < ids.length, `${moved} targets`);
    const done = await post('/post-targets/bulk', asked, key);
    const results = done.results as readonly { targetId: string; ok: boolean; target?: Target; error?: Json }[];
    assert.deepEqual(
      results.map(({ targetId, ok }) => [targetId, ok]),
      [...new Set(asked.targetIds)].map((id) => [id, id !== unknown]),
    );
    for (const { id, scheduledAt } of made) {
      const shown = results.find(({ targetId }) => targetId === id)?.target;
      assert.equal(Date.parse(shown?.scheduledAt ?? '') - Date.parse(scheduledAt), 3_600_000);
    }
    assert.deepEqual(await streams(), Array(ids.length).fill(['TargetScheduled', 'TargetRescheduled']));
    assert.deepEqual(await post('/post-targets/bulk', asked, key), done);
  });

  t('inside a bulk of selected targets: the repeat moves those that were chosen first, and none twice', async () => {
    const due = Date.now() + 40 * 86_400_000;
    const at = (hours: number) => new Date(due + hours * 3_600_000).toISOString();
    const made: Target[] = [];
    for (let n = 0; n < 10; n += 1) {
      const schedule = { type: 'at', scheduledAt: at(0) };
      made.push(...((await post('/posts', body({ schedule }), randomUUID())).targets as Target[]));
    }
    const key = randomUUID();
    // Every target stays in the range.
    const select = { from: at(-2), to: at(2), clientId };
    const asked = { action: 'reschedule', select, shiftMinutes: 60 };
    const shown = async () =>
      (await world.load.get(`/post-targets?from=${select.from}&to=${select.to}&limit=100`))
        .data as unknown as readonly unknown[];
    await until('the targets are listed', async () => (await shown()).length === made.length);
    await dies('bulk:between-targets', 'POST', '/post-targets/bulk', asked, key);
    const late = (await post('/posts', body({ schedule: { type: 'at', scheduledAt: at(1) } }), randomUUID())).targets;
    const done = await post('/post-targets/bulk', asked, key);
    const ids = made.map(({ id }) => id);
    const results = done.results as readonly { readonly targetId: string; readonly ok: boolean }[];
    assert.deepEqual(results.map(({ targetId }) => targetId).toSorted(), ids.toSorted());
    const once = Array(ids.length).fill(['TargetScheduled', 'TargetRescheduled']);
    assert.deepEqual(await Promise.all(ids.map((id) => types(`target-${id}`))), once);
    for (const { id } of late as Target[]) assert.deepEqual(await types(`target-${id}`), ['TargetScheduled']);
    assert.deepEqual(await post('/post-targets/bulk', asked, key), done);
  });

  t('between the event of a moved clock and the rows: whoever asks next carries the move out', async () => {
    const clock = async () => (await world.load.get('/sandbox/clock')).data as unknown as Record<string, string>;
    const rows = async () =>
      (await world.adapters.pool.query('select ahead_ms::int8 as ahead from ops.sandbox_clocks')).rows.map(
        ({ ahead }) => Number(ahead),
      );
    const key = randomUUID();
    const to = new Date(Date.parse((await clock()).now ?? '') + 60_000).toISOString();
    await dies('sandbox:after-move', 'POST', '/sandbox/clock', { to }, key);
    assert.deepEqual(await rows(), []);
    assert.ok(String((await clock()).now) >= to);
    const [ahead = 0] = await rows();
    assert.ok(ahead > 0 && ahead <= 60_000, `${ahead}`);
    const done = await post('/sandbox/clock', { to }, key);
    assert.ok(String(done.now) >= to && String((done.lastMove as { from: string }).from) < to);
    assert.deepEqual(await rows(), [ahead]);
    const moves = (await types(`workspace-${workspaceId}`)).filter((type) => type === 'SandboxClockMoved');
    assert.equal(moves.length, 1);
  });

  t('inside an assignment to a campaign: the repeat moves the rest, and none twice', async () => {
    const campaign = await post('/campaigns', { name: 'Assigned' }, randomUUID());
    const postIds: string[] = [];
    for (let n = 0; n < 20; n += 1) postIds.push((await post('/posts', body({ saveDraft: true }), randomUUID())).id);
    const key = randomUUID();
    const route = `/campaigns/${campaign.id}/assign`;
    await dies('campaign:between-posts', 'POST', route, { postIds }, key);
    const streams = async () => Promise.all(postIds.map((id) => types(`post-${id}`)));
    const joined = (await streams()).filter((one) => one.length === 2).length;
    assert.ok(joined >= 1 && joined < postIds.length, `${joined} posts`);
    const done = await post(route, { postIds }, key);
    const results = done.results as readonly { readonly postId: string; readonly ok: boolean }[];
    assert.deepEqual(
      results.map(({ postId, ok }) => [postId, ok]),
      postIds.map((id) => [id, true]),
    );
    assert.deepEqual(await streams(), Array(postIds.length).fill(['PostDrafted', 'PostCampaignChanged']));
    assert.deepEqual(await post(route, { postIds }, key), done);
  });

  for (const fault of ['campaign:after-shift', 'campaign:between-targets', 'campaign:before-completion']) {
    t(`in a shift of a campaign, at ${fault}: the repeat moves the rest, and none twice`, async () => {
      const campaign = await post('/campaigns', { name: 'Shifted' }, randomUUID());
      const made: Target[] = [];
      for (let n = 0; n < 20; n += 1) {
        made.push(...((await post('/posts', body({ campaignId: campaign.id }), randomUUID())).targets as Target[]));
      }
      const key = randomUUID();
      const route = `/campaigns/${campaign.id}/shift`;
      await dies(fault, 'POST', route, { days: 1 }, key);
      assert.deepEqual(await types(`campaign-${campaign.id}`), ['CampaignCreated', 'CampaignShifted']);
      const done = await post(route, { days: 1 }, key);
      assert.deepEqual([done.shifted, done.skipped], [made.length, []]);
      const streams = await Promise.all(made.map(({ id }) => store.readStream(`target-${id}`)));
      for (const [index, stream] of streams.entries()) {
        assert.deepEqual(
          stream.map(({ type }) => type),
          ['TargetScheduled', 'TargetRescheduled'],
        );
        const [, moved] = stream;
        assert.equal(Date.parse(String(moved?.data.dueAt)) - Date.parse(made[index]?.scheduledAt ?? ''), 86_400_000);
      }
      const last = ['CampaignCreated', 'CampaignShifted', 'CampaignShiftCompleted'];
      assert.deepEqual(await types(`campaign-${campaign.id}`), last);
      assert.deepEqual(await post(route, { days: 1 }, key), done);
    });
  }

  t('between a decision and its post: nothing went out, and the repeat carries the decision out', async () => {
    await world.load.call('PATCH', `/clients/${clientId}`, { approvalRequired: true });
    for (const [decision, left] of [
      ['approve', 'TargetReleased'],
      ['reject', 'TargetCanceled'],
      ['request-changes', 'TargetCanceled'],
    ] as const) {
      const made = await post('/posts', body(), randomUUID());
      const ids = (made.targets as Target[]).map(({ id }) => id);
      const streams = async () => Promise.all(ids.map((id) => types(`target-${id}`)));
      const route = `/approvals/${made.approvalId}/${decision}`;
      const key = randomUUID();
      await dies('approval:after-decision', 'POST', route, { comment: 'Why.' }, key);
      assert.deepEqual(await streams(), Array(ids.length).fill(['TargetScheduled', 'TargetHeld']));
      const done = await post(route, { comment: 'Why.' }, key);
      assert.deepEqual(await streams(), Array(ids.length).fill(['TargetScheduled', 'TargetHeld', left]));
      assert.deepEqual(await post(route, { comment: 'Why.' }, key), done);
      assert.equal((await types(`approval-${made.approvalId}`)).length, 2);
    }
    await world.load.call('PATCH', `/clients/${clientId}`, { approvalRequired: false });
  });

  t(
    'between the discard of a draft and the release of its reference: gone once, and the reference is free',
    async () => {
      for (const repeats of [true, false]) {
        const externalRef = `ref ${randomUUID()}`;
        const draft = await post('/posts', body({ saveDraft: true, externalRef }), randomUUID());
        const claim = `externalref-${externalRefIdOf((await store.readStream(`post-${draft.id}`))[0]?.metadata.workspaceId ?? '', clientId, externalRef)}`;
        await dies('delete:after-append', 'DELETE', `/posts/${draft.id}`);
        assert.deepEqual(await types(`post-${draft.id}`), ['PostDrafted', 'PostDiscarded']);
        assert.deepEqual(await types(claim), ['ExternalRefClaimed']);
        assert.equal((await world.load.get(`/posts/${draft.id}`)).status, 404);
        if (repeats) {
          for (const _ of [1, 2]) {
            const again = await world.load.call('DELETE', `/posts/${draft.id}`);
            assert.deepEqual([again.status, again.data.status], [200, 'discarded']);
          }
          assert.deepEqual(await types(claim), ['ExternalRefClaimed', 'ExternalRefReleased']);
        }
        const next = await post('/posts', body({ externalRef }), randomUUID());
        assert.equal(next.externalRef, externalRef);
        // A late repeat takes nothing from the post that has it now.
        assert.equal((await world.load.call('DELETE', `/posts/${draft.id}`)).status, 200);
        const other = await world.load.call('POST', '/posts', body({ externalRef }), randomUUID());
        assert.equal(other.code, 'already_exists');
        const discards = (await types(`post-${draft.id}`)).filter((type) => type === 'PostDiscarded');
        assert.equal(discards.length, 1);
        assert.equal((await world.load.get(`/posts/${draft.id}`)).status, 404);
      }
    },
  );

  t('between the deletion of a scheduled post and its targets: the repeat cancels each of them once', async () => {
    const made = await post('/posts', body(), randomUUID());
    await dies('delete:after-append', 'DELETE', `/posts/${made.id}`);
    const again = await world.load.call('DELETE', `/posts/${made.id}`);
    assert.equal(again.status, 200, String(again.code));
    for (const { id } of again.data.targets as Target[])
      assert.deepEqual(await types(`target-${id}`), ['TargetScheduled', 'TargetCanceled']);
    const intents = (await types(`post-${made.id}`)).filter((type) => type === 'PostTargetsChanged');
    assert.equal(intents.length, 1);
  });

  t('between the revise of failed targets and its steps: each goes out again once, as revised', async () => {
    const made = await post('/posts', body(), randomUUID());
    const failed = (made.targets as Target[]).slice(1);
    const claim = { attempt: 1, takeover: 0 };
    const tell = async (id: string, command: TargetCommand) => {
      await execute(store, target, id, command, { ...commandContext(), workspaceId }, { partitionKey: made.id });
    };
    for (const { id } of failed) {
      await tell(id, { type: 'Start', now: '2099-01-01T00:00:00.000Z' });
      await tell(id, { type: 'RecordFailed', ...claim, failure });
    }
    const key = randomUUID();
    const revise = { content: 'Another word.' };
    await dies('revise:after-append', 'POST', `/posts/${made.id}/revise`, revise, key);
    for (const { id } of failed) assert.equal((await types(`target-${id}`)).at(-1), 'TargetFailed');
    const done = await post(`/posts/${made.id}/revise`, revise, key);
    const { changed } = done.revise as { changed: readonly string[] };
    assert.deepEqual(changed.toSorted(), (made.targets as Target[]).map(({ id }) => id).toSorted());
    for (const { id } of failed)
      assert.deepEqual((await types(`target-${id}`)).slice(-3), ['TargetFailed', 'TargetRevised', 'TargetRequeued']);
    assert.deepEqual(await post(`/posts/${made.id}/revise`, revise, key), done);
    const revisions = (await types(`post-${made.id}`)).filter((type) => type === 'PostRevised');
    assert.equal(revisions.length, 1);
  });

  t('around the disconnection of an account: the repeat of the call answers it, and it happens once', async () => {
    for (const at of ['request:after-accept', 'request:after-effects']) {
      const leaving = (await accounts()).find(({ status }) => status === 'connected');
      assert.ok(leaving !== undefined);
      const key = randomUUID();
      await dies(at, 'POST', `/accounts/${leaving.id}/disconnect`, undefined, key);
      const done = await post(`/accounts/${leaving.id}/disconnect`, undefined, key);
      assert.equal(done.status, 'disconnected');
      assert.deepEqual(await types(`account-${leaving.id}`), ['AccountConnected', 'AccountDisconnected']);
      assert.deepEqual(await post(`/accounts/${leaving.id}/disconnect`, undefined, key), done);
    }
  });

  t('around a requested run of a report: the repeat of the call is that run, with one place', async () => {
    const reportId = randomUUID();
    const definition: ReportDefinition = {
      ...{ name: 'Figures', kind: 'workspace', window: 'last_7_days', formats: ['csv'], schedule: null },
      filters: { clientId: null, socialAccountId: null, platform: null },
    };
    await execute(store, report, reportId, { type: 'Define', definition }, { ...commandContext(), workspaceId });
    for (const at of ['reports:after-place', 'request:after-effects']) {
      const key = randomUUID();
      const before = await types(`report-${reportId}`);
      await dies(at, 'POST', `/reports/${reportId}/runs`, {}, key);
      const done = await post(`/reports/${reportId}/runs`, {}, key);
      assert.deepEqual(await types(`report-${reportId}`), [...before, 'ReportRunRequested']);
      assert.deepEqual(await post(`/reports/${reportId}/runs`, {}, key), done);
    }
    const { rows } = await world.adapters.pool.query('select from ops.report_run_places where report_id = $1', [
      reportId,
    ]);
    assert.equal(rows.length, 2);
  });

  t('around the row of a rotation: the repeat of the call notes it, and shows the one new secret', async () => {
    const { id } = await post('/webhooks', { url: 'https://hooks.example/deaths', events: ['*'] }, randomUUID());
    const { pool } = world.adapters;
    const revisions: (number | undefined)[] = [];
    for (const at of ['webhook:before-rotation', 'request:after-effects']) {
      const key = randomUUID();
      await dies(at, 'POST', `/webhooks/${id}/rotate-secret`, {}, key);
      revisions.push((await rotationsOf(pool, [id]))[0]?.revision);
      const done = await post(`/webhooks/${id}/rotate-secret`, {}, key);
      assert.match(String(done.secret), /^whsec_/);
      assert.equal((await rotationsOf(pool, [id]))[0]?.revision, done.revision);
      assert.deepEqual(await post(`/webhooks/${id}/rotate-secret`, {}, key), done);
    }
    assert.equal(revisions[0], undefined, 'it died before the row');
    assert.deepEqual(await types(`webhook-${id}`), [
      ...['WebhookRegistered', 'WebhookSecretRotated', 'WebhookSecretRotated'],
    ]);
  });

  t(
    'between the request of a network and its answer: the network repeats it, and gets the code of the first',
    async () => {
      const call = sandboxCall('threads', ofThreads, {
        kind: 'delete_data',
        person: '17841400000000001',
        now: Date.now(),
      });
      assert.ok(call !== null);
      const api = world.role('api');
      const { up } = api;
      const tell = () =>
        fetch(`${world.origin()}/network/threads/delete`, { method: 'POST', headers: call.headers, body: call.body });
      due.arm('network:after-notice');
      await assert.rejects(tell(), TypeError);
      await until('the next api is up', () => api.up !== null && api.up !== up, { withinMs: 60_000 });
      const { rows } = await world.adapters.pool.query('select code, platform, network from ops.network_notices');
      assert.equal(rows.length, 1);
      const code = String(rows[0].code);
      const answer = await tell();
      const said = { url: `http://console.invalid/network/deletion/${code}`, confirmation_code: code };
      assert.deepEqual([answer.status, await answer.json()], [200, said]);
      assert.match(await (await fetch(`${world.origin()}/network/deletion/${code}`)).text(), /under way/);
    },
  );
});
