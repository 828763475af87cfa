/** The adapter of Bluesky: a post is a record in the account's own repository, under a key that we choose. */
import { createHash } from 'node:crypto';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type {
  Checkpoint,
  CommentOutcome,
  CommentRequest,
  FindOutcome,
  FindRequest,
  PlatformAdapter,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  ReconcileOutcome,
  RemovalOutcome,
  RemovalRequest,
} from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Failure } from '#schemas/target.ts';
import { commentTooLate, publishTooLate } from '../kit/errors.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import { nothingSent } from '../shared/outcomes.ts';
import { commentOn } from './comment.ts';
import { contentChanged, failureOf, hasEnded, notReached, outcomeOf, reauth, unknown } from './errors.ts';
import { found } from './facets.ts';
import { tellLimits } from './limits.ts';
import { cardOf } from './link-card.ts';
import type { BlueskyOptions } from './options.ts';
import { resolveHandles } from './people.ts';
import { deletePost, findPost, listPosts, partsOf, publishedAs, writePost } from './posts.ts';
import { hashOf, labelsOf, recordOf, type UploadedMedia } from './record.ts';
import { BlueskySessions, type Session } from './session.ts';
import { isTid, tidOf } from './tid.ts';
import { isFailed, type Uploading, uploadFile } from './upload.ts';
import { uploadVideo } from './video.ts';

/** What the first attempt decides, and each later one repeats. */
interface Plan {
  readonly key: string;
  readonly createdAt: string;
  readonly hash: string;
  /** Null: it is not built yet. */
  readonly record: Members | null;
}

type Open = Extract<Session, { readonly kind: 'open' }>;

const failedSession = (session: Exclude<Session, Open>): Exclude<PublishOutcome, { kind: 'published' }> =>
  session.kind === 'lapsed'
    ? { kind: 'failed', failure: reauth(session.reason) }
    : { kind: 'deferred', failure: notReached(session.reason) };

export class BlueskyAdapter implements PlatformAdapter {
  readonly boundaryDeadlineMs: number;
  readonly #options: BlueskyOptions;
  readonly #sessions: BlueskySessions;

  constructor(options: BlueskyOptions) {
    this.#options = options;
    this.boundaryDeadlineMs = options.boundaryDeadlineMs ?? 10_000;
    this.#sessions = new BlueskySessions({ ...options, keys: options.clientKeys ?? [] }, options.credentials);
  }

  settleWindowMs(): number {
    return rulesOf('bluesky').publish.settleWindowMs;
  }

  absenceIsProof(): boolean {
    return rulesOf('bluesky').publish.absenceIsProof;
  }

  listsOwnPosts(): boolean {
    return rulesOf('bluesky').publish.listsOwnPosts;
  }

  async publish(request: PublishRequest, steps: PublishSteps): Promise<PublishOutcome> {
    steps.signal.throwIfAborted();
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const session = await this.#sessions.of(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (session.kind !== 'open') return failedSession(session);
    const plan = this.#planOf(request);
    if (plan === null) return { kind: 'failed', failure: contentChanged() };
    const record = await this.#recordOf(request, steps, session, plan);
    if ('kind' in record) return record;
    if (plan.record === null) {
      const { key, createdAt, hash } = plan;
      await steps.checkpoint('record', { key, createdAt, hash, record: record.members });
    }
    const signal = await steps.boundary({ key: plan.key, contentHash: plan.hash });
    if (signal.aborted) return publishTooLate;
    return this.#write(session, subject, plan, record.members, signal);
  }

