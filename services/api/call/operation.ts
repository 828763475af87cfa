import type { TObject, TSchema } from 'typebox';
import type { ErrorCode } from '#domain/codes.ts';
import type { Decider } from '#domain/decider.ts';
import type { CommandContext, Loaded, Positions } from '#runtime/eventing/domain-store.ts';
import type { Created, Requested } from '#runtime/eventing/idempotency.ts';
import type { Scope } from '#schemas/apikey.ts';
import type { Actor, Mode, Role } from '#schemas/common.ts';
import { BodyNotes } from '#schemas/http/clean.ts';
import type { Cleaned, Warning } from '#schemas/http/common.ts';
import type { Topic } from '#schemas/topics.ts';
import type { HeldBytes } from './bodies.ts';
import type { Deps, Readers } from './deps.ts';
import type { Entry } from './entries.ts';

/** An operation: its promises as data, and one function. */

/** The caller: a key of a member, an app that a member gave access, or the member in a session of the console. */
export interface Principal {
  readonly kind: 'apikey' | 'oauth' | 'session';
  /** Of the credential: the key, the session, or what the member gave the app. */
  readonly id: string;
  readonly memberId: string;
  readonly role: Role;
  readonly scopes: readonly string[];
  readonly mode: Mode;
  /** Tenant of everything that the caller reads and writes: the live workspace, or its sandbox twin for a test key. */
  readonly workspaceId: string;
  readonly liveWorkspaceId: string;
  /** The clients to which the credential is limited; null: all clients of the workspace. */
  readonly clientIds: readonly string[] | null;
  /** The actor that the events name. */
  readonly actor: Actor;
  /** Of an app: the grant under which it acts, which names the app. The metadata of events has it beside the actor. */
  readonly grantId?: string;
}

/** What a credential that is limited to clients may do: each operation has one of these rules. */

export type LimitRule =
  /** Shows nothing of any client. */
  | 'open'
  /** The ids in the path, the query and the body decide: an id of another client is an unknown id. */
  | 'ids'
  /** The list has only the rows of the clients. */
  | 'filtered'
  /** The answer is about one client: `clientId` may be left out where the credential has only one. */
  | 'one'
  /** Makes or changes an asset, which must belong to one of the clients. */
  | 'owned'
  /** Makes a thing of one client, which must be named. */
  | 'made'
  /** It concerns the whole workspace. */
  | 'refused';

/** One request to one operation, after every check that is the same for all. */
export interface Call<Params = unknown, Query = unknown, Body = unknown> extends Commands {
  readonly deps: Deps;
  readonly principal: Principal;
  /** The tenant: `principal.workspaceId`. */
  readonly workspaceId: string;
  readonly params: Params;
  readonly query: Query;
  readonly body: Body;
  /** Of the list that the operation names as `entries`; `body` then has a digest in the place of each. */
  readonly entries: readonly Entry<unknown>[];
  /** Which members of the body nothing reads; the answer tells them as warnings. */
  readonly notes: BodyNotes;
  /** An id of the body as the caller sent it: one that the credential may not see has another in its place. */
  readonly asSent: (id: string) => string;
  /** Null when the caller sent none; never null where the operation requires a key. */
  readonly key: string | null;
  /** HMAC over operation, path, query and body: equal for equal requests. Empty without a key. */
  readonly fingerprint: string;
  readonly correlationId: string;
  /** Instant of the call by the clock of the workspace, ISO 8601. */
  readonly now: string;
  /** The same in real time, which a sandbox workspace's own clock may be ahead of: addresses and secrets end by it. */
  readonly realNow: string;
  /** For commands: actor, time and key. `keyHmac` and `fingerprint` are set when the caller sent a key. */
  readonly context: CommandContext;
  /**
   * Commands note here the positions of the events that they stored; the answer's X-Consistency-Token is made from
   * them.
   */
  readonly positions: Positions;
  /** Refuses with 412 a stream whose revision If-Match does not name. Without If-Match it refuses nothing. */
  readonly guard: (loaded: Pick<Loaded<unknown>, 'revision'>) => void;
  /** The best of these media types for the caller; false when the caller accepts none of them. */
  readonly accepts: (...types: readonly string[]) => string | false;
  /**
   * True when the readers (default: the read models) lack events that this caller wrote to these topics, after a wait
   * of ≤ 2 s.
   */
  readonly behind: (topics: readonly Topic[], readers?: Readers) => Promise<boolean>;
  /** Takes further requests from the caller's allowance as debt, because a bulk body is counted after it was read. */
  readonly charge: (requests: number) => Promise<void>;
}

/** Which moment an answer about the past is of. */
export interface PastMoment {
  /** The last event of the feed that it counts, `<epoch>.<sequence>`. */
  readonly event: string;
  /** ISO 8601: the instant that was asked for, or when the store took the event. */
  readonly at: string;
}

