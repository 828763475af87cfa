import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { instantOf } from '#schemas/common.ts';
import { type AnyPublisher, type PublisherOf, untyped } from './publisher.ts';

/**
 * A read model is a table whose rows are each owned by one stream, and the pure folds that make a row from that
 * stream's events. The API renders the answer to a command with the same folds, from the events it just stored, so
 * answer and read model always agree.
 */

export type ColumnType = 'uuid' | 'text' | 'int4' | 'bool' | 'timestamptz' | 'jsonb' | 'text[]';

/** Members of every row. Instants are ISO 8601 in UTC with milliseconds, in memory as in answers. */
export interface Base {
  readonly id: string;
  readonly workspace_id: string;
  /** Revision of the last event folded in. −1 marks a placeholder, which no view shows. */
  readonly revision: number;
  readonly created_at: string;
  readonly updated_at: string;
}

export type Row<Own> = Base & Own;

type EventShape = { readonly type: string; readonly data: unknown };

/**
 * The text that a search scans, kept beside a long column so that the search never reads the long column. It is stored
 * in `searched`, and `searched_revision` holds the revision it was made from. A build without these
 * columns raises `revision` alone: where the two differ, read `of` instead.
 */
export interface Searched {
  /** The cold column from which the text is made. */
  readonly of: string;
  /** SQL of the text, bounded and in lower case. */
  readonly text: (of: string) => string;
}

/** A definition behind `create index … on <table>`; the index gets a generated name from its place in the list. */
export interface Index {
  readonly unique?: boolean;
  readonly on: string;
}

/** One handler per event type of the stream kind; tsc reports a missing one. */
export type Handlers<Own, Event extends EventShape> = {
  readonly [T in Event['type']]: (
    row: Own | null,
    data: Extract<Event, { readonly type: T }>['data'],
    event: DecodedEvent,
  ) => Own | null;
};

export interface Model<Own extends object = object> {
  /** Name of the view in schema `read`; the table is `<name>_v<N>`. */
  readonly name: string;
  /** Stream kind that owns the rows. */
  readonly kind: string;
  readonly columns: { readonly [C in keyof Own]: ColumnType };
  /** Large columns: they are loaded for few events only, and keep their value unless the fold sets them. */
  readonly cold: readonly string[];
  /** Types of events whose fold reads the cold columns. */
  readonly warmedBy: readonly string[];
  /** Columns counted from other rows: no fold sets them. Name → SQL default. */
  readonly counted: Readonly<Record<string, string>>;
  /** Events that may precede the creation of the stream (they fence a pending creation): they make no row. */
  readonly fences: readonly string[];
  /** Further column definitions that derive from other columns, e.g. `generated always as …`. */
  readonly generated: readonly string[];
  readonly searched: Searched | null;
  readonly indexes: readonly Index[];
  /** What the stream kind publishes to webhooks; null: nothing, or another model of the kind has it. */
  readonly publisher: AnyPublisher | null;
  /** Total: null when the event does not fit (an event of a stream without a creating event). */
  fold(row: Own | null, event: DecodedEvent): Own | null;
}

export const defineModel = <Own extends object, Event extends EventShape>(definition: {
  readonly name: string;
  readonly kind: string;
  readonly columns: { readonly [C in keyof Own]: ColumnType };
  readonly cold?: readonly (keyof Own & string)[];
  readonly warmedBy?: readonly Event['type'][];
  readonly counted?: { readonly [C in keyof Own]?: string };
  /** Those of the decider. */
  readonly fences?: readonly Event['type'][];
  readonly generated?: readonly string[];
  readonly searched?: Searched & { readonly of: keyof Own & string };
  readonly indexes?: readonly Index[];
  readonly publisher?: PublisherOf<Event>;
  readonly on: Handlers<Own, Event>;
}): Model<Own> => {
  const {
    on,
    name,
    kind,
    columns,
    cold = [],
    warmedBy = [],
    counted = {},
    fences = [],
    generated = [],
    indexes = [],
  } = definition;
  const { searched = null, publisher = null } = definition;
  type Handler = (row: Own | null, data: unknown, event: DecodedEvent) => Own | null;
  // The codec has validated the data against the schema from which the handler's type is derived.
  const handlers = new Map(Object.entries(on) as unknown as readonly [string, Handler][]);
  return {
    name,
    kind,
    columns,
    cold,
    warmedBy,
    counted: counted as Readonly<Record<string, string>>,
    fences,
    generated,
    searched,
    indexes,
    publisher: publisher === null ? null : untyped(publisher),
    fold: (row, event) => {
      const handler = handlers.get(event.type);
      return handler === undefined ? row : handler(row, event.data, event);
    },
  };
};

