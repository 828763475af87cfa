/**
 * The publisher's view of a social network: one adapter for each network, and the sandbox, which behaves like all of
 * them. The law: an adapter makes the boundary call, which makes a post visible, at most once per attempt. An effect
 * that it does not know afterwards it reports as unknown.
 */
import type { ObservedWindow } from '#schemas/cadence.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import type { Failure, Segment, StepName } from '#schemas/target.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/**
 * Called with the limits for posts that a network's answer names for an account; an answer may name some of them. It
 * returns at once and never throws.
 */
export type OnLimits = (accountId: string, windows: readonly ObservedWindow[]) => void;

/** A step that an earlier try of the same post has taken. */
export interface Checkpoint {
  readonly attempt: number;
  /** Adapter's own name of the step (`container`, `upload`); `boundary` is reserved. */
  readonly step: string;
  readonly data: Json;
  /** Only on `boundary`: instant after which the call was aborted, ISO 8601. */
  readonly deadline: string | null;
  /** Only on `boundary`: the call was seen to leave nothing behind (`nothing_sent`). Absent: nobody knows, or it made a post. */
  readonly madeNothing?: true;
}

/**
 * A file in a form that the network accepts: the source itself where it fits, else the rendition for network and use.
 */
export interface PublishMedia {
  /** Id of the asset; a failure names it. */
  readonly mediaId: string;
  readonly kind: MediaKind;
  readonly use: MediaUse;
  readonly contentType: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
  readonly altText: string | null;
  /** The file on this machine, read-only, until the call ends. For networks that take uploads. */
  file(): Promise<string>;
  /**
   * An address of the file, for networks that fetch it; it leads to the file itself, and not on to another address.
   * @param expiresInMs milliseconds from now
   * @param host `any`, unless given: that of an S3 where one has the files. `own`: that of the api, below the place at which
   *   the api shows a network that the host is the operator's
   */
  url(expiresInMs: number, host?: 'any' | 'own'): Promise<string>;
}

/** One segment of a thread. Each is published by a call of its own, after the segment before it. */
export interface ThreadSegment extends Segment {
  /** Ids on the network: the post that it replies to, and the head of the thread; null for the head itself. */
  readonly replyTo: { readonly parent: string; readonly head: string } | null;
}

export interface PublishRequest {
  /** Whose post it is. */
  readonly workspaceId: string;
  readonly targetId: string;
  readonly attempt: number;
  readonly platform: Platform;
  readonly account: { readonly id: string; readonly externalId: string; readonly username: string | null };
  readonly content: string;
  readonly overrides: { readonly [key: string]: Json };
  readonly aiDisclosure: boolean;
  /** In the order of the post. */
  readonly media: readonly PublishMedia[];
  /**
   * The still of a video: the post's own cover, else the poster frame; null where there is neither, and where the network takes it
   * by a call behind the publication: `afterStep` gets it.
   */
  readonly cover: PublishMedia | null;
  /** Milliseconds into the video; null: the network chooses. */
  readonly coverFrameMs: number | null;
  /** Null: a single post. Else `content`, `media` and `checkpoints` are those of this segment. */
  readonly thread: ThreadSegment | null;
  readonly checkpoints: readonly Checkpoint[];
}

export interface PublishSteps {
  /** Appends the step durably; the next step may begin when it resolves. Rejects when the worker has lost its claim. */
  checkpoint(step: string, data: Json): Promise<void>;
  /**
   * Reports that so many more bytes of the post went to the network. Preparation that neither moves a byte nor records
   * a checkpoint for 60 s is ended: the signal aborts.
   */
  moved(bytes: number): void;
  /**
   * The last await before the boundary call. Appends the boundary with its deadline and resolves to the signal that
   * aborts the call at that deadline. It rejects when the claim was lost or too little time is left: then the adapter
   * must not make the call. `reconcile` finds the post again by `data`.
   */
  boundary(data: Json): Promise<AbortSignal>;
  /**
   * Aborts when the lease is lost, the process drains or preparation takes too long. Work before the boundary stops
   * then.
   */
  readonly signal: AbortSignal;
}

