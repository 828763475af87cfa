import assert from 'node:assert/strict';
import { Backlog, type Claimable } from '#services/webhooks/backlog.ts';
import type { Claimed, ClaimRequest, Due } from '#services/webhooks/statements.ts';
import { suite } from '#test/support/suite.ts';

const due = (endpointId: string, over: Partial<Due> = {}): Due => ({
  endpointId,
  first: true,
  later: false,
  replay: false,
  asked: false,
  probe: false,
  lagMs: 0,
  ...over,
});
const room = (all: number, later = all >> 1, open = true): Claimable => ({
  all,
  later,
  open,
  proven: true,
  take: () => undefined,
});
const claimedOf = ({ endpointId, lane }: ClaimRequest, count: number): readonly Claimed[] =>
  Array.from({ length: count }, () => ({ endpointId, queueLane: lane, forced: false }) as Claimed);
const lanesOf = ({ claimRequests }: { readonly claimRequests: readonly ClaimRequest[] }) =>
  claimRequests.map(({ lane, max }) => [lane, max]);

suite('backlog of due deliveries', (t) => {
  t('claims within the free room, first attempts before others, but always some of the others', () => {
    const backlog = new Backlog();
    backlog.found([due('a', { later: true, replay: true })]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => room(64))), [
      [0, 56],
      [1, 4],
      [2, 4],
    ]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => room(0))), []);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => room(10, 0))), [[0, 10]]);
    backlog.found([due('a', { first: false, later: true })]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => room(64))), [[1, 32]]);
  });

  t('an endpoint gets one share a turn', () => {
    const backlog = new Backlog();
    const names = Array.from({ length: 600 }, (_, at) => `e${at}`);
    backlog.found(names.map((name) => due(name)));
    const { claimRequests } = backlog.claimRequests(() => room(64));
    assert.deepEqual([claimRequests.length, new Set(claimRequests.map(({ max }) => max))], [500, new Set([1])]);
    backlog.claimed(
      claimRequests,
      claimRequests.flatMap((wish) => claimedOf(wish, 1)),
    );
    const next = backlog.claimRequests(() => room(64)).claimRequests.map(({ endpointId }) => endpointId);
    assert.deepEqual(next.slice(0, 101), [...names.slice(500), 'e0']);
  });

  t('a lane that gives fewer deliveries than requested is empty', () => {
    const backlog = new Backlog();
    backlog.found([due('a', { later: true })]);
    const { claimRequests } = backlog.claimRequests(() => room(8));
    const [first] = claimRequests;
    assert.ok(first && backlog.hasFirst('a'));
    backlog.claimed(claimRequests, claimedOf(first, first.max - 1));
    assert.deepEqual([backlog.hasFirst('a'), backlog.size], [false, 0]);
  });

  t('a half-open endpoint gives one delivery until the next look', () => {
    const backlog = new Backlog();
    backlog.found([due('a', { first: false, replay: true, probe: true })]);
    const asked = backlog.claimRequests(() => room(8, 4, false));
    assert.deepEqual([lanesOf(asked), asked.probes], [[[2, 1]], ['a']]);
    backlog.claimed(asked.claimRequests, []);
    assert.equal(backlog.size, 0);
  });

  t('of a closed endpoint only deliveries that a person requested are claimed', () => {
    const backlog = new Backlog();
    backlog.found([due('a', { asked: true, later: true })]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => room(8, 4, false))), [[3, 4]]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => null)), []);
  });

  t('of an endpoint without a success requested deliveries come first, one at a time', () => {
    const backlog = new Backlog();
    backlog.found([due('a', { later: true })]);
    const asked = backlog.claimRequests(() => ({ ...room(8), proven: false }));
    assert.deepEqual(lanesOf(asked)[0], [3, 1]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => room(8)))[0], [0, 7]);
    assert.deepEqual(lanesOf(backlog.claimRequests(() => ({ ...room(0), proven: false }))), []);
    // Whatever little there is room for, what comes by itself is not kept for ever.
    assert.deepEqual(lanesOf(backlog.claimRequests(() => ({ ...room(1), proven: false }))), [
      [3, 1],
      [0, 1],
    ]);
  });

  t('each look starts with another endpoint, and earlier claims reduce the room of later ones', () => {
    const backlog = new Backlog();
    const all = ['a', 'b', 'c'].map((name) => due(name));
    backlog.found(all);
    let left = 4;
    const take = (count: number): void => {
      left -= count;
    };
    const shared = (): Claimable => ({ ...room(left), take });
    const { claimRequests } = backlog.claimRequests(shared);
    assert.deepEqual(
      claimRequests.map(({ endpointId, max }) => [endpointId, max]),
      [['a', 4]],
    );
    backlog.claimed(
      claimRequests,
      claimRequests.flatMap((wish) => claimedOf(wish, wish.max)),
    );
    backlog.found(all);
    left = 4;
    assert.equal(backlog.claimRequests(shared).claimRequests[0]?.endpointId, 'b');
  });
});
