import { Rejection } from '#domain/decider.ts';
import type { Submission } from '#domain/post/post-approval.ts';
import type { PostBody } from '#schemas/post.ts';
import {
  allOf,
  type ComposedPost,
  type Composing,
  checksOfDraft,
  type PlannedPost,
  planPost,
} from '#services/workflows/posts/compose.ts';
import type { Call } from '../call/operation.ts';
import { select } from './destinations.ts';
import { Reads } from './reads.ts';

/** The checks of posts, as an operation makes them: for its caller, and on what it reads. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now' | 'behind'>;

/** A creator's post goes out once a person with another role has approved it. */
export const composingOf = ({ principal, now }: Pick<Asking, 'principal' | 'now'>): Composing => ({
  author: { actor: principal.actor, needsApproval: principal.role === 'creator' },
  now,
});

/** What the call was accepted with no longer holds: nothing of it is stored, so it is accepted anew. */
export class Overtaken extends Rejection {
  constructor() {
    super('revision_mismatch', 'The post, or what the caller may do, was changed at the same time, again and again.');
  }
}

/**
 * Before the append: a repeat carries out what was accepted, unless it goes out unasked and the caller may not publish
 * so any more. @throws Overtaken
 */
export const requireAuthority = (
  call: Pick<Asking, 'principal' | 'now'>,
  { submission }: { readonly submission?: Submission },
): void => {
  if (submission === undefined && composingOf(call).author.needsApproval) throw new Overtaken();
};

/** @throws Rejection for all of `checksOfDraft` */
export const checkDraft = async (
  call: Asking,
  clientId: string,
  body: PostBody,
  reads: Reads = new Reads(call),
): Promise<void> => {
  const refusal = Rejection.ofAll((await allOf(checksOfDraft(reads, clientId, body))).refusals);
  if (refusal !== null) throw refusal;
};

/** Plans a post for the accounts that its body selects, unless others are chosen. @throws Rejection */
export const planForCaller = (
  call: Asking,
  post: Omit<ComposedPost<Reads>, 'choose'> & Partial<Pick<ComposedPost<Reads>, 'choose'>>,
  reads: Reads = new Reads(call),
): Promise<PlannedPost> => planPost(composingOf(call), reads, { choose: select, ...post });
