import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { recycledPostIdOf } from '#domain/ids.ts';
import { post } from '#domain/post/post.ts';
import { target } from '#domain/post-target/target.ts';
import { workspace } from '#domain/workspace.ts';
import type { DiskBlobs } from '#infra/blob/disk.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { view } from '#projections/shapes.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import { recyclePosts } from '#services/outcomes/recycles.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composer, refused } from '#test/support/composing.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { quick, quickNetwork } from '#test/support/publishing.ts';
import { quotaWorld } from '#test/support/quotas.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const hour = 3_600_000;
const day = 24 * hour;

interface Outcome {
  readonly state: string;
  readonly at: string;
  readonly code: string | null;
  readonly message: string | null;
}
interface Change {
  readonly targetId: string;
  readonly postId: string;
  readonly copyOf: { readonly postId: string; readonly occurrence: number } | null;
  readonly now: Outcome | null;
  readonly then: Outcome | null;
}
interface Simulated {
  readonly targets: number;
  readonly changed: number;
  readonly changes: readonly Change[];
  readonly same: { readonly count: number; readonly targetIds: readonly string[] };
  readonly counts: readonly { readonly state: string; readonly now: number; readonly then: number }[];
  readonly months: readonly { readonly month: string; readonly then: number; readonly over: number }[];
  readonly shiftSkipped: readonly { readonly targetId: string; readonly reason: string }[];
  readonly anew: readonly { readonly postId: string; readonly then: { readonly code: string } | null }[];
}

