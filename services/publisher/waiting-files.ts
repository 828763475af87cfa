import type { Pool } from 'pg';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { revisionsOfMedia } from '#projections/models/media.ts';
import { endRest } from '#runtime/work/leases.ts';

/**
 * Targets of this process that rest because a rendition of theirs is not ready. Each look at one reads its streams and
 * all of its files, so they rest for longer every time. One query asks for the rows of all their files: a file whose row
 * has moved ends the rest of its targets. Where a process dies, or a row is behind, they wait out their rests.
 */

/** Milliseconds between two queries. */
const askMs = 500;
/** Files of one query; the next one continues with those that were asked for longest ago. */
const askedAtOnce = 1_000;
/** Targets kept in memory; the oldest beyond it wait out their rests. */
const maxTargets = 20_000;
/** Milliseconds in which the lease of a target that rests is written: before that there is no rest to end. */
const restWrittenMs = 250;

interface Waiting {
  readonly looks: number;
  /** Monotonic milliseconds of the last look. */
  readonly at: number;
  readonly mediaIds: readonly string[];
}

/** A file that is not ready, at the revision of its stream that was seen. */
export interface UnreadyFile {
  readonly mediaId: string;
  readonly revision: number;
}

export class WaitingFiles {
  readonly #pool: Pool;
  readonly #leaseKind: string;
  readonly #rest: BackOff;
  readonly #targets = new BoundedMap<string, Waiting>(maxTargets, {
    onForget: (targetId, waiting) => this.#forget(targetId, waiting),
  });
  /** By file: the revision that each target has seen. */
  readonly #files = new Map<string, Map<string, number>>();
  #askedAt = Number.NEGATIVE_INFINITY;

  constructor(pool: Pool, leaseKind: string, rest: BackOff) {
    this.#pool = pool;
    this.#leaseKind = leaseKind;
    this.#rest = rest;
  }

  /** Notes a look at a target whose files are not ready. @returns milliseconds that the target rests */
  add(targetId: string, files: readonly UnreadyFile[]): number {
    const looks = (this.#targets.get(targetId)?.looks ?? 0) + 1;
    this.delete(targetId);
    this.#targets.set(targetId, { looks, at: performance.now(), mediaIds: files.map(({ mediaId }) => mediaId) });
    for (const { mediaId, revision } of files) {
      const seen = this.#files.get(mediaId) ?? new Map<string, number>();
      this.#files.set(mediaId, seen);
      seen.set(targetId, revision);
    }
    return backOff(looks - 1, this.#rest);
  }

  delete(targetId: string): void {
    const waiting = this.#targets.get(targetId);
    if (waiting === undefined) return;
    this.#targets.delete(targetId);
    this.#forget(targetId, waiting);
  }

  #forget(targetId: string, { mediaIds }: Waiting): void {
    for (const mediaId of mediaIds) {
      const seen = this.#files.get(mediaId);
      seen?.delete(targetId);
      if (seen?.size === 0) this.#files.delete(mediaId);
    }
  }

  /** Ends the rests of targets whose files have moved since they were looked at. */
  async wake(): Promise<void> {
    const now = performance.now();
    if (this.#files.size === 0 || now - this.#askedAt < askMs) return;
    this.#askedAt = now;
    const some = [...this.#files].slice(0, askedAtOnce);
    for (const [mediaId, seen] of some) {
      this.#files.delete(mediaId);
      this.#files.set(mediaId, seen);
    }
    const revisions = await revisionsOfMedia(
      this.#pool,
      some.map(([mediaId]) => mediaId),
    );
    const moved = new Set<string>();
    for (const [mediaId, revision] of revisions) {
      for (const [targetId, seen] of this.#files.get(mediaId) ?? []) {
        const at = this.#targets.get(targetId)?.at ?? now;
        if (revision > seen && at <= now - restWrittenMs) moved.add(targetId);
      }
    }
    if (moved.size === 0) return;
    await endRest(this.#pool, this.#leaseKind, [...moved]);
    for (const targetId of moved) this.delete(targetId);
  }
}
