import type { Rejection } from '#domain/decider.ts';
import type { PostState } from '#domain/post/post.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PostBody } from '#schemas/post.ts';
import {
  claimExternalRef,
  loadRef,
  type PostRef,
  type RefClaim,
  type RefClaimant,
  releaseExternalRef,
  takenExternalRef,
} from '#services/workflows/posts/external-refs.ts';
import { seesPost } from '../call/access.ts';
import type { Call } from '../call/operation.ts';
import { claimantOf } from '../clients/clients.ts';
import { asDraft } from './load.ts';

/** The reference of a post under the claim that keeps it unique in its client. */

type Claiming = Pick<Call, 'deps' | 'principal' | 'context' | 'positions'>;

const refClaimantOf = (call: Claiming): RefClaimant => ({
  ...claimantOf(call),
  sees: (state) => seesPost(call, state),
});

/**
 * Claims the reference of a post that is about to be created. A post without one makes no query.
 * @throws Rejection `already_exists`
 */
export const claimRefOf = async (
  call: Claiming,
  {
    clientId,
    postId,
    body,
  }: { readonly clientId: string; readonly postId: string; readonly body: Pick<PostBody, 'externalRef'> },
): Promise<void> => {
  const { externalRef } = body;
  if (externalRef !== undefined) await claimExternalRef(refClaimantOf(call), { clientId, externalRef, postId });
};

/**
 * Releases the reference of a post that was discarded, and so never claims it again. If we die before this, a repeat of
 * the deletion releases it, or the next claimant breaks the claim.
 */
export const releaseRefOf = async (
  call: Claiming & Pick<Call<{ readonly id: string }>, 'params'>,
  state: PostState,
): Promise<void> => {
  if (state.status !== 'discarded') return;
  const { clientId, body } = state;
  const { externalRef } = body;
  if (externalRef === undefined) return;
  const ref = { clientId, externalRef, postId: call.params.id };
  await releaseExternalRef(claimantOf(call), ref);
};

/** Why a new post of the client cannot have its reference now: `already_exists`; null: it can. */
export const takenRefOf = (
  call: Claiming,
  { clientId, body }: { readonly clientId: string; readonly body: Pick<PostBody, 'externalRef'> },
): Promise<Rejection | null> | null => {
  const { externalRef } = body;
  return externalRef === undefined ? null : takenExternalRef(refClaimantOf(call), { clientId, externalRef });
};

/**
 * The steps of a draft's replacement that belong to its reference: the new one is claimed at the revision that was
 * checked, and the former one is released after the append.
 */
export const refOfDraft = (call: Claiming & Pick<Call<{ readonly id: string }>, 'params'>, body: PostBody) => {
  const { id: postId } = call.params;
  const { externalRef } = body;
  let former: { readonly ref: PostRef; readonly claim: RefClaim } | null = null;
  return {
    claim: async ({ state }: Loaded<PostState>): Promise<void> => {
      const draft = asDraft(state);
      const { clientId } = draft;
      const had = draft.body.externalRef;
      former = null;
      if (had === externalRef) return;
      if (externalRef !== undefined) await claimExternalRef(refClaimantOf(call), { clientId, externalRef, postId });
      if (had === undefined) return;
      const ref = { clientId, externalRef: had, postId };
      former = { ref, claim: await loadRef(claimantOf(call), ref) };
    },
    release: async (): Promise<void> => {
      if (former === null) return;
      faultPoint('externalref:after-append');
      await releaseExternalRef(claimantOf(call), former.ref, former.claim);
    },
  };
};
