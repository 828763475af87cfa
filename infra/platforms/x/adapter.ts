/**
 * The adapter of X, API v2. X has no key that makes a second create the same post: a lost answer is looked for in the
 * account's own timeline.
 */
import { setTimeout as delay } from 'node:timers/promises';
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
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import { permalinkOf, rulesOf } from '#domain/platforms/index.ts';
import { textIn } from '../shared/members.ts';
import type { Failed, NotPublished } from '../shared/outcomes.ts';
import { type Answered, XApi, type XResult } from './api.ts';
import { uploadInSegments } from './chunked.ts';
import { invalid, unknown } from './errors.ts';
import { uploadImage } from './images.ts';
import { XInsights } from './insights.ts';
import { windowsOf } from './limits.ts';
import type { XOptions } from './options.ts';
import { beforeCreate, ofCreate } from './outcomes.ts';
import { postOf, refusalOf, replyOf } from './post.ts';
import { boundaryOf, findOwn, lookFor } from './reconcile.ts';
import { earlier, isFailed, subjectOf, type Upload, type Uploading } from './upload.ts';

const { publish: rules } = rulesOf('x');
const passed = 'the deadline passed before the call was made';
const isPostId = (id: string): boolean => /^\d{1,19}$/.test(id);
const byTheClock = async (ms: number, signal: AbortSignal): Promise<void> => {
  await delay(ms, undefined, { signal });
};

export class XAdapter implements PlatformAdapter, InsightsSource {
  readonly boundaryDeadlineMs: number;
  readonly #options: XOptions;
  readonly #api: XApi;
  readonly #insights: XInsights;
  readonly insightsVersion: string;
  readonly minIntervalMs: number;
  readonly maxAheadMs: number;
  readonly nightAgesMs: readonly number[];

  constructor(options: XOptions) {
    this.#options = options;
    this.boundaryDeadlineMs = options.boundaryDeadlineMs ?? 10_000;
    this.#api = new XApi(options);
    this.#insights = new XInsights(options, this.#api);
    this.insightsVersion = this.#insights.insightsVersion;
    this.minIntervalMs = this.#insights.minIntervalMs;
    this.maxAheadMs = this.#insights.maxAheadMs;
    this.nightAgesMs = this.#insights.nightAgesMs;
  }

  settleWindowMs(): number {
    return rules.settleWindowMs;
  }

  absenceIsProof(): boolean {
    return rules.absenceIsProof;
  }

  listsOwnPosts(): boolean {
    return rules.listsOwnPosts;
  }

  fetchPostInsights(...asked: Parameters<InsightsSource['fetchPostInsights']>) {
    return this.#insights.fetchPostInsights(...asked);
  }

  fetchAccountInsights(...asked: Parameters<InsightsSource['fetchAccountInsights']>) {
    return this.#insights.fetchAccountInsights(...asked);
  }

