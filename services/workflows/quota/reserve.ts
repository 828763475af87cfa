import type { Pool } from 'pg';
import { isConflict } from '#contracts/ports/event-store.ts';
import { quotaIdOf } from '#domain/ids.ts';
import { neededTimes, type TargetCommand, type TargetState, target, timeWanted } from '#domain/post-target/target.ts';
import { type Awaited, placesOf, quotaExceeded } from '#domain/quota.ts';
import { monthAfter, monthBegin, monthOf } from '#domain/zones.ts';
import { type CommandContext, type DomainStore, type Loaded, Unavailable } from '#runtime/eventing/domain-store.ts';
import { type Executed, execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { TargetEvent } from '#schemas/target.ts';
import { noteMonths } from './noted-months.ts';
import { loadPlaces, writeQuota } from './write.ts';

/**
 * Takes places of the workspace's quota before the append that needs them. The reservation names that append: the next
 * one behind a revision of the post or of the target. If we die between the two, that append never comes: once the
 * reservation is a minute old, the sweeper appends PostAbandoned or TargetPlaceLapsed at that revision, so that a late
 * append conflicts, and gives the places back (`give-back.ts`). A workspace without a quota takes no places.
 */

/** What the protocols need to know of a workspace. */
export interface QuotaRules {
  readonly timezone: string;
  readonly quota: number | null;
}

export interface Placed {
  readonly targetId: string;
  readonly dueAt: string;
}

export interface Taking {
  readonly store: DomainStore;
  readonly context: CommandContext;
  readonly rules: QuotaRules;
}

export interface Reserving extends Taking {
  /** Keeps the notes of months. */
  readonly pool: Pool;
}

/** The targets by the month in which they are due. Targets of one post mostly share their time. */
export const byMonth = (targets: readonly Placed[], timezone: string): ReadonlyMap<string, readonly string[]> => {
  const months = new Map<string, string>();
  const found = new Map<string, string[]>();
  for (const { targetId, dueAt } of targets) {
    const month = months.get(dueAt) ?? monthOf(dueAt, timezone);
    months.set(dueAt, month);
    found.set(month, [...(found.get(month) ?? []), targetId]);
  }
  return found;
};

export const resetsAtOf = (month: string, timezone: string): string => monthBegin(monthAfter(month, 1), timezone);

interface Places {
  readonly postId: string;
  readonly awaits: Awaited | null;
  readonly targets: readonly Placed[];
}

/**
 * Takes places for an append that follows. The months are noted first, so that the sweeper looks at them where the
 * append never comes.
 * @throws Rejection `quota_exceeded`
 */
export const reservePlaces = async (by: Reserving, places: Places & { readonly awaits: Awaited }): Promise<void> => {
  const { pool, context, rules } = by;
  if (rules.quota === null) return;
  await noteMonths(pool, context.workspaceId, [...byMonth(places.targets, rules.timezone).keys()]);
  await takePlaces(by, places);
};

/**
 * @param forced the targets are due in these months already, whether or not there is room
 * @throws Rejection `quota_exceeded`
 */
export const takePlaces = async (
  { store, context, rules: { timezone, quota: limit } }: Taking,
  { postId, awaits, targets }: Places,
  { forced = false }: { readonly forced?: boolean } = {},
): Promise<void> => {
  if (limit === null) return;
  const months = [...byMonth(targets, timezone)].toSorted();
  // A month without room refuses the whole call before any month is written: only a race leaves places to the sweeper.
  if (months.length > 1 && !forced) {
    for (const [month, targetIds] of months) {
      const { state } = await loadPlaces(store, quotaIdOf(context.workspaceId, month));
      const known = placesOf(state, postId);
      const fresh = targetIds.filter((id) => known[id] === undefined).length;
      if (fresh > 0 && state.held + fresh > limit) throw quotaExceeded(month, limit, resetsAtOf(month, timezone));
    }
  }
  for (const [month, targetIds] of months) {
    const command = {
      ...({ type: 'Reserve', month, postId, targetIds, awaits } as const),
      ...{ limit: forced ? null : limit, resetsAt: resetsAtOf(month, timezone) },
    };
    await writeQuota(store, quotaIdOf(context.workspaceId, month), command, context);
  }
  faultPoint('quota:after-reserve');
};

/** Takes the place that these events of one command on a target need. @throws Rejection `quota_exceeded` */
export const reserveForTarget = async (
  by: Reserving,
  { state, revision }: Pick<Loaded<TargetState>, 'state' | 'revision'>,
  events: readonly TargetEvent[],
): Promise<void> => {
  const { timezone, quota: limit } = by.rules;
  if (limit === null || state.status === 'none') return;
  const dueAt = timeWanted(state, events);
  if (dueAt === null) return;
  const month = monthOf(dueAt, timezone);
  if (neededTimes(state).some((known) => monthOf(known, timezone) === month)) return;
  const { postId, targetId } = state.common;
  await reservePlaces(by, { postId, awaits: { stream: 'target', revision }, targets: [{ targetId, dueAt }] });
};

/** Times that other writers may win before the command gives up. */
const maxRounds = 50;

/**
 * `execute` for a command on a target, with the place that it needs. After a conflict the place is reserved again at the
 * new revision, because the former reservation may be given back by then.
 */
export const executeWithPlace = async (
  by: Reserving,
  targetId: string,
  command: TargetCommand,
  options: Parameters<typeof execute<TargetState, TargetCommand, TargetEvent>>[5] & { readonly partitionKey: string },
): Promise<Executed<TargetState>> => {
  const { store, context, rules } = by;
  if (rules.quota === null) return execute(store, target, targetId, command, context, options);
  let loaded = options.loaded ?? (await store.load(target, targetId));
  for (let round = 1; round <= maxRounds; round += 1) {
    await reserveForTarget(by, loaded, target.decide(command, loaded.state));
    try {
      return await execute(store, target, targetId, command, context, { ...options, loaded, redecide: false });
    } catch (error) {
      if (!isConflict(error)) throw error;
      loaded = await store.load(target, targetId);
    }
  }
  throw new Unavailable('Other writers change this target all the time.');
};
