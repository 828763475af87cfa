import type { Registry } from 'prom-client';
import { pause, within } from '#contracts/base/pause.ts';
import { type ObservedCall, type TargetCallsState, targetcalls } from '#domain/targetcalls.ts';
import type { SeenCall } from '#runtime/egress/seen-call.ts';
import type { CommandContext, DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';
import { Counter } from '#runtime/process/metrics.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { FairQueue } from '#runtime/work/fair-queue.ts';
import { atMost, Slots } from '#runtime/work/slots.ts';
import { maxKeptAnswer } from '#schemas/targetcalls.ts';

/**
 * Keeps the calls of networks in a stream beside each target's. The publish never waits for it: calls are appended in the
 * background as soon as they are seen, in a burst of posts a second later. A process that dies loses those it has not
 * appended yet; the target's own stream says what became of the post all the same. Calls that are not kept for another
 * reason are counted.
 */

/** A target on which this process works. */
export interface WatchedTarget {
  readonly targetId: string;
  readonly workspaceId: string;
  readonly clientId: string;
  readonly attempt: () => number;
  /** Of the append. */
  readonly context: () => CommandContext;
}

/** Why a call is not kept. */
type Lost = 'target_full' | 'workspace_full' | 'process_full' | 'store' | 'late' | 'stopped';

/** Appends of this process at once, so that they leave the store's connections to the targets themselves. */
const appendsAtOnce = 4;
/** Calls that wait for their append: of all workspaces, and of one. Each has at most some 8 KiB. */
const maxWaiting = 2_000;
const maxWaitingOfWorkspace = 500;
/**
 * In a burst calls gather for so many milliseconds before their append, so that they do not take its time from posts that
 * are due. Otherwise, and where more than half of a share waits, they are appended at once.
 */
const gatherMs = 1_000;
/** Milliseconds within which those who begin to gather end together: one wait for all, not one each. */
const togetherMs = 100;
/** Targets under way that make a burst. */
const burstTargets = 50;
/** Calls in one append: their answers must fit into it. */
const perAppend = 16;
/** Milliseconds that a process which stops waits for the last appends. */
const closeMs = 5_000;

const empty: Loaded<TargetCallsState> = { state: targetcalls.initial, revision: -1, events: [] };

/** A piece of an upload that the network took without a word. */
const isPiece = ({ outcome, status, answer, calls, bodySha256 }: ObservedCall): boolean =>
  outcome === 'answered' && status !== null && status < 300 && answer === '' && (calls > 1 || bodySha256 !== null);

const folded = (one: ObservedCall, next: ObservedCall): ObservedCall | null => {
  const isSame = (['method', 'host', 'path', 'status', 'attempt'] as const).every((name) => one[name] === next[name]);
  if (!isSame || !isPiece(one) || !isPiece(next)) return null;
  return { ...one, bodySha256: null, calls: one.calls + next.calls, endedAt: next.endedAt };
};

/** The calls of one target that are not appended yet. */
class TargetCalls {
  watched: WatchedTarget;
  isWatched = true;
  isWriting = false;
  /** Null: another process may have appended to the stream, so it must be read. */
  loaded: Loaded<TargetCallsState> | null;
  readonly waiting: ObservedCall[] = [];

  constructor(watched: WatchedTarget) {
    this.watched = watched;
    this.loaded = watched.attempt() <= 1 ? empty : null;
  }

  /** Whether the call takes a place of its own. */
  add(call: ObservedCall): boolean {
    const last = this.waiting.at(-1);
    const both = last === undefined ? null : folded(last, call);
    if (both === null) return this.waiting.push(call) > 0;
    this.waiting[this.waiting.length - 1] = both;
    return false;
  }

  take(): ObservedCall[] {
    return this.waiting.splice(0, Math.min(perAppend, this.ready));
  }

  /** Calls that may be appended: a last piece stays behind as long as others may follow it. */
  get ready(): number {
    const last = this.waiting.at(-1);
    const isOpen = this.isWatched && last !== undefined && isPiece(last);
    return this.waiting.length - (isOpen ? 1 : 0);
  }
}

export interface NetworkCallsOptions {
  readonly store: DomainStore;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly logger: Pick<Logger, 'warn'>;
  readonly registry?: Registry;
}

export class NetworkCalls {
  readonly #options: NetworkCallsOptions;
  readonly #targets = new Map<string, TargetCalls>();
  readonly #appending = new FairQueue({ slots: new Slots(appendsAtOnce, atMost(appendsAtOnce)) });
  readonly #writing = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  /** By workspace. */
  readonly #waiting = new Map<string, number>();
  #allWaiting = 0;
  #gathering: { readonly begun: number; readonly over: Promise<void> } | null = null;
  #kept: Counter | null = null;
  #lost: Counter | null = null;

  constructor(options: NetworkCallsOptions) {
    this.#options = options;
    const { registry } = options;
    if (registry === undefined) return;
    const registers = [registry];
    this.#kept = new Counter({
      name: 'network_calls_kept_total',
      help: 'calls of networks for a target that its stream of calls has',
      registers,
    });
    this.#lost = new Counter({
      name: 'network_calls_lost_total',
      help: 'calls of networks for a target that no stream has, by the reason',
      labelNames: ['reason'],
      registers,
    });
  }

  /** @returns ends the watch: the work on the target is over */
  watch(watched: WatchedTarget): () => void {
    const known = this.#targets.get(watched.targetId);
    const calls = known ?? new TargetCalls(watched);
    calls.watched = watched;
    calls.isWatched = true;
    this.#targets.set(watched.targetId, calls);
    return () => {
      if (calls.watched !== watched) return;
      calls.isWatched = false;
      this.#write(calls);
    };
  }

  /** Never throws: it is called within the call of the network. */
  readonly report = (seen: SeenCall): void => {
    if (seen.targetId === null) return;
    const calls = this.#targets.get(seen.targetId);
    const refused = calls === undefined ? 'late' : this.#refusal(calls.watched);
    if (calls === undefined || refused !== null) {
      this.#lose(refused ?? 'late', 1);
      return;
    }
    if (calls.add(this.#observed(seen, calls.watched))) this.#count(calls.watched.workspaceId, 1);
    this.#write(calls);
  };

  #refusal({ workspaceId }: WatchedTarget): Lost | null {
    if (this.#allWaiting >= maxWaiting) return 'process_full';
    return (this.#waiting.get(workspaceId) ?? 0) >= maxWaitingOfWorkspace ? 'workspace_full' : null;
  }

  #observed(seen: SeenCall, { clientId, attempt, targetId }: WatchedTarget): ObservedCall {
    const now = this.#options.now();
    const { accountId, method, host, path, bodySha256, outcome, status, reason, answer, durationMs } = seen;
    const headers = Object.entries(seen.headers).slice(0, 40);
    return {
      ...{ targetId, accountId, clientId, attempt: attempt(), method, bodySha256, outcome, status },
      host: wellFormedText(host, 300),
      path: wellFormedText(path, 500),
      headers: Object.fromEntries(
        headers.map(([name, value]) => [wellFormedText(name, 100), wellFormedText(value, 300)]),
      ),
      reason: reason === null ? null : wellFormedText(reason, 200),
      answer: answer === null ? null : wellFormedText(answer, maxKeptAnswer),
      calls: 1,
      startedAt: new Date(now - durationMs).toISOString(),
      endedAt: new Date(now).toISOString(),
    };
  }

  #write(calls: TargetCalls): void {
    if (calls.isWriting) return;
    calls.isWriting = true;
    const gathered = this.#mayGather(calls.watched) ? this.#gathered() : Promise.resolve();
    const written = gathered
      .then(() => this.#writeAll(calls))
      .finally(() => {
        calls.isWriting = false;
        this.#writing.delete(written);
        // A call that came after the last look has begun no writing of its own.
        if (calls.ready > 0) this.#write(calls);
        else if (!calls.isWatched && calls.waiting.length === 0) this.#targets.delete(calls.watched.targetId);
      });
    this.#writing.add(written);
  }

  #gathered(): Promise<void> {
    const now = performance.now();
    if (this.#gathering === null || now - this.#gathering.begun > togetherMs)
      this.#gathering = { begun: now, over: pause(gatherMs, this.#closing.signal) };
    return this.#gathering.over;
  }

  #mayGather({ workspaceId }: WatchedTarget): boolean {
    const own = this.#waiting.get(workspaceId) ?? 0;
    const isCrowded = this.#allWaiting > maxWaiting / 2 || own > maxWaitingOfWorkspace / 2;
    return this.#targets.size >= burstTargets && !isCrowded;
  }

  /** Never rejects. */
  async #writeAll(calls: TargetCalls): Promise<void> {
    const { workspaceId } = calls.watched;
    // Equal pieces, and calls in quick succession, come together while others are appended.
    for (;;) {
      const batch = await this.#appending.run({ workspaceId }, async () => {
        const taken = calls.take();
        if (taken.length > 0) await this.#append(calls, taken);
        return taken;
      });
      if (batch.length === 0) return;
      this.#count(workspaceId, -batch.length);
    }
  }

  async #append(calls: TargetCalls, batch: readonly ObservedCall[]): Promise<void> {
    const { store, logger } = this.#options;
    const { targetId, context } = calls.watched;
    try {
      const loaded = calls.loaded ?? { ...(await store.loadState(targetcalls, targetId, () => 64)), events: [] };
      const command = { type: 'Observe', calls: batch } as const;
      const { state, revision, appended } = await execute(store, targetcalls, targetId, command, context(), { loaded });
      calls.loaded = { state, revision, events: [] };
      const kept = sum(batch.slice(0, appended.length));
      this.#kept?.inc(kept);
      this.#lose('target_full', sum(batch) - kept);
    } catch (error) {
      calls.loaded = null;
      logger.warn({ err: error, targetId }, 'calls of a network were not kept');
      this.#lose('store', sum(batch));
    }
  }

  #count(workspaceId: string, change: number): void {
    this.#allWaiting += change;
    const left = (this.#waiting.get(workspaceId) ?? 0) + change;
    if (left === 0) this.#waiting.delete(workspaceId);
    else this.#waiting.set(workspaceId, left);
  }

  #lose(reason: Lost, calls: number): void {
    if (calls > 0) this.#lost?.inc({ reason }, calls);
  }

  /** Waits for the last appends, for some seconds at most. */
  async close(): Promise<void> {
    this.#closing.abort();
    const written = async (): Promise<void> => {
      while (this.#writing.size > 0) await Promise.all(this.#writing);
    };
    await within(closeMs, written(), () => undefined);
    for (const { waiting } of this.#targets.values()) this.#lose('stopped', sum(waiting));
  }
}

const sum = (calls: readonly ObservedCall[]): number => calls.reduce((all, one) => all + one.calls, 0);
