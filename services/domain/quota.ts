import type { QuotaEvent } from '#schemas/quota.ts';
import { type Decider, type Fact, Rejection } from './decider.ts';

/**
 * The places of one month of a workspace. Its law: a caller never takes more places than the limit allows. Places are
 * held by target, so that two moves of one post at the same time never share a place. The streams of the post and of
 * the target decide whether a place is still needed; this stream only takes and gives back.
 */

/** The append that a place was taken for: the next one behind this revision. */
export interface Awaited {
  readonly stream: 'post' | 'target';
  readonly revision: number;
}

export interface QuotaPlace {
  /** Null: the target was due in the month already. */
  readonly awaits: Awaited | null;
  /** Instant of the reservation, ISO 8601. */
  readonly at: string;
  /** Revision of the reservation in this stream: another reservation of the place has another one. */
  readonly revision: number;
}

type Places = Readonly<Record<string, QuotaPlace>>;
type Shelf = Readonly<Record<string, Places>>;
type Shelves = Readonly<Record<string, Readonly<Record<string, Shelf>>>>;

export interface QuotaState {
  readonly held: number;
  /**
   * Places by post and target, the posts by the first two letters of their ids: a fold copies a few small objects for
   * each event, not the whole month.
   */
  readonly shelves: Shelves;
}

export type QuotaCommand =
  | {
      readonly type: 'Reserve';
      readonly month: string;
      readonly postId: string;
      readonly targetIds: readonly string[];
      readonly awaits: Awaited | null;
      /** Null: the targets are due in the month already, whether or not it has room. */
      readonly limit: number | null;
      /** When the next month begins, ISO 8601. */
      readonly resetsAt: string;
    }
  | {
      readonly type: 'Release';
      readonly postId: string;
      /** With the revision of the reservation that the caller saw: a place that was reserved again stays. */
      readonly targets: readonly { readonly targetId: string; readonly revision: number }[];
    };

const shelfOf = ({ shelves }: QuotaState, postId: string): Shelf => shelves[postId.charAt(0)]?.[postId.charAt(1)] ?? {};

export const placesOf = (state: QuotaState, postId: string): Places => shelfOf(state, postId)[postId] ?? {};

export const postsWithPlaces = ({ shelves }: QuotaState): readonly (readonly [postId: string, places: Places])[] =>
  Object.values(shelves).flatMap((some) => Object.values(some).flatMap((shelf) => Object.entries(shelf)));

const isSame = (one: Awaited | null, other: Awaited | null): boolean =>
  one?.stream === other?.stream && one?.revision === other?.revision;

export const quotaExceeded = (month: string, limit: number, resetsAt: string): Rejection =>
  new Rejection('quota_exceeded', `The quota of ${limit} targets for ${month} has no room for this.`, {
    extra: { resetsAt },
  });

const decide = (command: QuotaCommand, state: QuotaState): readonly QuotaEvent[] => {
  const { postId } = command;
  const places = placesOf(state, postId);
  if (command.type === 'Release') {
    const targetIds = command.targets.flatMap(({ targetId, revision }) =>
      places[targetId]?.revision === revision ? [targetId] : [],
    );
    return targetIds.length === 0 ? [] : [{ type: 'QuotaReleased', data: { postId, targetIds } }];
  }
  const { month, limit, awaits, resetsAt } = command;
  const fresh = command.targetIds.filter((id) => places[id] === undefined);
  if (limit !== null && fresh.length > 0 && state.held + fresh.length > limit) {
    throw quotaExceeded(month, limit, resetsAt);
  }
  // A place that is held for another append is reserved anew: a caller who wants to give the former place back then finds it changed.
  const again =
    awaits === null
      ? []
      : command.targetIds.filter((id) => places[id] !== undefined && !isSame(places[id].awaits, awaits));
  const targetIds = [...fresh, ...again];
  if (targetIds.length === 0) return [];
  return [{ type: 'QuotaReserved', data: { month, postId, targetIds, n: fresh.length, awaits } }];
};

const withPlaces = (state: QuotaState, held: number, postId: string, places: Places): QuotaState => {
  const [first, second] = [postId.charAt(0), postId.charAt(1)];
  const { [postId]: _before, ...others } = shelfOf(state, postId);
  const shelf = Object.keys(places).length === 0 ? others : { ...others, [postId]: places };
  return { held, shelves: { ...state.shelves, [first]: { ...state.shelves[first], [second]: shelf } } };
};

const evolve = (state: QuotaState, event: QuotaEvent, fact: Fact): QuotaState => {
  const { postId, targetIds } = event.data;
  const before = placesOf(state, postId);
  if (event.type === 'QuotaReserved') {
    const { awaits, n } = event.data;
    const place: QuotaPlace = { awaits, at: fact.occurredAt, revision: fact.revision };
    const places = { ...before, ...Object.fromEntries(targetIds.map((id) => [id, place])) };
    return withPlaces(state, state.held + n, postId, places);
  }
  const gone = new Set(targetIds.filter((id) => before[id] !== undefined));
  const left = Object.fromEntries(Object.entries(before).filter(([id]) => !gone.has(id)));
  return withPlaces(state, state.held - gone.size, postId, left);
};

export const quota: Decider<QuotaState, QuotaCommand, QuotaEvent> = {
  kind: 'quota',
  initial: { held: 0, shelves: {} },
  decide,
  evolve,
};
