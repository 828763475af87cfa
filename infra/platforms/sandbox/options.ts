import type pg from 'pg';
import type { Platform } from '#schemas/common.ts';

export interface SandboxOptions {
  /** Connection of the pool that the sandbox opens, or a pool that outlives it. Never the publisher's own pool. */
  readonly database: { readonly url: string; readonly connections?: number } | { readonly pool: pg.Pool };
  /** Milliseconds, default 3,000. */
  readonly boundaryDeadlineMs?: number;
  /** Milliseconds, default 10,000. */
  readonly settleWindowMs?: number;
  /** Milliseconds between two checks of a container, default 200. */
  readonly pollMs?: number;
  /** Milliseconds after which a container that is not ready defers the target, default 60,000. */
  readonly processingLimitMs?: number;
  /** Milliseconds between two questions about a post that a network accepted, as it names them, default 1,000. */
  readonly askMs?: number;
  /** Milliseconds in which a network shows or refuses a post that it accepted, default 60,000. */
  readonly acceptedLimitMs?: number;
  /** Versions of the networks' APIs that it asks for. Default: its calls name none. */
  readonly versions?: Readonly<Partial<Record<Platform, string>>>;
  /** For its own probe of files. Default: the ffmpeg on PATH, else the npm package's. */
  readonly ffmpegPath?: string | null;
  /** Called at each named gap, where a test may end the process. */
  readonly faultPoint?: (name: SandboxGap) => void;
}

/** Gaps between two durable effects of one publish and what follows it, or of one undo, in their order. */
export type SandboxGap =
  | 'sandbox.container_created'
  | 'sandbox.container_checkpointed'
  | 'sandbox.boundary_appended'
  | 'sandbox.post_accepted'
  | 'sandbox.comment_accepted'
  | 'sandbox.step_accepted'
  | 'sandbox.post_undone';
