import { deepEqual, equal } from 'node:assert/strict';
import { post } from '#domain/post/post.ts';
import { type RecycleCommand, recycleWorkAt } from '#domain/post/post-recycle.ts';
import type { PostBody, PostEvent } from '#schemas/post.ts';
import { deciding } from '#test/support/deciding.ts';
import { planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(post);

const body = { content: 'hello', variants: [], campaignId: null } as unknown as PostBody;
const written = { clientId: 'c1', createdBy: { type: 'apikey', id: 'k1' }, body };
const target = planned({ targetId: 't', accountId: 'a', clientId: 'c1' });
const live: PostEvent = { type: 'PostScheduled', data: { ...written, plan: { number: 1, targets: [target] } } };
const settled = (outcome: 'published' | 'canceled' | 'failed'): PostEvent => ({
  type: 'PostTargetSettled',
  data: { targetId: 't', targetRevision: 5, outcome, publishedAt: outcome === 'published' ? out : null },
});
const out = '2026-01-01T09:00:01.000Z';
const isOut: readonly PostEvent[] = [live, settled('published'), { type: 'PostPublished', data: { publishedAt: out } }];
const setBy = { type: 'apikey', id: 'k1' } as const;
const settings = { enabled: true, everyDays: 7, times: 2, until: null } as const;
const first = { day: 7, dueAt: '2026-01-08T09:00:00.000Z' };
const second = { day: 14, dueAt: '2026-01-15T09:00:00.000Z' };
const set = (over: Partial<Extract<RecycleCommand, { type: 'SetRecycle' }>> = {}) =>
  ({ type: 'SetRecycle', ...settings, setBy, needsApproval: false, next: null, ...over }) as const;
const wasSet: PostEvent = { type: 'PostRecycleSet', data: { ...settings, setBy, needsApproval: false } };
const plannedOn = (run: { readonly day: number; readonly dueAt: string }): PostEvent => ({
  type: 'PostRecyclePlanned',
  data: { ...run },
});
const cleared = (reason: 'requested' | 'times' | 'until' | 'failures' | 'client_archived'): PostEvent => ({
  type: 'PostRecycleCleared',
  data: { reason },
});
const copy = (occurrence: number) => ({
  occurrence,
  newPostId: `copy-${occurrence}`,
  day: 7 * occurrence,
  scheduledAt: first.dueAt,
});
const recycled = (occurrence: number): PostEvent => ({ type: 'PostRecycled', data: copy(occurrence) });

const recycleOf = (events: readonly PostEvent[]) => {
  const one = state(events);
  return one.status === 'none' ? null : one.recycle;
};

suite('the recycling of a post', (t) => {
  t('is set before the post is out, and has a time once it is', () => {
    given([live]).when(set()).then([wasSet]);
    given([...isOut])
      .when(set({ next: first }))
      .then([wasSet, plannedOn(first)]);
    given([...isOut, wasSet])
      .when({ type: 'PlanRecycle', then: first })
      .then([plannedOn(first)]);
    given([...isOut, wasSet])
      .when({ type: 'PlanRecycle', then: { reason: 'times' } })
      .then([cleared('times')]);
    given([...isOut, wasSet, plannedOn(first)])
      .when({ type: 'PlanRecycle', then: second })
      .then([]);
  });

  t('is taken over by whoever sets it anew: the copies go out with their authority from then on', () => {
    given([live, wasSet]).when(set()).then([]);
    const another = { type: 'member', id: 'm2' } as const;
    given([live, wasSet])
      .when(set({ setBy: another }))
      .then([{ type: 'PostRecycleSet', data: { ...wasSet.data, setBy: another } } as PostEvent]);
  });

  t('is set anew where anything differs, and where the service had stopped it', () => {
    for (const change of [{ enabled: false }, { needsApproval: true }, { everyDays: 8 }, { times: 3 }] as const) {
      given([live, wasSet])
        .when(set(change))
        .then([{ type: 'PostRecycleSet', data: { ...wasSet.data, ...change } } as PostEvent]);
    }
    given([...isOut, wasSet, cleared('client_archived')])
      .when(set({ next: first }))
      .then([wasSet, plannedOn(first)]);
    // What the service has stopped is set anew also where it stays off.
    const off: PostEvent = {
      type: 'PostRecycleSet',
      data: { ...settings, enabled: false, setBy, needsApproval: false },
    };
    given([live, wasSet, cleared('failures')])
      .when(set({ enabled: false }))
      .then([off]);
  });

  t('may end with the copy that is due at its last instant, and has no end while nothing is due', () => {
    const until = (at: string): PostEvent => ({
      type: 'PostRecycleSet',
      data: { ...settings, until: at, setBy, needsApproval: false },
    });
    given([...isOut])
      .when(set({ until: first.dueAt, next: first }))
      .then([until(first.dueAt), plannedOn(first)]);
    const past = '2026-01-02T00:00:00.000Z';
    given([live])
      .when(set({ until: past }))
      .then([until(past)]);
    given([...isOut])
      .when(set({ enabled: false, until: past, next: first }))
      .then([{ type: 'PostRecycleSet', data: { ...until(past).data, enabled: false } } as PostEvent]);
  });

  t('is refused for a draft, a canceled post, a copy, and where nothing could follow', () => {
    const draft: PostEvent = { type: 'PostDrafted', data: written };
    const canceled: PostEvent = { type: 'PostCanceled', data: { reason: 'targets_canceled' } };
    given([]).when(set()).refused('not_found');
    given([draft]).when(set()).refused('post_not_scheduled');
    given([live, settled('canceled'), canceled])
      .when(set())
      .refused('post_not_scheduled');
    const recycledFrom = { postId: 'p', occurrence: 1, day: 7 };
    given([{ ...live, data: { ...live.data, recycledFrom } } as PostEvent])
      .when(set())
      .refused('validation_failed', ' is itself a copy of a recycled post\n not_allowed');
    for (const saying of ['/times must be more than the 1 copies', '/times too_small']) {
      given([...isOut, wasSet, plannedOn(first), recycled(1)])
        .when(set({ times: 1, next: second }))
        .refused('validation_failed', saying);
    }
    given([...isOut, wasSet, plannedOn(first), recycled(1)])
      .when(set({ times: null, next: second }))
      .then([{ type: 'PostRecycleSet', data: { ...wasSet.data, times: null } } as PostEvent, plannedOn(second)]);
    for (const saying of [`/until must not lie before ${first.dueAt}`, '/until out_of_range']) {
      given([...isOut])
        .when(set({ until: '2026-01-02T00:00:00.000Z', next: first }))
        .refused('validation_failed', saying);
    }
    // A post whose targets failed may still be retried.
    given([live, settled('failed'), { type: 'PostFailed', data: {} }])
      .when(set())
      .then([wasSet]);
  });

  t('a copy is recorded once and in order, with what follows', () => {
    const before = [...isOut, wasSet, plannedOn(first)];
    given(before)
      .when({ type: 'RecordRecycled', ...copy(1), then: second })
      .then([recycled(1), plannedOn(second)]);
    given(before)
      .when({ type: 'RecordRecycled', ...copy(2), then: second })
      .then([]);
    const { posted, next, lastDay } = recycleOf([...before, recycled(1), plannedOn(second)]) ?? {};
    equal(JSON.stringify([posted, next?.day, lastDay]), '[1,14,7]');
    given([...before, recycled(1), plannedOn(second)])
      .when({ type: 'RecordRecycled', ...copy(2), then: { reason: 'times' } })
      .then([recycled(2), cleared('times')]);
    equal(recycleOf([...before, recycled(1), recycled(2), cleared('times')])?.stoppedReason, 'times');
    // It was set anew between the look at it and the record of the copy.
    given(before)
      .when({ type: 'RecordRecycled', ...copy(1), then: null })
      .then([recycled(1)]);
  });

  t('keeps the last three tries and copies, and new settings begin with no tries', () => {
    const failed: PostEvent = { type: 'PostRecycleFailed', data: { day: 35, code: 'no_targets', message: 'None.' } };
    const copies = [1, 2, 3, 4].map(recycled);
    const shown = (events: readonly PostEvent[]) => {
      const { posted, lastDay, next, attempts, copies: ids } = recycleOf(events) ?? {};
      return { posted, lastDay, next, attempts, copies: ids };
    };
    deepEqual(shown([...isOut, wasSet, plannedOn(first), ...copies, failed]), {
      ...{ posted: 4, lastDay: 35, next: null },
      ...{ attempts: ['copy-3', 'copy-4', null], copies: ['copy-2', 'copy-3', 'copy-4'] },
    });
    deepEqual(shown([...isOut, wasSet, ...copies, failed, wasSet]), {
      ...{ posted: 4, lastDay: 35, next: null, attempts: [], copies: ['copy-2', 'copy-3', 'copy-4'] },
    });
    deepEqual(shown([live, wasSet]), { posted: 0, lastDay: 0, next: null, attempts: [], copies: [] });
  });

  t('a copy that exists is recorded although the recycling was cleared meanwhile', () => {
    given([...isOut, wasSet, plannedOn(first), cleared('requested')])
      .when({ type: 'RecordRecycled', ...copy(1), then: second })
      .then([recycled(1)]);
    const again = [...isOut, wasSet, plannedOn(first), cleared('requested'), recycled(1), wasSet];
    equal(recycleOf(again)?.posted, 1);
  });

  t('a refused copy is recorded once, and moves on', () => {
    const failed = { day: 7, code: 'no_targets', message: 'None is left.' };
    given([...isOut, wasSet, plannedOn(first)])
      .when({ type: 'RecordRecycleFailed', ...failed, then: second })
      .then([{ type: 'PostRecycleFailed', data: failed }, plannedOn(second)]);
    given([live])
      .when({ type: 'RecordRecycleFailed', ...failed, then: second })
      .then([]);
    given([...isOut, wasSet, cleared('requested')])
      .when({ type: 'RecordRecycleFailed', ...failed, then: second })
      .then([]);
  });

  t('a run that would come too soon is moved once, or ends the recycling', () => {
    const before = [...isOut, wasSet, plannedOn(first)];
    const move = { type: 'MoveRecycle', day: first.day, then: second } as const;
    given(before)
      .when(move)
      .then([plannedOn(second)]);
    given(before)
      .when({ ...move, then: { reason: 'until' } })
      .then([cleared('until')]);
    // Somebody has planned another one, or none, since.
    given([...before, plannedOn(second)])
      .when(move)
      .then([]);
    given([...before, cleared('requested')])
      .when(move)
      .then([]);
  });

  t('is cleared by a caller also once the service has stopped it; a canceled post stops it', () => {
    const stoppedBefore = [...isOut, wasSet, cleared('client_archived')];
    given(stoppedBefore)
      .when({ type: 'ClearRecycle' })
      .then([cleared('requested')]);
    given([...stoppedBefore, cleared('requested')])
      .when({ type: 'ClearRecycle' })
      .then([]);
    given([live]).when({ type: 'ClearRecycle' }).then([]);
    given(stoppedBefore).when({ type: 'StopRecycle', reason: 'failures' }).then([]);
    given([...isOut, wasSet])
      .when({ type: 'StopRecycle', reason: 'failures' })
      .then([cleared('failures')]);
    const canceled: PostEvent = { type: 'PostCanceled', data: { reason: 'targets_canceled' } };
    for (const event of [canceled, plannedOn(first), recycled(1), cleared('times')]) {
      equal(recycleOf([live, settled('canceled'), event]), null);
    }
    const before = recycleOf([live, wasSet, cleared('failures'), settled('canceled'), canceled]);
    equal(before?.stoppedReason, 'failures');
    const stopped = recycleOf([live, wasSet, settled('canceled'), canceled]);
    equal(JSON.stringify([stopped?.enabled, stopped?.stoppedReason]), '[false,"post_canceled"]');
  });

  t('survives a return to draft, and the next plan', () => {
    const sentBack: PostEvent = {
      type: 'PostReturnedToDraft',
      data: { approvalId: 'x', decidedBy: { type: 'member', id: 'm' }, comment: null },
    };
    equal(recycleOf([live, wasSet, sentBack])?.enabled, true);
    equal(recycleOf([live, wasSet, sentBack, live])?.enabled, true);
    // A draft has no copies, and its recycling can be ended.
    const draft = [live, wasSet, sentBack];
    given(draft).when({ type: 'PlanRecycle', then: first }).then([]);
    given(draft)
      .when({ type: 'RecordRecycled', ...copy(1), then: second })
      .then([]);
    given(draft)
      .when({ type: 'ClearRecycle' })
      .then([cleared('requested')]);
    given(draft)
      .when({ type: 'StopRecycle', reason: 'client_archived' })
      .then([cleared('client_archived')]);
  });

  t('the worker is woken when the post is out, and an hour before each copy', () => {
    equal(recycleWorkAt(null, 'published', out), null);
    equal(recycleWorkAt(recycleOf([live, wasSet]), 'scheduled', null), null);
    for (const status of ['scheduled', 'publishing', 'failed'] as const) {
      equal(recycleWorkAt(recycleOf([live, wasSet]), status, out), null);
    }
    equal(recycleWorkAt(recycleOf([...isOut, wasSet]), 'partially_published', out), out);
    equal(recycleWorkAt(recycleOf([...isOut, wasSet]), 'published', out), out);
    const planned = recycleOf([...isOut, wasSet, plannedOn(first)]);
    equal(recycleWorkAt(planned, 'published', out), '2026-01-08T08:00:00.000Z');
    equal(recycleWorkAt(recycleOf([...isOut, wasSet, cleared('times')]), 'published', out), null);
  });
});