export interface One<Data> {
  readonly data: Data;
  readonly asOf?: PastMoment;
  /** Revision of the resource's own stream, for ETag. */
  readonly revision?: number;
  readonly replayed?: boolean;
  /** What the caller should know of the data and of the body, beside `notes`. */
  readonly warnings?: readonly Warning[];
  /** Warnings beyond these. */
  readonly more?: number;
}
/** `One` whose data is JSON already. */
interface Written {
  readonly json: string;
  /** As of `One`. */
  readonly revision?: number;
}
export interface Many<Row> {
  readonly data: readonly Row[];
  readonly asOf?: PastMoment;
  readonly page: { readonly hasMore: boolean; readonly cursor: string | null; readonly nextCursor: string | null };
  /** What the caller should know of the rows. */
  readonly warnings?: readonly Warning[];
}
/** Not in the envelope: the contract itself, or a page for a person. */
export interface Raw {
  readonly raw: { readonly type: string; readonly body: string | Buffer };
}
/**
 * `data` as the JSON text `head`, the items with commas between them, and `tail`. It may be large: one item is made and
 * written in each turn of the event loop.
 */
export interface Pieces {
  readonly head: string;
  /** Makes the items anew at each call: the answer to a limited credential is checked before its first byte is sent. */
  readonly items: () => Iterable<unknown>;
  readonly tail: string;
  readonly warnings?: readonly Warning[];
  /** As of `One`. */
  readonly more?: number;
  readonly replayed?: boolean;
}
/** Lines of text, each made when the caller has taken those before it. A caller may take them as long as it likes. */
export interface LineStream {
  /** Of the lines. */
  readonly type: string;
  /**
   * Called when the caller is there to take them, with nothing awaited before it hears when the caller has left: what it holds
   * is given back by `ended`. May refuse by throwing.
   */
  readonly begin: () => { readonly lines: AsyncIterable<string>; readonly ended: () => void };
}
export type Answer = One<unknown> | Written | Many<unknown> | Raw | Pieces | LineStream;

type Input<S> = S extends TSchema ? Cleaned<S> : Record<string, never>;

/** A group of operations in the contract. It stands with the operations of its noun. */
export interface Tag {
  /** Lower ones come first in the contract; equal ones by name. */
  readonly place: number;
  readonly name: string;
  /** The resource that `{id}` in their paths names. */
  readonly noun: string;
  readonly about: string;
  /** Its operations go by real time, also where the clock of the workspace is ahead: uploads, secrets and keys end by it. */
  readonly realTime?: true;
}

interface Promised {
  /** Stable; its name as a value, and its operationId. */
  readonly id: string;
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Relative to {base_url}, parameters as `{id}`. */
  readonly path: string;
  readonly tag: Tag;
  /** The resource that `{id}` in its path names, where that is not the tag's. */
  readonly noun?: string;
  readonly summary: string;
  readonly description?: string;
  /** Null: no token is asked for. */
  readonly scope: Scope | null;
  /** What of it a credential may do that is limited to clients. */
  readonly limited: LimitRule;
  /** A rule on top of the scope: the least role that may do it. */
  readonly role?: Role;
  /** It records itself what was read of the feed; other operations of auditors are recorded as they are called. */
  readonly notesUse?: true;
  /** For the console: a session of a member, no key and no OAuth token. */
  readonly firstParty?: true;
  /** `required` and `accepted` honour Idempotency-Key; `none` ignores it. */
  readonly idempotent: 'required' | 'accepted' | 'none';
  /** Requests it counts for. */
  readonly cost: number;
  /** The same with `search`; default 10. */
  readonly searchCost?: number;
  /** Bytes of the largest body; default 1 MiB. */
  readonly bodyLimit?: number;
  /** JSON values in the largest body, objects and arrays included; default 10,000. */
  readonly valueLimit?: number;
  /**
   * A list in the body whose entries stand for calls of their own: an entry that does not fit refuses no other, and the
   * call gets them in `entries`.
   */
  readonly entries?: string;
  /** A call without a body is a call with `{}`. */
  readonly bodyOptional?: boolean;
  /** The body changes only the members it has. */
  readonly merge?: boolean;
  /** Whether If-Match is honoured, and ETag answered. */
  readonly ifMatch?: boolean;
  /** Whether ETag is answered although there is nothing for If-Match to guard. */
  readonly etag?: boolean;
  /** Schema of `data`, of one row where `list`; `raw` where the answer is not in the envelope. */
  readonly answer: TSchema;
  readonly list?: boolean;
  readonly raw?: boolean;
  /** Media types of a raw answer beside JSON. */
  readonly alsoAs?: readonly string[];
  /** Codes with which it may refuse, beyond those of every operation of its form. */
  readonly codes: readonly ErrorCode[];
  readonly example: { readonly body?: unknown; readonly data: unknown };
}

export interface Operation extends Promised {
  readonly params?: TObject;
  readonly query?: TObject;
  readonly body?: TObject;
  readonly handle: (call: Call<never, never, never>) => Promise<Answer>;
}

/** The resource that `{id}` in its path names. */
export const nounOf = ({ noun, tag }: Pick<Operation, 'noun' | 'tag'>): string => noun ?? tag.noun;

/** Requests that a list with `search` counts for: unless it says otherwise, it may look at every row the tenant has. */
export const searchCostOf = ({ searchCost = 10 }: Pick<Operation, 'searchCost'>): number => searchCost;

