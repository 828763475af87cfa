/** The comment call: its refusals, its lost answers, and its row in the ledger. */
import { randomBytes } from 'node:crypto';
import type { CommentOutcome, CommentRequest } from '#contracts/ports/platform.ts';
import type { Failure } from '#schemas/target.ts';
import { commentForbidden, down, refused, unknown, versionEnded } from './answers.ts';
import { type Fault, type FaultName, faultsOf } from './faults.ts';
import { commentScope, postIds, recordKey } from './ids.ts';
import type { Comments } from './imitation.ts';
import { imitations } from './imitations.ts';
import type { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';
import type { SandboxOptions } from './options.ts';
import { answers, refusals, said, untilAborted } from './script.ts';

type Refused = Exclude<CommentOutcome, { readonly kind: 'posted' }>;

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
  const faults = faultsOf(request.content, null);
  const striking = async (name: FaultName): Promise<Fault | null> => {
    const fault = faults.find((one) => one.name === name);
    return fault !== undefined && (await network.fires(`${request.targetId}/comment`, fault)) ? fault : null;
  };
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
    const refusal = await refusalOf(network, request, comments, striking);
    let answer: (typeof answers)[number] | null = null;
    for (const name of refusal === null ? answers : []) {
      if (answer === null && (await striking(name)) !== null) answer = name;
    }
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

async function refusalOf(
  network: Network,
  { platform, account, externalId }: CommentRequest,
  { forbidden }: Comments,
  striking: (name: FaultName) => Promise<Fault | null>,
): Promise<Refused | null> {
  const failed = (failure: Failure): Refused => ({ kind: 'failed', failure });
  const ended = await network.endedVersion(platform);
  if (ended !== null) {
    return {
      kind: 'rate_limited',
      retryAt: new Date(Date.now() + 900_000).toISOString(),
      failure: versionEnded(ended),
    };
  }
  if (forbidden !== null && !account.scopes.includes(commentScope)) return failed(commentForbidden(forbidden));
  for (const name of refusals) {
    const fault = await striking(name);
    if (fault === null) continue;
    const failure = refused(platform, name);
    if (name !== 'rate_limit') return failed(failure);
    const retryAt = new Date(Date.now() + (fault.durationMs ?? 2000)).toISOString();
    return { kind: 'rate_limited', retryAt, failure };
  }
  if (await network.shows(platform, account.id, externalId)) return null;
  return failed({ ...refused(platform, 'reject'), platformMessage: 'The post commented on is not there' });
}

/** A reply is a post of the account, so it has the id of one: on Telegram in the chat of the post. */
const idOf = ({ platform, targetId, account, externalId }: CommentRequest, { id }: Comments): string =>
  id?.(randomBytes(24), externalId) ??
  postIds(platform, account.externalId, recordKey(`${targetId}/comment`), Date.now()).id;
