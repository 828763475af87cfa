/** Reads the ledger: every call that creates, that comments and that follows a post, as the network received it. */
import type { Platform } from '#schemas/common.ts';
import type { AfterStepName } from '#schemas/target.ts';
import type { GivenMedia } from './media.ts';

/** One create call that the network received. */
export interface LedgerRow {
  readonly seq: number;
  readonly platform: Platform;
  readonly accountId: string;
  readonly targetId: string;
  readonly attempt: number;
  readonly key: string;
  readonly contentHash: string;
  readonly content: string;
  /** The settings as the network got them; on youtube with the title that the text gave where no override did. */
  readonly overrides: { readonly [key: string]: unknown };
  /** The files of the post, its cover last. */
  readonly media: readonly GivenMedia[];
  /** Milliseconds into the video, of the frame that is its cover; null: the network chooses. */
  readonly coverFrameMs: number | null;
  /** By the caller's clock, right before the call. */
  readonly callStartedAt: Date;
  /** By the network's clock. */
  readonly seenAt: Date;
  readonly outcome: 'created' | 'repeated' | 'refused';
  readonly visibleAt: Date | null;
  /** The time of a post that was handed to the network's own scheduler. */
  readonly scheduledFor: Date | null;
  /** When the scheduled post was deleted before its time. */
  readonly undoneAt: Date | null;
  readonly postId: string | null;
  /** Its place in a thread; 0 for a post without a thread. */
  readonly segment: number;
  /** Id of the post that it replies to. */
  readonly replyTo: string | null;
  readonly permalink: string | null;
  readonly duplicateOf: string | null;
  readonly refusal: string | null;
}

export interface LedgerFilter {
  readonly targetIds?: readonly string[];
  readonly accountIds?: readonly string[];
  readonly platform?: Platform;
  /** Rows after this sequence number. */
  readonly after?: number;
  readonly limit?: number;
}

/** Milliseconds by which a post that was handed over got another time since. */
const byOther = `(coalesce((select o.by_ms from sandbox.other_times o where o.platform = ledger.platform and o.post_id = ledger.post_id), 0)
  * interval '1 millisecond')`;

/** What the network shows of it now. */
const shownOf = (column: 'content' | 'content_hash'): string =>
  `coalesce((select w.${column} from sandbox.other_words w
    where w.platform = ledger.platform and w.post_id = ledger.post_id and ledger.outcome = 'created'), ${column})`;

const columns = `seq::int as seq, platform, account_id as "accountId", target_id as "targetId", attempt, client_key as key,
  ${shownOf('content_hash')} as "contentHash", ${shownOf('content')} as content, overrides, coalesce(media, '[]') as media, cover_frame_ms as "coverFrameMs", call_started_at as "callStartedAt", seen_at as "seenAt", outcome,
  visible_at + ${byOther} as "visibleAt", scheduled_for + ${byOther} as "scheduledFor", (select u.undone_at from sandbox.undone u
    where u.platform = ledger.platform and u.post_id = ledger.post_id) as "undoneAt", post_id as "postId", segment, reply_to as "replyTo", permalink, duplicate_of as "duplicateOf", refusal`;

/** Its parameters: after, targetIds, accountIds, platform, limit. */
export const selectLedger = `select ${columns} from sandbox.ledger
  where seq > $1 and ($2::text[] is null or target_id = any($2)) and ($3::text[] is null or account_id = any($3))
    and ($4::text is null or platform = $4)
  order by seq limit $5`;

/** One comment call that the network received. */
export interface CommentRow {
  readonly seq: number;
  readonly platform: Platform;
  readonly accountId: string;
  readonly targetId: string;
  /** Id of the post that it comments on. */
  readonly postId: string;
  readonly form: 'reply' | 'comment';
  readonly content: string;
  /** By the caller's clock, right before the call. */
  readonly callStartedAt: Date;
  /** By the network's clock. */
  readonly seenAt: Date;
  readonly outcome: 'created' | 'refused';
  readonly commentId: string | null;
  readonly refusal: string | null;
}

/** One call that gives a published post what follows it. */
export interface StepRow extends Omit<CommentRow, 'form' | 'content' | 'outcome' | 'commentId'> {
  readonly step: AfterStepName;
  /** Of the file. */
  readonly mediaId: string;
  readonly sha256: string;
  readonly outcome: 'done' | 'refused';
}

/** Its parameter: targetIds. */
export const selectSteps = `select seq::int as seq, platform, account_id as "accountId", target_id as "targetId",
    post_id as "postId", step, media_id as "mediaId", sha256, call_started_at as "callStartedAt", seen_at as "seenAt",
    outcome, refusal
  from sandbox.after_steps where $1::text[] is null or target_id = any($1) order by seq limit 10000`;

/** Its parameter: targetIds. */
export const selectComments = `select seq::int as seq, platform, account_id as "accountId", target_id as "targetId",
    post_id as "postId", form, content, call_started_at as "callStartedAt", seen_at as "seenAt", outcome,
    comment_id as "commentId", refusal
  from sandbox.comments where $1::text[] is null or target_id = any($1) order by seq limit 10000`;
