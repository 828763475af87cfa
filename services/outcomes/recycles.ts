import { isDeepStrictEqual } from 'node:util';
import { isConflict } from '#contracts/ports/event-store.ts';
import { Rejection } from '#domain/decider.ts';
import { recycledPostIdOf } from '#domain/ids.ts';
import type { PostAsset } from '#domain/post/compose.ts';
import { contentFor, mediaIdsOf } from '#domain/post/content.ts';
import {
  isApprovedFor,
  isReleasedFor,
  type LivePost,
  type PostCommand,
  type PostState,
  post,
  statusOf,
} from '#domain/post/post.ts';
import {
  isOut,
  maxRecycleFailures,
  type Recycle,
  type RecycleRun,
  type RecycleSettings,
} from '#domain/post/post-recycle.ts';
import {
  afterRun,
  afterTooEarly,
  type RecyclePattern,
  requestedTimes,
  runToPrepare,
  scheduleOfTimes,
} from '#domain/post/recycle-times.ts';
import { beforeAllRecycles, type RecycleDue, recyclesDue, recyclesDueOf } from '#projections/models/post-recycles.ts';
import { cadenceSource, postingRulesOf } from '#projections/queries/posting-rules.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { WakeSignal } from '#runtime/work/wake-signal.ts';
import type { Platform } from '#schemas/common.ts';
import type { PostBody } from '#schemas/post.ts';
import { lacksAuthority } from '#services/workflows/authority.ts';
import { type CadenceSource, cadenceRefusal } from '#services/workflows/cadence/check.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import {
  accountFromStream,
  assetFromStream,
  clientFromStream,
  liveCampaign,
  type SelectedAccount,
  type StreamsOfWorkspace,
  selectAccounts,
} from '#services/workflows/posts/accounts.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import { type PlannedPost, type PostReads, planPost } from '#services/workflows/posts/compose.ts';
import {
  loadRecycled,
  type RecyclingStore,
  recordCopy,
  replaceCopies,
  restoresOf,
  type WaitingCopy,
} from '#services/workflows/posts/recycle.ts';
import { reservePlaces } from '#services/workflows/quota/reserve.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/** What the checks of a post read, from streams alone: a worker has no caller whose writes it could wait for. */

/** Streams that are read at the same time. */
const readAtOnce = 16;

interface StreamReads extends PostReads {
  readonly accounts: (ids: readonly string[]) => Promise<readonly (SelectedAccount | null)[]>;
}

const inBatches = async <Value>(ids: readonly string[], read: (id: string) => Promise<Value>): Promise<Value[]> => {
  const found: Value[] = [];
  for (let at = 0; at < ids.length; at += readAtOnce) {
    found.push(...(await Promise.all(ids.slice(at, at + readAtOnce).map(read))));
  }
  return found;
};

const streamReads = (streams: StreamsOfWorkspace, source: () => Promise<CadenceSource>): StreamReads => ({
  client: (id) => clientFromStream(streams, id),
  cadence: async (wanted, own) => cadenceRefusal(await source(), wanted, own),
  campaign: (id) => liveCampaign(streams, id),
  accounts: (ids) => inBatches(ids, (id) => accountFromStream(streams, id)),
  assets: async (body) => {
    const found = await inBatches(mediaIdsOf(body), async (id) => [id, await assetFromStream(streams, id)] as const);
    return new Map(found.filter((one): one is readonly [string, PostAsset] => one[1] !== null));
  },
});

/**
 * Makes the copies of recycled posts, each an hour before it is due. A copy passes every check of POST /posts and is held
 * where an approval is required, as if the person who set the recycling had posted it then.
 */

interface RecyclesDeps extends RoundDeps, Omit<RecyclingStore, 'now' | 'aheadMs'> {
  /** Milliseconds since the epoch, in real time. */
  readonly now: () => number;
  /** Default: as the rows of the database have them. */
  readonly sandboxClocks?: SandboxClocks;
  readonly resting?: Resting;
  /** While it holds publishing for a workspace, none of its posts is copied. Default: what the rows of the database hold. */
  readonly hold?: PublishingHold;
  readonly onFailure?: (kind: SweptKind) => void;
}

/** A post that is out and whose recycling is enabled, with its next copy. */
interface Origin {
  readonly id: string;
  readonly loaded: Loaded<PostState>;
  readonly state: LivePost;
  readonly recycle: Recycle;
  readonly settings: RecycleSettings;
  readonly pattern: RecyclePattern;
  readonly waiting: readonly WaitingCopy[];
  readonly workspaceId: string;
  /** Of the newest restore since it was made; null: there was none. */
  readonly restoredAt: string | null;
}

