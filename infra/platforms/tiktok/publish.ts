import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PlatformAdapter, PublishOutcome, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Ask } from '../kit/client.ts';
import { beforeBoundary, behindBoundary, type NetworkAnswer, publishTooLate, unknown } from '../kit/errors.ts';
import type { Bound } from '../kit/network.ts';
import { appName } from '../kit/tables.ts';
import { isUploadFailed, subjectOf } from '../kit/upload.ts';
import { takeBudget } from '../shared/app-budgets.ts';
import { membersOf, textIn } from '../shared/members.ts';
import type { Failed } from '../shared/outcomes.ts';
import { askCreator, type Creator } from './creator.ts';
import { boundaryOf, failureFor, processingOf, shownAs, statusOf } from './find.ts';
import { lastPart, outOfStep, uploadVideo } from './media.ts';
import { photoBody, refusalOf, videoInfo } from './post.ts';
import { contentInit, isPublishId, posting } from './tables.ts';

/**
 * A post is made by one call: of a video the one that brings its last byte, of pictures the one that names their addresses. Its
 * answer says that TikTok has the post; whether it is out is asked for.
 */

interface Prepared {
  readonly kind: 'prepared';
  readonly ask: Ask;
  /** Null: the answer to the call brings it. */
  readonly publishId: string | null;
}

/** TikTok fetches a picture within an hour. */
const addressMs = 2 * 3_600_000;

const prepared = async (
  bound: Bound,
  request: PublishRequest,
  steps: PublishSteps,
  creator: Creator,
): Promise<Prepared | Failed> => {
  const [video] = request.media;
  if (video?.kind !== 'video') {
    const addresses: string[] = [];
    for (const picture of request.media) addresses.push(await picture.url(addressMs, 'own'));
    return { kind: 'prepared', ask: posting(contentInit, photoBody(request, creator, addresses)), publishId: null };
  }
  const own = await uploadVideo(bound, { bound, request, steps }, video, videoInfo(request, creator));
  if (isUploadFailed(own)) return own;
  const onSent = (bytes: number): void => steps.moved(bytes);
  return { kind: 'prepared', ask: { ...(await lastPart(video, own)), onSent }, publishId: own.id };
};

/** "Content sharing guidelines": accounts for which an app may post in a day. Null: one more may. */
const counted = async (bound: Bound, { workspaceId, account }: PublishRequest): Promise<Failed | null> => {
  const { appBudget } = rulesOf('tiktok');
  const { budget: limit } = bound.app;
  if (appBudget === undefined || limit === undefined) return null;
  const caller = { app: appName(bound), workspaceId, accountId: account.id };
  const spent = await takeBudget(bound, { ...appBudget, limit }, caller);
  return spent === null ? null : beforeBoundary(spent, bound.clock());
};

/** What its words do not say to an author. */
const inOurWords: Readonly<Record<string, string>> = {
  unaudited_client_can_only_post_to_private_accounts:
    'TikTok has not audited the app of this service yet. Until then it posts for an account only while the account itself is ' +
    'private (in TikTok: Settings and privacy, Privacy, Private account), and only with privacyLevel SELF_ONLY. No other setting ' +
    'of the post helps.',
  url_ownership_unverified:
    'TikTok fetches pictures from addresses alone that are proven to be the operator’s, by TIKTOK_SITE_PROOF.',
};

const inWords = (outcome: PublishOutcome): PublishOutcome => {
  const words = 'failure' in outcome ? inOurWords[outcome.failure.platformCode ?? ''] : undefined;
  if (words === undefined || !('failure' in outcome)) return outcome;
  return { ...outcome, failure: { ...outcome.failure, platformMessage: words } };
};

export const publish =
  (bound: Bound): PlatformAdapter['publish'] =>
  async (request, steps) => {
    const { client, clock } = bound;
    const subject = subjectOf(request);
    steps.signal.throwIfAborted();
    const creator = await askCreator(bound, subject, steps.signal);
    steps.signal.throwIfAborted();
    if (creator.kind !== 'creator') return inWords(beforeBoundary(creator, clock()));
    const refusal = refusalOf(request, creator);
    if (refusal !== null) return { kind: 'failed', failure: refusal };
    const ready = await prepared(bound, request, steps, creator);
    steps.signal.throwIfAborted();
    if (ready.kind !== 'prepared') return inWords(ready);
    const spent = await counted(bound, request);
    if (spent !== null) return spent;
    const open = await client.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeBoundary(open, clock());
    const signal = await steps.boundary(boundaryOf(request, ready.publishId, clock()));
    if (signal.aborted) return publishTooLate;
    const answer = await client.once(open, subject, ready.ask, signal);
    return inWords(await outcomeOf(bound, request, subject, { answer, publishId: ready.publishId, signal }));
  };

interface Crossed {
  readonly answer: NetworkAnswer;
  readonly publishId: string | null;
  readonly signal: AbortSignal;
}

const outcomeOf = async (
  bound: Bound,
  request: PublishRequest,
  subject: NetworkCall['subject'],
  { answer, publishId, signal }: Crossed,
): Promise<PublishOutcome> => {
  const now = bound.clock();
  const isThere = answer.kind === 'refused' && answer.status === outOfStep && publishId !== null;
  if (answer.kind !== 'ok' && !isThere) return behindBoundary(answer, now);
  const said = answer.kind === 'ok' ? (textIn(membersOf(answer.body?.data) ?? {}, 'publish_id') ?? '') : '';
  const id = publishId ?? said;
  if (!isPublishId(id)) return { kind: 'unknown', failure: unknown('the answer has no publish_id') };
  // TikTok has the post: a question that gets no answer takes nothing of that away.
  const status = await statusOf(bound, subject, id, signal).catch(() => null);
  if (status?.kind === 'out') {
    return { kind: 'published', ...shownAs(request, id, status.postId), publishedAt: new Date(now).toISOString() };
  }
  if (status?.kind === 'ended') return { kind: 'failed', failure: failureFor(status.reason, request) };
  const isWhole =
    status?.kind === 'working' && (!status.isUpload || (status.uploaded ?? 0) >= (request.media[0]?.bytes ?? 0));
  if (isThere && !isWhole)
    return { kind: 'unknown', failure: unknown('TikTok did not take the last part of the file') };
  return { kind: 'accepted', ...processingOf(id, now, now) };
};
