import { type Intent, type LivePost, type PostState, post } from '#domain/post/post.ts';
import { wantedModeOf } from '#domain/post/scheduling.ts';
import {
  openStatuses,
  revisableStatuses,
  type ScheduledTarget,
  type SkipReason,
  skipReasonOf,
  type TargetCommand,
  type TargetState,
  TooLate,
  target,
} from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { timeOf } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PlannedTarget, TargetStatus } from '#schemas/target.ts';

/**
 * Applies the stream of a post to its targets: first the plan, then each intent in order. Any process may run this any
 * number of times, also after a crash: the events' ids follow from the post's events, and a step that is done already
 * yields no event. The events name the actor and the time of the plan or of the intent, not of the process that carried
 * it out: two processes that append the same event write the same bytes. If we die after an intent's append, between two
 * of its targets or before its skips are recorded, the row of the post shows that its targets are behind, and the
 * sweeper runs this again.
 */

/** Appends under way at once for one post: they share the store's group commits. */
const width = 50;

export interface FannedOut {
  /** With the skips that this run recorded. */
  readonly post: Loaded<PostState>;
  /** By target id: the targets whose events this run wrote or read. */
  readonly targets: ReadonlyMap<string, Loaded<TargetState>>;
}

/** The next group begins when every item of the one before has ended. */
export const inGroups = async <T>(
  items: readonly T[],
  work: (item: T) => Promise<void>,
  size = width,
): Promise<void> => {
  for (let at = 0; at < items.length; at += size) await Promise.all(items.slice(at, at + size).map(work));
};

export const fanOut = async (
  store: DomainStore,
  postId: string,
  context: CommandContext,
  options: {
    readonly positions?: Positions;
    /** The post as the caller has just written it. If the plan is its last event, no target exists yet. */
    readonly loaded?: Loaded<PostState>;
  } = {},
): Promise<FannedOut> => {
  const loaded = options.loaded ?? (await store.load(post, postId));
  const targets = new Map<string, Loaded<TargetState>>();
  const live = planOf(loaded.state);
  if (live === null) return { post: loaded, targets };
  const given = options.positions === undefined ? {} : { positions: options.positions };
  // For a fresh plan the append expects no stream and reads nothing first. If the target exists after all, its first
  // event gives the state that the caller sees.
  const fresh = options.loaded !== undefined && loaded.revision === live.planRevision + (live.planHeld ? 1 : 0);
  const plan = loaded.events.find(({ id }) => id === live.planEventId);
  const caused = { causeEventId: live.planEventId, causationId: live.planEventId };
  // A caller who waits for the fan-out waits no longer than for the post.
  const until = context.giveUpAt === undefined ? {} : { giveUpAt: context.giveUpAt };
  const planner = { ...(plan === undefined ? context : contextOf(plan)), ...caused, ...until };
  faultPoint('fanout:before-targets');
  await inGroups(live.plan.targets, async (planned) => {
    targets.set(planned.targetId, await schedule(store, postId, live, planned, planner, fresh, given));
    faultPoint('fanout:between-targets');
  });
  let left: Loaded<PostState> = loaded;
  for (const intent of live.intents) {
    const decision = loaded.events.find(({ id }) => id === intent.eventId);
    const decided = { ...(decision === undefined ? context : contextOf(decision)), ...until };
    left = (await applyIntent(store, postId, intent, decided, targets, given)) ?? left;
  }
  return { post: left, targets };
};

/** A draft that an approver sent back still has the plan whose targets are to be canceled. */
export const planOf = (state: PostState): LivePost | null => {
  if (state.status === 'none') return null;
  return state.status === 'live' ? state : state.returned;
};

/** The context of a decision, for events that follow from it: whichever process appends them, they are the same. */
export const contextOf = ({ metadata }: DecodedEvent): CommandContext => {
  const { workspaceId, actor, $correlationId: correlationId, $causationId: causationId, commandId } = metadata;
  return { workspaceId, actor, correlationId, causationId, commandId, ...timeOf(metadata) };
};

