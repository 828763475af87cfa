import { Rejection } from '#domain/decider.ts';
import { type LivePost, type PostState, post } from '#domain/post.ts';
import { isOpen, type TargetState, target } from '#domain/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { PlannedTarget } from '#schemas/target.ts';

/**
 * Applies the stream of a post to its targets: first the plan, then each intent in order. Any process may run this any
 * number of times, also after a crash: the events' ids follow from the post's events, and a step that is done already
 * yields no event. A target's first event names the actor and the time of the plan, not of the process that carried it
 * out.
 */

/** Appends under way at once for one post: they share the store's group commits. */
const width = 50;

export interface FannedOut {
  readonly post: Loaded<PostState>;
  /** By target id: the targets whose events this run wrote or read. */
  readonly targets: ReadonlyMap<string, Loaded<TargetState>>;
}

const inGroups = async <T>(items: readonly T[], work: (item: T) => Promise<void>): Promise<void> => {
  for (let at = 0; at < items.length; at += width) await Promise.all(items.slice(at, at + width).map(work));
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
  if (loaded.state.status !== 'live') return { post: loaded, targets };
  const live = loaded.state;
  const given = options.positions === undefined ? {} : { positions: options.positions };
  // For a fresh plan the append expects no stream and reads nothing first. If the target exists after all, its first
  // event gives the state that the caller sees.
  const fresh = options.loaded !== undefined && loaded.revision === live.planRevision;
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
  for (const intent of live.intents) await applyIntent(store, postId, intent, context, targets, given);
  return { post: loaded, targets };
};

const contextOf = ({ metadata }: DecodedEvent): CommandContext => {
  const { workspaceId, actor, $correlationId: correlationId, $causationId: causationId, commandId } = metadata;
  return { workspaceId, actor, correlationId, causationId, commandId, now: metadata.occurredAt };
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
    { type: 'Schedule', planned, postId, postRevision: live.planRevision },
    context,
    { partitionKey: postId, ...given, ...(fresh ? { loaded: preCreationEvents } : {}) },
  );

const applyIntent = async (
  store: DomainStore,
  postId: string,
  intent: LivePost['intents'][number],
  context: CommandContext,
  targets: Map<string, Loaded<TargetState>>,
  given: { readonly positions?: Positions },
): Promise<void> => {
  const tooLate: string[] = [];
  const due = intent.targetIds.filter((id) => !intent.skipped.includes(id));
  await inGroups(due, async (targetId) => {
    const before = targets.get(targetId) ?? (await store.load(target, targetId));
    const applied = before.state.status !== 'none' && before.state.common.appliedRevision >= intent.revision;
    if (applied) return;
    try {
      const after = await execute(
        store,
        target,
        targetId,
        {
          type: 'Cancel',
          reason: intent.reason === 'client_archived' ? 'client_archived' : 'requested',
          postRevision: intent.revision,
          now: context.now,
        },
        { ...context, causeEventId: intent.eventId, causationId: intent.eventId },
        { partitionKey: postId, loaded: before, ...given },
      );
      targets.set(targetId, after);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      tooLate.push(targetId);
    }
    faultPoint('fanout:between-intents');
  });
  // Recorded, so that an intent which met a publishing or settled target is never applied to it later.
  const alreadyOver = due.filter((id) => {
    const state = targets.get(id)?.state;
    return (
      state !== undefined && state.status !== 'none' && !isOpen(state) && state.common.appliedRevision < intent.revision
    );
  });
  const targetIds = [...new Set([...tooLate, ...alreadyOver])];
  if (targetIds.length === 0) return;
  await execute(
    store,
    post,
    postId,
    {
      type: 'RecordSkipped',
      intentRevision: intent.revision,
      targetIds,
      reason:
        'The target was publishing or settled, a segment of its thread was published, or its network publishes it soon.',
    },
    { ...context, causationId: intent.eventId },
    { partitionKey: postId, ...given },
  );
};
