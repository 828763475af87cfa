import { type LivePost, type PostState, post } from '#domain/post.ts';
import { isCancelable, type TargetState } from '#domain/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { type FannedOut, fanOut } from '#services/workflows/fan-out.ts';
import type { Call } from '../operation.ts';
import { Refusal } from '../refusal.ts';
import { ownStreamToDelete } from '../rows.ts';
import { releaseRefOf } from './external-ref.ts';
import { giveBackOrLeave } from './quota.ts';

/** Deletes a post: discards a draft, or cancels every target that can still be canceled. */

type Deleting = Call<{ readonly id: string }>;

export interface DeletedPost {
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
export const deletePost = async (call: Deleting): Promise<DeletedPost> => {
  const left = await call.stream(post).act({
    guard: ownStreamToDelete(call, 'post', isDeleted),
    rule: async ({ state }) => {
      if (state.status === 'live') requireCanceled(await fanOutOf(call), (one) => isCancelable(one, call.now));
    },
    command: () => ({ type: 'Delete' }),
  });
  faultPoint('delete:after-append');
  if (left.state.status !== 'live') {
    await releaseRefOf(call, left.state);
    return { ...left, targetEvents: [] };
  }
  const fanned = await fanOutOf(call);
  requireCanceled(fanned);
  await giveBackOrLeave(call, call.params.id, [...fanned.targets.keys()]);
  return { ...fanned.post, targetEvents: [...fanned.targets.values()] };
};

const fanOutOf = ({ deps, params, context, positions }: Deleting): Promise<FannedOut> =>
  fanOut(deps.store, params.id, context, { positions });

/**
 * @param or a target that suffices as well
 * @throws Refusal 409 where a deletion has canceled no target, and where not all were canceled before
 */
const requireCanceled = (
  { post: { state }, targets }: FannedOut,
  or: (state: TargetState) => boolean = () => false,
): void => {
  const states = Array.from(targets.values(), (one) => one.state);
  if (states.some(or) || states.every(({ status }) => status === 'canceled')) return;
  const deletions = state.status === 'live' ? state.intents.filter(isDeletion) : [];
  if (deletions.some(({ targetIds, skipped }) => targetIds.some((id) => !skipped.includes(id)))) return;
  throw new Refusal('target_not_pending', 'No target of the post can be canceled any more.');
};
