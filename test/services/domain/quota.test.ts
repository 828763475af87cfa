import { deepEqual, equal } from 'node:assert/strict';
import {
  type Awaited,
  placesOf,
  postsWithPlaces,
  type QuotaCommand,
  type QuotaState,
  quota,
  quotaExceeded,
} from '#domain/quota.ts';
import type { QuotaEvent } from '#schemas/quota.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(quota);

const month = '2026-11';
const resetsAt = '2026-12-01T00:00:00.000Z';
const birth: Awaited = { stream: 'post', revision: -1 };
const reserve = (
  postId: string,
  targetIds: readonly string[],
  more: { readonly awaits?: Awaited | null; readonly limit?: number | null } = {},
): QuotaCommand => ({ type: 'Reserve', month, postId, targetIds, awaits: birth, limit: 3, resetsAt, ...more });
const reserved = (
  postId: string,
  targetIds: string[],
  n = targetIds.length,
  awaits: Awaited | null = birth,
): QuotaEvent => ({ type: 'QuotaReserved', data: { month, postId, targetIds, n, awaits } });
const released = (postId: string, ...targetIds: string[]): QuotaEvent => ({
  type: 'QuotaReleased',
  data: { postId, targetIds },
});
const release = (postId: string, ...targets: [targetId: string, revision: number][]): QuotaCommand => ({
  type: 'Release',
  postId,
  targets: targets.map(([targetId, revision]) => ({ targetId, revision })),
});
const held = (at: QuotaState): readonly string[] =>
  postsWithPlaces(at)
    .flatMap(([, places]) => Object.keys(places))
    .sort();

suite('quota', (t) => {
  t('never has more places than the limit, and takes each once', () => {
    given([])
      .when(reserve('p1', ['a', 'b']))
      .then([reserved('p1', ['a', 'b'])]);
    given([reserved('p1', ['a', 'b'])])
      .when(reserve('p1', ['a', 'b']))
      .then([]);
    given([reserved('p1', ['a', 'b'])])
      .when(reserve('p2', ['c']))
      .then([reserved('p2', ['c'])]);
    given([reserved('p1', ['a', 'b'])])
      .when(reserve('p2', ['c', 'd']))
      .refused('quota_exceeded');
    given([reserved('p1', ['a', 'b', 'c'])])
      .when(reserve('p1', ['a', 'd']))
      .refused('quota_exceeded');
    given([])
      .when(reserve('p1', ['a'], { limit: 0 }))
      .refused('quota_exceeded');
    // A limit that was lowered takes no place away.
    given([reserved('p1', ['a', 'b'])])
      .when(reserve('p1', ['a'], { limit: 1 }))
      .then([]);
  });

  t('a target that is due already gets its place beyond the limit, and keeps the one that it has', () => {
    const full = [reserved('p1', ['a', 'b', 'c'])];
    given(full)
      .when(reserve('p2', ['d'], { limit: null, awaits: null }))
      .then([reserved('p2', ['d'], 1, null)]);
    given(full)
      .when(reserve('p1', ['a'], { limit: null, awaits: null }))
      .then([]);
  });

  t('a place that is reserved for another append is no longer given back by the former one', () => {
    const move: Awaited = { stream: 'target', revision: 4 };
    given([reserved('p1', ['a'])])
      .when(reserve('p1', ['a'], { awaits: move }))
      .then([reserved('p1', ['a'], 0, move)]);
    const again = [reserved('p1', ['a']), reserved('p1', ['a'], 0, move)];
    equal(state(again).held, 1);
    given(again)
      .when(release('p1', ['a', 0]))
      .then([]);
    given(again)
      .when(release('p1', ['a', 1]))
      .then([released('p1', 'a')]);
    // Another revision or another stream is another append, and a place may have awaited none.
    const former: Awaited = { stream: 'post', revision: 4 };
    for (const [held, wanted] of [
      [former, move],
      [{ ...move, revision: 5 }, move],
      [null, move],
    ] as const) {
      given([reserved('p1', ['a'], 1, held)])
        .when(reserve('p1', ['a'], { awaits: wanted }))
        .then([reserved('p1', ['a'], 0, wanted)]);
    }
  });

  t('a refusal says when there is room again', () => {
    deepEqual(quotaExceeded(month, 3, resetsAt).extra, { resetsAt });
  });

  t('gives back each place once', () => {
    const taken = [reserved('p1', ['a', 'b']), reserved('p2', ['c'])];
    given(taken)
      .when(release('p1', ['a', 0], ['c', 1], ['x', 0]))
      .then([released('p1', 'a')]);
    const after = state([...taken, released('p1', 'a')]);
    deepEqual([after.held, held(after)], [2, ['b', 'c']]);
    given([...taken, released('p1', 'a')])
      .when(reserve('p3', ['d']))
      .then([reserved('p3', ['d'])]);
    const none = state([...taken, released('p1', 'a', 'b'), released('p2', 'c'), released('p2', 'c')]);
    deepEqual([none.held, postsWithPlaces(none), placesOf(none, 'p1')], [0, [], {}]);
  });

  t('folds ten thousand posts in less time than a call waits', () => {
    const events: readonly QuotaEvent[] = Array.from({ length: 10_000 }, (_, n) => {
      const id = `${(n * 7919).toString(16).padStart(8, '0').slice(-2)}-${n}`;
      return reserved(id, [`t${n}`]);
    });
    const before = performance.now();
    equal(state(events).held, 10_000);
    equal(performance.now() - before < 5_000, true);
  });
});
