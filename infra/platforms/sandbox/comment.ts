/** The comment call: its refusals, its lost answers, and its row in the ledger. */
import { randomBytes } from 'node:crypto';
import type { CommentOutcome, CommentRequest } from '#contracts/ports/platform.ts';
import { commentForbidden, down, unknown } from './answers.ts';
import { faultsOf } from './faults.ts';
import { answerOf, refusalOf, strikingOf } from './follow-up.ts';
import { commentScope, postIds, recordKey } from './ids.ts';
import type { Comments } from './imitation.ts';
import { imitations } from './imitations.ts';
import type { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';
import type { SandboxOptions } from './options.ts';
import { said, untilAborted } from './script.ts';

const notCalled = { kind: 'deferred', failure: down('the deadline passed before the call was made') } as const;

/** Comments once. The faults are those in the text of the comment. */
export async function comment(
  network: Network,
  options: SandboxOptions,
  request: CommentRequest,
  signal: AbortSignal,
): Promise<CommentOutcome> {
  const { comments } = imitations[request.platform];
  if (comments === null) throw new Error(`${request.platform} takes no comments`);
  if (signal.aborted) return notCalled;
  // At the deadline the adapter stops waiting for the call, which may still take effect, as on any network.
  const silence = untilAborted(signal).then(() => ({ kind: 'unknown', failure: unknown(said.timeout_after) }) as const);
  return Promise.race([call(network, options, request, comments, signal), silence]);
}

async function call(
  network: Network,
  options: SandboxOptions,
  request: CommentRequest,
  comments: Comments,
  signal: AbortSignal,
): Promise<CommentOutcome> {
  const striking = strikingOf(network, `${request.targetId}/comment`, faultsOf(request.content, null));
  let called = false;
  const row = (outcome: 'created' | 'refused', commentId: string | null, refusal: string | null) => {
    called = true;
    const { platform, targetId, externalId: postId, content, account } = request;
    const { form } = comments;
    const callStartedAt = new Date();
    const parties = { platform, accountId: account.id, targetId, postId };
    return network.comment({ ...parties, form, content, callStartedAt, outcome, commentId, refusal });
  };
  try {
    if ((await striking('down')) !== null) return { kind: 'deferred', failure: down('503 Service Unavailable') };
    const isAllowed = request.account.scopes.includes(commentScope);
    const forbidden = comments.forbidden === null || isAllowed ? null : commentForbidden(comments.forbidden);
    const refusal = await refusalOf(network, request, striking, forbidden, 'The post commented on is not there');
    const answer = refusal === null ? await answerOf(striking) : null;
    // No await from this check to the call: a caller whose deadline has passed makes none.
    if (signal.aborted) return notCalled;
    if (refusal !== null) {
      await row('refused', null, refusal.failure.code);
      return refusal;
    }
    if (answer === 'timeout_before' || answer === 'error_before') await row('refused', null, answer);
    else {
      const externalId = (await row('created', idOf(request, comments), null)) ?? '';
      options.faultPoint?.('sandbox.comment_accepted');
      if (answer === null) return { kind: 'posted', externalId };
    }
    if (answer === 'timeout_before' || answer === 'timeout_after') await untilAborted(signal);
    return { kind: 'unknown', failure: unknown(said[answer]) };
  } catch (error) {
    if (!(error instanceof NetworkUnavailable)) throw error;
    return called
      ? { kind: 'unknown', failure: unknown(error.message) }
      : { kind: 'deferred', failure: down(error.message) };
  }
}

/** A reply is a post of the account, so it has the id of one: on Telegram in the chat of the post. */
const idOf = ({ platform, targetId, account, externalId }: CommentRequest, { id }: Comments): string =>
  id?.(randomBytes(24), externalId) ??
  postIds(platform, account.externalId, recordKey(`${targetId}/comment`), Date.now()).id;
