/**
 * A social network as the publisher sees it. One adapter per network, plus the sandbox that behaves like all of them.
 * The one law: the boundary call, which makes a post visible, is made at most once per attempt, and whatever is not
 * known afterwards is said to be unknown.
 */
import type { Platform } from '#schemas/common.ts';
import type { MediaKind, MediaUse } from '#schemas/media.ts';
import type { Failure, Segment } from '#schemas/target.ts';

export type Json = null | boolean | number | string | readonly Json[] | { readonly [key: string]: Json };

/** A step that an earlier try of the same post already took, oldest first. */
export interface Checkpoint {
  readonly attempt: number;
  /** Adapter's own name of the step (`container`, `upload`); `boundary` is reserved. */
  readonly step: string;
  readonly data: Json;
  /** Only on `boundary`: instant after which the call was aborted, ISO 8601. */
  readonly deadline: string | null;
}

/** A file as its network takes it: the source itself where it fits, else the rendition for this network and use. */
export interface PublishMedia {
  /** Of the asset; a failure names it. */
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
  /** The file on this machine, to be read only, until the call ends. For networks that take uploads. */
  file(): Promise<string>;
  /** An address to read it from, for networks that fetch. @param expiresInMs milliseconds from now. */
  url(expiresInMs: number): Promise<string>;
}

/** One post of a reply chain. Each is published by a call of its own, when the one before it is out. */
export interface ThreadPart extends Segment {
  /** On the network: the post it replies to, and the head of the chain; null for the head itself. */
  readonly replyTo: { readonly parent: string; readonly head: string } | null;
}

export interface PublishRequest {
  readonly targetId: string;
  readonly attempt: number;
  readonly platform: Platform;
  readonly account: { readonly id: string; readonly externalId: string; readonly username: string | null };
  readonly content: string;
  readonly overrides: { readonly [key: string]: Json };
  readonly aiDisclosure: boolean;
  /** In the order of the post. */
  readonly media: readonly PublishMedia[];
  /** The still of a video: the post's own cover, else the poster frame; null where neither is. */
  readonly cover: PublishMedia | null;
  /** Milliseconds into the video; null: the network chooses. */
  readonly coverFrameMs: number | null;
  /** Null: a post that stands alone. Else `content`, `media` and `checkpoints` are those of this part. */
  readonly thread: ThreadPart | null;
  readonly checkpoints: readonly Checkpoint[];
}

export interface PublishSteps {
  /** Appends the step durably; the next step may begin when it resolves. Rejects when this worker lost its claim. */
  checkpoint(step: string, data: Json): Promise<void>;
  /**
   * Says that so many more bytes of the post went to the network. Preparing that neither moves a byte nor records a
   * checkpoint for a while (60 s) is ended, and the signal aborts.
   */
  moved(bytes: number): void;
  /**
   * The last await before the boundary call. Appends the boundary with its deadline and resolves to the signal that
   * aborts the call at that deadline. It rejects when the claim was lost or too little time is left: then nothing may
   * be called. `data` is what `reconcile` needs to find the post again.
   */
  boundary(data: Json): Promise<AbortSignal>;
  /** Aborted when the lease is lost, the process drains or preparing takes too long. Work before the boundary stops at it. */
  readonly signal: AbortSignal;
}

export type PublishOutcome =
  | {
      readonly kind: 'published';
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  /** `retryAt`: ISO 8601 instant the network named. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string; readonly failure: Failure }
  /** Transient, and provably before the boundary. */
  | { readonly kind: 'deferred'; readonly failure: Failure }
  /** The boundary call was made and its effect is not known. */
  | { readonly kind: 'unknown'; readonly failure: Failure };

export type ReconcileOutcome =
  | {
      readonly kind: 'present';
      readonly externalId: string;
      readonly permalink: string | null;
      readonly publishedAt: string;
    }
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'absent' }
  /** The network did not say (down, still processing): ask again later. */
  | { readonly kind: 'undecided' };

export interface PlatformAdapter {
  /** Time the boundary call may take, milliseconds. */
  readonly boundaryDeadlineMs: number;
  /** Milliseconds after the deadline within which the network may still make the post visible. */
  settleWindowMs(platform: Platform): number;
  /** Whether "absent" after the settle window proves that the attempt can never appear (single-use container, key). */
  absenceIsProof(platform: Platform): boolean;
  publish(request: PublishRequest, steps: PublishSteps): Promise<PublishOutcome>;
  reconcile(request: PublishRequest, boundary: Checkpoint): Promise<ReconcileOutcome>;
}
