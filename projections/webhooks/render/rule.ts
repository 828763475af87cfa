import type { Static } from 'typebox';
import type { PublicEvent } from '#schemas/http/webhook-events/common.ts';

/** What a stream kind says in public: for each of its events the types it is published as, or why it is not. */

type EventShape = { readonly type: string; readonly data: unknown };
type Public = Readonly<Record<string, PublicEvent>>;

/** The event that is rendered. */
export interface Source<Data> {
  readonly data: Data;
  /** Id of its stream. */
  readonly id: string;
  readonly occurredAt: string;
}

/** `ofEvent`: the event alone tells it. `ofStream`: so does its stream, folded up to it and with it. */
type Renderer<Data, Subject, Made> =
  | { readonly ofEvent: (source: Source<Data>) => Made }
  | { readonly ofStream: (source: Source<Data>, subject: Subject) => Made };

export type Rule<P extends Public, Data, Subject> = {
  readonly [T in keyof P & string]: {
    readonly type: T;
    /** Only as the first event of its stream. */
    readonly first?: true;
    /** Only of such data. */
    readonly when?: (data: Data) => boolean;
  } & Renderer<Data, Subject, Static<P[T]['data']>>;
}[keyof P & string];

/** Why an event is not published. */
export type Reason = string;

/** One entry for each event of the kind; tsc names the one that is missing. */
export type Rules<P extends Public, Event extends EventShape, Subject> = {
  readonly [T in Event['type']]: Reason | readonly Rule<P, Extract<Event, { readonly type: T }>['data'], Subject>[];
};

export interface Publisher<P extends Public, Event extends EventShape, Subject> {
  readonly rules: Rules<P, Event, Subject>;
  /**
   * What rendering must know of a stream beyond the event. Null before its birth, of bounded size, never changed in
   * place: a caller may go back to an older one. Total: an event that does not fit is passed over.
   */
  evolve(subject: Subject | null, event: Event): Subject | null;
}

/** For a kind of which nothing is published. */
export type Unpublished<Event extends EventShape> = { readonly [T in Event['type']]: Reason };
