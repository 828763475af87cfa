/** The adapter of the sandbox network: one for all platforms, each with its own steps. */
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import type {
  AfterStepOutcome,
  AfterStepRequest,
  Checkpoint,
  CommentOutcome,
  CommentRequest,
  FindOutcome,
  FindRequest,
  HandOverOutcome,
  Json,
  NativeScheduler,
  PlatformAdapter,
  Processing,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  ReconcileOutcome,
} from '#contracts/ports/platform.ts';
import type { AccountSource } from '#contracts/ports/platform-account.ts';
import type { InsightsSource } from '#contracts/ports/platform-insights.ts';
import { readingOf } from '#domain/platforms/index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import type { Platform } from '#schemas/common.ts';
import { SandboxAccounts } from './accounts.ts';
import { afterStep } from './after-step.ts';
import { down, refused, schedulerRefused, unknown, versionEnded } from './answers.ts';
import { comment } from './comment.ts';
import { DayLimits } from './day-limits.ts';
import { type Fault, faultsOf } from './faults.ts';
import { segmentHash } from './ids.ts';
import { imitations } from './imitations.ts';
import { SandboxInsights } from './insights.ts';
import type { LedgerFilter } from './ledger.ts';
import type { CreateCall, CreatedPost, Line, NativePlan } from './line.ts';
import { type GivenMedia, type Looked, Looker } from './media.ts';
import { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';
import type { SandboxOptions } from './options.ts';
import { member, prepare } from './prepare.ts';
import { nativePlan, SandboxScheduler } from './scheduler.ts';
import { firing, processingMs, processingOf, type Script, said, scriptOf, untilAborted } from './script.ts';

const nothing: Looked = { given: [], refusal: null };

const published = ({ externalId, permalink, visibleAt }: CreatedPost) => ({
  externalId,
  permalink,
  publishedAt: visibleAt.toISOString(),
});

type Made = PublishOutcome | Extract<HandOverOutcome, { readonly kind: 'outside_window' }>;

/** One prepared call that creates a post. */
interface Crossing {
  readonly request: PublishRequest;
  readonly steps: PublishSteps;
  readonly script: Script;
  readonly key: string;
  readonly media: readonly GivenMedia[];
  readonly line: Line;
  /** Null: the post becomes visible at once. */
  readonly native: NativePlan | null;
}

export class SandboxNetwork implements PlatformAdapter, InsightsSource, AccountSource {
  readonly boundaryDeadlineMs: number;
  readonly #network: Network;
  readonly #options: SandboxOptions;
  readonly #ownPool: pg.Pool | null;
  readonly #dayLimits: DayLimits;
  readonly #looker: Looker;
  readonly #insights: SandboxInsights;
  readonly #scheduler: SandboxScheduler;
  readonly #accounts: SandboxAccounts;
  readonly insightsVersion: string;
  readonly minIntervalMs: number;
  readonly maxAheadMs: null;

  constructor(options: SandboxOptions) {
    this.#options = options;
    this.#looker = new Looker(options.ffmpegPath ?? null);
    this.boundaryDeadlineMs = options.boundaryDeadlineMs ?? 3000;
    const { database } = options;
    const pool =
      'pool' in database
        ? database.pool
        : openPool({
            url: database.url,
            max: database.connections ?? 16,
            connectTimeoutMs: 2_000,
            answerMs: 10_000,
            name: 'sandbox network',
          });
    this.#ownPool = 'pool' in database ? null : pool;
    this.#network = new Network(pool, options.versions);
    this.#dayLimits = new DayLimits(this.#network, pool);
    this.#insights = new SandboxInsights(this.#network);
    this.#accounts = new SandboxAccounts(this.#network);
    this.#scheduler = new SandboxScheduler(this.#network, options, (request, steps) =>
      this.#create(request, steps, request.dueAt),
    );
    this.insightsVersion = this.#insights.insightsVersion;
    this.minIntervalMs = this.#insights.minIntervalMs;
    this.maxAheadMs = this.#insights.maxAheadMs;
  }

  async close(): Promise<void> {
    await this.#ownPool?.end();
  }

  settleWindowMs(): number {
    return this.#options.settleWindowMs ?? 10_000;
  }

  absenceIsProof(platform: Platform, { externalId }: PublishRequest['account']): boolean {
    return readingOf(platform, externalId).absenceIsProof;
  }

  processingLimitMs(platform: Platform): number | null {
    return imitations[platform].processes === true ? (this.#options.acceptedLimitMs ?? 60_000) : null;
  }

  listsOwnPosts(platform: Platform, { externalId }: PublishRequest['account']): boolean {
    return readingOf(platform, externalId).listsOwnPosts;
  }

  apiVersion(platform: Platform): string | null {
    return this.#options.versions?.[platform] ?? null;
  }

  /** From now on the network answers no call that asks for this version of its API. */
  endVersion(platform: Platform, version: string): Promise<void> {
    return this.#network.endVersion(platform, version);
  }

  fetchPostInsights(...asked: Parameters<InsightsSource['fetchPostInsights']>) {
    return this.#insights.fetchPostInsights(...asked);
  }

  fetchAccountInsights(...asked: Parameters<InsightsSource['fetchAccountInsights']>) {
    return this.#insights.fetchAccountInsights(...asked);
  }

  choices(...asked: Parameters<AccountSource['choices']>) {
    return this.#accounts.choices(...asked);
  }

  facts(...asked: Parameters<SandboxAccounts['facts']>) {
    return this.#accounts.facts(...asked);
  }

  /** By the network's clock, which dates the figures. @param workspaceId null: of a workspace whose own clock nobody moved */
  now(workspaceId: string | null = null): Promise<Date> {
    return this.#network.now(workspaceId);
  }

  /**
   * Moves the network's clock ahead, for good.
   * @param ms more than 0: the clock never goes back
   * @param workspaceId for whom alone; null: for all
   */
  advance(ms: number, workspaceId: string | null = null): Promise<void> {
    return this.#network.advance(ms, workspaceId);
  }

  /** Removes a post as its owner does: from now on the answer to a question about its figures is `removed`. */
  remove(platform: Platform, externalId: string): Promise<void> {
    return this.#network.remove(platform, externalId);
  }

  /** Every create call that the network received, oldest first. */
  ledger(filter: LedgerFilter = {}) {
    return this.#network.ledger(filter);
  }

  creates(targetId: string) {
    return this.#network.ledger({ targetIds: [targetId] });
  }

  /** Targets with more than one post. */
  duplicates() {
    return this.#network.duplicates();
  }

  /** Every comment call that the network received for these targets, or for all, oldest first. */
  comments(targetIds: readonly string[] | null = null) {
    return this.#network.comments(targetIds);
  }

  /** Targets with more than one comment. */
  duplicateComments() {
    return this.#network.duplicateComments();
  }

  comment(request: CommentRequest, signal: AbortSignal): Promise<CommentOutcome> {
    return comment(this.#network, this.#options, request, signal);
  }

  /** Every call behind a publication that the network received for these targets, or for all, oldest first. */
  afterSteps(targetIds: readonly string[] | null = null) {
    return this.#network.afterSteps(targetIds);
  }

  afterStep(request: AfterStepRequest, signal: AbortSignal): Promise<AfterStepOutcome> {
    return afterStep(this.#network, this.#options, request, signal);
  }

  nativeScheduler(platform: Platform): NativeScheduler | null {
    return imitations[platform].scheduler === undefined ? null : this.#scheduler;
  }

  async publish(request: PublishRequest, steps: PublishSteps): Promise<PublishOutcome> {
    const made = await this.#create(request, steps, null);
    return made.kind === 'outside_window' ? { kind: 'failed', failure: made.failure } : made;
  }

  /** @param dueAt the time of a post for the network's own scheduler */
  async #create(request: PublishRequest, steps: PublishSteps, dueAt: string | null): Promise<Made> {
    const faults = faultsOf(request.content, request.account.username);
    try {
      const looked = request.media.length === 0 ? nothing : await this.#looker.look(request, steps.signal);
      const prepared = await prepare(this.#network, this.#options, request, steps, faults, looked);
      if ('kind' in prepared) return prepared;
      const script = await scriptOf(this.#network, request, faults, looked, prepared.admitted);
      const native = dueAt === null ? null : await nativePlan(this.#network, request, faults, dueAt, script);
      const limited = await this.#dayLimits.refusalOf(request);
      if (limited !== null) return limited;
      const line = await this.#network.open();
      try {
        steps.signal.throwIfAborted();
        return await this.#cross({ request, steps, script, key: prepared.key, media: looked.given, line, native });
      } catch (error) {
        // If the claim was lost there is no call, and no other code closes the line.
        line.close();
        throw error;
      }
    } catch (error) {
      // Only calls before the boundary end here, so no post became visible.
      if (error instanceof NetworkUnavailable) return { kind: 'deferred', failure: down(error.message) };
      throw error;
    }
  }

  async #cross(crossing: Crossing): Promise<Made> {
    const { request, steps, script, key, media, line } = crossing;
    const signal = await steps.boundary({ key, contentHash: segmentHash(request) });
    this.#options.faultPoint?.('sandbox.boundary_appended');
    if (script.hangMs > 0) await delay(script.hangMs);
    // No await from this check to the call: a worker that was suspended before it makes no call after the deadline.
    if (signal.aborted) {
      line.close();
      return { kind: 'nothing_sent', failure: down('the deadline passed before the call was made') };
    }
    const reply = this.#call({ ...request, media, key, callStartedAt: new Date() }, crossing, signal);
    // At the deadline the adapter stops waiting for the call, which may still take effect, as on any network.
    const silence = untilAborted(signal).then(
      () => ({ kind: 'unknown', failure: unknown(said.timeout_after) }) as const,
    );
    return Promise.race([reply, silence]);
  }

  /** Makes the boundary call, once. A failure from here on leaves its effect unknown. */
  async #call(call: CreateCall, { script, line, native }: Crossing, signal: AbortSignal): Promise<Made> {
    const { refusal, answer, lateMs } = script;
    const processing = native === null ? script.processing : null;
    let post: CreatedPost | null = null;
    try {
      if (refusal !== null) await line.refuse(call, 'failure' in refusal ? refusal.failure.code : refusal.kind);
      else if (answer === 'timeout_before' || answer === 'error_before') await line.refuse(call, answer);
      else if (processing !== null && processing.name !== 'processing') await line.refuse(call, processing.name);
      else if (processing !== null) post = await line.create(call, processingMs(processing));
      else if (native === null) post = await line.create(call, answer === 'late' ? lateMs : 0);
      else {
        post = await line.schedule(call, native);
        if (post === null) {
          await line.refuse(call, 'outside_window');
          return { kind: 'outside_window', failure: schedulerRefused(call.platform, 'outside_window') };
        }
      }
    } catch (error) {
      if (error instanceof NetworkUnavailable) return { kind: 'unknown', failure: unknown(error.message) };
      throw error;
    } finally {
      line.close();
    }
    if (refusal !== null) return refusal;
    if (post !== null || (processing !== null && answer === null)) this.#options.faultPoint?.('sandbox.post_accepted');
    if (answer === 'timeout_before' || answer === 'timeout_after') await untilAborted(signal);
    if (processing !== null && answer === null) return { kind: 'accepted', ...this.#processing(call.key) };
    if (post === null || answer !== null) return { kind: 'unknown', failure: unknown(said[answer ?? 'error_before']) };
    return { kind: 'published', ...published(post) };
  }

  /** @param key of the call */
  #processing(key: string): Processing {
    const askAt = new Date(Date.now() + (this.#options.askMs ?? 1_000)).toISOString();
    return { handle: { id: key }, askAt };
  }

  /** What the network says of a post that it does not show; null: it has accepted none. */
  async #lookedAt(
    { platform, targetId }: PublishRequest,
    scripted: Fault,
    key: string,
  ): Promise<ReconcileOutcome | null> {
    const call = await this.#network.newestCall(platform, targetId, key);
    if (call === null) return null;
    const { refusal, ageMs } = call;
    // The call was refused or lost by another fault.
    if (refusal !== null && refusal !== scripted.name) return null;
    if (refusal === 'processing_failed' && ageMs >= processingMs(scripted)) {
      const platformMessage = 'The post was refused after it was looked at';
      return { kind: 'failed', failure: { ...refused(platform, 'reject'), platformMessage } };
    }
    return { kind: 'processing', ...this.#processing(key) };
  }

  /** By account, content and time, for every caller and every key. */
  async findPosts(request: FindRequest): Promise<FindOutcome> {
    if (!this.listsOwnPosts(request.platform, request.account)) return { kind: 'not_askable' };
    const faults = faultsOf(request.content, request.account.username);
    try {
      const ended = await this.#network.endedVersion(request.platform);
      if (ended !== null) return { kind: 'undecided', failure: versionEnded(ended) };
      for (const name of ['unreadable', 'down'] as const) {
        if (await firing(this.#network, request, faults, name)) return { kind: 'undecided' };
      }
      return { kind: 'listed', posts: (await this.#network.ownPosts(request)).map(published) };
    } catch (error) {
      if (error instanceof NetworkUnavailable) return { kind: 'undecided' };
      throw error;
    }
  }

  async reconcile(request: PublishRequest, boundary: Checkpoint, handle: Json = null): Promise<ReconcileOutcome> {
    const { platform, targetId } = request;
    const faults = faultsOf(request.content, request.account.username);
    const key = member(handle, 'id') ?? member(boundary.data, 'key');
    const { readsBack } = readingOf(platform, request.account.externalId);
    if (key === null || readsBack === 'nothing') return { kind: 'undecided' };
    const hash = member(boundary.data, 'contentHash');
    // With another text the search would find the wrong post.
    if (hash !== null && hash !== segmentHash(request)) throw new Error('the sandbox is asked about another post');
    try {
      const ended = await this.#network.endedVersion(platform);
      if (ended !== null) return { kind: 'undecided', failure: versionEnded(ended) };
      for (const name of ['unreadable', 'down'] as const) {
        if (await firing(this.#network, request, faults, name)) return { kind: 'undecided' };
      }
      const post = await this.#network.visible(platform, targetId, key);
      if (post !== null) return { kind: 'present', ...published(post) };
      const scripted = processingOf(platform, faults);
      const looked = scripted === null ? null : await this.#lookedAt(request, scripted, key);
      if (looked !== null) return looked;
      return { kind: readsBack === 'evidence' ? 'undecided' : 'absent' };
    } catch (error) {
      if (error instanceof NetworkUnavailable) return { kind: 'undecided' };
      throw error;
    }
  }
}
