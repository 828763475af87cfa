import type { LastEvent } from '#runtime/consuming/same-history.ts';

/**
 * The relay's position and lease: one row. The epoch grows with every holder, and a save under an old epoch changes
 * nothing. Time is the database's.
 */
export interface RelayLease {
  readonly epoch: bigint;
  /** The last event that the log has acknowledged; null = none yet. */
  readonly last: LastEvent | null;
}

export interface RelayCheckpoint {
  /** Takes the lease for `ttlMs` where it is free. Null while another instance holds it. */
  acquire(holder: string, ttlMs: number): Promise<RelayLease | null>;
  /** False when the lease of this epoch is lost. */
  renew(epoch: bigint, ttlMs: number): Promise<boolean>;
  /** Records that the log has acknowledged everything up to this event. False when the epoch is outdated. */
  save(last: LastEvent, epoch: bigint): Promise<boolean>;
  /** Lets the next instance take over at once. */
  release(epoch: bigint): Promise<void>;
}
