/** The network's side of each call: it stores and answers, and knows nothing of its caller's attempts. */
import type pg from 'pg';
import type { FindRequest, PublishRequest } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { networkNow, offsetOf, workspaceNow } from './clock.ts';
import type { Fault } from './faults.ts';
import { contentHash, handleId, segmentHash } from './ids.ts';
import {
  type CommentRow,
  type LedgerFilter,
  type LedgerRow,
  type StepRow,
  selectComments,
  selectLedger,
  selectSteps,
} from './ledger.ts';
import { type CreatedPost, type Line, openLine } from './line.ts';
import { NetworkUnavailable } from './network-unavailable.ts';

export interface Container {
  readonly id: string;
  readonly contentHash: string;
  readonly state: 'in_progress' | 'finished' | 'published' | 'expired';
}

/** The facts from which the figures of a post are computed. */
export interface MeasuredPost {
  readonly targetId: string;
  readonly externalId: string;
  readonly content: string;
  readonly permalink: string | null;
  /** By the network's clock. */
  readonly removedAt: Date | null;
  /** Milliseconds since it became visible, by the network's clock. */
  readonly ageMs: number;
}

/** A post that was handed to the network's own scheduler. */
export interface ScheduledPost extends CreatedPost {
  readonly state: 'scheduled' | 'published' | 'failed';
}

/** By the network's clock, for the workspace of a row of the ledger. */
const rowNow = networkNow('l.workspace_id');
/** By the clock of that workspace. */
const ownNow = workspaceNow('l.workspace_id');
/** When a post becomes visible: one that was handed over may have got another time since. */
const byOther = `(coalesce((select o.by_ms from sandbox.other_times o where o.platform = l.platform and o.post_id = l.post_id), 0)
  * interval '1 millisecond')`;
const rowVisible = `(l.visible_at + ${byOther})`;
/** A text, or its hash, as the network shows it: a post that was handed over may have got another since. */
const shownOf = (column: 'content' | 'content_hash'): string =>
  `coalesce((select w.${column} from sandbox.other_words w where w.platform = l.platform and w.post_id = l.post_id), l.${column})`;
const isUndone = 'exists (select from sandbox.undone u where u.platform = l.platform and u.post_id = l.post_id)';
/** Milliseconds before its time from which a scheduled post can no longer be deleted. */
const undoClosesMs = 20_000;

/** Milliseconds by which the network's clock is ahead of that of this workspace. */
export const sandboxAhead = async (pool: Pick<pg.Pool, 'query'>, workspaceId: string): Promise<number> => {
  const { rows } = await pool.query<{ ahead: string }>(`select ${offsetOf('$1')} as ahead`, [workspaceId]);
  return Number(rows[0]?.ahead ?? 0);
};

export class Network {
  readonly #pool: pg.Pool;
  readonly #versions: Readonly<Partial<Record<Platform, string>>>;

  /** @param versions of the APIs that its callers ask for; a call that names none is always answered */
  constructor(pool: pg.Pool, versions: Readonly<Partial<Record<Platform, string>>> = {}) {
    this.#pool = pool;
    this.#versions = versions;
  }

  async #query<R extends pg.QueryResultRow>(sql: string, parameters: unknown[]): Promise<R[]> {
    try {
      return (await this.#pool.query<R>(sql, parameters)).rows;
    } catch (cause) {
      throw new NetworkUnavailable('the sandbox network did not answer', { cause });
    }
  }

