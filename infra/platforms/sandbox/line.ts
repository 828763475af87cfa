/** The calls that create posts. Each writes one row of the ledger. */
import type pg from 'pg';
import type { ThreadSegment } from '#contracts/ports/platform.ts';
import { permalinkOf, readingOf, rulesOf, titleFor } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { networkNow, offsetOf, workspaceNow } from './clock.ts';
import { contentHash, postIds } from './ids.ts';
import type { GivenMedia } from './media.ts';
import { NetworkUnavailable } from './network-unavailable.ts';

export interface CreateCall {
  readonly workspaceId: string;
  readonly platform: Platform;
  readonly targetId: string;
  readonly attempt: number;
  readonly account: { readonly id: string; readonly externalId: string; readonly username: string | null };
  readonly content: string;
  readonly overrides: { readonly [key: string]: unknown };
  readonly media: readonly GivenMedia[];
  /** Container, session or record key; for a network without keys a mark of the caller, which makes no call unique. */
  readonly key: string;
  readonly coverFrameMs: number | null;
  readonly thread: ThreadSegment | null;
  readonly callStartedAt: Date;
}

export interface CreatedPost {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly visibleAt: Date;
}

/** The post that a target, or one segment of its thread, already has. */
const firstPost = `(select l.post_id from sandbox.ledger l
    where l.target_id = $3 and l.segment = $12 and l.outcome = 'created' and not exists (
      select from sandbox.undone u where u.platform = l.platform and u.post_id = l.post_id)
    order by l.seq limit 1)`;

const create = `
with number as (select nextval('sandbox.post_number')::text as n)
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to, cover_frame_ms, outcome, visible_at, post_id, permalink,
  duplicate_of, workspace_id, clock_offset_ms)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, $14::int, 'created',
  ${workspaceNow('$15')} + $16 * interval '1 millisecond', replace($17, '#', n), replace($18, '#', n),
  ${firstPost}, $15, ${offsetOf('$15')}
from number
on conflict (platform, client_key) where keyed and outcome = 'created' do nothing
returning post_id as "externalId", permalink, visible_at as "visibleAt"`;

/** Makes nothing where the time lies outside of the window. All times are those of the network's clock. */
const schedule = `
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to, cover_frame_ms, outcome, post_id, permalink, duplicate_of,
  workspace_id, clock_offset_ms, known_at, scheduled_for, visible_at, native_fails)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, $14::int, 'created', $16, $17, ${firstPost},
  $15, 0, clock_timestamp() + $18 * interval '1 millisecond', $19::timestamptz, $20::timestamptz, $23
from (select ${networkNow('$15')} as now) network
where $19::timestamptz between now + $21 * interval '1 millisecond' and now + $22 * interval '1 millisecond'
on conflict (platform, client_key) where keyed and outcome = 'created' do nothing
returning post_id as "externalId", permalink, visible_at as "visibleAt"`;

const repeat = `
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to,
  cover_frame_ms, workspace_id, outcome, visible_at, post_id, permalink)
select $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, $14::int, $15, 'repeated', visible_at, post_id, permalink
from sandbox.ledger where platform = $1 and client_key = $5 and keyed and outcome = 'created'
returning post_id as "externalId", permalink, visible_at as "visibleAt"`;

const refuse = `
insert into sandbox.ledger (platform, account_id, target_id, attempt, client_key, keyed, content_hash, content,
  overrides, call_started_at, media, segment, reply_to,
  cover_frame_ms, workspace_id, outcome, refusal)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::json, $12, $13, $14::int, $15, 'refused', $16)`;

/** When the network's own scheduler publishes a post, instants in ISO 8601. */
export interface NativePlan {
  readonly dueAt: string;
  /** The instant at which the network really publishes it. */
  readonly visibleAt: string;
  /** Milliseconds until the network knows of it. */
  readonly knownAfterMs: number;
  /** The network cannot publish it at its time. */
  readonly fails: boolean;
}