/** How a former shape differs from that of this build. */
interface FormerForm<Own> {
  readonly without: readonly (keyof Own & string)[];
  /** Types of events of which its columns say nothing; they change its revision alone. */
  readonly unread: readonly string[];
  readonly said: (row: Own) => Own;
}

/**
 * A model of a former shape, folded by this build: the same rows without some columns, and with what that shape has no
 * word for said in its own. Its indexes are those of its tables, which this build never makes.
 */
export const formerModel = <Own extends object>(
  model: Model<Own>,
  { without, unread, said }: FormerForm<Own>,
): Model<Own> => ({
  ...model,
  columns: Object.fromEntries(
    Object.entries(model.columns).filter(([name]) => !without.some((one) => one === name)),
  ) as Model<Own>['columns'],
  fold: (row, event) => {
    const own = unread.includes(event.type) ? row : model.fold(row, event);
    return own === null ? null : said(own);
  },
});

/** A handler for an event that needs a row: without one it returns null. */
export const change =
  <Own, Data>(made: (row: Own, data: Data, event: DecodedEvent) => Own) =>
  (row: Own | null, data: Data, event: DecodedEvent): Own | null =>
    row === null ? null : made(row, data, event);

/** An event that changes nothing but the revision. */
export const unchanged = <Own>(row: Own | null): Own | null => row;

/** The next row; null when the stream's first event creates none. */
export const applyEvent = <Own extends object>(
  model: Model<Own>,
  id: string,
  row: Row<Own> | null,
  event: DecodedEvent,
): Row<Own> | null => {
  const own = model.fold(row, event);
  if (own === null) return null;
  const { workspaceId } = event.metadata;
  const at = instantOf(event.metadata);
  const base: Base = {
    id,
    workspace_id: row?.workspace_id ?? workspaceId,
    revision: event.revision,
    created_at: row?.created_at ?? at,
    updated_at: at,
  };
  return { ...own, ...base };
};

/**
 * The row that the events of one stream make, from the first event on. The API renders the answer to a command from it.
 */
export const rowOf = <Own extends object>(model: Model<Own>, events: readonly DecodedEvent[]): Row<Own> | null => {
  let row: Row<Own> | null = null;
  for (const event of events) row = applyEvent(model, event.stream.slice(model.kind.length + 1), row, event);
  return row;
};

/**
 * Columns of a row that are counted from rows of other streams. The owner's row is locked first (see apply.ts), so two
 * transactions that touch children of one owner run the recount one after the other, and the later one sees both. `$1`
 * holds the owners' ids; `o` and `c` are the tables of owners and of children.
 */
export interface Recount {
  /** Model that has the counted columns. */
  readonly owner: string;
  /** Models whose rows are counted; `by` is the column that names the owner. */
  readonly children: readonly { readonly model: string; readonly by: string }[];
  /**
   * The owner with its columns counted from these children, where no other row is needed: when an owner and all its
   * children are created in one batch, no other row can count. Must agree with the statements.
   */
  readonly countCreated?: (owner: Row<object>, children: readonly Row<object>[]) => Row<object>;
  /** Statements in order. `table` gives the table of a model in the version that is written. */
  readonly statements: (table: (model: string) => string) => readonly string[];
}
