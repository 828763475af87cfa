import type { Static } from 'typebox';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { PublicEvent } from '#schemas/http/webhook-events/common.ts';

/** What a stream kind publishes: for each of its events the public types, or why there is none. */

type EventShape = { readonly type: string; readonly data: unknown };
type Public = Readonly<Record<string, PublicEvent>>;

/** The event that is rendered. */
export interface RenderSource<Data> {
  readonly data: Data;
  /** Id of the event's stream. */
  readonly id: string;
  readonly occurredAt: string;
}

/**
 * `ofEvent`: renders from the event alone. `ofStream`: renders from the stream too, folded up to and including the
 * event.
 */
type Renderer<Data, Subject, Made> =
  | { readonly ofEvent: (source: RenderSource<Data>) => Made }
  | { readonly ofStream: (source: RenderSource<Data>, subject: Subject) => Made };

export type Rule<P extends Public, Data, Subject> = {
  readonly [T in keyof P & string]: {
    readonly type: T;
    /**
     * Only for the event with which the thing was created: the first one of the stream, or one whose data say that it
     * is, where fences may stand before it (`birthOf`).
     */
    readonly birth?: (data: Data) => boolean;
    /** Only for such data. */
    readonly when?: (data: Data) => boolean;
  } & Renderer<Data, Subject, Static<P[T]['data']>>;
}[keyof P & string];

/** Why an event is not published. */
export type Reason = string;

/** One entry for each event of the kind; tsc reports a missing one. */
export type Rules<P extends Public, Event extends EventShape, Subject> = {
  readonly [T in Event['type']]: Reason | readonly Rule<P, Extract<Event, { readonly type: T }>['data'], Subject>[];
};

export interface Publisher<P extends Public, Event extends EventShape, Subject> {
  readonly rules: Rules<P, Event, Subject>;
  /**
   * Folds the part of a stream that rendering needs beyond the event. Null before its creation, of bounded size,
   * immutable: a caller may go back to an older one. Total: skips an event that does not fit.
   */
  evolve(subject: Subject | null, event: Event): Subject | null;
}

/** For a kind that publishes nothing. */
export type Unpublished<Event extends EventShape> = { readonly [T in Event['type']]: Reason };

/** Of a kind with these events, whatever it publishes and whatever its fold keeps. */
export interface PublisherOf<Event extends EventShape> {
  readonly rules: { readonly [T in Event['type']]: unknown };
  evolve(subject: never, event: Event): object | null;
}

/** The state of one stream as far as rendering needs it; only its own kind reads it. Null: nothing. */
export type StreamSubject = object | null;

/** A rule without the types of its kind. */
export interface AnyRule {
  readonly type: string;
  readonly birth?: (data: unknown) => boolean;
  readonly when?: (data: unknown) => boolean;
  readonly ofEvent?: (source: RenderSource<unknown>) => unknown;
  readonly ofStream?: (source: RenderSource<unknown>, subject: object) => unknown;
}

export interface AnyPublisher {
  readonly rules: Readonly<Record<string, Reason | readonly AnyRule[]>>;
  readonly evolve: (subject: StreamSubject, event: DecodedEvent) => StreamSubject;
}

/** The codec has checked each event's data against the schema from which the types of its rules are derived. */
export const untyped = <Event extends EventShape>(publisher: PublisherOf<Event>): AnyPublisher =>
  publisher as unknown as AnyPublisher;
