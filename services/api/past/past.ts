import { setImmediate } from 'node:timers/promises';
import { workspaceOf } from '#contracts/ports/event-store.ts';
import { applyEvent, type Model, type Row } from '#projections/engine/model.ts';
import type { FeedMoment } from '#projections/feed/moments.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { inParallel } from '#runtime/work/in-parallel.ts';
import { CallQueue } from '../call/call-queue.ts';
import type { Call, PastMoment } from '../call/operation.ts';
import { badParameter, Refusal, tooLate } from '../call/refusal.ts';
import { momentOf } from './moment.ts';

/**
 * Things as they were at a moment: their streams are read up to it and folded by the read models' own folds, so that the
 * answer is that of the read models then.
 */

/** Events that one call folds, and the bytes of them. */
const maxEvents = 20_000;
const maxBytes = 48 * 1_024 * 1_024;
/** Milliseconds of folding after which a call is refused. */
const maxMs = 8_000;
const pageEvents = 250;
/** Streams that one call reads at once. */
const width = 8;
const foldedAtOnce = 500;

/** Questions about the past that are answered at once. */
const turns = new CallQueue({ noun: 'questions about the past', each: 2, total: 6, waiting: 20, waitMs: 3_000 });

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'principal'>;

export class Past {
  readonly moment: FeedMoment;
  readonly #asking: Asking;
  readonly #streams = new Map<string, Promise<readonly DecodedEvent[]>>();
  readonly #begun = performance.now();
  #events = 0;
  #bytes = 0;

  constructor(asking: Asking, moment: FeedMoment) {
    this.#asking = asking;
    this.moment = moment;
  }

  get workspaceId(): string {
    return this.#asking.workspaceId;
  }

  get deps(): Asking['deps'] {
    return this.#asking.deps;
  }

  /** A part of what a call may do has been done: a list ends its page. */
  get isTired(): boolean {
    const share = Math.max(this.#events / maxEvents, this.#bytes / maxBytes, (performance.now() - this.#begun) / maxMs);
    return share > 0.25;
  }

  /** What a stream had at the moment; none for a stream of another workspace. @throws Refusal `history_too_long` */
  events(stream: string): Promise<readonly DecodedEvent[]> {
    const reading = this.#streams.get(stream) ?? this.#read(stream);
    this.#streams.set(stream, reading);
    return reading;
  }

  /** The row that a read model had; null: none. */
  async row<Own extends object>(model: Model<Own>, id: string): Promise<Row<Own> | null> {
    let row: Row<Own> | null = null;
    for (const [at, event] of (await this.events(`${model.kind}-${id}`)).entries()) {
      row = applyEvent(model, id, row, event);
      if (at % foldedAtOnce === foldedAtOnce - 1) await setImmediate();
    }
    return row;
  }

  /** The rows of those that had one, in the order of the ids. */
  async rows<Own extends object>(model: Model<Own>, ids: readonly string[]): Promise<readonly Row<Own>[]> {
    const found = await this.each(ids, (id) => this.row(model, id));
    return found.flatMap((row) => (row === null ? [] : [row]));
  }

  /** In the order of the ids, a few at once. */
  async each<T, Made>(items: readonly T[], make: (item: T) => Promise<Made>): Promise<readonly Made[]> {
    const made: Made[] = [];
    await inParallel([...items.entries()], width, async ([at, item]) => {
      made[at] = await make(item);
    });
    return made;
  }

  async #read(stream: string): Promise<readonly DecodedEvent[]> {
    const { store } = this.deps;
    const events: DecodedEvent[] = [];
    for (let from = 0n; ; ) {
      if (performance.now() - this.#begun > maxMs) tooLate();
      const page = await store.stored.read(stream, { from, limit: pageEvents });
      const then = page.filter(({ position }) => position <= this.moment.position);
      this.#take(then);
      events.push(...(await store.decodeAll(then)));
      if (then.some(({ metadata }) => workspaceOf(metadata) !== this.workspaceId)) return [];
      const last = page.at(-1);
      if (last === undefined || page.length < pageEvents || then.length < page.length) return events;
      from = last.revision + 1n;
      await setImmediate();
    }
  }

  #take(stored: readonly { readonly data: Uint8Array; readonly metadata: Uint8Array }[]): void {
    this.#events += stored.length;
    for (const { data, metadata } of stored) this.#bytes += data.length + metadata.length;
    if (this.#events > maxEvents || this.#bytes > maxBytes) this.tooMuch();
  }

  /** @throws Refusal `history_too_long` */
  tooMuch(): never {
    throw new Refusal('history_too_long', `One call reads at most ${maxEvents} events here, and there are more.`);
  }
}

/** Answers a call as of the moment that it asks for, when its workspace has its turn; the answer says which it is. */
export const inPast = <T extends object>(
  asking: Asking,
  asOf: string,
  work: (past: Past) => Promise<T>,
): Promise<T & { readonly asOf: PastMoment }> =>
  turns.run(asking.principal.liveWorkspaceId, async () => {
    const moment = await momentOf(asking, asOf);
    const made = await work(new Past(asking, moment));
    return { ...made, asOf: { event: `${moment.epoch}.${moment.sequence}`, at: moment.at } };
  });

/** Members of a query that any list about the past takes. */
const always: readonly string[] = ['limit', 'cursor', 'asOf'];

/** @throws Refusal 400 for a filter by what only Postgres compares: texts, ignoring case */
export const requirePastFilters = (query: object, ...taken: readonly string[]): void => {
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || always.includes(name) || taken.includes(name)) continue;
    throw badParameter(name, 'exclusive', `cannot be sent with asOf, which takes ${taken.join(', ') || 'no filter'}`);
  }
};

/** Whether an instant lies in what `from` and `to` of a list leave. @param at ISO 8601 */
export const isBetween = (at: string, { from, to }: { readonly from?: string; readonly to?: string }): boolean =>
  (from === undefined || Date.parse(at) >= upToMs(from)) && (to === undefined || Date.parse(at) < upToMs(to));

/** Milliseconds. A part of one counts as a whole one: no stored instant has any, and Postgres does not drop it. */
const upToMs = (instant: string): number => {
  const [, digits = ''] = /\.\d{3}(\d+)/.exec(instant) ?? [];
  return Date.parse(instant) + (/[1-9]/.test(digits) ? 1 : 0);
};

/** @throws Refusal 400 */
export const pastClientOf = ({ clientId }: { readonly clientId?: string }): string => {
  if (clientId === undefined) throw badParameter('clientId', 'required', 'is required with asOf');
  return clientId;
};