const originOf = async (recycling: RecyclingStore, id: string): Promise<Origin | null> => {
  const loaded = await recordCopy(recycling, id, await recycling.store.load(post, id));
  const { state, events } = loaded;
  const workspaceId = events[0]?.metadata.workspaceId;
  if (state.status !== 'live' || workspaceId === undefined) return null;
  const { recycle } = state;
  if (recycle === null || !recycle.enabled || recycle.settings === null) return null;
  const recycled = await loadRecycled(recycling, state);
  const [restoredAt = null] = await restoresOf(recycling, loaded);
  return recycled && { id, loaded, state, recycle, settings: recycle.settings, workspaceId, restoredAt, ...recycled };
};

/** Sends a command about what this process saw of the post: after a conflict the next round looks again. */
const send = async (recycling: RecyclingStore, origin: Origin, command: PostCommand): Promise<void> => {
  const { id, loaded, workspaceId } = origin;
  const context = serviceContext(
    'recycle',
    causedByNewest(loaded.events, workspaceId, id),
    recycling.now(),
    recycling.aheadMs,
  );
  try {
    await execute(recycling.store, post, id, command, context, { loaded, redecide: false });
  } catch (error) {
    if (!isConflict(error)) throw error;
  }
};

/** Whether each of the last attempts failed: the copy was refused, or none of its targets went out. */
const failuresOf = ({ store }: RecyclingStore, { recycle }: Origin): Promise<readonly boolean[]> =>
  Promise.all(
    recycle.attempts.map(async (copyId) => {
      if (copyId === null) return true;
      return statusOf((await store.load(post, copyId)).state) === 'failed';
    }),
  );

/** The content of the origin, for these accounts and times. The reference stays with the origin: it is unique. */
const bodyOfCopy = async (
  reads: StreamReads,
  { body }: LivePost,
  accountIds: readonly string[],
  times: ReturnType<typeof requestedTimes>,
): Promise<PostBody> => {
  const { externalRef: _ofOrigin, campaignId, targetSelection, schedule, ...same } = body;
  const mode = targetSelection.mode === 'accounts' ? 'accounts' : 'selection';
  return {
    ...same,
    campaignId: campaignId === null || (await reads.campaign(campaignId)) === null ? null : campaignId,
    targetSelection: { mode, clientId: null, accountIds: [...accountIds], platforms: null },
    schedule: scheduleOfTimes(times.values(), schedule.spreadMinutes),
  };
};

/** What a network gets of a body. */
const sentOf = (body: PostBody, platform: Platform) => {
  const { mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure } = body;
  return { ...contentFor(body, platform), mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure };
};

/**
 * Whether one of these accounts would get what nobody saw for it: the content was approved for other accounts alone, and
 * this one got another.
 */
const hasUnseen = (events: readonly DecodedEvent[], state: LivePost, accountIds: ReadonlySet<string>): boolean =>
  state.plan.targets.some(({ targetId, accountId, platform }) => {
    if (!accountIds.has(accountId) || isApprovedFor(state, targetId)) return false;
    const { revision } = state.intents.findLast(
      (one) => one.kind === 'revise' && one.targetIds.includes(targetId) && !one.skipped.includes(targetId),
    ) ?? { revision: state.planRevision };
    const got = events.find((one) => one.revision === revision)?.data.body as PostBody | undefined;
    if (got === undefined || !isReleasedFor(state, targetId, revision)) return true;
    return !isDeepStrictEqual(sentOf(got, platform), sentOf(state.body, platform));
  });

interface Copy extends PlannedPost {
  readonly id: string;
  readonly occurrence: number;
  readonly body: PostBody;
}

/** @throws Rejection as POST /posts would refuse it */
const composeCopy = async (
  { store }: Pick<RecyclingStore, 'store'>,
  reads: StreamReads,
  { id: originId, loaded, state, recycle, pattern, workspaceId, restoredAt }: Origin,
  { day }: RecycleRun,
  accounts: readonly SelectedAccount[],
  now: string,
): Promise<Copy> => {
  const occurrence = recycle.posted + 1;
  const id = recycledPostIdOf(originId, occurrence, restoredAt);
  const accountIds = accounts.map((one) => one.id);
  const kept = new Set(accountIds);
  const times = new Map([...requestedTimes(pattern, day, now)].filter(([accountId]) => kept.has(accountId)));
  const body = await bodyOfCopy(reads, state, accountIds, times);
  // Judged now: the person who set the recycling may have lost the right to publish without approval since.
  const needsApproval =
    recycle.needsApproval ||
    hasUnseen(loaded.events, state, kept) ||
    (await lacksAuthority(store, workspaceId, recycle.setBy));
  const author = { actor: recycle.setBy, needsApproval };
  const choose = selectAccounts(accounts);
  const composed = { id, clientId: state.clientId, body, planNumber: 1, choose, times };
  return { id, occurrence, body, ...(await planPost({ author, now }, reads, composed)) };
};

