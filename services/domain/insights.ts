import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/insights.ts';
import type { Decider } from './decider.ts';

/**
 * Observations of one post, and of one account: a stream each, one event for each fetch, and for an account one more
 * for each earlier day whose figures changed. The network's clock gives the order: an answer that is not newer than the
 * last one is ignored. A post that is gone from its network has its final figures.
 */

type TargetObservation = Extract<TargetMetricsEvent, { type: 'TargetMetricsObserved' }>['data'];
type AccountObservation = Extract<AccountMetricsEvent, { type: 'AccountMetricsObserved' }>['data'];

export interface TargetMetricsState {
  /** The newest observation; its `platformRemovedAt` says whether it is the final one. */
  readonly last: TargetObservation | null;
  /** The newest value of each figure, so that a later observation without a figure does not lose it. */
  readonly figures: TargetObservation['figures'];
  /** The newest answer that an event has. */
  readonly raw: unknown;
}

export interface TargetMetricsCommand {
  readonly type: 'Observe';
  readonly observation: TargetObservation;
}

export interface AccountMetricsState {
  readonly last: AccountObservation | null;
  /**
   * The last reported figures of each of the newest days, in the network's own days. They lack followers, which belong
   * to no day.
   */
  readonly days: Readonly<Record<string, AccountObservation['figures']>>;
}

export interface AccountMetricsCommand {
  readonly type: 'Observe';
  readonly observation: AccountObservation;
  /** Observations of earlier days from the same fetch. One without a changed figure gives no event. */
  readonly earlier?: readonly AccountObservation[];
}

/** Days that the state remembers. Networks revise fewer days. */
const maxDays = 14;

/** Instants are in UTC with milliseconds, so that the order of the texts is the order of time. */
const newer = (one: { readonly observedAt: string }, last: { readonly observedAt: string } | null): boolean =>
  last === null || one.observedAt > last.observedAt;

/** An answer that did not change is stored once: its hash says so. */
const withoutKnownRaw = <Observation extends { readonly rawHash?: string }>(
  observation: Observation,
  last: { readonly rawHash?: string } | null,
): Observation => {
  const isKnown = observation.rawHash !== undefined && observation.rawHash === last?.rawHash;
  return isKnown ? { ...observation, raw: null } : observation;
};

export const targetmetrics: Decider<TargetMetricsState, TargetMetricsCommand, TargetMetricsEvent> = {
  kind: 'targetmetrics',
  initial: { last: null, figures: {}, raw: null },
  decide: ({ observation }, { last }) => {
    const final = last !== null && last.platformRemovedAt !== null;
    if (final || !newer(observation, last)) return [];
    return [{ type: 'TargetMetricsObserved', data: withoutKnownRaw(observation, last) }];
  },
  evolve: ({ figures, raw }, { data }) => ({
    last: data,
    figures: { ...figures, ...data.figures },
    raw: data.raw ?? raw,
  }),
};

const dailyOf = ({ followerCount: _now, ...daily }: AccountObservation['figures']): AccountObservation['figures'] =>
  daily;

/** Keeps the earlier figures of a day where a later observation leaves them out. */
const completed = (one: AccountObservation, { days }: AccountMetricsState): AccountObservation => {
  const known = one.figuresDay === null ? undefined : days[one.figuresDay];
  return { ...one, figures: { ...known, ...one.figures } };
};

const revises = ({ figuresDay, figures }: AccountObservation, { days }: AccountMetricsState): boolean => {
  const known: Readonly<Record<string, unknown>> | undefined = figuresDay === null ? undefined : days[figuresDay];
  return known === undefined || Object.entries(dailyOf(figures)).some(([name, value]) => known[name] !== value);
};

/** The first observation of each day. With two of one day, each fetch would append both again. */
const onceADay = (all: readonly AccountObservation[]): readonly AccountObservation[] => [
  ...new Map(all.toReversed().map((one) => [one.figuresDay, one])).values(),
];

const byDay = (one: AccountObservation, other: AccountObservation): number =>
  (one.figuresDay ?? '') < (other.figuresDay ?? '') ? -1 : 1;

export const accountmetrics: Decider<AccountMetricsState, AccountMetricsCommand, AccountMetricsEvent> = {
  kind: 'accountmetrics',
  initial: { last: null, days: {} },
  decide: ({ observation, earlier = [] }, state) => {
    if (!newer(observation, state.last)) return [];
    const changedDays = onceADay(earlier)
      .map((one) => completed(one, state))
      .filter((one) => revises(one, state));
    const newest = withoutKnownRaw(completed(observation, state), state.last);
    return [...changedDays.sort(byDay), newest].map((data) => ({
      type: 'AccountMetricsObserved',
      data,
    }));
  },
  evolve: ({ days }, { data }) => {
    if (data.figuresDay === null) return { last: data, days };
    const all = Object.entries({ ...days, [data.figuresDay]: dailyOf(data.figures) });
    const newest = all.sort(([one], [other]) => (one < other ? 1 : -1)).slice(0, maxDays);
    return { last: data, days: Object.fromEntries(newest) };
  },
};
