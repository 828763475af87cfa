import type { FindOutcome, ListedPost } from '#contracts/ports/platform.ts';
import {
  isKnownSince,
  isListed,
  type Restore,
  type ScheduledTarget,
  type TargetIn,
  wasDueBefore,
} from '#domain/post-target/target.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { adapterOf, type WorkContext } from './context.ts';
import { cleanPresent, isId } from './files.ts';
import { followUpsOf } from './outcome.ts';
import { questionOf } from './question.ts';
import type { Conditions } from './related-streams.ts';
import { accountOf } from './request.ts';

/**
 * What this service may have published in the time that a restore lost. The row of the restore decides, so a target is
 * safe as soon as that row is there, whether or not its own stream tells of it yet.
 */

/** Milliseconds until a network that gave no answer is asked again, before a claim. */
const undecidedRestMs = 30_000;
/** Milliseconds until the row of the restores is read again where it could not be. */
const unreadRestMs = 1_000;
/** Of our clock and the network's, and of the copy's instant and the last event in it. */
const skewMs = 10 * 60_000;

export type Lost =
  | { readonly kind: 'found'; readonly post: ListedPost }
  /** The network lists no such post; no proof that there is none. */
  | { readonly kind: 'not_listed' }
  | { readonly kind: 'undecided' }
  /** The network cannot be asked: a person looks. */
  | { readonly kind: 'not_askable' };

type Claimable = TargetIn<'pending' | 'rate_limited' | 'publishing' | 'processing'>;

const placeOf = (target: ScheduledTarget, { account: { state } }: Conditions) => ({
  platform: target.common.platform,
  externalId: accountOf(target, state).externalId,
});

/** Whether the target's network can be asked for its post by account, content and time. */
export const isAskable = async (context: WorkContext, target: ScheduledTarget): Promise<boolean> => {
  const [conditions, content] = await Promise.all([
    context.conditions.current(target),
    context.streams.content(target),
  ]);
  const canAsk = adapterOf(context, target, conditions)?.findPosts !== undefined;
  return canAsk && isListed(placeOf(target, conditions), content);
};

/**
 * Asks the network for the post, by account, content and time. A post that another target of the account is known by is
 * not this one's; of several the nearest to its time is.
 * @param before milliseconds since 1970: a post that is not older tells nothing
 */
export const findLost = async (
  context: WorkContext,
  target: ScheduledTarget,
  restore: Restore,
  before = Number.POSITIVE_INFINITY,
): Promise<Lost> => {
  const question = await questionOf(context, target);
  const find = question?.adapter.findPosts?.bind(question.adapter);
  if (question === null || find === undefined || !isListed(placeOf(target, question.conditions), question.content)) {
    return { kind: 'not_askable' };
  }
  const outcome = await question.put<FindOutcome>((request) =>
    find({
      ...request,
      from: new Date(Date.parse(restore.storeAsOf) - skewMs).toISOString(),
      until: new Date(Date.parse(restore.restoredAt) + skewMs).toISOString(),
    }),
  );
  if (outcome.kind !== 'listed') return { kind: outcome.kind };
  const { accountId, targetId } = target.common;
  const posts = outcome.posts.filter(
    ({ externalId, publishedAt }) => isId(externalId) && Date.parse(publishedAt) < before,
  );
  const taken = await context.tools.takenPosts(
    accountId,
    targetId,
    posts.map(({ externalId }) => externalId),
  );
  const due = Date.parse(target.common.dueAt);
  const apart = ({ publishedAt }: ListedPost): number => Math.abs(Date.parse(publishedAt) - due);
  const [post] = posts.filter(({ externalId }) => !taken.has(externalId)).sort((a, b) => apart(a) - apart(b));
  return post === undefined ? { kind: 'not_listed' } : { kind: 'found', post };
};

/**
 * Before a claim, and before the claim of another worker is taken over. A target that was due before the restore becomes
 * unknown; one that is due later, or was made of an older post since, is looked for at its network. If the worker dies
 * anywhere here, the next one asks again.
 * @returns null: no restore stands in the way; `go on`: its outcome is unknown or settled now; milliseconds to rest
 */
export const settleRestored = async (context: WorkContext, target: Claimable): Promise<'go on' | number | null> => {
  const { tools } = context;
  let restore: Restore | null;
  try {
    restore = await tools.restores.newest();
  } catch (error) {
    tools.logger.warn({ err: error }, 'whether this service was restored is not known; nothing goes out until it is');
    return unreadRestMs;
  }
  if (restore === null || isKnownSince(target, restore)) return null;
  if (wasDueBefore(target, restore)) return record(context, restore, false);
  if ((await context.streams.content(target)).bornAt > restore.restoredAt) return null;
  if ((await tools.restores.unlooked([target.common.accountId], restore)).length === 0) return null;
  const lost = await findLost(context, target, restore);
  faultPoint('publisher:after-find');
  if (lost.kind === 'undecided') return undecidedRestMs;
  if (lost.kind === 'not_listed') return null;
  if (lost.kind === 'found') return settleAsFound(context, target, lost.post, restore.restoredAt);
  return record(context, restore, true);
};

/** If we die between the two, the outcome is unknown and the network is asked again. */
export const settleAsFound = async (
  context: WorkContext,
  target: Claimable,
  post: ListedPost,
  restoredAt: string,
): Promise<'go on'> => {
  const { leased } = context;
  await record(context, { restoredAt }, true);
  faultPoint('publisher:after-restored');
  if (leased.state.status !== 'outcome_unknown') return 'go on';
  const now = leased.now();
  const outcome = { kind: 'published', ...cleanPresent(post, now) } as const;
  const follows = followUpsOf(target, await context.streams.content(target), now);
  await leased.record({ type: 'Settle', by: 'reconcile', now, outcome, ...follows });
  return 'go on';
};

const record = async (
  { leased }: WorkContext,
  { restoredAt }: Pick<Restore, 'restoredAt'>,
  evenLater: boolean,
): Promise<'go on'> => {
  await leased.record({
    ...{ type: 'RecordRestored', restoredAt, reconcileAt: leased.now() },
    ...(evenLater ? { evenLater } : {}),
  });
  return 'go on';
};

/** A comment that was due before the restore may be there. @returns whether it is recorded so now */
export const lapseRestoredComment = async ({ tools, leased }: WorkContext): Promise<boolean> => {
  const restore = await tools.restores.newest();
  if (restore === null) return false;
  const { revision } = leased;
  await leased.record({ type: 'RecordRestored', restoredAt: restore.restoredAt, reconcileAt: leased.now() });
  return leased.revision !== revision;
};
