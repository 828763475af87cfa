import { setImmediate } from 'node:timers/promises';
import type { TObject } from 'typebox';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { Warning } from '#schemas/http/common.ts';
import { type CallTools, call } from './call.ts';
import { requireParameter } from './input.ts';
import { jsonPieces } from './json.ts';
import {
  type Answer,
  calledState,
  type Many,
  newState,
  type Operation,
  type Pieces,
  type Principal,
} from './operation.ts';
import { Refusal } from './refusal.ts';
import type { BodyMeter, BodyText, LimitHeaders, Warned, Wire } from './wire.ts';

/** The wire inside the process: for parts of the server that know the caller already. */

export interface Invocation {
  /** The operation, or its id. */
  readonly operation: Operation | string;
  readonly principal: Principal;
  readonly params?: Readonly<Record<string, string>>;
  /** Values as the schema names them, not texts; a member that is undefined was not sent. */
  readonly query?: Readonly<Record<string, unknown>>;
  /** A JSON value; undefined: no body is sent. */
  readonly body?: unknown;
  /** Default: none. */
  readonly key?: string | null;
  /** As the header: `"4"`, `*`. */
  readonly ifMatch?: string;
  readonly correlationId: string;
  /** The caller's address: operations without a token count against it. */
  readonly address?: string;
  /** Of an earlier answer, where the caller brought one. */
  readonly consistencyToken?: string;
  /** Requests of this call that its credential has paid for already. */
  readonly paid?: number;
  /** Learns what is left of the allowance. */
  readonly limitHeaders?: LimitHeaders;
}

export interface Invoked<Data = unknown> {
  /** As in the envelope. Of an answer without an envelope: its text or bytes. */
  readonly data: Data;
  /** Of a list. */
  readonly page?: Many<unknown>['page'];
  readonly warnings: readonly Warning[];
  /** Warnings beyond these; absent: none. */
  readonly moreWarnings?: number;
  /** Of the resource's own stream. */
  readonly revision?: number;
  /** True when an earlier call under this key was answered again. */
  readonly replayed: boolean;
  /** Null where the call stored nothing. This process remembers the caller's writes without it. */
  readonly consistencyToken: string | null;
  /** Media type of an answer without an envelope. */
  readonly type?: string;
}

/** @throws Refusal or Rejection as a REST call answers them, see `toProblem` */
export type Invoke = <Data = unknown>(invocation: Invocation) => Promise<Invoked<Data>>;

const noHeaders: LimitHeaders = { set: () => undefined };

const joined = async ({ head, items, tail }: Pieces): Promise<unknown> => {
  const texts: string[] = [];
  for (const item of items()) {
    let text = '';
    for await (const piece of jsonPieces(item)) text += piece;
    texts.push(text);
    await setImmediate();
  }
  return JSON.parse(`${head}${texts.join(',')}${tail}`);
};

/** @throws BrokenInvariant for lines, which no caller inside the process accepts */
const dataOf = (made: Answer): unknown => {
  if ('begin' in made) throw new BrokenInvariant('an answer in lines was asked for inside the process');
  if ('raw' in made) return made.raw.body;
  if ('items' in made) return joined(made);
  return 'json' in made ? JSON.parse(made.json) : made.data;
};

class InvocationWire implements Wire {
  readonly params: unknown;
  readonly idempotencyKey: string | undefined;
  readonly ifMatch: string | undefined;
  readonly consistencyToken: string;
  readonly paid: number;
  readonly limitHeaders: LimitHeaders;
  readonly announcedBytes: number;
  /** As REST would send it: the limits of bodies are limits of their text. */
  readonly #text: Buffer;
  readonly #query: Readonly<Record<string, unknown>>;
  #answered: Omit<Invoked, 'consistencyToken'> | null = null;
  #written: string | null = null;

  constructor(asked: Invocation) {
    this.params = asked.params ?? {};
    this.idempotencyKey = asked.key ?? undefined;
    this.ifMatch = asked.ifMatch;
    this.consistencyToken = asked.consistencyToken ?? '';
    this.paid = asked.paid ?? 0;
    this.limitHeaders = asked.limitHeaders ?? noHeaders;
    this.#text = Buffer.from(asked.body === undefined ? '' : JSON.stringify(asked.body));
    this.announcedBytes = this.#text.length;
    this.#query = Object.fromEntries(Object.entries(asked.query ?? {}).filter(([, value]) => value !== undefined));
  }

  /** @throws when the call was refused */
  get invoked(): Invoked {
    if (this.#answered === null) throw new BrokenInvariant('the call has no answer');
    return { ...this.#answered, consistencyToken: this.#written };
  }

  hasParameter(name: string): boolean {
    return Object.hasOwn(this.#query, name);
  }

  readQuery(schema: TObject | undefined): Readonly<Record<string, unknown>> {
    for (const [name, value] of Object.entries(this.#query)) requireParameter(schema, name, value);
    return this.#query;
  }

  async readBody({ bodyOptional }: Operation, meter: BodyMeter): Promise<BodyText | null> {
    const text = this.#text;
    if (text.length === 0 && bodyOptional === true) return null;
    if (text.length > meter.maxBytes) {
      throw new Refusal('payload_too_large', `The body may have ${meter.maxBytes} bytes.`);
    }
    meter.take(text);
    return { text, values: meter.values };
  }

  accepts(...types: readonly string[]): string | false {
    return types[0] ?? false;
  }

  async answer(made: Answer, { warnings = [], moreWarnings }: Warned): Promise<void> {
    this.#answered = {
      data: await dataOf(made),
      warnings,
      ...(moreWarnings === undefined ? {} : { moreWarnings }),
      replayed: 'replayed' in made && made.replayed === true,
      ...('page' in made ? { page: made.page } : {}),
      ...('revision' in made && made.revision !== undefined ? { revision: made.revision } : {}),
      ...('raw' in made ? { type: made.raw.type } : {}),
    };
  }

  wrote(consistencyToken: string): void {
    this.#written = consistencyToken;
  }
}

/** @param operations those that a caller may name */
export const invokerOf = (tools: CallTools, operations: readonly Operation[]): Invoke => {
  const byId = new Map(operations.map((one) => [one.id, one]));
  const invoke = async (asked: Invocation): Promise<Invoked> => {
    const operation = typeof asked.operation === 'string' ? byId.get(asked.operation) : asked.operation;
    if (operation === undefined) throw new BrokenInvariant(`there is no operation ${asked.operation}`);
    const principal = operation.scope === null ? null : asked.principal;
    const wire = new InvocationWire(asked);
    await call(tools, calledState(newState(asked.correlationId, asked.address ?? ''), operation, principal), wire);
    return wire.invoked;
  };
  return invoke as Invoke;
};