  /**
   * Counts one use of a fault; true when it strikes. A worker that crashes afterwards has still used it up.
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
    const hash = segmentHash(call);
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
           and l.outcome = 'created' and l.visible_at <= ${ownNow}) then 'published'
         when expires_at <= clock_timestamp() then 'expired'
         when ready_at > clock_timestamp() then 'in_progress' else 'finished' end as state
       from sandbox.containers c where id = $1`,
      [id],
    );
    return row ?? null;
  }

  open(): Promise<Line> {
    return openLine(this.#pool);
  }

  /** The visible post of this key; null before its `visibleAt`. */
  async visible(platform: Platform, targetId: string, key: string): Promise<CreatedPost | null> {
    const [row] = await this.#query<CreatedPost & pg.QueryResultRow>(
      `select post_id as "externalId", permalink, visible_at as "visibleAt" from sandbox.ledger l
       where platform = $1 and client_key = $3 and target_id = $2 and outcome = 'created' and visible_at <= ${ownNow}
       order by seq limit 1`,
      [platform, targetId, key],
    );
    return row ?? null;
  }

  /** The newest call with this key; null: the network got none. */
  async newestCall(
    platform: Platform,
    targetId: string,
    key: string,
  ): Promise<{ readonly refusal: string | null; readonly ageMs: number } | null> {
    const [row] = await this.#query<{ refusal: string | null; ageMs: number }>(
      `select refusal, (extract(epoch from clock_timestamp() - seen_at) * 1000)::float8 as "ageMs" from sandbox.ledger
       where platform = $1 and client_key = $3 and target_id = $2 order by seq desc limit 1`,
      [platform, targetId, key],
    );
    return row ?? null;
  }

  /** Visible posts of the account with that content, made in that time; the oldest 20. */
  ownPosts(request: FindRequest): Promise<readonly CreatedPost[]> {
    const { platform, account, from, until } = request;
    return this.#query<CreatedPost & pg.QueryResultRow>(
      `select post_id as "externalId", permalink, ${rowVisible} as "visibleAt" from sandbox.ledger l
       where platform = $1 and account_id = $2 and ${shownOf('content_hash')} = $3 and outcome = 'created' and reply_to is null
         and ${rowVisible} between $4 and $5 and not ${isUndone}
         and ${rowVisible} <= case when scheduled_for is null then ${ownNow} else ${rowNow} end
       order by seq limit 20`,
      [platform, account.id, contentHash(request.content), from, until],
    );
  }

  /**
   * Instants of the account's posts of the last so many milliseconds by the clock of its workspace, each as long ago in real
   * time; oldest first, at most 1,000.
   */
  async postsSince(platform: Platform, accountId: string, windowMs: number): Promise<readonly Date[]> {
    const rows = await this.#query<{ at: Date }>(
      `select visible_at - (${ownNow} - clock_timestamp()) as at from sandbox.ledger l
       where platform = $1 and account_id = $2 and outcome = 'created' and visible_at <= ${ownNow}
         and visible_at > ${ownNow} - $3 * interval '1 millisecond'
       order by visible_at limit 1000`,
      [platform, accountId, windowMs],
    );
    return rows.map(({ at }) => at);
  }

  /**
   * The post that the network's own scheduler has for a target; null where it has none.
   * @param nativeId its id; null: the post of the key
   */
  async scheduled(
    platform: Platform,
    targetId: string,
    nativeId: string | null,
    key: string,
  ): Promise<ScheduledPost | null> {
    const [row] = await this.#query<ScheduledPost & pg.QueryResultRow>(
      `select l.post_id as "externalId", l.permalink, ${rowVisible} as "visibleAt",
         case when ${rowVisible} <= ${rowNow} then 'published'
           when l.native_fails and l.scheduled_for + ${byOther} <= ${rowNow} then 'failed' else 'scheduled' end as state
       from sandbox.ledger l where l.target_id = $2 and l.platform = $1 and l.outcome = 'created' and not ${isUndone}
         and l.known_at <= clock_timestamp() and case when $3::text is null then l.client_key = $4 else l.post_id = $3 end
       order by l.seq limit 1`,
      [platform, targetId, nativeId, key],
    );
    return row ?? null;
  }

  /** Deletes a scheduled post. False: the network has it no longer, or publishes it too soon. */
  async undo(platform: Platform, targetId: string, nativeId: string): Promise<boolean> {
    const rows = await this.#query(
      `insert into sandbox.undone (platform, post_id)
       select l.platform, l.post_id from sandbox.ledger l
       where l.target_id = $2 and l.platform = $1 and l.post_id = $3 and l.outcome = 'created'
         and ${rowVisible} > ${rowNow} + ${undoClosesMs} * interval '1 millisecond'
       on conflict do nothing returning post_id`,
      [platform, targetId, nativeId],
    );
    return rows.length > 0;
  }

  /** Whether a post has this content, whether or not it is out. */
  async showsWords(platform: Platform, targetId: string, nativeId: string, content: string): Promise<boolean> {
    const rows = await this.#query(
      `select 1 from sandbox.ledger l where target_id = $2 and platform = $1 and post_id = $3 and outcome = 'created'
         and not ${isUndone} and ${shownOf('content_hash')} = $4 limit 1`,
      [platform, targetId, nativeId, contentHash(content)],
    );
    return rows.length > 0;
  }

  /**
   * Gives a scheduled post another time, and where one is given another content. A time that it has not is within the window.
   * Null: the network has it no longer, or publishes it too soon.
   */
  async change(
    platform: Platform,
    targetId: string,
    nativeId: string,
    dueAt: string,
    content: string | null,
  ): Promise<'changed' | 'outside_window' | null> {
    const { minMs = 0, maxMs = 0 } = rulesOf(platform).nativeWindow ?? {};
    const [row] = await this.#query<{ within: boolean }>(
      `with post as (
         select l.platform, l.post_id, l.scheduled_for,
           $4::timestamptz between ${rowNow} + $5 * interval '1 millisecond' and ${rowNow} + $6 * interval '1 millisecond'
             or ($7::text is not null and $4::timestamptz = l.scheduled_for + ${byOther}) as within
         from sandbox.ledger l where l.target_id = $2 and l.platform = $1 and l.post_id = $3 and l.outcome = 'created'
           and not ${isUndone} and ${rowVisible} > ${rowNow} + ${undoClosesMs} * interval '1 millisecond'
       ), changed as (
         insert into sandbox.other_times (platform, post_id, by_ms)
         select platform, post_id, extract(epoch from $4::timestamptz - scheduled_for) * 1000 from post where within
         on conflict (platform, post_id) do update set by_ms = excluded.by_ms
       ), revised as (
         insert into sandbox.other_words (platform, post_id, content, content_hash)
         select platform, post_id, $7, $8 from post where within and $7::text is not null
         on conflict (platform, post_id) do update set content = excluded.content, content_hash = excluded.content_hash
       )
       select within from post`,
      [platform, targetId, nativeId, dueAt, minMs, maxMs, content, content === null ? null : contentHash(content)],
    );
    if (row === undefined) return null;
    return row.within ? 'changed' : 'outside_window';
  }

  /** Whether this post of the account is visible, so that a reply can name it. */
  async shows(platform: Platform, accountId: string, postId: string): Promise<boolean> {
    const rows = await this.#query(
      `select 1 from sandbox.ledger l where platform = $1 and account_id = $2 and post_id = $3 and outcome = 'created'
         and ${rowVisible} <= case when scheduled_for is null then ${ownNow} else ${rowNow} end limit 1`,
      [platform, accountId, postId],
    );
    return rows.length > 0;
  }

  /** The version that the callers ask for, where the network has ended it; null: it answers. */
  async endedVersion(platform: Platform): Promise<string | null> {
    const version = this.#versions[platform];
    if (version === undefined) return null;
    const rows = await this.#query('select from sandbox.ended_versions where platform = $1 and version = $2', [
      ...[platform, version],
    ]);
    return rows.length > 0 ? version : null;
  }

  /** From now on the network answers no call that asks for this version of its API. */
  async endVersion(platform: Platform, version: string): Promise<void> {
    await this.#query('insert into sandbox.ended_versions (platform, version) values ($1, $2) on conflict do nothing', [
      ...[platform, version],
    ]);
  }

  /** By the network's clock. @param workspaceId null: of a workspace whose own clock nobody moved */
  async now(workspaceId: string | null): Promise<Date> {
    const [row] = await this.#query<{ now: Date | null }>(`select ${networkNow('$1')} as now`, [workspaceId]);
    if (row?.now == null) throw new NetworkUnavailable('the sandbox network has no clock');
    return row.now;
  }

  /** Moves the network's clock ahead, for good. @param ms more than 0: the clock never goes back @param workspaceId null: for all */
  async advance(ms: number, workspaceId: string | null): Promise<void> {
    if (!Number.isSafeInteger(ms) || ms <= 0) throw new RangeError('a clock goes ahead by whole milliseconds');
    if (workspaceId === null) await this.#query('update sandbox.clock set offset_ms = offset_ms + $1', [ms]);
    else
      await this.#query(
        `insert into sandbox.workspace_clocks as w (workspace_id, offset_ms) values ($2, $1)
         on conflict (workspace_id) do update set offset_ms = w.offset_ms + $1`,
        [ms, workspaceId],
      );
  }

  /** Removes the post for requests of figures, at the network's present time. A second call does nothing. */
  async remove(platform: Platform, postId: string): Promise<void> {
    await this.#query(
      `insert into sandbox.removed (platform, post_id, removed_at)
       select $1, $2, ${networkNow(
         `(select l.workspace_id from sandbox.ledger l
           where l.platform = $1 and l.post_id = $2 and l.outcome = 'created' limit 1)`,
       )}
       on conflict do nothing`,
      [platform, postId],
    );
  }

  /** The visible posts of one account, and the network's time at which their ages hold. */
  async measured(
    platform: Platform,
    { id: accountId, workspaceId }: { readonly id: string; readonly workspaceId: string },
    targetIds: readonly string[],
  ): Promise<{ readonly now: Date; readonly found: readonly MeasuredPost[] }> {
    const now = await this.now(workspaceId);
    const found = await this.#query<MeasuredPost & pg.QueryResultRow>(
      `select l.target_id as "targetId", l.post_id as "externalId", l.content, l.permalink, r.removed_at as "removedAt",
         -- \`now\` has whole milliseconds: a post that became visible within the present one has the age 0.
         greatest(0, extract(epoch from $4::timestamptz - ${rowVisible})::float8 * 1000 - l.clock_offset_ms) as "ageMs"
       from sandbox.ledger l left join sandbox.removed r on r.platform = l.platform and r.post_id = l.post_id
       where l.target_id = any($3) and l.platform = $1 and l.account_id = $2 and l.outcome = 'created'
         and ${rowVisible} <= case when l.scheduled_for is null then ${ownNow} else ${rowNow} end
         and not ${isUndone}`,
      [platform, accountId, targetIds, now],
    );
    return { now, found };
  }

  /** Every create call that the network received, oldest first. */
  ledger({ targetIds, accountIds, platform, after = 0, limit = 10_000 }: LedgerFilter = {}): Promise<LedgerRow[]> {
    const parameters = [after, targetIds ?? null, accountIds ?? null, platform ?? null, limit];
    return this.#query<LedgerRow & pg.QueryResultRow>(selectLedger, parameters);
  }

  /** Records a comment call, and answers with the comment's id. @param commentId `#` stands for the next message number */
  async comment(call: Omit<CommentRow, 'seq' | 'seenAt'>): Promise<string | null> {
    const [row] = await this.#query<{ id: string | null }>(
      `insert into sandbox.comments (platform, account_id, target_id, post_id, form, content, call_started_at, outcome,
         comment_id, refusal)
       select $1, $2, $3, $4, $5, $6, $7, $8,
         case when $9 like '%#%' then replace($9, '#', nextval('sandbox.post_number')::text) else $9 end, $10
       returning comment_id as id`,
      [
        call.platform,
        call.accountId,
        call.targetId,
        call.postId,
        call.form,
        // Postgres stores no NUL in a text.
        call.content.replaceAll('\0', '\ufffd'),
        call.callStartedAt,
        call.outcome,
        call.commentId,
        call.refusal,
      ],
    );
    return row?.id ?? null;
  }

  /** Every comment call that the network received, oldest first. */
  comments(targetIds: readonly string[] | null): Promise<CommentRow[]> {
    return this.#query<CommentRow & pg.QueryResultRow>(selectComments, [targetIds]);
  }

  /** Records a call behind the publication. */
  async afterStep(call: Omit<StepRow, 'seq' | 'seenAt'>): Promise<void> {
    const { platform, accountId, targetId, postId, step, mediaId, sha256, callStartedAt, outcome, refusal } = call;
    await this.#query(
      `insert into sandbox.after_steps (platform, account_id, target_id, post_id, step, media_id, sha256, call_started_at,
         outcome, refusal) values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
      [platform, accountId, targetId, postId, step, mediaId, sha256, callStartedAt, outcome, refusal],
    );
  }

  /** Every call behind a publication that the network received, oldest first. */
  afterSteps(targetIds: readonly string[] | null): Promise<StepRow[]> {
    return this.#query<StepRow & pg.QueryResultRow>(selectSteps, [targetIds]);
  }

  /** Targets with more than one comment. There must never be any. */
  duplicateComments(): Promise<{ targetId: string; comments: string[] }[]> {
    return this.#query<{ targetId: string; comments: string[] }>(
      `select target_id as "targetId", array_agg(comment_id order by seq) as comments from sandbox.comments
       where outcome = 'created' group by target_id having count(*) > 1 order by min(seq)`,
      [],
    );
  }

  /**
   * Targets with more than one post of the same segment, hidden and scheduled posts included. There must never be any.
   */
  async duplicates(): Promise<{ targetId: string; posts: string[] }[]> {
    return this.#query<{ targetId: string; posts: string[] }>(
      `select target_id as "targetId", array_agg(post_id order by seq) as posts from sandbox.ledger l
       where outcome = 'created' and not native_fails and not ${isUndone} group by target_id, segment having count(*) > 1 order by min(seq)`,
      [],
    );
  }
}
