import { isConflict } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { type ExternalRefState, externalref } from '#domain/externalref.ts';
import { externalRefIdOf } from '#domain/ids.ts';
import { bearsExternalRef, type PostState, post } from '#domain/post/post.ts';
import { type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { appendAt, type Claimant } from '../clients/names.ts';

/**
 * The claim protocol that keeps two posts of a client from having one reference: claim the reference → append to the
 * post at the revision read *before* the claim → release the former reference.
 *
 * A claim holds while its post has the reference. Another caller may break a claim that does not hold and is older than
 * `lapseMs`: it appends PostExternalRefClaimLapsed to the stream of the post, so that a pending write of that post
 * conflicts, and claims the reference itself. Every claim appends an event, also a second claim of the same post, so
 * that a caller who acts on the older claim conflicts too. A post without a reference needs none of this.
 */

/** Age from which a claim that does not hold may be broken, milliseconds. */
const lapseMs = 10_000;
/** Wait before the caller reads a claim again that neither holds nor is old, milliseconds. */
const pollMs = 100;
/** Reads of a claim before the caller gives up on one that changes all the time. */
const maxRounds = 500;

/** A reference of a client, for one post. */
export interface PostRef {
  readonly clientId: string;
  readonly externalRef: string;
  readonly postId: string;
}

export type RefClaim = Loaded<ExternalRefState>;

const idOf = ({ context }: Claimant, { clientId, externalRef }: Omit<PostRef, 'postId'>): string =>
  externalRefIdOf(context.workspaceId, clientId, externalRef);

export const loadRef = (by: Claimant, ref: Omit<PostRef, 'postId'>): Promise<RefClaim> =>
  by.store.load(externalref, idOf(by, ref));

interface OtherOwner {
  readonly id: string;
  readonly claimedAt: string;
  readonly loaded: Loaded<PostState>;
}

/** The other post that has claimed a reference; null: none has. */
const otherOwner = async ({ store }: Claimant, { state }: RefClaim, postId: string): Promise<OtherOwner | null> => {
  if (state.status === 'free' || state.postId === postId) return null;
  return { id: state.postId, claimedAt: state.claimedAt, loaded: await store.load(post, state.postId) };
};

/** Who asks for a reference. */
export interface RefClaimant extends Claimant {
  /** Whether the caller may know of the post that has it. */
  readonly sees: (state: PostState) => Promise<boolean>;
}

const taken = async ({ sees }: RefClaimant, { id: postId, loaded: { state } }: OtherOwner): Promise<Rejection> =>
  (await sees(state))
    ? new Rejection('already_exists', `The post ${postId} of the client has this externalRef.`, { extra: { postId } })
    : new Rejection('already_exists', 'Another post of the client has this externalRef.');

/** Why no other post can have the reference now; null: one can. A claim that is under way is none yet. */
export const takenExternalRef = async (by: RefClaimant, ref: Omit<PostRef, 'postId'>): Promise<Rejection | null> => {
  const other = await otherOwner(by, await loadRef(by, ref), '');
  return other !== null && bearsExternalRef(other.loaded.state, ref.externalRef) ? taken(by, other) : null;
};

/**
 * Claims the reference for a post, before the append that gives the post this reference. If we die before that append,
 * the claim does not hold: a repeat of the call claims again, and another post may break the claim once it is old.
 * @throws Rejection `already_exists`, with the `postId` of the post that has the reference where the caller may know it
 */
export const claimExternalRef = async (by: RefClaimant, ref: PostRef): Promise<void> => {
  const { clientId, externalRef, postId } = ref;
  for (let round = 1; round <= maxRounds; round += 1) {
    const claim = await loadRef(by, ref);
    const other = await otherOwner(by, claim, postId);
    if (other !== null && bearsExternalRef(other.loaded.state, externalRef)) throw await taken(by, other);
    if (other !== null && by.clock() - Date.parse(other.claimedAt) <= lapseMs) {
      await by.wait(pollMs);
      continue;
    }
    try {
      if (other !== null) {
        // If we die after this append, the next caller breaks the claim again.
        await appendAt(by, post, other.id, { type: 'LapseExternalRefClaim', externalRef }, other.loaded);
      }
      const now = new Date(by.clock()).toISOString();
      const evicts = other?.id ?? null;
      const command = { type: 'Claim', clientId, externalRef, postId, now, evicts } as const;
      await appendAt(by, externalref, idOf(by, ref), command, claim);
      faultPoint('externalref:after-claim');
      return;
    } catch (error) {
      // The claim or its post changed meanwhile: the caller reads both again.
      if (!isConflict(error)) throw error;
    }
  }
  throw new Unavailable('Other callers change the claim on this externalRef all the time.');
};

/**
 * Releases the reference that a post no longer has, at the revision of this claim: a post that has claimed it since
 * keeps it. If we die before this, the claim does not hold and is broken by the next claimant.
 */
export const releaseExternalRef = async (by: Claimant, ref: PostRef, claim?: RefClaim): Promise<void> => {
  try {
    const command = { type: 'Release', postId: ref.postId } as const;
    await appendAt(by, externalref, idOf(by, ref), command, claim ?? (await loadRef(by, ref)));
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
};
