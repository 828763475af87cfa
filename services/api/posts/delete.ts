import { type LivePost, type PostState, post, type UnsettledTarget } from '#domain/post/post.ts';
import { isBeingCanceled, isCancelable, type ScheduledTarget, type TargetState } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { IdParams } from '#schemas/http/common.ts';
import { Post } from '#schemas/http/post.ts';
import { type FannedOut, fanOut } from '#services/workflows/fan-out.ts';
import { type Call, operation } from '../call/operation.ts';
import { Refusal } from '../call/refusal.ts';
import { ownStreamToDelete } from '../call/rows.ts';
import { answerWithTargets, withLiveCampaign } from './answers.ts';
import { withDecision } from './decisions.ts';
import { postDataExample, postsTag, targetExample } from './examples.ts';
import { releaseRefOf } from './external-ref.ts';
import { recordOrLeave } from './load.ts';
import { giveBackOrLeave } from './quota.ts';

/** Deletes a post: discards a draft, or cancels every target that can still be canceled. */

type Deleting = Call<{ readonly id: string }>;

interface DeletedPost {
  readonly revision: number;
  readonly events: readonly DecodedEvent[];
  /** Empty for a draft. */
  readonly targetEvents: readonly { readonly events: readonly DecodedEvent[] }[];
}

type LiveIntent = LivePost['intents'][number];
const isDeletion = (intent: LiveIntent): boolean => intent.kind === 'cancel' && intent.reason === 'post_canceled';

/** A caller that repeats the deletion of a post does not know the revision that the first call made. */
const isDeleted = (state: PostState): boolean =>
  state.status === 'discarded' || (state.status === 'live' && state.intents.some(isDeletion));

/**
 * The append is the deletion. If we die after it, the sweeper cancels the targets; a repeat of the call does it, too,
 * and appends nothing of its own. The reference of a draft is then released by the repeat, or broken by the next
 * claimant.
 */
const discardOrCancel = async (call: Deleting): Promise<DeletedPost> => {
  let unsettled: readonly UnsettledTarget[] = [];
  const left = await call.stream(post).act({
    guard: ownStreamToDelete(call, 'post', isDeleted),
    rule: async (loaded) => {
      if (loaded.state.status !== 'live') return;
      const fanned = await fanOutOf(call);
      unsettled = unsettledOf(fanned, call.now);
      if (unsettled.length === 0) requireCanceled(fanned);
      // What was opened since the first deletion is no repeat of it.
      else call.guard(loaded);
    },
    command: () => ({ type: 'Delete', unsettled }),
  });
  faultPoint('delete:after-append');
  if (left.state.status !== 'live') {
    await releaseRefOf(call, left.state);
    return { ...left, targetEvents: [] };
  }
  const fanned = await fanOutOf(call);
  requireCanceled(fanned);
  const targets = [...fanned.targets.values()];
  const recorded = await recordOrLeave(call, call.params.id, targets, fanned.post);
  await giveBackOrLeave(call, call.params.id, [...fanned.targets.keys()]);
  return { ...(recorded ?? fanned.post), targetEvents: targets };
};

const fanOutOf = ({ deps, params, context, positions }: Deleting): Promise<FannedOut> =>
  fanOut(deps.store, params.id, context, { positions });

const settled: readonly ScheduledTarget['status'][] = ['published', 'failed', 'canceled'];

/** The targets that a deletion made now is for; none where it can cancel none of them. */
const unsettledOf = ({ targets }: FannedOut, now: string): readonly UnsettledTarget[] => {
  const left = Array.from(targets.values(), ({ state }) => state)
    .filter((state) => state.status !== 'none')
    .filter((state) => !settled.includes(state.status) && !isBeingCanceled(state));
  if (!left.some((state) => isCancelable(state, now))) return [];
  return left.map(({ common: { targetId, appliedRevision } }) => ({ targetId, appliedRevision }));
};

const isEnded = (state: TargetState | undefined): boolean =>
  state !== undefined && (state.status === 'canceled' || isBeingCanceled(state));

/** @throws Refusal 409 where a deletion has canceled no target, and where not all were canceled before */
const requireCanceled = ({ post: { state }, targets }: FannedOut): void => {
  if ([...targets.values()].every((one) => isEnded(one.state))) return;
  const deletions = state.status === 'live' ? state.intents.filter(isDeletion) : [];
  const named = deletions.flatMap(({ targetIds, skipped }) => targetIds.filter((id) => !skipped.includes(id)));
  if (named.some((id) => isEnded(targets.get(id)?.state))) return;
  throw new Refusal('target_not_pending', 'No target of the post can be canceled any more.');
};

export const deletePost = operation({
  id: 'deletePost',
  method: 'DELETE',
  path: '/posts/{id}',
  tag: postsTag,
  summary: 'Discard a draft, or cancel a scheduled post',
  description:
    'A draft is gone: the answer shows it as `discarded`, every other operation then answers 404, and deleting it again answers the same. Of a scheduled post, every target that can still be canceled is canceled; targets that are published, failed or on their way stay as they are, and so does the post. One that the network’s own scheduler has, or that is being handed over to it, has `undo: pending` until the network has deleted it, as after a cancel of the target. The answer and the reads after it show what became of the post. The call is refused where no target can be canceled. Deleting a canceled post again answers the same.',
  scope: 'posts.compose',
  limited: 'ids',
  idempotent: 'none',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  answer: Post,
  codes: ['target_not_pending'],
  example: {
    data: {
      ...postDataExample,
      status: 'canceled',
      revision: 3,
      counts: { total: 1, canceled: 1 },
      targets: [{ ...targetExample, status: 'canceled', revision: 1 }],
    },
  },
  handle: async (call) => {
    const { events, targetEvents, revision } = await discardOrCancel(call);
    const answer = await withLiveCampaign(call, answerWithTargets(events, targetEvents));
    return { data: await withDecision(call, answer, { state: foldEvents(post, events), events }), revision };
  },
});