/** The network has the post, and shows or refuses it later. */
export interface Processing {
  /** How `reconcile` asks for the post; no secret, and at most 4,096 characters as JSON. */
  readonly handle: Json;
  /** When the network is to be asked, ISO 8601, as it or its documents name it: the publisher judges one past or far. */
  readonly askAt: string;
}

export type PublishOutcome =
  | {
      readonly kind: 'published';
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
      /** Of a network that shows the post to fewer people than was asked: why. The post stays as it is. */
      readonly narrowed?: Failure;
    }
  /**
   * The boundary call took effect, and the network shows nothing yet. Only of a network with a `processingLimitMs`, and
   * never of a segment of a thread, whose id the next one replies to.
   */
  | ({ readonly kind: 'accepted' } & Processing)
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `retryAt`: the instant that the network named, ISO 8601, as it named it: the publisher judges one past or far. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string; readonly failure: Failure }
  /** Transient, and provably before the boundary. */
  | { readonly kind: 'deferred'; readonly failure: Failure }
  /**
   * Transient, and the boundary call left nothing behind: no byte of it reached the network, or the network's own answer
   * says that it made nothing. A connection that was lost, and an error of a server, prove neither.
   */
  | { readonly kind: 'nothing_sent'; readonly failure: Failure }
  /**
   * The boundary call was made, and its effect is unknown. `retryAt`: the instant that the network named for another try, ISO
   * 8601, which counts where the call turns out to have made nothing.
   */
  | { readonly kind: 'unknown'; readonly failure: Failure; readonly retryAt?: string };

export type ReconcileOutcome =
  | {
      readonly kind: 'present';
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
      /** Of a network that shows the post to fewer people than was asked: why. The post stays as it is. */
      readonly narrowed?: Failure;
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** The network has accepted the post, and shows it later: no sign of an error, however long it takes. */
  | ({ readonly kind: 'processing' } & Processing)
  | { readonly kind: 'absent' }
  | Undecided;

/** The network gave no answer to this (down, token refused): ask again later. */
export interface Undecided {
  readonly kind: 'undecided';
  /** Why; absent: the network did not say. */
  readonly failure?: Failure;
}

/** A post of which this service lost its record: it was restored from an older copy. */
export interface FindRequest extends PublishRequest {
  /** Instants between which the post would have gone out, ISO 8601. */
  readonly from: string;
  readonly until: string;
}

export interface ListedPost {
  readonly externalId: string;
  readonly permalink: string | null;
  readonly publishedAt: string;
}

export type FindOutcome =
  /**
   * The account's own posts of that time with that content, oldest first; at most 20. None is no proof: a network’s list
   * may be behind, and may lack posts.
   */
  | {
      readonly kind: 'listed';
      readonly posts: readonly ListedPost[];
    }
  /** The network does not list an account's own posts, or not such ones: only a person can look. */
  | { readonly kind: 'not_askable' }
  | Undecided;

/** The comment that follows a published post, from the post's own account. */
export interface CommentRequest {
  readonly targetId: string;
  readonly platform: Platform;
  readonly account: PublishRequest['account'] & {
    /** Permissions that the account's owner granted, in the network's own words. */
    readonly scopes: readonly string[];
  };
  /** Id of the post on the network; of a thread, that of its head. */
  readonly externalId: string;
  readonly content: string;
}

export type CommentOutcome =
  | { readonly kind: 'posted'; readonly externalId: string }
  /** The network refused the comment for good; a missing permission is such a refusal. */
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `retryAt`: the instant that the network named, ISO 8601, as it named it: the publisher judges one past or far. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string; readonly failure: Failure }
  /** Transient, and provably without a comment. */
  | { readonly kind: 'deferred'; readonly failure: Failure }
  /** The call was made, and its effect is unknown. */
  | { readonly kind: 'unknown'; readonly failure: Failure };