/** One open connection to the network, so that a create is sent at once and waits for no other call. */
export interface Line {
  create(call: CreateCall, visibleAfterMs: number): Promise<CreatedPost>;
  /** Null: the time lies outside of the window of the network's own scheduler. */
  schedule(call: CreateCall, plan: NativePlan): Promise<CreatedPost | null>;
  refuse(call: CreateCall, refusal: string): Promise<void>;
  /** Gives the connection back. Closing twice does nothing. */
  close(): void;
}

/** What the network gets beside text and files: the settings, and the title where it falls back to the text. */
const settingsOf = ({ platform, content, overrides }: CreateCall) => {
  const title = titleFor(platform, content, overrides);
  return title === null ? overrides : { ...overrides, title };
};

const values = (call: CreateCall) => [
  call.platform,
  call.account.id,
  call.targetId,
  call.attempt,
  call.key,
  readingOf(call.platform, call.account.externalId).absenceIsProof,
  contentHash(call.content),
  // Postgres stores no NUL in a text.
  call.content.replaceAll('\0', '\ufffd'),
  JSON.stringify(settingsOf(call)),
  call.callStartedAt,
  call.media.length === 0 ? null : JSON.stringify(call.media).replaceAll('\\u0000', '\\ufffd'),
  call.thread?.index ?? 0,
  call.thread?.replyTo?.parent ?? null,
  call.coverFrameMs,
  call.workspaceId,
];

/** Opens a line. @throws NetworkUnavailable */
export async function openLine(pool: pg.Pool): Promise<Line> {
  const client = await pool.connect().catch((cause) => {
    throw new NetworkUnavailable('the sandbox network cannot be reached', { cause });
  });
  let broken: Error | undefined;
  let closed = false;
  const onError = (error: Error) => {
    broken = error;
  };
  // NOTE: a checked-out connection that dies while it is idle emits 'error', which would end the process.
  client.on('error', onError);
  const ask = async <R extends pg.QueryResultRow>(name: string, text: string, parameters: unknown[]): Promise<R[]> => {
    try {
      // Named, so that Postgres parses and plans it once for each line.
      return (await client.query<R>({ name: `sandbox.${name}`, text, values: parameters })).rows;
    } catch (cause) {
      broken ??= cause instanceof Error ? cause : new Error(String(cause));
      throw new NetworkUnavailable('the sandbox network broke off', { cause });
    }
  };
  const addressed = (call: CreateCall) => {
    const { id, code } = postIds(call.platform, call.account.externalId, call.key, Date.now());
    const account = call.account.externalId.replace(/^-100/, '');
    return { id, permalink: permalinkOf(call.platform, { id, code, username: call.account.username, account }) };
  };
  return {
    schedule: async (call, { dueAt, visibleAt, knownAfterMs, fails }) => {
      const { id, permalink } = addressed(call);
      const { minMs = 0, maxMs = 0 } = rulesOf(call.platform).nativeWindow ?? {};
      const own = values(call);
      const native = [id, permalink, knownAfterMs, dueAt, visibleAt, minMs, maxMs, fails];
      const [made] = await ask<CreatedPost & pg.QueryResultRow>('schedule', schedule, [...own, ...native]);
      if (made !== undefined) return made;
      const [first] = await ask<CreatedPost & pg.QueryResultRow>('repeat', repeat, own);
      return first ?? null;
    },
    create: async (call, visibleAfterMs) => {
      const { id, permalink } = addressed(call);
      const own = values(call);
      const [made] = await ask<CreatedPost & pg.QueryResultRow>('create', create, [
        ...own,
        visibleAfterMs,
        id,
        permalink,
      ]);
      if (made !== undefined) return made;
      const [first] = await ask<CreatedPost & pg.QueryResultRow>('repeat', repeat, own);
      if (first === undefined) throw new NetworkUnavailable('the sandbox network lost a keyed post');
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
