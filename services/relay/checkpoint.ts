import type { LastEvent } from '#runtime/consuming/same-history.ts';

/**
 * Where the relay stands, and who may move it: one row with a lease. The epoch grows with every holder, and a save
 * under an old one changes nothing. Time is the database's.
 */
export interface RelayLease {
  readonly epoch: bigint;
  /** The last event that the log has acknowledged; null = none yet. */
  readonly last: LastEvent | null;
}

export interface RelayCheckpoint {
  /** Takes the lease for `ttlMs` where nobody holds it. Null while another does. */
  acquire(holder: string, ttlMs: number): Promise<RelayLease | null>;
  /** False when the lease of this epoch is lost. */
  renew(epoch: bigint, ttlMs: number): Promise<boolean>;
  /** Everything up to this event is acknowledged by the log. False when the epoch is not ours any more. */
  save(last: LastEvent, epoch: bigint): Promise<boolean>;
  /** Lets the next one take over at once. */
  release(epoch: bigint): Promise<void>;
}
