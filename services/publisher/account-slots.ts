import type { Pool } from 'pg';
import { Batches } from '#contracts/base/batches.ts';
import {
  type AccountSlots,
  type AccountSlotsAsked,
  type SlotEntry,
  takenSlotsOf,
} from '#projections/queries/posting-rules.ts';
import type { CadenceRule } from '#schemas/cadence.ts';

/**
 * Slots that publishers took of how often an account publishes, and that the rows of the targets do not show yet: so two
 * processes never find the same slot free. The rows of the targets are the truth. An entry ends with the next event of
 * its target in its row: the claim that it was for, its outcome, or a cancel. So a slot of which nothing came is free
 * again without a word, and a lost table is missed only for as long as the read model lags.
 */

/**
 * Milliseconds after which nobody waits for the end of an attempt whose row the read model does not show. It then counts as out
 * at that time: for as long as a limit reaches, since read models may be away for hours while posts go out.
 */
const unshownMs = 600_000;
/** Entries of one account; the targets behind them wait until the read model has caught up. */
const maxEntries = 200;
/** Tries to take a slot while other processes take slots of the same account. */
const maxTries = 5;
/** Milliseconds between two deletions of rows that hold nothing and that nobody used for an hour, and how many one deletes. */
const cleanEveryMs = 60_000;
const cleanedAtOnce = 1_000;

/** Rows are locked in the order of their keys, so that two statements never deadlock. */
const swapSql = `
insert into ops.cadence_slots (workspace_id, account_id, version, entries, kept_until)
select n.workspace_id, n.account_id, coalesce(n.version, gen_random_uuid()), n.entries::jsonb,
  greatest(n.until, now() + interval '1 hour')
from unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[]) as n (workspace_id, account_id, version, entries, until)
order by n.workspace_id, n.account_id
on conflict (workspace_id, account_id) do update
  set version = gen_random_uuid(), entries = excluded.entries, kept_until = excluded.kept_until
  where cadence_slots.version = excluded.version
returning workspace_id::text as "workspaceId", account_id::text as "accountId"`;

const cleanSql = `
delete from ops.cadence_slots s using (
  select workspace_id, account_id from ops.cadence_slots where kept_until < now()
  order by kept_until limit ${cleanedAtOnce} for update skip locked
) old where s.workspace_id = old.workspace_id and s.account_id = old.account_id`;

interface Account {
  readonly workspaceId: string;
  readonly accountId: string;
}

interface Swap extends Account {
  readonly version: string | null;
  readonly entries: readonly SlotEntry[];
}

const nameOf = ({ workspaceId, accountId }: Account): string => `${workspaceId} ${accountId}`;

const swap = async (pool: Pool, keys: readonly string[]): Promise<ReadonlyMap<string, true>> => {
  const swaps = keys.map((key) => JSON.parse(key) as Swap);
  const { rows } = await pool.query<Account>({
    name: 'cadence-swap',
    text: swapSql,
    values: [
      swaps.map(({ workspaceId }) => workspaceId),
      swaps.map(({ accountId }) => accountId),
      swaps.map(({ version }) => version),
      swaps.map(({ entries }) => JSON.stringify(entries)),
      swaps.map(({ entries }) => new Date(Math.max(...entries.map(({ until }) => until))).toISOString()),
    ],
  });
  const done = new Set(rows.map(nameOf));
  return new Map(keys.flatMap((key, at) => (done.has(nameOf(swaps[at] as Swap)) ? [[key, true] as const] : [])));
};

export interface Taking<T> {
  readonly result: T;
  /** What the target takes; null: nothing. */
  readonly entry: Omit<SlotEntry, 'until'> | null;
}

/** An attempt that may publish at any time holds everybody back, so it does no longer than it is waited for. */
const seenAt = (entry: SlotEntry, now: number): SlotEntry =>
  entry.state === 'under_way' && entry.at + unshownMs <= now
    ? { ...entry, state: 'out', at: entry.at + unshownMs }
    : entry;

export class CadenceSlots {
  readonly #pool: Pool;
  /** Swaps of different accounts share a statement. */
  readonly #swaps: Batches<true>;
  /** Account → the end of the last decision about it: one process decides about one target of an account at a time. */
  readonly #lines = new Map<string, Promise<unknown>>();
  #cleanedAt = performance.now();

  constructor(pool: Pool) {
    this.#pool = pool;
    this.#swaps = new Batches((keys) => swap(pool, keys));
  }

  /**
   * Decides with the slots of the account as they are, and takes the entry that was decided on, if no other process took
   * any in between; else it decides again.
   * @param reachMs milliseconds for which what is out counts
   * @returns null: the account is too busy now
   */
  async take<T>(
    asked: AccountSlotsAsked,
    { now, reachMs }: { readonly now: () => number; readonly reachMs: number },
    decide: (slots: Pick<AccountSlots, 'entries' | 'rows'>) => Taking<T>,
  ): Promise<T | null> {
    this.#clean();
    return this.#inLine(nameOf(asked), async () => {
      for (let tries = 0; tries < maxTries; tries += 1) {
        const slots = await takenSlotsOf(this.#pool, asked);
        const at = now();
        const entries = slots.entries.filter(({ until }) => until > at);
        const { result, entry } = decide({ ...slots, entries: entries.map((one) => seenAt(one, at)) });
        if (entry === null) return result;
        const others = entries.filter(({ targetId }) => targetId !== entry.targetId);
        if (others.length >= maxEntries) return null;
        const next = [...others, { ...entry, until: at + unshownMs + (entry.state === 'under_way' ? reachMs : 0) }];
        const { workspaceId, accountId } = asked;
        const wanted: Swap = { workspaceId, accountId, version: slots.version, entries: next };
        if ((await this.#swaps.get(JSON.stringify(wanted))) === true) return result;
      }
      return null;
    });
  }

  async #inLine<T>(name: string, work: () => Promise<T>): Promise<T> {
    const before = this.#lines.get(name) ?? Promise.resolve();
    const mine = before.then(work);
    const ended = mine.catch(() => undefined);
    this.#lines.set(name, ended);
    try {
      return await mine;
    } finally {
      if (this.#lines.get(name) === ended) this.#lines.delete(name);
    }
  }

  /** Nothing waits for it, and what it leaves the next one deletes. */
  #clean(): void {
    const now = performance.now();
    if (now - this.#cleanedAt < cleanEveryMs) return;
    this.#cleanedAt = now;
    void this.#pool.query(cleanSql).catch(() => undefined);
  }
}

/** Where the publisher learns of the limits of accounts and of their other targets. */
export interface PublishingCadence {
  /** Null: no rule was ever set. */
  readonly rules: (workspaceId: string) => Promise<readonly CadenceRule[] | null>;
  readonly slots: CadenceSlots;
}