const noPost: Loaded<PostState> = { state: post.initial, revision: -1, events: [] };

/**
 * Takes the places of a copy right before its append. The id of a copy never changes: where a former attempt died and
 * its places were given back, the copy follows PostAbandoned in its stream. If we die before the append, the sweeper
 * gives the places back. @throws Rejection `quota_exceeded`
 * @returns the stream of the copy, at whose revision it is stored
 */
const reserveForCopy = async (
  { store, pool, now, aheadMs }: RecyclingStore,
  { id, loaded, workspaceId }: Origin,
  copy: Copy,
): Promise<Loaded<PostState>> => {
  const before = await store.load(post, copy.id);
  // Another process has stored it: the append then conflicts.
  if (before.state.status !== 'none') return noPost;
  const rules = await postingRulesOf(pool, workspaceId);
  if (rules.quota === null) return before;
  const context = serviceContext('recycle', causedByNewest(loaded.events, workspaceId, id), now(), aheadMs);
  const awaits = { stream: 'post', revision: before.revision } as const;
  await reservePlaces({ store, pool, context, rules }, { postId: copy.id, awaits, targets: copy.plan.targets });
  return before;
};

/**
 * Stores the copy, records it in its origin and fans it out. If we die after the copy is stored, the row of the origin
 * still names it as due: the next round finds the copy by its id, records it, and makes no other. If we die after that,
 * the sweeper carries the plan of the copy out.
 */
const storeCopy = async (
  recycling: RecyclingStore,
  origin: Origin,
  copy: Copy,
  before: Loaded<PostState>,
  day: number,
): Promise<void> => {
  const { store, now, aheadMs } = recycling;
  const { id, loaded, state, recycle, workspaceId } = origin;
  const { id: newPostId, occurrence, ...planned } = copy;
  const context = serviceContext('recycle', causedByNewest(loaded.events, workspaceId, id), now(), aheadMs);
  const { clientId } = state;
  const about = { commandId: context.commandId, clientId, createdBy: recycle.setBy };
  const recycledFrom = { postId: id, occurrence, day };
  let written: Loaded<PostState> | undefined;
  try {
    const command = { type: 'Schedule', ...about, ...planned, recycledFrom } as const;
    written = await execute(store, post, newPostId, command, context, { redecide: false, loaded: before });
  } catch (error) {
    // Another process, whose lease ran out, has stored it at the same time.
    if (!isConflict(error)) throw error;
  }
  faultPoint('recycle:after-copy');
  await recordCopy(recycling, id, loaded);
  faultPoint('recycle:after-record');
  await fanOut(store, newPostId, context, written === undefined ? {} : { loaded: written });
  await tendApprovals(store, newPostId);
};

