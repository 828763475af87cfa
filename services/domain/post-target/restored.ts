import type { Platform } from '#schemas/common.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { readingOf, showsNothing } from '../platforms/index.ts';
import type { PlatformContent } from '../post/content.ts';
import { restored } from '../publish-failures.ts';
import { commentOfFound } from './first-comment.ts';
import { attemptAt, claimOf, type ScheduledTarget, type TargetState } from './state.ts';

/**
 * This service was restored from an older copy. The law: of what may have gone out in the time that was lost, no second
 * post is made on a guess. A target that was due before the restore is unknown; one that is due later, is held, failed or
 * was a draft is asked about before its first claim.
 */

export interface Restore {
  /** When the restore was declared: what happened here before may lack what went out since the copy. */
  readonly restoredAt: string;
  /** When the copy was made. */
  readonly storeAsOf: string;
}

/** Whether a claim or a word since the restore says what the network has of the target. */
export const isKnownSince = ({ common }: ScheduledTarget, { restoredAt }: Restore): boolean =>
  common.knownAt !== null && common.knownAt > restoredAt;

/**
 * Whether a network lists a post of the account with this content: it can be asked what went out. The head of a thread does not tell how
 * much of it is out, and a text that says nothing names no post.
 */
export const isListed = (
  { platform, externalId }: { readonly platform: Platform; readonly externalId: string },
  { segments }: Pick<PlatformContent, 'segments'>,
): boolean =>
  readingOf(platform, externalId).listsOwnPosts && segments.length === 1 && !showsNothing(segments[0]?.content ?? '');

/** Whether the target, as the copy has it, was to go out before the restore. */
export const wasDueBefore = (target: ScheduledTarget, { restoredAt }: Restore): boolean => {
  if (target.common.bornAt > restoredAt) return false;
  switch (target.status) {
    case 'pending':
    case 'rate_limited':
      return attemptAt(target) <= restoredAt;
    case 'publishing':
    case 'processing':
    case 'outcome_unknown':
      return true;
    default:
      return false;
  }
};

export interface RecordRestored extends Pick<Restore, 'restoredAt'> {
  readonly type: 'RecordRestored';
  /** When the network is asked first. */
  readonly reconcileAt: string;
  /** Also of a target that is due later: its network has the post, or cannot be asked. */
  readonly evenLater?: true;
}

/** A repeated command finds the outcome unknown for that reason already, or known since. */
export const recordRestored = (command: RecordRestored, state: TargetState): readonly TargetEvent[] => {
  const { restoredAt, reconcileAt, evenLater } = command;
  const restore = { restoredAt, storeAsOf: restoredAt };
  if (state.status === 'none') return [];
  if (state.status === 'published') return commentOf(state.firstComment, restoredAt);
  if (state.status === 'outcome_unknown' && (state.restored || state.askedFrom > restoredAt)) return [];
  if (isKnownSince(state, restore) || !(evenLater === true || wasDueBefore(state, restore))) return [];
  const unknown = (claim: { readonly attempt: number; readonly takeover: number }): TargetEvent => ({
    type: 'TargetOutcomeUnknown',
    data: { ...claim, failure: restored, reconcileAt, reason: 'restored' },
  });
  switch (state.status) {
    case 'publishing':
    case 'processing':
    case 'outcome_unknown':
      return [unknown(claimOf(state))];
    case 'pending':
    case 'rate_limited': {
      // The attempt that nobody remembers.
      const claim = { attempt: state.common.attempts + 1, takeover: 0 };
      return [{ type: 'TargetPublishStarted', data: claim }, unknown(claim)];
    }
    default:
      return [];
  }
};

/** A comment that was due may be there: it is not made again. */
const commentOf = (
  comment: Extract<TargetState, { status: 'published' }>['firstComment'],
  restoredAt: string,
): readonly TargetEvent[] => {
  const at = comment?.status === 'due' ? comment.dueAt : (comment?.deadline ?? null);
  if (at === null || at > restoredAt) return [];
  return commentOfFound(at);
};