export const isSearchable = ({ query }: Operation): boolean =>
  query !== undefined && Object.hasOwn(query.properties, 'search');

/** Requests that a question about the past counts for. */
export const pastCost = 10;

/** Whether a call asks how something was. */
export const asksPast = ({ query }: Pick<Operation, 'query'>, wire: { hasParameter(name: string): boolean }): boolean =>
  query !== undefined && Object.hasOwn(query.properties, 'asOf') && wire.hasParameter('asOf');

/** Types the handler by the schemas beside it. */
export const operation = <P extends TObject | undefined, Q extends TObject | undefined, B extends TObject | undefined>(
  spec: Promised & {
    readonly params?: P;
    readonly query?: Q;
    readonly body?: B;
    readonly handle: (call: Call<Input<P>, Input<Q>, Input<B>>) => Promise<Answer>;
  },
): Operation => spec as unknown as Operation;

/** An event, as every decider gives it. */
export interface Stored {
  readonly type: string;
  readonly data: unknown;
}

interface Creation<Command> {
  /**
   * Checks and decides without effects, because a repeat runs it too. May refuse by throwing: then the key stays free.
   */
  readonly command: (id: string) => Promise<Command>;
  /**
   * Takes the room that the new stream needs, right before the append and never for a repeat. May refuse by throwing.
   */
  readonly reserve?: (id: string, command: Command) => Promise<void>;
}

export interface Action<State, Command, Decided> {
  /**
   * Refuses a stream that the caller may not change. Default: refuses a stream of another workspace (404) and a
   * revision that If-Match does not name (412).
   */
  readonly guard?: (loaded: Loaded<State>) => void;
  /** Default: the stream that the path names. */
  readonly load?: () => Promise<Loaded<State>>;
  /** Checks and decides absolute values once: a repeat carries out the same values. May refuse by throwing. */
  readonly accept?: (loaded: Loaded<State>) => Promise<Decided>;
  readonly command: (decided: Decided, context: CommandContext) => Command;
  /** True: a full stream refuses the command, see `stream-room.ts`. */
  readonly optional?: boolean;
  /**
   * A rule that reads, or claims, more than the stream. The rule holds at the revision at which the command is appended.
   */
  readonly rule?: (loaded: Loaded<State>, decided: Decided) => Promise<void>;
  /** The partition key, where it does not follow from the stream's name. */
  readonly partitionKey?: (state: State) => string;
}

/** The stream as the command left it, in this call or in the first one, without later events. */
export interface Acted<State> extends Loaded<State> {
  readonly replayed: boolean;
}

/** A kind of stream, as an operation writes to it. */
interface StreamCommands<State, Command> {
  /** Creates a stream; a repeat under the same key answers the first one. */
  readonly create: (creation: Creation<Command>) => Promise<Created<State>>;
  /**
   * One command on one stream. If we die between acceptance and the append, the repeat appends the accepted values. If
   * we die after the append, the repeat finds the command in the stream and appends nothing.
   */
  readonly act: <Decided = void>(action: Action<State, Command, Decided>) => Promise<Acted<State>>;
}

/** How an operation writes to streams. */
export interface Commands {
  readonly stream: <State, Command>(decider: Decider<State, Command, Stored>) => StreamCommands<State, Command>;
  /** For a call that changes more than one stream: accepts it once and carries it out until it is done. */
  readonly once: <Decided, Result>(
    accept: () => Promise<Decided>,
    effects: (decided: Decided, context: CommandContext) => Promise<Result>,
  ) => Promise<Requested<Result>>;
}

/** What the steps of one call share, and its log line shows. */
export interface CallState {
  correlationId: string;
  /** The caller's address, in the form that allowances are counted by. */
  readonly address: string;
  operation: Operation | null;
  principal: Principal | null;
  params: unknown;
  query: unknown;
  body: unknown;
  entries: readonly Entry<unknown>[];
  /** Which members of the body nothing reads. */
  readonly notes: BodyNotes;
  /** The bytes of the body, until the end of the call; null: none are held. */
  held: HeldBytes | null;
  /** Ids that a limited credential may not see, by the ids in their place. */
  unseen: ReadonlyMap<string, string>;
  key: string | null;
  /** Requests that were counted for the body before it was read. */
  paidAhead: number;
  positions: Positions;
  /** The workspace that a page for people is about; null: none, or no page. */
  pageOf: string | null;
}

/** Of a call of which only its origin is known yet. */
export const newState = (correlationId: string, address: string): CallState => ({
  correlationId,
  address,
  operation: null,
  principal: null,
  params: {},
  query: {},
  body: {},
  entries: [],
  notes: new BodyNotes(),
  held: null,
  unseen: new Map(),
  key: null,
  paidAhead: 0,
  positions: new Map(),
  pageOf: null,
});

/** Of a call whose operation and caller are known. */
export type CalledState = CallState & { readonly operation: Operation };

export const calledState = (state: CallState, operation: Operation, principal: Principal | null): CalledState =>
  Object.assign(state, { operation, principal });