/** Makes the copy of one post that is due, plans the first one, or ends the recycling. True: it made a copy. */
export const recyclePost = async (
  recycling: RecyclingStore & Pick<RecyclesDeps, 'pool' | 'hold'>,
  id: string,
): Promise<boolean> => {
  const origin = await originOf(recycling, id);
  if (origin === null) return false;
  const { state, recycle, settings, pattern, workspaceId } = origin;
  const { hold = new PublishingHold(recycling.pool, 'on') } = recycling;
  if ((await hold.of(workspaceId)) !== null) return false;
  const tell = (command: PostCommand): Promise<false> => send(recycling, origin, command).then(() => false as const);
  const stop = (reason: Extract<PostCommand, { type: 'StopRecycle' }>['reason']) =>
    tell({ type: 'StopRecycle', reason });
  const after = (lastDay: number) =>
    afterRun(pattern, settings, { lastDay, posted: recycle.posted, after: recycle.setAt });

  if (recycle.next === null) {
    // A failed target may have been opened again since the row was written.
    return isOut(statusOf(state)) ? tell({ type: 'PlanRecycle', then: after(recycle.lastDay) }) : false;
  }
  const now = new Date(recycling.now()).toISOString();
  const run = runToPrepare(pattern, recycle.next, settings, now);
  if (run === null) return false;
  // The copy of such a run may be out, with its record lost.
  if (origin.restoredAt !== null && run.dueAt <= origin.restoredAt) {
    const message = 'This service was restored from an older copy; a copy of that time may be out already.';
    return tell({ type: 'RecordRecycleFailed', day: run.day, code: 'restored', message, then: after(run.day) });
  }
  const { until } = settings;
  if (until !== null && (run.dueAt > until || now > until)) return stop('until');
  // The copy before was late. What has begun and has no outcome counts as out now, so that it never meets the next copy.
  const later = afterTooEarly(pattern, run, settings);
  if (later !== null) return tell({ type: 'MoveRecycle', day: recycle.next.day, then: later });
  // A network is asked to give back what the next copy replaces: a later round sees whether it did.
  if (origin.waiting.some(({ asked }) => asked)) return false;
  const failures = await failuresOf(recycling, origin);
  if (failures.length === maxRecycleFailures && failures.every(Boolean)) return stop('failures');
  const reads = streamReads({ deps: recycling, workspaceId }, () => cadenceSource(recycling.pool, workspaceId));
  if ((await reads.client(state.clientId))?.archived) return stop('client_archived');
  const known = await reads.accounts(pattern.targets.map(({ accountId }) => accountId));
  const accounts = known.filter((one) => one !== null).filter(({ status }) => status !== 'disconnected');
  if (accounts.length === 0) return stop('account_disconnected');
  let copy: Copy;
  let before: Loaded<PostState>;
  try {
    copy = await composeCopy(recycling, reads, origin, run, accounts, now);
    before = await reserveForCopy(recycling, origin, copy);
  } catch (error) {
    if (!(error instanceof Rejection)) throw error;
    const isLast = failures.length >= maxRecycleFailures - 1 && failures.slice(1 - maxRecycleFailures).every(Boolean);
    const then = isLast ? ({ reason: 'failures' } as const) : after(run.day);
    return tell({ type: 'RecordRecycleFailed', day: run.day, code: error.code, message: wordsOf(error), then });
  }
  // Last, so that a copy which is refused replaces none. The places are taken again in a later round, or swept.
  if (!(await replaceCopies(recycling, origin.waiting))) return false;
  faultPoint('recycle:after-replace');
  await storeCopy(recycling, origin, copy, before, run.day);
  return true;
};

/** Characters and faults of a refusal that are kept. */
const maxWords = 1000;
const maxFaults = 3;

const wordsOf = ({ message, errors }: Rejection): string => {
  const faults = errors.slice(0, maxFaults).map((one) => `${one.path} ${one.message}.`);
  return [message, ...faults].join(' ').slice(0, maxWords).toWellFormed();
};

/** One round over all recycled posts with work. @returns how many copies it made */
export const recyclePosts = async (deps: Omit<RecyclesDeps, 'config'>, signal: AbortSignal): Promise<number> => {
  const { pool, logger, resting = new Resting(), onFailure, sandboxClocks = new SandboxClocks(pool) } = deps;
  let made = 0;
  const all = async (dueAfter: (after: RecycleDue) => Promise<readonly RecycleDue[]>): Promise<void> => {
    for (let after: RecycleDue | undefined = beforeAllRecycles; after !== undefined; ) {
      const due: readonly RecycleDue[] = await dueAfter(after);
      for (const { id, workspaceId } of due) {
        if (signal.aborted) return;
        await alone({ logger, resting, signal, onFailure }, 'post', id, async () => {
          const aheadMs = sandboxClocks.latest(workspaceId);
          if (await recyclePost({ ...deps, now: () => deps.now() + aheadMs, aheadMs }, id)) made += 1;
        });
      }
      after = due.at(-1);
    }
  };
  await sandboxClocks.readAgain();
  await all((after) => recyclesDue(pool, new Date(deps.now()), after));
  for (const { workspaceId, aheadMs } of sandboxClocks.moved().toReversed()) {
    await all((after) => recyclesDueOf(pool, workspaceId, new Date(deps.now() + aheadMs), after));
  }
  if (made > 0) logger.info({ copies: made }, 'recycled');
  return made;
};

/** @param wakeSignal a move of a clock may have made copies due; default: none comes */
export const runRecycles = (given: RecyclesDeps, signal: AbortSignal, wakeSignal = new WakeSignal()): Promise<void> => {
  const own = { resting: new Resting(), hold: new PublishingHold(given.pool, 'on') };
  const deps = { ...own, sandboxClocks: new SandboxClocks(given.pool), ...given };
  return runRounds({ ...deps, wakeSignal }, 'recycles', (stop) => recyclePosts(deps, stop), signal);
};
