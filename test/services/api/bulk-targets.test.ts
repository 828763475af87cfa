import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { testTwinIdOf } from '#domain/ids.ts';
import { type TargetCommand, target as targetDecider } from '#domain/post-target/target.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import type { Answered, Ask } from '#test/support/http.ts';
import { failure } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

interface Target {
  readonly id: string;
  readonly postId: string;
  readonly status: string;
  readonly scheduledAt: string;
  readonly jitterSeconds: number;
}
interface Outcome {
  readonly targetId: string;
  readonly ok: boolean;
  readonly target?: Target;
  readonly error?: { readonly code: string; readonly status: number; readonly errors?: readonly { path: string }[] };
}

const { world, tester, composed: all } = await composedWorld(['x', 'bluesky', 'linkedin']);

suite('one action on many targets', (t) => {
  const made = async (more: Record<string, unknown> = {}): Promise<readonly Target[]> => {
    const post = await tester.post('/posts', all.body(more));
    assert.equal(post.status, 200, post.text);
    return post.data.targets as Target[];
  };
  const bulk = (body: Record<string, unknown>, ask: Ask = {}, by = tester) => by.post('/post-targets/bulk', body, ask);
  const outcomes = (answer: Answered): readonly Outcome[] => {
    assert.equal(answer.status, 200, answer.text);
    return answer.data.results as Outcome[];
  };
  const reported = (answer: Answered) =>
    outcomes(answer).map(({ ok, target, error }) => (ok ? String(target?.status) : String(error?.code)));
  const ids = (targets: readonly Target[]) => targets.map(({ id }) => id);
  const tell = async ({ id, postId }: Target, ...commands: readonly TargetCommand[]) => {
    const context = contextOf(world.operator, testTwinIdOf(world.workspaceId));
    for (const command of commands) {
      await execute(world.store, targetDecider, id, command, context, { partitionKey: postId });
    }
  };
  const claim = { attempt: 1, takeover: 0 };
  const fail = [
    { type: 'Start', now: '2099-01-01T00:00:00.000Z' },
    { type: 'RecordFailed', ...claim, failure },
  ] as const;
  const later = (minutes: number): string => new Date(Date.now() + minutes * 60_000).toISOString();

  t('moves each to an instant, or by minutes that keep its jitter, and answers what a GET answers', async () => {
    const targets = await made({ schedule: { type: 'at', scheduledAt: later(100), spreadMinutes: 30 } });
    const shifted = outcomes(await bulk({ action: 'reschedule', targetIds: ids(targets), shiftMinutes: 45 }));
    for (const [at, { targetId, target }] of shifted.entries()) {
      const before = targets[at];
      assert.equal(targetId, before?.id);
      assert.equal(Date.parse(target?.scheduledAt ?? '') - Date.parse(before?.scheduledAt ?? ''), 45 * 60_000);
      assert.equal(target?.jitterSeconds, before?.jitterSeconds);
      assert.deepEqual((await tester.get(`/post-targets/${targetId}`)).data, target);
    }
    const scheduledAt = later(200);
    const moved = outcomes(await bulk({ action: 'reschedule', targetIds: ids(targets), scheduledAt }));
    assert.deepEqual(
      moved.map(({ target }) => [target?.scheduledAt, target?.jitterSeconds]),
      Array(3).fill([scheduledAt, 0]),
    );
  });

  t(
    'a target that is refused stops no other; unknown and foreign ids are refused alike; one id counts once',
    async () => {
      const [one, two, three] = await made();
      assert.ok(one && two && three);
      await tell(two, ...fail);
      const stranger = await world.agency('Stranger');
      const theirs = await composer(world, ['x'], { by: stranger.tester });
      const foreign = await stranger.tester.post('/posts', theirs.body());
      const [their] = foreign.data.targets as Target[];
      const targetIds = [one.id, two.id, their?.id, randomUUID(), one.id, three.id];
      const answer = await bulk({ action: 'cancel', targetIds });
      assert.deepEqual(reported(answer), ['canceled', 'target_not_pending', 'not_found', 'not_found', 'canceled']);
      assert.deepEqual(
        outcomes(answer).map(({ targetId }) => targetId),
        [...new Set(targetIds)],
      );
      const [, , ours, unknown] = outcomes(answer);
      const bare = (outcome: Outcome | undefined) => JSON.stringify(outcome?.error);
      assert.equal(bare(ours), bare(unknown));
      assert.equal((await stranger.tester.get(`/post-targets/${their?.id}`)).data.status, 'pending');
      const again = await bulk({ action: 'cancel', targetIds: [one.id] });
      assert.deepEqual(reported(again), ['canceled']);
      assert.deepEqual(reported(await bulk({ action: 'retry', targetIds: ids([one, two]), scheduledAt: later(9) })), [
        'target_not_retryable',
        'pending',
      ]);
    },
  );

  t('an id in capitals is the same target, and calls that exclude each other move each target once', async () => {
    const targets = await made();
    const capitals = ids(targets).map((id) => id.toUpperCase());
    const both = await bulk({ action: 'cancel', targetIds: [...ids(targets), ...capitals] });
    assert.deepEqual(reported(both), Array(3).fill('canceled'));
    const others = await made();
    const racing = await Promise.all([
      bulk({ action: 'reschedule', targetIds: ids(others), shiftMinutes: 5 }),
      bulk({ action: 'cancel', targetIds: ids(others).toReversed() }),
      bulk({ action: 'reschedule', targetIds: ids(others), shiftMinutes: 7 }),
    ]);
    assert.deepEqual(reported(racing[1] as Answered), Array(3).fill('canceled'));
    for (const { id } of others) {
      const types = (await world.store.readStream(`target-${id}`)).map(({ type }) => type);
      const moved = racing
        .flatMap(outcomes)
        .filter(({ targetId, ok, target }) => targetId === id && ok && target?.status === 'pending').length;
      assert.equal(types.at(-1), 'TargetCanceled');
      assert.equal(types.filter((type) => type === 'TargetRescheduled').length, moved, types.join());
    }
  });

  t('a target that is planned and not fanned out yet is no unknown one', async () => {
    const [one] = await made();
    const past = await bulk({ action: 'reschedule', targetIds: [one?.id], scheduledAt: '2020-01-01T00:00:00Z' });
    const [outcome] = outcomes(past);
    assert.deepEqual(
      [outcome?.error?.code, outcome?.error?.errors?.map(({ path }) => path)],
      ['schedule_in_past', ['/scheduledAt']],
    );
    const far = await bulk({ action: 'reschedule', targetIds: [one?.id], shiftMinutes: -525_600 });
    assert.deepEqual(
      outcomes(far)[0]?.error?.errors?.map(({ path }) => path),
      ['/shiftMinutes'],
    );
  });

  t('a body that does not fit refuses the call, and changes nothing', async () => {
    const [one] = await made();
    const before = await world.head();
    const targetIds = [one?.id];
    const cases: [Record<string, unknown>, string[]][] = [
      [{ action: 'reschedule', targetIds }, ['']],
      [{ action: 'reschedule', targetIds, scheduledAt: later(5), shiftMinutes: 5 }, ['']],
      [{ action: 'publish', targetIds }, ['/action']],
      [{ action: 'cancel', targetIds: [] }, ['/targetIds']],
      [{ action: 'cancel', targetIds: Array.from({ length: 101 }, () => randomUUID()) }, ['/targetIds']],
      [{ action: 'cancel', targetIds: ['no uuid'] }, ['/targetIds/0']],
      [{ action: 'cancel' }, ['']],
    ];
    for (const [body, paths] of cases) refused(await bulk(body), 422, 'validation_failed', paths);
    assert.equal(await world.head(), before);
  });

  t('a repeat answers the same and moves nothing again; another body under the key is refused', async () => {
    const targets = await made();
    const key = randomUUID();
    const body = { action: 'reschedule', targetIds: [...ids(targets), randomUUID()], shiftMinutes: 60 };
    const answers = await Promise.all(Array.from({ length: 5 }, () => bulk(body, { key })));
    const [first] = answers.map(outcomes);
    for (const one of answers) assert.deepEqual(outcomes(one), first);
    await bulk({ action: 'cancel', targetIds: ids(targets) });
    const again = await bulk(body, { key });
    assert.deepEqual([again.headers.get('idempotent-replayed'), outcomes(again)], ['true', first]);
    for (const { id } of targets) {
      const types = (await world.store.readStream(`target-${id}`)).map(({ type }) => type);
      assert.deepEqual(types, ['TargetScheduled', 'TargetRescheduled', 'TargetCanceled']);
    }
    refused(await bulk({ ...body, shiftMinutes: 61 }, { key }), 422, 'idempotency_key_reused');
    const unkeyed = await bulk({ action: 'cancel', targetIds: ids(targets) }, { key: null });
    assert.deepEqual(reported(unkeyed), Array(3).fill('canceled'));
  });

  t('a repeat shows the content of its time, however often the post was revised since', async () => {
    const [one, two] = await made();
    assert.ok(one && two);
    const [key, alone] = [randomUUID(), randomUUID()];
    const moved = () => bulk({ action: 'reschedule', targetIds: [one.id], shiftMinutes: 60 }, { key });
    const movedAlone = () => tester.post(`/post-targets/${two.id}/reschedule`, { shiftMinutes: 5 }, { key: alone });
    const first = [outcomes(await moved()), (await movedAlone()).data];
    for (const content of ['Second.', 'Third.']) {
      const revised = await tester.post(`/posts/${one.postId}/revise`, { content });
      assert.equal(revised.status, 200, revised.text);
    }
    assert.deepEqual([outcomes(await moved()), (await movedAlone()).data], first);
  });

  t('counts as one request for each target, as debt, and needs its scope', async () => {
    const targets = await made();
    const reader = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', scopes: ['posts.read'] });
    refused(await bulk({ action: 'cancel', targetIds: ids(targets) }, {}, reader.caller), 403, 'insufficient_scope');
    const fresh = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test' });
    const left = (answer: Answered) => Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
    const before = left(await fresh.caller.get('/agency'));
    const targetIds = [...ids(targets), ...ids(targets)];
    assert.equal(before - left(await bulk({ action: 'cancel', targetIds }, {}, fresh.caller)), 3);
  });

  t('a selection: the targets of a post or of a time range, chosen once for all repeats', async () => {
    const own = await composer(world, ['x', 'bluesky']);
    const at = (minutes: number) => ({ schedule: { type: 'at', scheduledAt: later(minutes), spreadMinutes: 20 } });
    const post = async (minutes: number): Promise<readonly Target[]> =>
      (await tester.post('/posts', own.body({ content: randomUUID(), ...at(minutes) }))).data.targets as Target[];
    const [early, late] = [await post(60), await post(600)];
    const from = later(30);
    const select = { clientId: own.clientId, from, to: later(120) };
    const key = randomUUID();
    const shift = { action: 'reschedule', select, shiftMinutes: 20 };
    // Callers at the same time, and a later one: those that still lie in the range are not moved again.
    const answers = await Promise.all(Array.from({ length: 4 }, () => bulk(shift, { key })));
    const again = await bulk(shift, { key });
    const due = (targets: readonly Target[]) => new Map(targets.map((one) => [one.id, Date.parse(one.scheduledAt)]));
    const before = due(early);
    for (const answer of [...answers, again]) {
      assert.deepEqual(
        outcomes(answer)
          .map(({ targetId }) => targetId)
          .toSorted(),
        ids(early).toSorted(),
      );
      for (const { targetId, target } of outcomes(answer)) {
        assert.equal(Date.parse(target?.scheduledAt ?? '') - (before.get(targetId) ?? 0), 20 * 60_000);
      }
    }
    const ofX = { postId: late[0]?.postId, platforms: ['x'] };
    const canceled = outcomes(await bulk({ action: 'cancel', select: ofX }));
    assert.deepEqual(
      canceled.map(({ targetId }) => targetId),
      late.filter((one) => (one as unknown as { platform: string }).platform === 'x').map(({ id }) => id),
    );
    assert.deepEqual(outcomes(await bulk({ action: 'retry', select: ofX })), []);
    const stranger = await world.agency('Stranger of selections');
    const theirs = await bulk({ action: 'cancel', select: { postId: early[0]?.postId } }, {}, stranger.tester);
    assert.deepEqual(outcomes(theirs), [], 'nothing crosses a tenant');
    refused(await bulk({ action: 'cancel', select: { clientId: own.clientId, from } }), 422, 'validation_failed', [
      '/select',
    ]);
    refused(await bulk({ action: 'cancel', select, targetIds: ids(early) }), 422, 'validation_failed', ['']);
    refused(await bulk({ action: 'cancel' }), 422, 'validation_failed', ['']);
  });
});
