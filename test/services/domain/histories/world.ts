import assert from 'node:assert/strict';
import { Rejection } from '#domain/decider.ts';
import { contentHashOf } from '#domain/post/content.ts';
import {
  type Intent,
  isReleasedFor,
  type LivePost,
  newestBody,
  type PostCommand,
  type PostState,
  post,
  publishedAtOf,
  type UnsettledTarget,
} from '#domain/post/post.ts';
import type { DecidePost, Submission } from '#domain/post/post-approval.ts';
import type { RecycleThen } from '#domain/post/post-recycle.ts';
import { scheduleModeOf } from '#domain/post/scheduling.ts';
import {
  attemptAt,
  isBeingCanceled,
  isRevisableAtNetwork,
  openStatuses,
  revisableStatuses,
  type ScheduledTarget,
  skipReasonOf,
  type TargetCommand,
  type TargetState,
  TooLate,
  target,
} from '#domain/post-target/target.ts';
import type { Model } from '#projections/engine/model.ts';
import { posts } from '#projections/models/posts.ts';
import { postTargets } from '#projections/models/targets.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Platform } from '#schemas/common.ts';
import type { PostBody, PostEvent } from '#schemas/post.ts';
import type { PlannedTarget, TargetEvent, TargetStatus, TargetTime } from '#schemas/target.ts';
import { outcomeOf } from '#services/workflows/posts/outcomes.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { postArrows, targetArrows } from './arrows.ts';
import { checkReleased } from './bodies.ts';
import { type CommandName, instantOf, makers, minuteMs, type Sender } from './commands.ts';
import { Stream, uuid } from './stream.ts';

/**
 * One post with its targets, and what the processes do with them between the streams: the fan-out carries the plan and
 * the intents out, the outcomes of targets are recorded in the post, late and more than once. Each may die in between.
 */

export interface Account {
  readonly platform: Platform;
  readonly isNative: boolean;
  readonly segments: number | null;
  readonly wantsComment: boolean;
  /** Minutes from the plan to its due time. */
  readonly dueIn: number;
}

type OwnOf<M> = M extends Model<infer Own> ? Own : never;
type TargetStream = Stream<TargetState, TargetCommand, TargetEvent, OwnOf<typeof postTargets>>;
type PostStream = Stream<PostState, PostCommand, PostEvent, OwnOf<typeof posts>>;
type Plan = readonly PlannedTarget[];

const clientId = uuid(1, 1);
const createdBy = { type: 'member', id: 'm1' };
const approver = { type: 'member', id: 'm2' } as const;
const wholeFacts: readonly string[] = ['PostPublished', 'PostPartiallyPublished', 'PostFailed', 'PostCanceled'];

export class World {
  readonly accounts: readonly Account[];
  readonly post: PostStream;
  readonly targets: readonly TargetStream[];
  now = Date.UTC(2026, 0, 1);
  /** Events of targets as the log has them; those before `recorded` were recorded in the post. */
  readonly #log: DecodedEvent[] = [];
  #recorded = 0;
  #calls = 0;
  readonly #decisions = new Map<string, DecidePost['type']>();
  #retrying: { readonly index: number; readonly command: TargetCommand } | null = null;
  #revising: { readonly revision: number; readonly command: PostCommand } | null = null;

  constructor(accounts: readonly Account[], walked: Set<string>) {
    this.accounts = accounts;
    this.post = new Stream(post, posts, uuid(2, 1), postArrows, walked);
    this.targets = accounts.map((_, n) => new Stream(target, postTargets, uuid(3, n), targetArrows, walked));
  }