/** What a network takes of a published post by a call of its own. */
export interface AfterStepRequest {
  /** `cover`: the picture by which the network shows the video. */
  readonly step: StepName;
  readonly targetId: string;
  readonly platform: Platform;
  readonly account: CommentRequest['account'];
  /** Id of the post on the network. */
  readonly externalId: string;
  /** The text of the post. */
  readonly content: string;
  readonly cover: PublishMedia;
}

export type AfterStepOutcome =
  | { readonly kind: 'done' }
  /** The network refused the step for good; the post stays as it is. */
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `retryAt`: the instant that the network named, ISO 8601, as it named it: the publisher judges one past or far. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string; readonly failure: Failure }
  /** Transient: the network does not take it yet, or gave no answer to the call. */
  | { readonly kind: 'deferred'; readonly failure: Failure };

export interface RemovalRequest {
  readonly platform: Platform;
  readonly account: PublishRequest['account'];
  /** Id of the post on the network. */
  readonly externalId: string;
}

export type RemovalOutcome =
  /** The network does not have the post any more; also where it had none. */
  | { readonly kind: 'removed' }
  /** The post may still be there. A second call does no harm. */
  | { readonly kind: 'not_removed'; readonly failure: Failure };

export interface PlatformAdapter {
  /** Milliseconds that the boundary call may take. */
  readonly boundaryDeadlineMs: number;
  /** Milliseconds after the deadline within which the network may still make the post visible. */
  settleWindowMs(platform: Platform, account: PublishRequest['account']): number;
  /**
   * Whether "absent" after the settle window proves that the post of the attempt never appears (single-use container,
   * key).
   */
  absenceIsProof(platform: Platform, account: PublishRequest['account']): boolean;
  /**
   * Whether the network lists this account's own posts completely: it may do so for some of its accounts alone, such as
   * pages. Then "absent" after the settle window says that the
   * network has no such post now; it may still be wrong, so only the rules of a client act on it.
   */
  listsOwnPosts(platform: Platform, account: PublishRequest['account']): boolean;
  /**
   * Milliseconds after the deadline of the boundary call within which the network shows or refuses a post that it
   * accepted: its outcome is unknown from then on. Null or absent: the network shows at once what it takes, and answers
   * neither `accepted` nor `processing`.
   */
  processingLimitMs?(platform: Platform): number | null;
  /**
   * The version of the network's API that it asks for, as the operator has set it; null or absent: no call names one. Any
   * outcome whose failure has the code `api_version_ended` says that the network no longer answers it, and made nothing.
   */
  apiVersion?(platform: Platform): string | null;
  publish(request: PublishRequest, steps: PublishSteps): Promise<PublishOutcome>;
  /**
   * What became of a boundary call. Changes nothing.
   * @param handle that of `accepted`; absent: the answer to the call was another one, or was lost
   */
  reconcile(request: PublishRequest, boundary: Checkpoint, handle?: Json): Promise<ReconcileOutcome>;
  /** Asks by account, content and time, where nothing is known of the call. Changes nothing. Absent: nobody can be asked. */
  findPosts?(request: FindRequest): Promise<FindOutcome>;
  /**
   * Comments on a published post, on networks with the capability `firstComment`: x, threads, bluesky and telegram as a
   * reply, the others below the post. Makes the comment visible at most once per call, and never after `signal` has
   * aborted the call.
   */
  comment(request: CommentRequest, signal: AbortSignal): Promise<CommentOutcome>;
  /**
   * Gives a published post what the network takes of it only once it is out; the rules of the network say what that is. A second
   * call leaves what one leaves: where the network's own call would add something each time, the adapter asks first what is
   * there. Makes no post. Absent: the network takes nothing so.
   */
  afterStep?(request: AfterStepRequest, signal: AbortSignal): Promise<AfterStepOutcome>;
  /**
   * Deletes a published post. Only an operator's check of a live installation asks for it: posts of callers are not
   * deleted. Absent: the adapter cannot.
   */
  removePost?(request: RemovalRequest, signal: AbortSignal): Promise<RemovalOutcome>;
  /** Whether it can for this account. Absent: it can for each, or for none. */
  canRemove?(account: PublishRequest['account']): Promise<boolean>;
  /** The network's own scheduler; null or absent: the network has none, or the adapter does not use it. */
  nativeScheduler?(platform: Platform): NativeScheduler | null;
}

