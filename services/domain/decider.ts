import type { Issue } from '#schemas/issues.ts';
import { maxIssues } from '#schemas/validator.ts';
import type { ErrorCode, WorkerCode } from './codes.ts';

/** A decider is a value with pure functions. Time and ids come in with the command. */

/** The metadata of a stored event that a decision may use. */
export interface Fact {
  readonly eventId: string;
  /** Revision in its stream. */
  readonly revision: number;
  readonly commandId: string;
  /** Instant of the decision by the clock of its workspace, ISO 8601. */
  readonly occurredAt: string;
  /** Milliseconds by which that clock was ahead of real time; absent: it was not. */
  readonly aheadMs?: number;
}

export interface Decider<State, Command, Event extends { readonly type: string }> {
  /** The stream kind: stream name = `<kind>-<id>`. */
  readonly kind: string;
  readonly initial: State;
  /** Events that end a pending creation. They may stand before the event with which the thing is created: `birthOf`. */
  readonly fences?: readonly Event['type'][];
  /** Returns the events of the command: `[]` when the state is already as the command wants it. @throws Rejection */
  decide(command: Command, state: State): readonly Event[];
  /** Total: an event of a state it does not fit is ignored. */
  evolve(state: State, event: Event, fact: Fact): State;
}

/** A command that the rules refuse. */
export class Rejection extends Error {
  readonly code: ErrorCode | WorkerCode;
  readonly errors: readonly Issue[];
  /** Members of the problem body beyond the standard ones. */
  readonly extra: Readonly<Record<string, unknown>>;
  constructor(
    code: ErrorCode | WorkerCode,
    detail: string,
    more: {
      readonly errors?: readonly Issue[];
      readonly extra?: Readonly<Record<string, unknown>>;
    } = {},
  ) {
    super(detail);
    this.name = 'Rejection';
    this.code = code;
    this.errors = more.errors ?? [];
    this.extra = more.extra ?? {};
  }

  /**
   * One for all of them: what the first says, and the faults that all name, so that their author corrects them at once. An
   * answer shows `maxIssues` of them: each reason shows its first before one shows its second, or the accounts of one
   * fault would hide the other faults. Null: there is none.
   */
  static ofAll(all: readonly Rejection[]): Rejection | null {
    const [first] = all;
    if (first === undefined) return null;
    const ranked = all.flatMap(({ errors }) => errors.map((error, rank) => ({ error, rank })));
    const kept = new Set(ranked.toSorted((a, b) => a.rank - b.rank).slice(0, maxIssues));
    const errors = ranked.filter((one) => kept.has(one)).map(({ error }) => error);
    return new Rejection(first.code, first.message, { errors, extra: first.extra });
  }
}

/**
 * The event with which the thing of a stream was created: the first one that is no fence. Undefined: there is none yet.
 * The first event of a stream may be a fence, so it is not always the creation.
 */
export const birthOf = <Recorded extends { readonly type: string }>(
  { fences = [] }: { readonly fences?: readonly string[] },
  events: readonly Recorded[],
): Recorded | undefined => events.find(({ type }) => !fences.includes(type));

export const fold = <State, Command, Event extends { readonly type: string }>(
  decider: Decider<State, Command, Event>,
  events: Iterable<{ readonly event: Event; readonly fact: Fact }>,
  from: State = decider.initial,
): State => {
  let state = from;
  for (const { event, fact } of events) state = decider.evolve(state, event, fact);
  return state;
};