const preCreationEvents: Loaded<TargetState> = { state: target.initial, revision: -1, events: [] };

const schedule = (
  store: DomainStore,
  postId: string,
  live: LivePost,
  planned: PlannedTarget,
  context: CommandContext,
  fresh: boolean,
  given: { readonly positions?: Positions },
): Promise<Loaded<TargetState>> =>
  execute(
    store,
    target,
    planned.targetId,
    { type: 'Schedule', planned, postId, postRevision: live.planRevision, held: live.planHeld },
    context,
    { partitionKey: postId, ...given, ...(fresh ? { loaded: preCreationEvents } : {}) },
  );

/** The command that carries out an intent on one of its targets. */
const commandOf = (intent: Intent, index: number, state: TargetState, now: string): TargetCommand => {
  const { revision: postRevision } = intent;
  if (intent.kind === 'cancel') return { type: 'Cancel', reason: intent.reason, postRevision, now };
  if (intent.kind === 'release') return { type: 'Release', postRevision, now: intent.decidedAt };
  const { held = false, decidedAt } = intent;
  const mode = state.status === 'none' ? {} : { mode: wantedModeOf(intent.body, state.common.platform) };
  return { type: 'Revise', postRevision, time: intent.times?.[index] ?? null, ...mode, now: decidedAt, held };
};

const statusesOf: Readonly<Record<Intent['kind'], readonly TargetStatus[]>> = {
  cancel: openStatuses,
  revise: revisableStatuses,
  release: ['awaiting_approval'],
};

/** @returns the post with the skips that were recorded; null where the intent came too late for no further target */
const applyIntent = async (
  store: DomainStore,
  postId: string,
  intent: Intent,
  context: CommandContext,
  targets: Map<string, Loaded<TargetState>>,
  given: { readonly positions?: Positions },
): Promise<Loaded<PostState> | null> => {
  const skipped = new Set(intent.skipped);
  const late = new Map<string, SkipReason>();
  const due = intent.targetIds
    .map((targetId, index) => ({ targetId, index }))
    .filter((one) => !skipped.has(one.targetId));
  const caused = { ...context, causeEventId: intent.eventId, causationId: intent.eventId };
  const lacks = ({ common }: ScheduledTarget): boolean => common.appliedRevision < intent.revision;
  await inGroups(due, async ({ targetId, index }) => {
    const before = targets.get(targetId) ?? (await store.load(target, targetId));
    targets.set(targetId, before);
    if (before.state.status !== 'none' && !lacks(before.state)) return;
    try {
      const command = commandOf(intent, index, before.state, context.now);
      const options = { partitionKey: postId, loaded: before, ...given };
      const after = await execute(store, target, targetId, command, caused, options);
      targets.set(targetId, after);
    } catch (error) {
      if (!(error instanceof TooLate)) throw error;
      late.set(targetId, error.reason);
      targets.set(targetId, await store.load(target, targetId));
    }
    faultPoint('fanout:between-intents');
  });
  // Recorded, so that an intent which met a publishing or settled target is never applied to it later.
  for (const { targetId } of due) {
    const state = targets.get(targetId)?.state;
    if (state === undefined || state.status === 'none' || !lacks(state)) continue;
    const reason = skipReasonOf(state, statusesOf[intent.kind]);
    if (reason !== null && !late.has(targetId)) late.set(targetId, reason);
  }
  if (late.size === 0) return null;
  faultPoint('fanout:before-skips');
  const left = await execute(
    store,
    post,
    postId,
    {
      type: 'RecordSkipped',
      intentRevision: intent.revision,
      targets: due.flatMap(({ targetId }) => {
        const reason = late.get(targetId);
        return reason === undefined ? [] : [{ targetId, reason }];
      }),
    },
    { ...context, causationId: intent.eventId },
    { partitionKey: postId, ...given },
  );
  faultPoint('fanout:after-skips');
  return left;
};