/** A post for the network's own scheduler. */
export interface HandOverRequest extends PublishRequest {
  /** The instant at which the network publishes the post, ISO 8601. */
  readonly dueAt: string;
}

export type HandOverOutcome =
  /** `nativeId`: the scheduled post's id on the network. */
  | { readonly kind: 'handed_over'; readonly nativeId: string }
  /** The network refused the time: it lies outside of its window. It made nothing. */
  | { readonly kind: 'outside_window'; readonly failure: Failure }
  | Exclude<PublishOutcome, { readonly kind: 'published' | 'accepted' }>;

/** A hand-over whose call was made. */
export interface HandedOver {
  readonly boundary: Checkpoint;
  /** Null: the answer to the call was lost. */
  readonly nativeId: string | null;
}

export type VerifyOutcome =
  | { readonly kind: 'scheduled'; readonly nativeId: string }
  | {
      readonly kind: 'published';
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
      /** Of a network that shows the post to fewer people than was asked: why. The post stays as it is. */
      readonly narrowed?: Failure;
    }
  /** The network could not publish the post at its time, and will not. */
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** The network has neither a scheduled nor a published post. */
  | { readonly kind: 'absent' }
  | Undecided;

export type UndoOutcome = { readonly kind: 'undone' } | UndoNotDone;

export type UndoNotDone =
  /** The network refused: it has published the post, or is about to. */
  | { readonly kind: 'too_late'; readonly failure: Failure }
  /** The effect is unknown; `verify` finds it out. A second call does no harm. */
  | { readonly kind: 'unknown'; readonly failure: Failure };

export type RescheduleOutcome =
  | { readonly kind: 'rescheduled' }
  /** The network refused the time, or was not asked: it lies outside of its window. The former time stands. */
  | { readonly kind: 'outside_window'; readonly failure: Failure }
  | UndoNotDone;

export type ReviseOutcome =
  /** The network has the content and the time of the request, also where it has published the post since. */
  | { readonly kind: 'revised' }
  /** The network refused the time, or was not asked: it lies outside of its window. The former content and time stand. */
  | { readonly kind: 'outside_window'; readonly failure: Failure }
  /** What differs the network changes of no scheduled post, or it refused the content; the former content and time stand. */
  | { readonly kind: 'other_post' }
  | UndoNotDone;

/** An adapter has the first three or none. */
export interface NativeScheduler {
  /** Like `publish`: the call that makes the network's scheduled post is the boundary. */
  handOver(request: HandOverRequest, steps: PublishSteps): Promise<HandOverOutcome>;
  /** Asks what the network has of a hand-over. Changes nothing. */
  verify(request: HandOverRequest, handed: HandedOver): Promise<VerifyOutcome>;
  /** Deletes the scheduled post, as long as it is not published. */
  undo(request: HandOverRequest, nativeId: string): Promise<UndoOutcome>;
  /**
   * Gives the scheduled post the time of the request in the place of its own, as long as it is not published; it stays the same
   * post. Absent: only an undo and another hand-over do.
   */
  reschedule?(request: HandOverRequest, nativeId: string): Promise<RescheduleOutcome>;
  /**
   * Gives the scheduled post the words, the settings and the time of the request in the place of its own, as long as it is not
   * published; it stays the same post. A second call leaves what one leaves, and says of a post that is out whether it went out so.
   * Absent: only an undo and another hand-over do.
   * @param former the request of the hand-over, or of the latest revise; its files are those of the request
   */
  revise?(request: HandOverRequest, nativeId: string, former: PublishRequest): Promise<ReviseOutcome>;
}
