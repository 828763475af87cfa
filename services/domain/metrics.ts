import type { AccountMetricsEvent, TargetMetricsEvent } from '#schemas/metrics.ts';
import type { Decider } from './decider.ts';

/**
 * What networks told of one post, and of one account: a stream each, one event a fetch. Order is that of the network's
 * clock: an answer that is not newer than the last one says nothing, whoever brings it. A post that is gone from its
 * network has its final figures.
 */

type TargetObservation = Extract<TargetMetricsEvent, { type: 'TargetMetricsObserved' }>['data'];
type AccountObservation = Extract<AccountMetricsEvent, { type: 'AccountMetricsObserved' }>['data'];

export interface TargetMetricsState {
  /** The newest one, whose `platformRemovedAt` says whether it is the final one. */
  readonly last: TargetObservation | null;
  /** Each as it was fetched last: what a later look did not ask for is not lost. */
  readonly figures: TargetObservation['figures'];
}

export interface TargetMetricsCommand {
  readonly type: 'Observe';
  readonly observation: TargetObservation;
}

export interface AccountMetricsState {
  readonly last: AccountObservation | null;
}

export interface AccountMetricsCommand {
  readonly type: 'Observe';
  readonly observation: AccountObservation;
}

/** Instants are in UTC with milliseconds, so that letters order as time does. */
const newer = (one: { readonly observedAt: string }, last: { readonly observedAt: string } | null): boolean =>
  last === null || one.observedAt > last.observedAt;

export const targetmetrics: Decider<TargetMetricsState, TargetMetricsCommand, TargetMetricsEvent> = {
  kind: 'targetmetrics',
  initial: { last: null, figures: {} },
  decide: ({ observation }, { last }) => {
    const final = last !== null && last.platformRemovedAt !== null;
    return !final && newer(observation, last) ? [{ type: 'TargetMetricsObserved', data: observation }] : [];
  },
  evolve: ({ figures }, { data }) => ({ last: data, figures: { ...figures, ...data.figures } }),
};

export const accountmetrics: Decider<AccountMetricsState, AccountMetricsCommand, AccountMetricsEvent> = {
  kind: 'accountmetrics',
  initial: { last: null },
  decide: ({ observation }, { last }) =>
    newer(observation, last) ? [{ type: 'AccountMetricsObserved', data: observation }] : [],
  evolve: (_state, { data }) => ({ last: data }),
};
