import { maxKeptCalls, type TargetCallsEvent } from '#schemas/targetcalls.ts';
import type { Decider } from './decider.ts';

/** The calls of one target's network, in their order. Its law: the stream never grows beyond `maxKeptCalls` events. */

export type ObservedCall = TargetCallsEvent['data'];

export interface TargetCallsState {
  readonly kept: number;
}

export interface TargetCallsCommand {
  readonly type: 'Observe';
  readonly calls: readonly ObservedCall[];
}

export const targetcalls: Decider<TargetCallsState, TargetCallsCommand, TargetCallsEvent> = {
  kind: 'targetcalls',
  initial: { kept: 0 },
  decide: ({ calls }, { kept }) =>
    calls.slice(0, Math.max(0, maxKeptCalls - kept)).map((data) => ({ type: 'TargetNetworkCallObserved', data })),
  evolve: ({ kept }) => ({ kept: kept + 1 }),
};
