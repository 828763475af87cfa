/**
 * Reads one workspace's events: by the index as far as it reaches, and behind it a range of the event table at a time.
 * While an old table is being indexed such a range often has no event of the workspace.
 */
import type pg from 'pg';
import { type WorkspacePage, workspaceOf } from '#contracts/ports/event-store.ts';
import { pageBytes } from './event-tail.ts';
import { answeredWithin, bigintTypes } from './pool.ts';
import { behindEvent, type EventRow, toEvent } from './stored-event.ts';
import { workspaceStatements } from './workspace-index.sql.ts';

/** Events of all workspaces that one call scans where the index does not reach: some tens of milliseconds. */
const stretchEvents = 5_000;

/** No position exceeds this, and sums with it stay int8. */
const maxPosition = 2n ** 62n;

interface Asked {
  readonly workspaceId: string;
  readonly after: bigint;
  readonly limit: number;
  readonly until: bigint | undefined;
}

type FoundRow = [...EventRow, found: number];
const foundAt = behindEvent;

export class WorkspaceReader {
  readonly #pool: pg.Pool;
  readonly #sql: ReturnType<typeof workspaceStatements>;
  readonly #readMs: number;

  constructor(pool: pg.Pool, schema: string, readMs: number) {
    this.#pool = pool;
    this.#sql = workspaceStatements(schema);
    this.#readMs = readMs;
  }

  async read(asked: Asked): Promise<WorkspacePage> {
    const { after, until } = asked;
    if (after >= maxPosition) return { events: [], next: after, isEnd: true };
    const [row] = await this.#ask<[bigint]>('workspace-indexed', this.#sql.indexed, []);
    const indexed = row?.[0] ?? 0n;
    if (indexed <= after) return this.#fromEvents(asked);
    const isBehind = until === undefined || until > indexed;
    const upTo = isBehind ? indexed : until;
    const { events, last: cut } = await this.#page('workspace-from-index', this.#sql.fromIndex, asked, upTo);
    if (cut !== null) return { events, next: cut, isEnd: false };
    if (events.length > 0 || !isBehind) return { events, next: upTo > after ? upTo : after, isEnd: !isBehind };
    return this.#fromEvents({ ...asked, after: indexed });
  }

  async #fromEvents(asked: Asked): Promise<WorkspacePage> {
    const { after, until = maxPosition } = asked;
    const values = [after, until, stretchEvents];
    const [row] = await this.#ask<[bigint | null, bigint | null]>('workspace-stretch', this.#sql.stretch, values);
    const [end, last] = row ?? [null, null];
    if (end === null) return { events: [], next: after, isEnd: true };
    const { events, last: cut } = await this.#page('workspace-from-events', this.#sql.fromEvents, asked, end);
    if (cut !== null) return { events, next: cut, isEnd: false };
    return { events, next: end, isEnd: end === last };
  }

  /** `last`: where the page was cut; null where nothing follows up to the same position. */
  async #page(name: string, text: string, { workspaceId, after, limit }: Asked, upTo: bigint) {
    const rows = await this.#ask<FoundRow>(name, text, [workspaceId, after, upTo, limit, pageBytes]);
    const isCut = rows.length === limit || rows.length < (rows[0]?.[foundAt] ?? 0);
    const found = rows.map((one) => toEvent(one as unknown as EventRow));
    // The event itself decides over its index row: a wrong row would show one tenant another's events.
    const events = found.filter(({ metadata }) => workspaceOf(metadata) === workspaceId);
    return { events, last: isCut ? (found.at(-1)?.position ?? null) : null };
  }

  async #ask<Row extends unknown[]>(name: string, text: string, values: unknown[]): Promise<Row[]> {
    const { rows } = await this.#pool.query<Row>({
      ...{ name, text, values, rowMode: 'array', types: bigintTypes },
      ...answeredWithin(this.#readMs),
    });
    return rows;
  }
}
