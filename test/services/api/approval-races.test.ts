/**
 * Whatever people and processes do with a post at the same moment, and wherever an api dies: what goes out is what was
 * approved, or nothing does. `RACES=<n>` sets the number of races.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ApprovalState, approval } from '#domain/approval.ts';
import { approvalIdOf, testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { PostBody } from '#schemas/post.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { recordOutcomes } from '#services/workflows/posts/outcomes.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { checkApprovals } from '#test/faults/check-approvals.ts';
import { type Composer, composedWorld, composer } from '#test/support/composing.ts';
import { interrupted, livingFor } from '#test/support/meddling.ts';
import { failure } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const races = Number(process.env.RACES ?? 10);
const random = seeded('approval races');
const { world, tester } = await composedWorld([]);
const composers = (await Promise.all(
  (['publish', 'fail'] as const).map(async (approvalLate) => {
    const own = await composer(world, ['x', 'bluesky']);
    await tester.patch(`/clients/${own.clientId}`, { approvalRequired: true, rules: { approvalLate } });
    return own;
  }),
)) as [Composer, Composer];
const manager = await world.memberOf(world.workspaceId, 'manager');
const { caller: second } = await world.keyOf(world.workspaceId, manager, { mode: 'test' });
await world.settled();

const hourMs = 3_600_000;
const context = () => contextOf(world.operator, testTwinIdOf(world.workspaceId));

interface Submitted {
  readonly postId: string;
  readonly approvalId: string;
  readonly targetIds: readonly string[];
  readonly dueAt: string;
  /** Of the pages of two guests. */
  readonly tokens: readonly string[];
}

