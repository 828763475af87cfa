import { setImmediate } from 'node:timers/promises';
import type { LaneBatch, LogRecord } from '#contracts/ports/log.ts';
import type { StoredBytes } from '#runtime/eventing/codec.ts';
import { isInstallationFault, stopsLane } from '#runtime/process/faults.ts';
import { kindOf } from '#schemas/topics.ts';
import type { ConsumeOptions, FailureAction, Shaped } from './options.ts';

/** Events decoded ahead without a pause, which takes some tenths of a millisecond. */
const decodedAtOnce = 16;

/** A log may unpack the bytes of a record when they are read: those that nobody wants stay packed. */
class RecordBytes implements StoredBytes {
  readonly stream: string;
  readonly id: string;
  readonly type: string;
  readonly revision: bigint;
  readonly position: bigint;
  readonly #record: LogRecord;

  constructor(record: LogRecord) {
    this.stream = record.stream;
    this.id = record.id;
    this.type = record.type;
    this.revision = record.revision;
    this.position = record.position;
    this.#record = record;
  }

  get data(): Uint8Array {
    return this.#record.value;
  }

  get metadata(): Uint8Array {
    return this.#record.metadata;
  }
}

export const asStored = (record: LogRecord): StoredBytes => new RecordBytes(record);

/** Selects the records that a consumer wants, and decodes them. */
export class Decoding<E extends Shaped> {
  readonly #options: ConsumeOptions<E>;
  readonly #kinds: ReadonlySet<string> | null;
  readonly #types: ReadonlySet<string> | null;

  constructor(options: ConsumeOptions<E>) {
    this.#options = options;
    this.#kinds = options.kinds === undefined ? null : new Set(options.kinds);
    this.#types = options.types === undefined ? null : new Set(options.types);
  }

  wants(record: StoredBytes, batch: readonly StoredBytes[]): boolean {
    const { stream, type } = record;
    if (this.#kinds !== null && !this.#kinds.has(kindOf(stream))) return false;
    if (this.#types !== null && !this.#types.has(type)) return false;
    return this.#options.wants?.(record, batch) ?? true;
  }

  async shaped(record: StoredBytes): Promise<E> {
    const { codec, shape } = this.#options;
    const event = await codec.decode(record);
    return shape === undefined ? (event as Shaped as E) : shape(event);
  }

  async decode(records: readonly StoredBytes[], ready: ReadonlyMap<string, E>): Promise<E[] | FailureAction> {
    const { invalid } = this.#options;
    const decoded: E[] = [];
    for (const one of records) {
      try {
        decoded.push(ready.get(one.id) ?? (await this.shaped(one)));
      } catch (error) {
        if (!(error instanceof Error) || !stopsLane(error) || isInstallationFault(error)) throw error;
        return { action: invalid?.(one, error) ?? 'park', eventId: one.id, reason: error.message };
      }
    }
    return decoded;
  }

  /**
   * Decodes the next batch while the database works on this one, a few events at a time, so that an answer of the
   * database never waits. An event that fails here is decoded again in its own batch, which handles the failure.
   */
  async decodeAhead(
    into: Map<string, E>,
    coming: NonNullable<LaneBatch['next']>,
    page: { readonly over: boolean },
  ): Promise<void> {
    // The log reads a page that failed again in its own turn.
    const next = await Promise.resolve(coming).then(
      (records) => records.map(asStored),
      () => [],
    );
    const wanted = next.filter((one) => this.wants(one, next));
    for (let i = 0; i < wanted.length; i += decodedAtOnce) {
      await setImmediate();
      if (page.over) return;
      try {
        for (const one of wanted.slice(i, i + decodedAtOnce)) into.set(one.id, await this.shaped(one));
      } catch {
        return;
      }
    }
  }
}
