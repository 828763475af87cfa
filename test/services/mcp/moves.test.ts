import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type Composer, composer } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { type Called, callMessage, connect, type Mcp, mcpWorld, send, worked } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** Moving, retrying and canceling of many targets by an agent. */

interface Target {
  readonly targetId: string;
  readonly scheduledAt: string;
  readonly platform: string;
  readonly status: string;
}

const minute = 60_000;

suite('an agent moves targets', (t) => {
  let world: World;
  let composed: Composer;
  let mcp: Mcp;
  t.before(async () => {
    world = await mcpWorld();
    composed = await composer(world, ['x', 'bluesky'], { timezone: 'Europe/Berlin' });
    mcp = await connect(world, world.testKey.secret);
  });
  t.after(async () => {
    await mcp?.close();
    await world?.close();
  });

  const later = (minutes: number): string => new Date(Date.now() + minutes * minute).toISOString();
  const post = async (
    scheduledAt: string,
  ): Promise<{ readonly postId: string; readonly targets: readonly Target[] }> => {
    const made = await mcp.call('compose_post', {
      ...{ clientId: composed.clientId, content: `Word ${randomUUID()}`, action: 'schedule' },
      ...{ scheduledAt, spreadMinutes: 60 },
    });
    const { postId, targets } = worked(made);
    return { postId: String(postId), targets: targets as Target[] };
  };
  const dueOf = async (postId: string): Promise<ReadonlyMap<string, number>> => {
    const { data } = await world.tester.get(`/posts/${postId}`);
    const targets = data.targets as readonly { readonly id: string; readonly scheduledAt: string }[];
    return new Map(targets.map(({ id, scheduledAt }) => [id, Date.parse(scheduledAt)]));
  };
  const movedBy = (before: readonly Target[], after: ReadonlyMap<string, number>): readonly number[] =>
    before.map(({ targetId, scheduledAt }) => ((after.get(targetId) ?? 0) - Date.parse(scheduledAt)) / minute);
  const doneOf = (answer: Called): readonly Target[] => worked(answer).done as Target[];

  t('“by two hours” keeps the distances, and a repeat of the call does not move twice', async () => {
    const { postId, targets } = await post(later(600));
    const step = { postId, shiftMinutes: 120 };
    const first = await mcp.call('reschedule', step);
    assert.equal(doneOf(first).length, 2, first.text);
    assert.deepEqual(movedBy(targets, await dueOf(postId)), [120, 120]);
    // A model repeats the call under another request id, a client the same message, or both at once.
    const again = await mcp.call('reschedule', step);
    assert.equal(worked(again).replayed, true);
    assert.match(again.text, /nothing new was done/);
    await Promise.all([7, 7, 8].map((id) => send(world, world.testKey.secret, callMessage('reschedule', step, id))));
    assert.deepEqual(movedBy(targets, await dueOf(postId)), [120, 120]);
    worked(await mcp.call('reschedule', { ...step, idempotencyKey: randomUUID() }));
    assert.deepEqual(movedBy(targets, await dueOf(postId)), [240, 240], 'on purpose it moves again');
  });

  t('a time range moves whole, once, also where its targets stay in it', async () => {
    const [from, to] = [later(2_000), later(5_000)];
    const [one, two, outside] = [await post(later(2_100)), await post(later(2_200)), await post(later(6_000))];
    const step = { from, to, clientId: composed.clientId, shiftMinutes: -30 };
    const moved = await mcp.call('reschedule', step);
    assert.equal(worked(moved).doneInAll, 4, moved.text);
    worked(await mcp.call('reschedule', step));
    for (const { postId, targets } of [one, two]) assert.deepEqual(movedBy(targets, await dueOf(postId)), [-30, -30]);
    assert.deepEqual(movedBy(outside.targets, await dueOf(outside.postId)), [0, 0]);
    const canceled = await mcp.call('cancel', { from, to, platforms: ['x'] });
    assert.deepEqual(
      doneOf(canceled).map(({ platform, status }) => [platform, status]),
      Array(2).fill(['x', 'canceled']),
    );
    const nothing = await mcp.call('retry', { from, to });
    assert.equal(worked(nothing).doneInAll, 0, 'an empty range is no failure');
    assert.match(nothing.text, /Nothing in this range allows it/);
  });

  t('one new time: an instant, or a wall-clock time in a zone; never none, two, or a zone alone', async () => {
    const { postId, targets } = await post(later(600));
    const local = { scheduledLocal: '2027-01-05T09:00', timezone: 'America/New_York' };
    const moved = await mcp.call('reschedule', { postId, ...local });
    assert.deepEqual(
      doneOf(moved).map(({ scheduledAt }) => scheduledAt),
      Array(2).fill('2027-01-05T14:00:00.000Z'),
    );
    assert.match(moved.text, /^2027-01-05T09:00 in America\/New_York is 2027-01-05T14:00:00\.000Z/);
    const [target] = targets;
    const some = await mcp.call('reschedule', { targetIds: [target?.targetId], shiftMinutes: 10 });
    assert.deepEqual(
      doneOf(some).map(({ scheduledAt }) => scheduledAt),
      ['2027-01-05T14:10:00.000Z'],
    );
    for (const wrong of [
      { postId },
      { postId, shiftMinutes: 5, scheduledAt: later(700) },
      { postId, scheduledLocal: local.scheduledLocal },
      { postId, scheduledAt: later(700), timezone: local.timezone },
      { shiftMinutes: 5 },
      { from: later(1), shiftMinutes: 5 },
      { targetIds: [target?.targetId], from: later(1), to: later(2), shiftMinutes: 5 },
    ]) {
      const refused = await mcp.call('reschedule', wrong);
      assert.deepEqual([refused.isError, refused.code], [true, 'validation_failed'], refused.text);
    }
  });
});