suite('a post that waits for approval, while everybody acts at once', {
  drawn: true,
  costs: 10,
  timeoutMs: 240_000,
}, (t) => {
  const body = (own: Composer, dueAt: string) =>
    own.body({ content: `Words ${randomUUID()}.`, schedule: { type: 'at', scheduledAt: dueAt } });
  const submit = async (own: Composer): Promise<Submitted> => {
    const dueAt = new Date(Date.now() + hourMs).toISOString();
    const made = await tester.post('/posts', body(own, dueAt));
    assert.equal(made.status, 200, made.text);
    const approvalId = String(made.data.approvalId);
    const links = [0, 1].map(() => tester.post(`/approvals/${approvalId}/links`, {}));
    const tokens = (await Promise.all(links)).map(({ data }) => String(data.token));
    const targetIds = (made.data.targets as readonly { readonly id: string }[]).map(({ id }) => id);
    return { postId: made.data.id, approvalId, targetIds, dueAt, tokens };
  };
  const guest = async (token: string | undefined, decision: string): Promise<number> => {
    const form = new URLSearchParams({ decision, name: 'Zoë', comment: 'Mine.' });
    const sent = { method: 'POST', body: form, redirect: 'manual' } as const;
    return (await fetch(`${world.origin()}/approval/${token}`, sent)).status;
  };
  const tell = async (postId: string, id: string, command: TargetCommand): Promise<void> => {
    await execute(world.store, target, id, command, context(), { partitionKey: postId });
  };

  /** What the publisher does at the due time, and what the outcomes make of it. */
  const comesDue = async ({ postId, targetIds, dueAt }: Submitted): Promise<void> => {
    for (const id of targetIds) {
      const { state } = await world.store.load(target, id);
      const now = state.status === 'none' || state.common.dueAt < dueAt ? dueAt : state.common.dueAt;
      const claim = { attempt: 1, takeover: 0 };
      const there = { externalId: 'e', permalink: null, publishedAt: now };
      const steps: readonly TargetCommand[] = [
        { type: 'LapseApproval', now },
        { type: 'Start', now },
        random.next() < 0.8
          ? { type: 'RecordPublished', ...claim, ...there }
          : { type: 'RecordFailed', ...claim, failure },
      ];
      for (const step of steps) await tell(postId, id, step).catch(() => undefined);
    }
  };
  const outcomes = async ({ postId, targetIds }: Submitted): Promise<void> => {
    await fanOut(world.store, postId, context());
    await tendApprovals(world.store, postId);
    for (const id of targetIds) await recordOutcomes(world.store, await world.store.readStream(`target-${id}`));
  };

  type Act = (one: Submitted) => Promise<unknown>;
  const decide =
    (decision: string, by = tester): Act =>
    async ({ approvalId }) =>
      (await by.post(`/approvals/${approvalId}/${decision}`, { comment: 'Mine.' })).status;
  const acts: Readonly<Record<string, Act>> = {
    approve: decide('approve'),
    'another approves': decide('approve', second),
    reject: decide('reject', second),
    'ask for changes': decide('request-changes'),
    'a guest approves': ({ tokens }) => guest(tokens[0], 'approve'),
    'a guest rejects': ({ tokens }) => guest(tokens[1], 'reject'),
    'a guest asks for changes': ({ tokens }) => guest(tokens[1], 'request_changes'),
    revise: ({ postId }) => tester.post(`/posts/${postId}/revise`, { content: `Words ${randomUUID()}.` }),
    'revise times': ({ postId, dueAt }) => {
      const scheduledAt = new Date(Date.parse(dueAt) + hourMs).toISOString();
      return tester.post(`/posts/${postId}/revise`, { schedule: { type: 'at', scheduledAt } });
    },
    'approve what was revised': async ({ postId }) => {
      const { data } = await tester.get(`/posts/${postId}`);
      if (data.approvalId != null) await second.post(`/approvals/${data.approvalId}/approve`, {});
    },
    reschedule: async ({ targetIds, dueAt }) => {
      const scheduledAt = new Date(Date.parse(dueAt) + random.pick([-1, 1]) * 60_000).toISOString();
      await tester.post(`/post-targets/${random.pick(targetIds)}/reschedule`, { scheduledAt });
    },
    cancel: ({ targetIds }) => tester.post(`/post-targets/${random.pick(targetIds)}/cancel`, {}),
    delete: ({ postId }) => tester.delete(`/posts/${postId}`),
    'come due': comesDue,
    'record outcomes': outcomes,
  };

  const streamsOf = async ({ postId, targetIds }: Submitted) => {
    const asked = (await world.store.readStream(`post-${postId}`)).filter(
      ({ type }) => type === 'PostSubmittedForApproval',
    );
    const approvals = asked.map((_, n) => `approval-${approvalIdOf(postId, n + 1)}`);
    const names = [`post-${postId}`, ...targetIds.map((id) => `target-${id}`), ...approvals];
    return new Map(await Promise.all(names.map(async (name) => [name, await world.store.readStream(name)] as const)));
  };

  /** The content that went out with this start of an attempt. */
  const contentAt = (started: number, ofTarget: readonly DecodedEvent[], ofPost: readonly DecodedEvent[]): string => {
    const state = foldEvents(target, ofTarget.slice(0, started + 1));
    const revision = state.status === 'none' ? -1 : state.common.postRevision;
    const written = ofPost.find((one) => one.revision === revision) as DecodedEvent;
    return (written.data.body as PostBody).content;
  };

  const approvers = ['approve', 'another approves'];
  const decisions = ['ApprovalApproved', 'ApprovalRejected', 'ApprovalChangesRequested', 'ApprovalWithdrawn'];

  /** At rest: the invariants of the approvals, and each content that went out was shown to somebody who approved it. */
  const check = async (one: Submitted, what: string): Promise<ReadonlyMap<string, readonly DecodedEvent[]>> => {
    const streams = await streamsOf(one);
    assert.deepEqual(checkApprovals(streams), [], what);
    const ofPost = streams.get(`post-${one.postId}`) ?? [];
    const approved = new Set<unknown>();
    for (const [name, events] of streams) {
      if (!name.startsWith('approval-')) continue;
      const state: ApprovalState = foldEvents(approval, events);
      const decided = events.filter(({ type }) => decisions.slice(0, 3).includes(type));
      assert.ok(decided.length <= 1, `${what}: ${name} was decided twice`);
      if (state.status === 'none' || decided[0]?.type !== 'ApprovalApproved') continue;
      await world.settled();
      const shown = (await tester.get(`/approvals/${name.slice('approval-'.length)}`)).data;
      approved.add((shown.post as { readonly content: string }).content);
    }
    for (const id of one.targetIds) {
      const ofTarget = streams.get(`target-${id}`) ?? [];
      for (const [at, { type }] of ofTarget.entries()) {
        if (type !== 'TargetPublishStarted') continue;
        assert.ok(approved.has(contentAt(at, ofTarget, ofPost)), `${what}: ${id} went out, and nobody approved it`);
      }
    }
    return streams;
  };

  const rest = async (one: Submitted): Promise<void> => {
    for (let round = 0; round < 3; round += 1) await outcomes(one);
  };

  t('any acts at the same moment, some of which die: what went out was approved', async () => {
    let out = 0;
    const won = new Map<string, number>();
    for (let race = 0; race < races; race += 1) {
      const one = await submit(random.pick(composers));
      const named = ['approve', ...random.shuffle(Object.keys(acts).slice(1)).slice(0, random.int(2, 6))];
      const lives = random.next() < 0.3 ? random.int(0, 8) : Number.POSITIVE_INFINITY;
      const { result } = await livingFor(world, lives, () =>
        Promise.all(
          named.map(async (name) => {
            for (let turns = random.int(0, 40); turns > 0; turns -= 1) await new Promise(setImmediate);
            const answer = await acts[name]?.(one).catch((error: unknown) => error);
            return [name, answer] as const;
          }),
        ),
      );
      await rest(one);
      await comesDue(one);
      await rest(one);
      const what = `race ${race} of ${named.join(', ')}`;
      const streams = await check(one, what);
      const winners = result.filter(([, answer]) => answer === 303 || answer === 200);
      assert.ok(winners.length <= 1, `${what}: ${winners.map(([name]) => name)} all decided`);
      for (const [name, answer] of winners) {
        won.set(name, (won.get(name) ?? 0) + 1);
        if (answer !== 200 || !approvers.includes(name)) continue;
        const released = (streams.get(`post-${one.postId}`) ?? []).filter(({ type }) => type === 'PostReleased');
        assert.ok(
          released.some(({ data }) => data.approvalId === one.approvalId),
          `${what}: approved, and never released`,
        );
      }
      const started = [...streams].filter(([, events]) => events.some(({ type }) => type === 'TargetPublishStarted'));
      out += started.length;
    }
    assert.ok(races < 20 || (out > 0 && won.size > 2), `${out} went out, won: ${[...won]}`);
  });

  const statesOf = async ({ targetIds }: Submitted) =>
    (await Promise.all(targetIds.map((id) => world.store.load(target, id)))).map(({ state }) => state);
  const statusesOf = async (one: Submitted) => (await statesOf(one)).map(({ status }) => status);
  const approvalOf = async ({ approvalId }: Submitted) => (await world.store.load(approval, approvalId)).state.status;
  const approve = async ({ approvalId }: Submitted): Promise<number> =>
    (await tester.post(`/approvals/${approvalId}/approve`, {})).status;
  const held = ['awaiting_approval', 'awaiting_approval'];

  /** Runs one right before each append of the other, and the other right before each of its own. */
  const everyWay = async <A, B>(
    own: Composer,
    [first, second]: readonly [(one: Submitted) => Promise<A>, (one: Submitted) => Promise<B>],
    atRest: (one: Submitted, first: A, second: B, what: string) => Promise<void>,
  ): Promise<void> => {
    for (const isTurned of [false, true]) {
      for (let appends = 0; ; appends += 1) {
        assert.ok(appends < 20, 'it never comes to an end');
        const one = await submit(own);
        const what = `${isTurned ? 'the first before append' : 'the second before append'} ${appends} of the other`;
        const acts = { first: () => first(one), second: () => second(one) };
        const turned = async () => {
          const { result, ...met } = await interrupted(world, appends, acts.second, acts.first);
          return 'other' in met ? ([met.other as A, result] as const) : null;
        };
        const straight = async () => {
          const { result, ...met } = await interrupted(world, appends, acts.first, acts.second);
          return 'other' in met ? ([result, met.other as B] as const) : null;
        };
        const results = await (isTurned ? turned() : straight());
        if (results === null) break;
        await rest(one);
        await atRest(one, ...results, what);
        await comesDue(one);
        await rest(one);
        await check(one, what);
      }
    }
  };

  t('approve and revise: nothing is free, and the former approval releases nothing', async () => {
    const revise = ({ postId }: Submitted) =>
      tester.post(`/posts/${postId}/revise`, { content: `Words ${randomUUID()}.` });
    await everyWay(composers[0], [approve, revise], async (one, approved, { status, text }, what) => {
      assert.ok([200, 409].includes(approved), `${what}: ${approved}`);
      assert.equal(status, 200, `${what}: ${text}`);
      assert.deepEqual([await statusesOf(one), await approvalOf(one)], [held, 'withdrawn'], what);
    });
  });

  t('approve and reschedule: both hold, and the approval stays', async () => {
    const later = ({ dueAt }: Submitted) => new Date(Date.parse(dueAt) + 5 * 60_000).toISOString();
    const move = async (one: Submitted) =>
      (await tester.post(`/post-targets/${one.targetIds[0]}/reschedule`, { scheduledAt: later(one) })).status;
    await everyWay(composers[1], [approve, move], async (one, approved, moved, what) => {
      assert.deepEqual([approved, moved], [200, 200], what);
      assert.deepEqual([await statusesOf(one), await approvalOf(one)], [['pending', 'pending'], 'approved'], what);
      const times = (await statesOf(one)).map((state) => (state.status === 'none' ? '' : state.common.dueAt));
      assert.deepEqual(times, [later(one), one.dueAt], what);
    });
  });

  t('approve and reject: the first decides, and the other is told so', async () => {
    const reject = async ({ approvalId }: Submitted) =>
      (await second.post(`/approvals/${approvalId}/reject`, { comment: 'No.' })).status;
    await everyWay(composers[0], [approve, reject], async (one, approved, rejected, what) => {
      assert.deepEqual([approved, rejected].sort(), [200, 409], what);
      const to = approved === 200 ? 'pending' : 'canceled';
      assert.deepEqual(await statusesOf(one), [to, to], what);
    });
  });

  for (const [index, rule] of (['publish', 'fail'] as const).entries()) {
    t(`approve and the due instant, by the rule ${rule}: each target goes out once or, too late, never`, async () => {
      const ends = new Set<string>();
      await everyWay(composers[index as 0 | 1], [approve, comesDue], async (one, approved, _due, what) => {
        assert.ok([200, 409].includes(approved), `${what}: ${approved}`);
        await comesDue(one);
        for (const id of one.targetIds) {
          const types = (await world.store.readStream(`target-${id}`)).map(({ type }) => type);
          const starts = types.filter((type) => type === 'TargetPublishStarted').length;
          const isLate = types.includes('TargetApprovalLapsed');
          assert.equal(starts, isLate ? 0 : 1, `${what}: ${types}`);
          ends.add(isLate ? 'lapsed' : 'went out');
        }
      });
      assert.deepEqual([...ends].sort(), rule === 'fail' ? ['lapsed', 'went out'] : ['went out']);
    });
  }

  /** Each call, made after these others, and what its targets are once the others have ended it. */
  const calls: Readonly<
    Record<
      string,
      { before: Act; call: (one: Submitted, key: string) => Promise<{ readonly status: number }>; to: string }
    >
  > = {
    approve: {
      before: async () => undefined,
      call: ({ approvalId }, key) => tester.post(`/approvals/${approvalId}/approve`, {}, { key }),
      to: 'pending',
    },
    reject: {
      before: async () => undefined,
      call: ({ approvalId }, key) => tester.post(`/approvals/${approvalId}/reject`, { comment: 'No.' }, { key }),
      to: 'canceled',
    },
    'request changes': {
      before: async () => undefined,
      call: ({ approvalId }, key) =>
        tester.post(`/approvals/${approvalId}/request-changes`, { comment: 'No.' }, { key }),
      to: 'canceled',
    },
    'revise what is released': {
      before: approve,
      call: ({ postId }, key) => tester.post(`/posts/${postId}/revise`, { content: `Words ${key}.` }, { key }),
      to: 'awaiting_approval',
    },
    'delete what is released': {
      before: approve,
      call: ({ postId }) => tester.delete(`/posts/${postId}`),
      to: 'canceled',
    },
  };
  for (const [name, { before, call, to }] of Object.entries(calls)) {
    t(`an api that dies before any append of “${name}”: the outcomes end it, and so does the repeat`, async () => {
      for (let appends = 0; ; appends += 1) {
        assert.ok(appends < 20, 'it never comes to an end');
        const one = await submit(random.pick(composers));
        await before(one);
        const key = randomUUID();
        const { result, survived } = await livingFor(world, appends, () => call(one, key));
        // A deletion leaves what became of the post to the outcomes, and answers.
        const isLeft = !survived && name.startsWith('delete') && result.status === 200;
        assert.equal(result.status, survived || isLeft ? 200 : 500);
        // Where it died before its first append nothing was decided.
        if (appends % 2 === 0) await rest(one);
        const again = await call(one, key);
        assert.equal(again.status, 200, `after ${appends} appends`);
        await rest(one);
        assert.deepEqual(await statusesOf(one), [to, to]);
        await comesDue(one);
        await rest(one);
        await check(one, `after ${appends} appends`);
        if (survived) break;
      }
    });
  }

  t(
    'an api that dies before any append of a submission: what exists is held, and the repeat makes one post',
    async () => {
      for (let appends = 0; ; appends += 1) {
        assert.ok(appends < 20, 'it never comes to an end');
        const sent = body(random.pick(composers), new Date(Date.now() + hourMs).toISOString());
        const key = randomUUID();
        const since = await world.head();
        const { survived } = await livingFor(world, appends, () => tester.post('/posts', sent, { key }));
        const made = await tester.post('/posts', sent, { key });
        assert.equal(made.status, 200, made.text);
        const stored = await world.eventsAfter(since);
        const count = (type: string) => stored.filter((one) => one.type === type).length;
        assert.deepEqual(
          ['PostScheduled', 'PostSubmittedForApproval', 'ApprovalRequested', 'TargetHeld', 'TargetReleased'].map(count),
          [1, 1, 1, 2, 0],
          `after ${appends} appends`,
        );
        if (survived) break;
      }
    },
  );
});