suite('simulations', { timeoutMs: 180_000 }, (t) => {
  let world: World;
  t.before(async () => {
    world = await startWorld();
  });
  t.after(() => world.close());

  /** Noon of a day well within a month, so that no plan of a test meets the end of one. */
  const base = (() => {
    const at = new Date(Date.now() + 2 * day);
    at.setUTCHours(12, 0, 0, 0);
    if (at.getUTCDate() > 12) at.setUTCMonth(at.getUTCMonth() + 1, 3);
    return at.getTime();
  })();
  const iso = (at: number): string => new Date(at).toISOString();

  const planned = async () => {
    const agency = await world.agency();
    const one = await quotaWorld(world, null, ['x', 'bluesky'], {}, agency);
    const { by, composed, workspaceId } = one;
    const create = async (at: number, more: object = {}) => {
      const body = composed.body({ schedule: { type: 'at', scheduledAt: iso(at) }, ...more });
      const made = await by.post('/posts', body);
      assert.equal(made.status, 200, made.text);
      return made.data as unknown as { id: string; targets: readonly { id: string; accountId: string }[] };
    };
    const ask = (changes: object) => {
      const period = { from: iso(Date.now() + 60_000), to: iso(base + 31 * day) };
      return by.post('/simulations', { clientId: composed.clientId, ...period, ...changes });
    };
    const simulate = async (changes: object): Promise<Simulated> => {
      const answered = await ask(changes);
      assert.equal(answered.status, 200, answered.text);
      return answered.data as unknown as Simulated;
    };
    const rule = async (more: Partial<CadenceRule>) => {
      const command = { platform: null, minIntervalMinutes: null, perDay: null, ...more };
      const context = contextOf(world.operator, workspaceId);
      await execute(world.store, workspace, workspaceId, { type: 'SetCadence', rule: command }, context);
      await world.settled();
      // A process believes the rules that it knows for less than a second.
      await until('the rule is in force', async () => {
        const shown = (await by.post('/posts/preview', composed.body())).data.cadence;
        const all = shown as readonly { readonly minIntervalMinutes: number | null }[] | null;
        return all?.every(({ minIntervalMinutes }) => minIntervalMinutes === command.minIntervalMinutes) === true;
      });
    };
    const limitTo = async (limit: number) => {
      await one.set(limit);
      await until('the quota is in force', async () => {
        const { data } = await by.post('/posts/preview', composed.body());
        return (data.quota as { readonly limit: number | null }).limit === limit;
      });
      await one.sweep();
    };
    return { ...one, agency, create, ask, simulate, rule, limitTo };
  };
  const onX = ({ accounts }: { readonly accounts: Readonly<Record<string, string>> }) => ({
    targets: { mode: 'selection', accountIds: [accounts.x] },
  });

  t(
    'another cadence lets targets wait for the next free time, says which posts it would refuse, and writes nothing',
    async () => {
      const { composed, create, simulate } = await planned();
      const posts: { readonly id: string }[] = [];
      for (const n of [0, 1, 2]) posts.push(await create(base + n * 600_000, onX(composed)));
      const apart = await create(base + 5 * hour, onX(composed));
      await world.settled();
      const before = await world.head();
      const found = await simulate({ cadence: [{ platform: 'twitter', minIntervalMinutes: 60 }] });
      assert.deepEqual(await world.eventsAfter(before), []);
      assert.deepEqual([found.targets, found.changed], [4, 2]);
      assert.deepEqual(
        found.changes.map(({ postId, now, then }) => [postId, now?.at, then?.at, then?.state, then?.code]),
        [1, 2].map((n) => [
          ...[posts[n]?.id, iso(base + n * 600_000), iso(base + n * hour)],
          ...['goes_out', 'cadence_reached'],
        ]),
      );
      assert.equal(found.same.count, 2);
      assert.ok(found.same.targetIds.includes(String(apart.targets[0]?.id)));
      assert.deepEqual(
        found.anew.map(({ postId, then }) => [postId, then?.code]).sort(),
        [...[1, 2].map((n) => [posts[n]?.id, 'cadence_exceeded'])].sort(),
      );
      const never = await simulate({ cadence: [{ perDay: 0 }] });
      assert.deepEqual(
        [...new Set(never.changes.map(({ then }) => [then?.state, then?.code].join()))],
        ['fails,cadence_never_fits'],
      );
      assert.equal(
        never.counts.reduce((sum, { now }) => sum + now, 0),
        4,
      );
    },
  );

  t('a smaller quota takes no place back, and refuses the next ones', async () => {
    const { composed, create, simulate, by, limitTo } = await planned();
    const posts = [await create(base, onX(composed)), await create(base + hour, onX(composed))];
    await world.settled();
    const found = await simulate({ quota: { limit: 1 } });
    assert.equal(found.changed, 0);
    const month = iso(base).slice(0, 7);
    assert.deepEqual(
      found.months.filter((one) => one.month === month).map(({ then, over }) => [then, over]),
      [[2, 1]],
    );
    assert.deepEqual(
      found.anew.map(({ postId, then }) => [postId, then?.code]),
      [[posts[1]?.id, 'quota_exceeded']],
    );
    const { data: campaign } = await by.post('/campaigns', { name: 'Next month' });
    await by.post(`/campaigns/${campaign.id}/assign`, { postIds: posts.map(({ id }) => id) });
    await limitTo(1);
    const moved = await simulate({ shift: { campaignId: campaign.id, days: 31 } });
    const { data: real } = await by.post(`/campaigns/${campaign.id}/shift`, { days: 31 });
    const reasons = (some: unknown) => (some as Simulated['shiftSkipped']).map(({ reason }) => reason);
    assert.deepEqual(reasons(moved.shiftSkipped), ['quota_exceeded']);
    assert.deepEqual(reasons(real.skipped), ['quota_exceeded']);
  });

  t('bounds, unknown things and other clients are refused with their place in the body', async () => {
    const { agency, by, composed, ask } = await planned();
    const cadence = [{ perDay: 3 }];
    refused(await ask({}), 422, 'validation_failed', ['']);
    refused(await ask({ cadence, from: iso(Date.now() - hour) }), 422, 'validation_failed', ['/from']);
    refused(await ask({ cadence, to: iso(base + 200 * day) }), 422, 'validation_failed', ['/to']);
    refused(await ask({ cadence, to: iso(Date.now()) }), 422, 'validation_failed', ['/to']);
    refused(await ask({ shift: { campaignId: randomUUID(), days: 1 } }), 422, 'validation_failed', [
      '/shift/campaignId',
    ]);
    refused(await ask({ shift: { campaignId: randomUUID() } }), 422, 'validation_failed', ['/shift']);
    const unknown = { recycling: [{ postId: randomUUID(), everyDays: 3 }] };
    refused(await ask(unknown), 422, 'validation_failed', ['/recycling/0/postId']);
    refused(await ask({ cadence, clientId: randomUUID() }), 422, 'validation_failed', ['/clientId']);
    const stranger = (await world.agency()).tester;
    const body = { clientId: composed.clientId, cadence };
    refused(await stranger.post('/simulations', body), 422, 'validation_failed', ['/clientId']);
    const draft = await by.post('/posts', composed.body({ saveDraft: true }));
    refused(await ask({ recycling: [{ postId: draft.data.id, everyDays: 3 }] }), 409, 'post_not_scheduled');
    const other = await composer(world, ['x'], { by });
    const made = { mode: 'test' as const, clientIds: [other.clientId] };
    const { caller } = await world.keyOf(agency.workspaceId, agency.memberId, made);
    refused(await caller.post('/simulations', body), 422, 'validation_failed', ['/clientId']);
    const own = { clientId: other.clientId, cadence };
    assert.deepEqual((await caller.post('/simulations', own)).data.months, []);
    refused(await caller.post('/simulations', { ...own, quota: { limit: 3 } }), 422, 'validation_failed', ['/quota']);
    const { caller: weak } = await world.keyOf(agency.workspaceId, agency.memberId, {
      mode: 'test',
      scopes: ['accounts.read'],
    });
    refused(await weak.post('/simulations', own), 403, 'insufficient_scope');
  });

  t('a shift, copies of a recycled post and a cadence come true as they were foreseen', async () => {
    const { seed } = seeded('simulations');
    const kinds = ['shift', 'recycling', 'cadence'] as const;
    const minutes = fc.uniqueArray(fc.integer({ min: 0, max: 400 }), { minLength: 4, maxLength: 6 });
    const plan = fc.record({ minutes, gap: fc.integer({ min: 20, max: 300 }), days: fc.integer({ min: 1, max: 9 }) });
    for (const [index, { gap, days, ...drawn }] of fc.sample(plan, { seed, numRuns: kinds.length }).entries()) {
      const kind = kinds[index] ?? 'shift';
      const one = await planned();
      const { composed, create, simulate, by, rule } = one;
      const campaign = (await by.post('/campaigns', { name: kind })).data.id;
      const ids: string[] = [];
      // An odd number of minutes: no two are exactly as far from each other as a rule asks.
      for (const [n, at] of [...drawn.minutes, (drawn.minutes[0] ?? 0) + 0.5].entries()) {
        const more = { ...onX(composed), ...(n % 2 === 0 ? { campaignId: campaign } : {}) };
        ids.push(String((await create(base + (7 * at + 1) * 60_000, more)).targets[0]?.id));
      }
      const said = `${kind}: ${JSON.stringify({ gap, days, ...drawn })}`;
      if (kind === 'cadence') await cadenceComesTrue(one, ids, gap * 4 + 5, said);
      else if (kind === 'shift') {
        await rule({ minIntervalMinutes: gap });
        // Onto the place of one that does not move with it.
        const [first = 0, second = 0] = drawn.minutes;
        const minutes = 7 * (second - first);
        const shift = { campaignId: campaign, minutes };
        const { shiftSkipped } = await simulate({ shift });
        const found = await simulate({ shift, cadence: [{}] });
        const answer = await by.post(`/campaigns/${campaign}/shift`, { minutes });
        const real = answer.data.skipped as Simulated['shiftSkipped'];
        const sorted = (some: Simulated['shiftSkipped']) => some.toSorted((a, b) => (a.targetId < b.targetId ? -1 : 1));
        assert.deepEqual(sorted(shiftSkipped), sorted(real), said);
        assert.ok(
          real.some(({ reason }) => reason === 'cadence_exceeded'),
          said,
        );
        assert.equal(found.shiftSkipped.length, 0, 'without a rule nothing is passed over');
        for (const id of ids) {
          const { state } = await world.store.load(target, id);
          const change = found.changes.find(({ targetId }) => targetId === id);
          if (state.status === 'none' || change === undefined || real.some(({ targetId }) => targetId === id)) continue;
          assert.equal(state.common.dueAt, change.then?.at, said);
        }
      } else await copiesComeTrue(one, days, said);
    }
  });

  type Planned = Awaited<ReturnType<typeof planned>>;

  /** The worker makes each copy at its hour, as its clock says, and a publisher has it out at its time. */
  const copiesComeTrue = async (one: Planned, everyDays: number, said: string) => {
    const { create, composed, publish, simulate, by, rule } = one;
    const origin = await create(Date.now() + 60_000, onX(composed));
    const idsOf = (targets: readonly { readonly id: string }[]) => targets.map(({ id }) => id);
    await publish(origin.id, idsOf(origin.targets));
    await rule({ minIntervalMinutes: 60 });
    // The month with the plan has room for one copy.
    await one.limitTo((await simulate({ cadence: [{}] })).targets + 1);
    const settings = { everyDays, times: 5 };
    const recycling = [{ postId: origin.id, ...settings }];
    const { changes } = await simulate({ recycling });
    const foreseen = changes.filter(({ copyOf, then }) => copyOf !== null && then?.state === 'goes_out');
    assert.ok(
      changes.length > 0 && changes.every(({ copyOf, now }) => copyOf?.postId === origin.id && now === null),
      said,
    );
    const set = await by.request('PUT', `/posts/${origin.id}/recycle`, { body: settings });
    assert.equal(set.status, 200, set.text);
    const logger = createLogger('test', 'silent');
    const made: (readonly [string, string])[] = [];
    for (;;) {
      await world.settled();
      const { state } = await world.store.load(post, origin.id);
      const next = state.status === 'live' ? state.recycle?.next : null;
      if (state.status !== 'live' || next == null || Date.parse(next.dueAt) >= base + 31 * day) break;
      const now = () => Date.parse(next.dueAt) - hour + 1_000;
      const count = await recyclePosts(
        { store: world.store, pool: world.pool, logger, now },
        new AbortController().signal,
      );
      if (count === 0) continue;
      const copyId = recycledPostIdOf(origin.id, (state.recycle?.posted ?? 0) + 1);
      const { state: copy } = await world.store.load(post, copyId);
      assert.ok(copy.status === 'live', said);
      for (const { targetId, dueAt } of copy.plan.targets) made.push([targetId, dueAt]);
      await publish(
        copyId,
        copy.plan.targets.map(({ targetId }) => targetId),
      );
    }
    assert.deepEqual(
      foreseen.map(({ targetId, then }) => [targetId, then?.at]),
      made,
      said,
    );
  };

  /** A publisher whose clock goes from one instant at which there is work to the next. */
  const cadenceComesTrue = async (
    { simulate, rule, workspaceId }: Planned,
    ids: readonly string[],
    gap: number,
    said: string,
  ) => {
    const change = { minIntervalMinutes: gap, perDay: 3 };
    await world.settled();
    const found = await simulate({ cadence: [change] });
    assert.ok(found.changed > 0, said);
    await rule(change);
    const ahead = { ms: 0 };
    const now = () => Date.now() + ahead.ms;
    const sandbox = new SandboxNetwork({ database: { url: world.db.url }, ...quickNetwork });
    const workDir = await mkdtemp(path.join(tmpdir(), 'postline-simulations-'));
    const network: PlatformAdapter = {
      boundaryDeadlineMs: sandbox.boundaryDeadlineMs,
      settleWindowMs: () => sandbox.settleWindowMs(),
      absenceIsProof: (...asked) => sandbox.absenceIsProof(...asked),
      listsOwnPosts: (...asked) => sandbox.listsOwnPosts(...asked),
      comment: (request, signal) => sandbox.comment(request, signal),
      reconcile: (request, boundary) => sandbox.reconcile(request, boundary),
      publish: async (request, steps) => {
        const outcome = await sandbox.publish(request, steps);
        return outcome.kind === 'published' ? { ...outcome, publishedAt: iso(now()) } : outcome;
      },
    };
    const { store, pool, logger } = world;
    const stopping = new AbortController();
    const deps = { store, pool, blobs: world.deps.blobs as DiskBlobs, workDir, config: quick, logger, pollMs: 50 };
    const clock = { now, fault: () => null };
    const done = runPublisher({ ...deps, clock, adapterOf: () => network, accountsOf: () => sandbox }, stopping.signal);
    const next = async (): Promise<number | null> => {
      const { rows } = await pool.query<{ at: Date | null }>(
        `select min(next_action_at) as at from ${view('post_targets')} t where workspace_id = $1`,
        [workspaceId],
      );
      return rows[0]?.at?.getTime() ?? null;
    };
    for (let at = await next(); at !== null; at = await next()) {
      ahead.ms = at - Date.now();
      const due = at;
      await until(`what is due at ${iso(due)} is done`, async () => {
        await world.settled();
        return ((await next()) ?? Number.POSITIVE_INFINITY) > due + 60_000;
      });
    }
    stopping.abort();
    await done;
    await sandbox.close();
    await rm(workDir, { recursive: true, force: true });
    for (const id of ids) {
      const { state } = await store.load(target, id);
      assert.ok(state.status === 'published', `${said} ${id}: ${state.status}`);
      const change = found.changes.find(({ targetId }) => targetId === id);
      const foreseen = Date.parse(change?.then?.at ?? state.common.dueAt);
      // Each publication takes a moment, by which the next ones are later.
      const late = Date.parse(state.publishedAt) - foreseen;
      assert.ok(late >= -1_000 && late < 60_000, `${said} ${id}: ${late} ms after ${iso(foreseen)}`);
    }
  };
});
