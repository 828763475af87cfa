/**
 * The network's side: what it stores and what it answers. Nothing here knows of attempts that the caller keeps. Longer
 * than most: its SQL is written out, so that the ledger can be read beside what fills it.
 */
import type pg from 'pg';
import { withTableLock } from '#contracts/ports/migration.ts';
import type { PublishRequest, ThreadPart } from '#contracts/ports/platform.ts';
import { permalinkOf, rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { Fault } from './faults.ts';
import { contentHash, handleId, partHash, postIds } from './ids.ts';
import type { GivenMedia } from './media.ts';
import { schema } from './schema.ts';

/** The call did not get through; whether it had an effect depends on when it was made. */
export class NetworkAway extends Error {
  override readonly name = 'NetworkAway';
}

export interface CreateCall {
  readonly platform: Platform;
  readonly targetId: string;
  readonly attempt: number;
  readonly account: { readonly id: string; readonly externalId: string; readonly username: string | null };
  readonly content: string;
  readonly overrides: { readonly [key: string]: unknown };
  readonly media: readonly GivenMedia[];
  /** Container, session or record key; for a network without one the caller's own mark, which makes nothing unique. */
  readonly key: string;
  readonly thread: ThreadPart | null;
  readonly callStartedAt: Date;
}

export interface CreatedPost {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly visibleAt: Date;
}

export interface Container {
  readonly id: string;
  readonly contentHash: string;
  readonly state: 'in_progress' | 'finished' | 'published' | 'expired';
}

/** One create call the network saw. */
export interface LedgerRow {
  readonly seq: number;
  readonly platform: Platform;
  readonly accountId: string;
  readonly targetId: string;
  readonly attempt: number;
  readonly key: string;
  readonly contentHash: string;
  readonly content: string;
  readonly overrides: { readonly [key: string]: unknown };
  /** What it was made of, its cover last. */
  readonly media: readonly GivenMedia[];
  /** By the caller's clock, right before the call. */
  readonly callStartedAt: Date;
  /** By the network's clock. */
  readonly seenAt: Date;
  readonly outcome: 'created' | 'repeated' | 'refused';
  readonly visibleAt: Date | null;
  readonly postId: string | null;
  /** Its place in a thread; 0 for a post that stands alone too. */
  readonly segment: number;
  /** Id of the post it replies to. */
  readonly replyTo: string | null;
  readonly permalink: string | null;
  readonly duplicateOf: string | null;
  readonly refusal: string | null;
}

/** A post as its figures are made of it. */
export interface MeasuredPost {
  readonly targetId: string;
  readonly externalId: string;
  readonly content: string;
  readonly permalink: string | null;
  /** By the network's clock. */
  readonly removedAt: Date | null;
  /** Milliseconds since it showed, by the network's clock. */
  readonly ageMs: number;
}

export interface LedgerFilter {
  readonly targetIds?: readonly string[];
  readonly accountIds?: readonly string[];
  readonly platform?: Platform;
  /** Rows after this sequence number. */
  readonly after?: number;
  readonly limit?: number;
}

const columns = `seq::int as seq, platform, account_id as "accountId", target_id as "targetId", attempt, client_key as key,
  content_hash as "contentHash", content, overrides, coalesce(media, '[]') as media, call_started_at as "callStartedAt", seen_at as "seenAt", outcome,
  visible_at as "visibleAt", post_id as "postId", segment, reply_to as "replyTo", permalink, duplicate_of as "duplicateOf", refusal`;

const create = `
with number as (select nextval('sandbox.post_number')::text as n)
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to, outcome, visible_at, post_id, permalink, duplicate_of,
  clock_offset_ms)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, 'created',
  clock_timestamp() + $14 * interval '1 millisecond', replace($15, '#', n), replace($16, '#', n),
  (select post_id from sandbox.ledger where target_id = $3 and segment = $12 and outcome = 'created' order by seq limit 1),
  (select offset_ms from sandbox.clock)
from number
on conflict (platform, client_key) where keyed and outcome = 'created' do nothing
returning post_id as "externalId", permalink, visible_at as "visibleAt"`;

const repeat = `
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to, outcome, visible_at, post_id, permalink)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, 'repeated', visible_at, post_id, permalink
from sandbox.ledger where platform = $1 and client_key = $5 and keyed and outcome = 'created'
returning post_id as "externalId", permalink, visible_at as "visibleAt"`;

const refuse = `
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to, outcome, refusal)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, 'refused', $14)`;

/** One open line to the network: a create sent on it leaves at once, it waits for no other. */
export interface Line {
  create(call: CreateCall, visibleAfterMs: number): Promise<CreatedPost>;
  refuse(call: CreateCall, refusal: string): Promise<void>;
  /** Gives the line back; again is nothing. */
  close(): void;
}

const values = (call: CreateCall) => [
  call.platform,
  call.account.id,
  call.targetId,
  call.attempt,
  call.key,
  rulesOf(call.platform).publish.absenceIsProof,
  contentHash(call.content),
  // Postgres keeps no NUL in a text.
  call.content.replaceAll('\0', '\ufffd'),
  JSON.stringify(call.overrides),
  call.callStartedAt,
  call.media.length === 0 ? null : JSON.stringify(call.media).replaceAll('\\u0000', '\\ufffd'),
  call.thread?.index ?? 0,
  call.thread?.replyTo?.parent ?? null,
];

/** Any constant: one process at a time makes the network's schema. */
const schemaLock = 7_236_001;

export class Network {
  readonly #pool: pg.Pool;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  async migrate(): Promise<void> {
    await withTableLock(this.#pool, schemaLock, async (tx) => void (await tx.query(schema)));
  }

  async #query<R extends pg.QueryResultRow>(sql: string, parameters: unknown[]): Promise<R[]> {
    try {
      return (await this.#pool.query<R>(sql, parameters)).rows;
    } catch (cause) {
      throw new NetworkAway('the sandbox network did not answer', { cause });
    }
  }

  /**
   * Counts one meeting of a fault; true when it strikes. Dying afterwards has used it up.
   * @param met the target, or a segment of its thread
   */
  async fires(met: string, fault: Fault): Promise<boolean> {
    const lasting = fault.name === 'down' || fault.name === 'unreadable' || fault.name === 'metrics_down';
    if (fault.times === null && !(lasting && fault.durationMs !== null)) return true;
    const [row] = await this.#query<{ times: number; sinceMs: number }>(
      `insert into sandbox.fired as f (target_id, fault, times) values ($1, $2, 1)
       on conflict (target_id, fault) do update set times = f.times + 1
       returning times, (extract(epoch from clock_timestamp() - first_at) * 1000)::float8 as "sinceMs"`,
      [met, fault.name],
    );
    if (row === undefined) return false;
    return fault.times !== null ? row.times <= fault.times : row.sinceMs < (fault.durationMs ?? 0);
  }

  /** Makes an invisible container that is ready to publish after `processingMs`. */
  async openContainer(call: PublishRequest, processingMs: number): Promise<Container> {
    const id = handleId(call.platform);
    const hash = partHash(call);
    await this.#query(
      `insert into sandbox.containers (id, platform, account_id, target_id, content_hash, ready_at, expires_at)
       values ($1, $2, $3, $4, $5, clock_timestamp() + $6 * interval '1 millisecond', clock_timestamp() + interval '1 day')`,
      [id, call.platform, call.account.id, call.targetId, hash, processingMs],
    );
    return { id, contentHash: hash, state: processingMs > 0 ? 'in_progress' : 'finished' };
  }

  async container(id: string): Promise<Container | null> {
    const [row] = await this.#query<Container>(
      `select id, content_hash as "contentHash", case
         when exists (select from sandbox.ledger l where l.platform = c.platform and l.client_key = c.id
           and l.outcome = 'created' and l.visible_at <= clock_timestamp()) then 'published'
         when expires_at <= clock_timestamp() then 'expired'
         when ready_at > clock_timestamp() then 'in_progress' else 'finished' end as state
       from sandbox.containers c where id = $1`,
      [id],
    );
    return row ?? null;
  }

  async open(): Promise<Line> {
    const client = await this.#pool.connect().catch((cause) => {
      throw new NetworkAway('the sandbox network cannot be reached', { cause });
    });
    let broken: Error | undefined;
    let closed = false;
    const onError = (error: Error) => {
      broken = error;
    };
    // NOTE: a checked-out connection that dies while nothing is asked of it emits 'error', which would end the process.
    client.on('error', onError);
    const ask = async <R extends pg.QueryResultRow>(
      name: string,
      text: string,
      parameters: unknown[],
    ): Promise<R[]> => {
      try {
        // Named: parsed and planned once a line.
        return (await client.query<R>({ name: `sandbox.${name}`, text, values: parameters })).rows;
      } catch (cause) {
        broken ??= cause instanceof Error ? cause : new Error(String(cause));
        throw new NetworkAway('the sandbox network broke off', { cause });
      }
    };
    return {
      create: async (call, visibleAfterMs) => {
        const { id, code } = postIds(call.platform, call.account.externalId, call.key, Date.now());
        const account = call.account.externalId.replace(/^-100/, '');
        const permalink = permalinkOf(call.platform, { id, code, username: call.account.username, account });
        const own = values(call);
        const [made] = await ask<CreatedPost & pg.QueryResultRow>('create', create, [
          ...own,
          visibleAfterMs,
          id,
          permalink,
        ]);
        if (made !== undefined) return made;
        const [first] = await ask<CreatedPost & pg.QueryResultRow>('repeat', repeat, own);
        if (first === undefined) throw new NetworkAway('the sandbox network lost a keyed post');
        return first;
      },
      refuse: async (call, refusal) => {
        await ask('refuse', refuse, [...values(call), refusal]);
      },
      close: () => {
        if (closed) return;
        closed = true;
        client.off('error', onError);
        client.release(broken);
      },
    };
  }

  /** The post that one key made, hidden ones (`visibleAt` ahead) left out. */
  async visible(platform: Platform, targetId: string, key: string): Promise<CreatedPost | null> {
    const [row] = await this.#query<CreatedPost & pg.QueryResultRow>(
      `select post_id as "externalId", permalink, visible_at as "visibleAt" from sandbox.ledger
       where platform = $1 and client_key = $3 and target_id = $2 and outcome = 'created' and visible_at <= clock_timestamp()
       order by seq limit 1`,
      [platform, targetId, key],
    );
    return row ?? null;
  }

  /** Whether a post of this account shows that one may reply to. */
  async shows(platform: Platform, accountId: string, postId: string): Promise<boolean> {
    const rows = await this.#query(
      `select 1 from sandbox.ledger where platform = $1 and account_id = $2 and post_id = $3 and outcome = 'created'
         and visible_at <= clock_timestamp() limit 1`,
      [platform, accountId, postId],
    );
    return rows.length > 0;
  }

  /** By the network's clock. */
  async now(): Promise<Date> {
    const [row] = await this.#query<{ now: Date }>(
      `select clock_timestamp() + offset_ms * interval '1 millisecond' as now from sandbox.clock`,
      [],
    );
    if (row === undefined) throw new NetworkAway('the sandbox network has no clock');
    return row.now;
  }

  /** Moves the network's clock ahead, for everybody and for good. @param ms more than 0: it never goes back */
  async advance(ms: number): Promise<void> {
    if (!Number.isSafeInteger(ms) || ms <= 0) throw new RangeError('a clock goes ahead by whole milliseconds');
    await this.#query('update sandbox.clock set offset_ms = offset_ms + $1', [ms]);
  }

  /** Its owner takes the post away, as far as figures go: now by the network's clock. Again is nothing. */
  async remove(platform: Platform, postId: string): Promise<void> {
    await this.#query(
      `insert into sandbox.removed (platform, post_id, removed_at)
       select $1, $2, clock_timestamp() + offset_ms * interval '1 millisecond' from sandbox.clock
       on conflict do nothing`,
      [platform, postId],
    );
  }

  /** Posts of one account that show, with the time it is: their ages are of that moment. */
  async measured(
    platform: Platform,
    accountId: string,
    targetIds: readonly string[],
  ): Promise<{ readonly now: Date; readonly found: readonly MeasuredPost[] }> {
    const now = await this.now();
    const found = await this.#query<MeasuredPost & pg.QueryResultRow>(
      `select l.target_id as "targetId", l.post_id as "externalId", l.content, l.permalink, r.removed_at as "removedAt",
         -- \`now\` has whole milliseconds: what became visible in this one is not of the future.
         greatest(0, extract(epoch from $4::timestamptz - l.visible_at)::float8 * 1000 - l.clock_offset_ms) as "ageMs"
       from sandbox.ledger l left join sandbox.removed r on r.platform = l.platform and r.post_id = l.post_id
       where l.target_id = any($3) and l.platform = $1 and l.account_id = $2 and l.outcome = 'created'
         and l.visible_at <= clock_timestamp()`,
      [platform, accountId, targetIds, now],
    );
    return { now, found };
  }

  /** Every create call seen, oldest first. */
  async ledger({
    targetIds,
    accountIds,
    platform,
    after = 0,
    limit = 10_000,
  }: LedgerFilter = {}): Promise<LedgerRow[]> {
    return this.#query<LedgerRow & pg.QueryResultRow>(
      `select ${columns} from sandbox.ledger
       where seq > $1 and ($2::text[] is null or target_id = any($2)) and ($3::text[] is null or account_id = any($3))
         and ($4::text is null or platform = $4)
       order by seq limit $5`,
      [after, targetIds ?? null, accountIds ?? null, platform ?? null, limit],
    );
  }

  /** Targets with more than one post of the same part, those not yet visible included: what must never be. */
  async duplicates(): Promise<{ targetId: string; posts: string[] }[]> {
    return this.#query<{ targetId: string; posts: string[] }>(
      `select target_id as "targetId", array_agg(post_id order by seq) as posts from sandbox.ledger
       where outcome = 'created' group by target_id, segment having count(*) > 1 order by min(seq)`,
      [],
    );
  }
}