  /** Null: an earlier call may have published another content under the key. */
  #planOf(request: PublishRequest): Plan | null {
    const hash = hashOf(request);
    const last = request.checkpoints.findLast(({ step }) => step === 'record')?.data;
    const key = textIn(last, 'key');
    const createdAt = textIn(last, 'createdAt');
    if (key === null || createdAt === null || !isTid(key)) {
      const now = this.#options.clock();
      const seed = createHash('sha256').update(request.targetId).digest();
      return { key: tidOf(now, seed), createdAt: new Date(now).toISOString(), hash, record: null };
    }
    if (textIn(last, 'hash') === hash) return { key, createdAt, hash, record: membersOf(membersOf(last)?.record) };
    const isCrossed = request.checkpoints.some(({ step, data }) => step === 'boundary' && textIn(data, 'key') === key);
    return isCrossed ? null : { key, createdAt, hash, record: null };
  }

  /** The record of an earlier attempt is written again as it was: the same bytes make no second version of the post. */
  async #recordOf(
    request: PublishRequest,
    steps: PublishSteps,
    { secret }: Open,
    plan: Plan,
  ): Promise<{ readonly members: Members } | Exclude<PublishOutcome, { kind: 'published' }>> {
    const { http, clock, videoService = 'https://video.bsky.app', videoPollMs, videoWaitMs } = this.#options;
    const video = {
      videoService,
      ...(videoPollMs === undefined ? {} : { videoPollMs }),
      ...(videoWaitMs === undefined ? {} : { videoWaitMs }),
    };
    const uploading: Uploading = { http, secret, request, steps, now: clock };
    const media: UploadedMedia[] = [];
    for (const one of request.media) {
      const uploaded =
        one.kind === 'video' ? await uploadVideo(uploading, one, video) : await uploadFile(uploading, one);
      if (isFailed(uploaded)) return uploaded;
      media.push(uploaded);
    }
    if (plan.record !== null) return { members: plan.record };
    const parts = found(request.content);
    const handles = parts.flatMap((one) => (one.kind === 'mention' ? [one.handle] : []));
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const dids = await resolveHandles(http, secret.service, handles, subject, steps.signal);
    const card = media.length > 0 ? null : await cardOf(uploading, parts);
    steps.signal.throwIfAborted();
    const labels = labelsOf(request.overrides);
    const { createdAt } = plan;
    const text = request.content;
    return { members: recordOf({ text, createdAt, found: parts, dids, media, card, labels, replyTo: null }) };
  }

  /**
   * The write is repeated once after a token that ended, which the server says before it writes anything; the key makes
   * a second write the same post.
   */
  async #write(
    session: Open,
    subject: NetworkCall['subject'],
    plan: Plan,
    record: Members,
    signal: AbortSignal,
  ): Promise<PublishOutcome> {
    const { http, clock } = this.#options;
    let result = await writePost(http, session.secret, plan.key, record, subject, signal);
    if (hasEnded(result) && !signal.aborted) {
      const renewed = await this.#sessions.refreshed(subject, session.version, signal);
      if (renewed.kind === 'open') result = await writePost(http, renewed.secret, plan.key, record, subject, signal);
    }
    tellLimits(this.#options, subject, result);
    if (result.kind !== 'ok') return nothingSent(outcomeOf(result, true, clock()));
    const uri = textIn(result.data, 'uri');
    if (uri === null) return { kind: 'unknown', failure: unknown('the answer has no address of the post') };
    return { kind: 'published', ...publishedAs(uri, session.secret.did, plan.createdAt) };
  }

  async reconcile(request: PublishRequest, boundary: Checkpoint): Promise<ReconcileOutcome> {
    const key = textIn(boundary.data, 'key');
    if (key === null) return { kind: 'undecided' };
    const kept = await this.#options.credentials.read(request.account.id);
    const service = textIn(kept?.secret, 'service');
    if (service === null) return { kind: 'undecided', failure: reauth('there are no credentials of the account') };
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const signal = AbortSignal.timeout(this.boundaryDeadlineMs);
    const did = request.account.externalId;
    const post = await findPost(this.#options.http, { service, did, key }, subject, signal);
    if (post.kind === 'present') {
      const createdAt = textIn(post.value, 'createdAt') ?? new Date(this.#options.clock()).toISOString();
      return { kind: 'present', ...publishedAs(post.uri, did, createdAt) };
    }
    return post;
  }

  /** A repository is public: read without a token, also where the account's access has ended. */
  async findPosts(request: FindRequest): Promise<FindOutcome> {
    const kept = await this.#options.credentials.read(request.account.id);
    const service = textIn(kept?.secret, 'service');
    if (service === null) return { kind: 'undecided', failure: reauth('there are no credentials of the account') };
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const signal = AbortSignal.timeout(this.boundaryDeadlineMs);
    return listPosts(this.#options.http, service, request, subject, signal);
  }

  async comment(request: CommentRequest, signal: AbortSignal): Promise<CommentOutcome> {
    if (signal.aborted) return commentTooLate;
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const session = await this.#sessions.of(subject, signal);
    if (session.kind === 'lapsed') return { kind: 'failed', failure: reauth(session.reason) };
    if (session.kind === 'unavailable') return { kind: 'deferred', failure: notReached(session.reason) };
    return commentOn(this.#options, session.secret, request, signal);
  }

  async removePost({ account, externalId }: RemovalRequest, signal: AbortSignal): Promise<RemovalOutcome> {
    const subject = { accountId: account.id, targetId: null };
    const parts = partsOf(externalId);
    const failed = (failure: Failure): RemovalOutcome => ({ kind: 'not_removed', failure });
    if (parts?.did !== account.externalId) return failed(unknown('the post is in no repository of this account'));
    let session = await this.#sessions.of(subject, signal);
    for (let tries = 1; ; tries += 1) {
      if (session.kind === 'lapsed') return failed(reauth(session.reason));
      if (session.kind === 'unavailable') return failed(notReached(session.reason));
      const result = await deletePost(this.#options.http, session.secret, parts.key, subject, signal);
      if (result.kind === 'ok') return { kind: 'removed' };
      if (result.kind !== 'refused') return failed(notReached(result.reason));
      if (!hasEnded(result) || tries === 2) return failed(failureOf(result));
      session = await this.#sessions.refreshed(subject, session.version, signal);
    }
  }
}