  get #at(): string {
    return instantOf(this.now);
  }

  get plan(): Plan {
    return this.post.state.status === 'live' ? this.post.state.plan.targets : [];
  }

  /** What the sender of the next command about this target knows. */
  sender(index: number, more: Partial<Sender> = {}): Sender {
    this.#calls += 1;
    const { segments = null, wantsComment = false } = this.accounts[index] ?? {};
    return { now: this.now, commandId: `call-${this.#calls}`, segments, wantsComment, ...more };
  }

  /** Sends a command that is made for the present state of the target; nothing where there is none. */
  tell(index: number, name: CommandName, more: Partial<Sender> = {}): void {
    const stream = this.targets[index];
    if (stream === undefined || stream.state.status === 'none') return;
    if (name === 'retry' && this.#isUnapproved(stream.state)) return;
    this.sendTo(stream, makers[name](stream.state, this.sender(index, more)));
  }

  /** A caller's retry is accepted for the content that the target has, and sent later. */
  acceptRetry(index: number): void {
    const state = this.targets[index]?.state ?? { status: 'none' };
    if (state.status !== 'failed' || this.#isUnapproved(state)) return;
    const { commandId } = this.sender(index);
    const { postRevision } = state.common;
    this.#retrying = { index, command: { type: 'Retry', commandId, now: this.#at, postRevision } };
  }

  sendRetry(): void {
    const retrying = this.#retrying;
    this.#retrying = null;
    if (retrying !== null) this.sendTo(this.#target(retrying.index), retrying.command);
  }

  /** A caller's retry of what nobody has approved is refused. */
  #isUnapproved(state: ScheduledTarget): boolean {
    const { state: whole } = this.post;
    const { targetId, postRevision } = state.common;
    return state.status === 'failed' && !(whole.status === 'live' && isReleasedFor(whole, targetId, postRevision));
  }

  sendTo(stream: TargetStream, command: TargetCommand): Rejection | readonly DecodedEvent[] {
    const from = stream.state;
    const sent = stream.send(command, this.#at);
    if (sent instanceof Rejection) return sent;
    for (const event of sent) {
      if (event.type === 'TargetPublishStarted') this.#checkStart(stream, from as ScheduledTarget);
      if (event.type === 'TargetPublishCheckpointed' && event.data.step === 'boundary') {
        checkBoundary(stream, event);
        checkReleased(this.post.events, (from as ScheduledTarget).common.postRevision);
      }
      if (event.type === 'TargetUndoRequested' && event.data.then === 'revise') {
        checkReleased(this.post.events, Number(event.data.postRevision));
      }
    }
    this.#log.push(...sent);
    return sent;
  }

  // What people decide about requests, and when a process carries it out.

  get #requests(): readonly DecodedEvent[] {
    return this.post.events.filter(({ type }) => type === 'PostSubmittedForApproval').reverse();
  }

  decide(decision: DecidePost['type'], back: number): void {
    const id = this.#requests[back]?.data.approvalId as string | undefined;
    if (id !== undefined && !this.#decisions.has(id)) this.#decisions.set(id, decision);
  }

  carryOut(): void {
    // A process that slept carries an older decision out first.
    for (const { data } of this.#requests.slice(0, 2).reverse()) {
      const approvalId = data.approvalId as string;
      const type = this.#decisions.get(approvalId);
      if (type === 'ReturnToDraft') this.fanOut();
      if (type !== undefined)
        this.sendToPost({
          type,
          approvalId,
          hash: data.hash as string,
          decided: { by: { type: 'member', id: 'm' }, comment: null },
        });
    }
  }

  /** Whatever the newest request is waiting for is approved in the end. */
  approve(): void {
    this.fanOut();
    this.carryOut();
    const [newest] = this.#requests;
    if (this.#decisions.has(newest?.data.approvalId as string)) {
      this.acceptRevise(false, true);
      this.appendRevise();
      this.fanOut();
    }
    this.decide('Release', 0);
    this.carryOut();
    this.fanOut();
  }

  waitFor(index: number): void {
    const state = this.targets[index]?.state;
    if (state?.status === 'pending' || state?.status === 'rate_limited') {
      this.now = Math.max(this.now, Date.parse(attemptAt(state)));
    } else if (state?.status === 'handed_to_platform') this.now = Math.max(this.now, Date.parse(state.common.dueAt));
    else if (state?.status === 'processing') this.now = Math.max(this.now, Date.parse(state.accepted.until));
  }

  // The post's own commands.

  compose(
    command: 'draft' | 'replace' | 'schedule' | 'submit' | 'delete' | 'lapse' | 'abandon' | 'join' | 'leave',
  ): void {
    this.#calls += 1;
    const commandId = `call-${this.#calls}`;
    const scheduleMode = this.accounts.some(({ isNative }) => isNative) ? 'native' : 'managed';
    const body: PostBody = { ...postBody(), content: `text ${this.#calls}`, scheduleMode };
    // The targets of a second plan would be other streams.
    if (this.post.state.status === 'draft' && this.post.state.plans > 0 && command !== 'replace') return;
    const number = this.post.state.status === 'draft' ? this.post.state.plans + 1 : 1;
    const schedule = { type: 'Schedule', commandId, clientId, createdBy, body } as const;
    const plan = { number, targets: this.accounts.map((_, n) => this.#planned(n)) };
    const made: Readonly<Record<typeof command, PostCommand>> = {
      draft: { type: 'Draft', clientId, createdBy, body },
      replace: { type: 'ReplaceDraft', body },
      schedule: { ...schedule, plan },
      submit: { ...schedule, plan, submission: submissionOf(body, plan.targets) },
      delete: { type: 'Delete', unsettled: this.#unsettled() },
      join: { type: 'JoinCampaign', campaignId: clientId },
      leave: { type: 'LeaveCampaign', campaignId: clientId },
      abandon: { type: 'Abandon' },
      lapse: { type: 'LapseExternalRefClaim', externalRef: 'r1' },
    };
    this.sendToPost(made[command]);
  }

  /** The caller of a deletion carries out every intent first. */
  #unsettled(): readonly UnsettledTarget[] {
    this.fanOut();
    return this.targets
      .flatMap(({ state }) => (state.status === 'none' ? [] : [state]))
      .filter((state) => !['published', 'failed', 'canceled'].includes(state.status) && !isBeingCanceled(state))
      .map(({ common: { targetId, appliedRevision } }) => ({ targetId, appliedRevision }));
  }

  /** A caller sets or clears the recycling, and the worker writes what became of a copy, also late and once more. */
  recycle(what: 'set' | 'clear' | 'stop' | 'plan' | 'record' | 'fail', n: number): void {
    const { state } = this.post;
    const known = state.status === 'none' ? null : state.recycle;
    const { posted = 0, lastDay = 0 } = known ?? {};
    const day = lastDay + n;
    const run = { day, dueAt: instantOf(this.now + day * 24 * 60 * minuteMs) };
    const then: RecycleThen = posted + 1 === known?.settings?.times ? { reason: 'times' } : run;
    const about = { day, newPostId: uuid(7, posted + n), scheduledAt: run.dueAt, then: known?.enabled ? then : null };
    const settings = { everyDays: n, times: n === 3 ? null : posted + n, until: null };
    const next = state.status === 'live' && publishedAtOf(state) !== null ? run : null;
    const made: Readonly<Record<typeof what, PostCommand>> = {
      set: { type: 'SetRecycle', enabled: n < 4, ...settings, setBy: approver, needsApproval: n === 1, next },
      clear: { type: 'ClearRecycle' },
      stop: { type: 'StopRecycle', reason: 'client_archived' },
      plan: { type: 'PlanRecycle', then: n === 4 ? { reason: 'until' } : run },
      record: { type: 'RecordRecycled', occurrence: posted + Math.min(n, 2), ...about },
      fail: { type: 'RecordRecycleFailed', day, code: 'no_targets', message: 'None is left.', then },
    };
    this.sendToPost(made[what]);
  }

  cancel(indexes: readonly number[], reason: 'client_archived' | 'account_disconnected'): void {
    const targetIds = indexes.flatMap((index) => this.plan[index]?.targetId ?? []);
    this.sendToPost({ type: 'CancelTargets', targetIds, reason });
  }

  /** A caller's revise is accepted for the targets that it can reach, and appended later at that revision or nowhere. */
  acceptRevise(isTimed: boolean, asks: boolean): void {
    this.fanOut();
    this.#calls += 1;
    const known = this.post.state.status === 'live' ? this.post.state : null;
    // Some revises change times alone.
    const base = known === null ? postBody() : newestBody(known);
    const content = this.#calls % 3 === 0 ? base.content : `revised ${this.#calls}`;
    // And some take the post from the networks' own schedulers.
    const body: PostBody = { ...base, content, ...(this.#calls % 4 === 0 ? { scheduleMode: 'managed' as const } : {}) };
    const isAsked = asks || (known !== null && known.approval !== null);
    const reached = this.plan.filter((_, n) => {
      const state = this.targets[n]?.state;
      if (state === undefined || state.status === 'none') return false;
      return skipReasonOf(state, revisableStatuses) === null || (!isAsked && isRevisableAtNetwork(state, this.#at));
    });
    const targetIds = reached.map(({ targetId }) => targetId);
    const times = isTimed ? reached.map((one) => this.#timeOf(this.plan.indexOf(one))) : null;
    const submission = isAsked ? { submission: submissionOf(body, this.plan) } : {};
    const command = { type: 'Revise', commandId: `call-${this.#calls}`, changed: ['content'] } as const;
    this.#revising = { revision: this.post.revision, command: { ...command, body, targetIds, times, ...submission } };
  }

  appendRevise(): void {
    const revising = this.#revising;
    this.#revising = null;
    if (revising?.revision === this.post.revision) this.sendToPost(revising.command);
  }

  sendToPost(command: PostCommand): void {
    const sent = this.post.send(command, this.#at);
    if (sent instanceof Rejection) return;
    for (const { type, data } of sent) {
      if (type === 'PostReleased') assert.equal(this.#decisions.get(data.approvalId as string), 'Release');
      if (!wholeFacts.includes(type)) continue;
      const isSettled = Object.values((this.post.state as LivePost).targets).every(({ outcome }) => outcome !== null);
      assert.ok(isSettled, `${type} before all targets are settled`);
    }
  }

  #timeOf(index: number): TargetTime {
    const { platform = 'x', isNative = false, dueIn = 0 } = this.accounts[index] ?? {};
    const dueAt = instantOf(this.now + dueIn * minuteMs);
    const scheduleMode = isNative ? 'native' : 'managed';
    const mode = scheduleModeOf({ scheduleMode, platform, overrides: {}, isNow: false, dueAt, now: this.#at });
    return { dueAt, scheduledLocal: null, timezone: 'UTC', jitterSeconds: 0, ...mode };
  }

  #planned(index: number): PlannedTarget {
    const { platform = 'x' } = this.accounts[index] ?? {};
    const ids = { targetId: uuid(3, index), accountId: uuid(4, index), clientId };
    // Every other client lets what is approved late fail.
    const late = index % 2 === 1 ? ({ approvalLate: 'fail' } as const) : {};
    return { ...planned(ids), platform, ...late, ...this.#timeOf(index) };
  }

  // What the processes do between the streams.

  /** @param steps appends after which the process dies */
  fanOut(steps = Number.POSITIVE_INFINITY): void {
    const { state } = this.post;
    if (state.status === 'none') return;
    const live = state.status === 'live' ? state : state.returned;
    if (live === null) return;
    let left = steps;
    const dies = (): boolean => {
      left -= 1;
      return left < 0;
    };
    for (const [index, one] of live.plan.targets.entries()) {
      const stream = this.#target(index);
      if (stream.state.status !== 'none') continue;
      if (dies()) return;
      const postId = uuid(2, 1);
      this.sendTo(stream, {
        type: 'Schedule',
        planned: one,
        postId,
        postRevision: live.planRevision,
        held: live.planHeld,
      });
    }
    for (const intent of live.intents) {
      const late: { targetId: string; reason: string }[] = [];
      for (const [index, targetId] of intent.targetIds.entries()) {
        if (intent.skipped.includes(targetId)) continue;
        const stream = this.#target(live.plan.targets.findIndex((one) => one.targetId === targetId));
        if (!lacks(stream.state, intent)) continue;
        if (dies()) return;
        const sent = this.sendTo(stream, commandOf(intent, index, this.#at));
        if (sent instanceof Rejection) assert.ok(sent instanceof TooLate, `${intent.kind} was refused: ${sent.code}`);
        if (!lacks(stream.state, intent)) continue;
        const statuses = reachable[intent.kind];
        const why = sent instanceof TooLate ? sent.reason : skipReasonOf(stream.state as ScheduledTarget, statuses);
        if (why !== null) late.push({ targetId, reason: why });
      }
      if (late.length === 0) continue;
      if (dies()) return;
      this.sendToPost({ type: 'RecordSkipped', intentRevision: intent.revision, targets: late });
    }
  }

  #target(index: number): TargetStream {
    const stream = this.targets[index];
    if (stream === undefined) throw new Error(`no target ${index}`);
    return stream;
  }

  /** @param again events that were recorded and come once more */
  recordOutcomes(count = Number.POSITIVE_INFINITY, again = 0): void {
    const until = Math.min(this.#log.length, this.#recorded + count);
    for (const event of this.#log.slice(Math.max(0, this.#recorded - again), until)) {
      const outcome = outcomeOf(event);
      if (outcome !== null) this.sendToPost(outcome.command);
    }
    this.#recorded = until;
  }

  #checkStart(stream: TargetStream, from: ScheduledTarget): void {
    checkReleased(this.post.events, from.common.postRevision);
    const types = stream.events.map(({ type }) => type);
    assert.ok(!types.includes('TargetCanceled'), 'an attempt after the cancel');
    const asked = stream.events.findLastIndex(
      ({ type, data }) => type === 'TargetUndoRequested' && data.then === 'cancel',
    );
    assert.ok(asked < 0 || types.lastIndexOf('TargetUndoFailed') > asked, 'an attempt although a cancel is under way');
    if (from.common.scheduleMode === 'managed') assert.ok(from.common.dueAt <= this.#at, 'an attempt before its time');
  }
}

const reachable: Readonly<Record<Intent['kind'], readonly TargetStatus[]>> = {
  cancel: openStatuses,
  revise: revisableStatuses,
  release: ['awaiting_approval'],
};

const submissionOf = (body: PostBody, targets: Plan): Submission => ({
  postId: uuid(2, 1),
  hash: contentHashOf(body, targets, () => null),
  submittedBy: { type: 'member', id: 'm1' },
});

const lacks = (state: TargetState, { revision }: Intent): boolean =>
  state.status !== 'none' && state.common.appliedRevision < revision;

const commandOf = (intent: Intent, index: number, now: string): TargetCommand => {
  const { revision: postRevision } = intent;
  if (intent.kind === 'cancel') return { type: 'Cancel', reason: intent.reason, postRevision, now };
  if (intent.kind === 'release') return { type: 'Release', postRevision, now: intent.decidedAt };
  const { held = false, decidedAt } = intent;
  return { type: 'Revise', postRevision, time: intent.times?.[index] ?? null, now: decidedAt, held };
};

/** At most one call is made in an attempt for one post of the network. */
const checkBoundary = ({ events }: TargetStream, { data }: DecodedEvent): void => {
  const key = ({ attempt, segment }: DecodedEvent['data']): string => JSON.stringify([attempt, segment]);
  const same = events.filter(
    (one) => one.type === 'TargetPublishCheckpointed' && one.data.step === 'boundary' && key(one.data) === key(data),
  );
  assert.equal(same.length, 1, 'a second boundary in one attempt');
};