  async publish(request: PublishRequest, steps: PublishSteps): Promise<PublishOutcome> {
    steps.signal.throwIfAborted();
    const refusal = refusalOf(request);
    if (refusal !== null) return { kind: 'failed', failure: invalid(refusal) };
    const uploads = await this.#upload(request, steps);
    if ('kind' in uploads) return uploads;
    const ids = uploads.map(({ id }) => id);
    const subject = subjectOf(request);
    const open = await this.#api.open(subject, steps.signal);
    steps.signal.throwIfAborted();
    if (open.kind !== 'open') return beforeCreate(open, this.#options.clock());
    const json = postOf(request, ids);
    const signal = await steps.boundary(boundaryOf(request, ids, this.#options.clock()));
    if (signal.aborted) return { kind: 'unknown', failure: unknown(passed) };
    const result = await this.#api.callWith(open, subject, { method: 'POST', path: '/2/tweets', json }, signal);
    const made = this.#made(request.account.id, result);
    if (typeof made !== 'string') return made;
    return {
      ...{ kind: 'published', externalId: made, permalink: this.#permalink(request, made) },
      publishedAt: new Date(this.#options.clock()).toISOString(),
    };
  }

  async #upload(request: PublishRequest, steps: PublishSteps): Promise<readonly Upload[] | Failed> {
    const { clock, segmentBytes = 4_000_000, processingMs = 600_000, pause = byTheClock } = this.#options;
    const uploading: Uploading = {
      ...{ api: this.#api, request, steps, now: clock },
      ...{ segmentBytes, processingMs, pause },
    };
    const uploads: Upload[] = [];
    for (const media of request.media) {
      const upload =
        media.kind === 'image'
          ? (earlier(uploading, media) ?? (await uploadImage(uploading, media)))
          : await uploadInSegments(uploading, media);
      if (isFailed(upload)) return upload;
      uploads.push(upload);
    }
    return uploads;
  }

  /** The id of the post that a create call made, or what else is known of it. */
  #made(accountId: string, result: XResult): string | NotPublished {
    this.#tellLimits(accountId, result);
    if (result.kind !== 'ok') return ofCreate(result, this.#options.clock());
    const id = textIn(result.body.data, 'id');
    if (id !== null && isPostId(id)) return id;
    return { kind: 'unknown', failure: unknown('the answer has no id of the post') };
  }

  #tellLimits(accountId: string, result: XResult): void {
    const { headers = {} } = result as Partial<Extract<Answered, { readonly kind: 'ok' }>>;
    const windows = windowsOf(headers);
    if (windows.length > 0) this.#options.onLimits?.(accountId, windows);
  }

  #permalink({ account }: Pick<PublishRequest, 'account'>, id: string): string | null {
    return permalinkOf('x', { id, username: account.username, account: account.externalId });
  }

  async reconcile(request: PublishRequest, boundary: Checkpoint): Promise<ReconcileOutcome> {
    const found = await lookFor(this.#options, this.#api, request, boundary, this.boundaryDeadlineMs);
    if (found.kind !== 'found') return found;
    const { id, createdAt } = found;
    return { kind: 'present', externalId: id, permalink: this.#permalink(request, id), publishedAt: createdAt };
  }

  async findPosts(request: FindRequest): Promise<FindOutcome> {
    const found = await findOwn(this.#options, this.#api, request, this.boundaryDeadlineMs);
    if (found.kind !== 'listed') return found;
    const shown = ({ id, at }: (typeof found.posts)[number]) => ({
      ...{ externalId: id, permalink: this.#permalink(request, id), publishedAt: at },
    });
    return { kind: 'listed', posts: found.posts.map(shown) };
  }

  /** Costs one call of the account's budget. X may refuse replies of an app, and then only the comment fails. */
  async comment(request: CommentRequest, signal: AbortSignal): Promise<CommentOutcome> {
    if (signal.aborted) return { kind: 'unknown', failure: unknown(passed) };
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const open = await this.#api.open(subject, signal);
    if (open.kind !== 'open') return beforeCreate(open, this.#options.clock());
    if (signal.aborted) return { kind: 'deferred', failure: unknown(passed) };
    const json = replyOf(request.content, request.externalId);
    const result = await this.#api.callWith(open, subject, { method: 'POST', path: '/2/tweets', json }, signal);
    const made = this.#made(request.account.id, result);
    if (typeof made === 'string') return { kind: 'posted', externalId: made };
    return made.kind === 'nothing_sent' ? { ...made, kind: 'deferred' } : made;
  }

  async removePost({ account, externalId }: RemovalRequest, signal: AbortSignal): Promise<RemovalOutcome> {
    const subject = { accountId: account.id, targetId: null };
    if (!isPostId(externalId)) return { kind: 'not_removed', failure: invalid('this is no id of a post') };
    const result = await this.#api.call(subject, { method: 'DELETE', path: `/2/tweets/${externalId}` }, signal);
    if (result.kind === 'ok' || (result.kind === 'refused' && result.status === 404)) return { kind: 'removed' };
    return { kind: 'not_removed', failure: beforeCreate(result, this.#options.clock()).failure };
  }
}
