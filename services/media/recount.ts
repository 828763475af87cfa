import type { Pool } from 'pg';
import { pause } from '#contracts/base/pause.ts';
import { bytesOf, media } from '#domain/media.ts';
import { type MediaSize, mediaSizes } from '#projections/models/media.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import type { MediaUsage } from '#services/workflows/media-usage.ts';
import { Customers } from './customers.ts';

/**
 * Walks the whole library, a piece at a time, and corrects wrong counts of the quota: a worker that dies between its
 * work and the count leaves one. The walk begins again some hours after its end.
 */

/** Rows of one piece: some milliseconds. */
const pieceRows = 1_000;
/** Streams that one piece reads at most. The library names the assets; their streams have the true sizes. */
const pieceReads = 100;
/** Rest after a piece, as a multiple of the time that the piece took. */
const restShare = 3;
/** Between the end of a walk and the next one, hours. */
const againHours = 6;
/** Rest of a process that found another one walking, or the walk at its end, milliseconds. */
const idleMs = 60_000;

export interface RecountDeps {
  readonly pool: Pool;
  readonly store: DomainStore;
  readonly usage: MediaUsage;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

interface Piece {
  readonly corrected: number;
  /** False: the walk is at its end, or another process is walking. */
  readonly more: boolean;
}

const nothing: Piece = { corrected: 0, more: false };

/**
 * The lock on the walk's one row lets one process walk at a time. Counts are set before the row moves on: after a crash
 * in between the next process finds them right and changes nothing.
 */
export const recountPiece = (deps: RecountDeps, customers: Customers, signal: AbortSignal): Promise<Piece> =>
  inTransaction(deps.pool, async (tx) => {
    const { rows } = await tx.query<{ after: string | null }>(
      `select after::text from ops.media_recount where next_at <= now() for update skip locked`,
    );
    const [walk] = rows;
    if (walk === undefined) return { commit: false, result: nothing };
    const sizes = await mediaSizes(tx, walk.after, pieceRows);
    const { corrected, after } = await correct(deps, customers, sizes, signal);
    const more = after !== null;
    await tx.query(
      `update ops.media_recount set after = $1, next_at = case when $2 then now() else now() + $3 * interval '1 hour' end`,
      [after, more, againHours],
    );
    return { commit: true, result: { corrected, more } };
  });

/** @returns `after`: the last asset it checked; null: there are no more */
const correct = async (
  { store, usage, logger }: RecountDeps,
  customers: Customers,
  sizes: readonly MediaSize[],
  signal: AbortSignal,
): Promise<{ readonly corrected: number; readonly after: string | null }> => {
  const counts = await usage.counts(sizes.map(({ id }) => id));
  let corrected = 0;
  let reads = 0;
  for (const { id, workspaceId, bytes } of sizes) {
    const counted = counts.get(id);
    if (counted === 'reserved' || (counted ?? 0) === bytes) continue;
    signal.throwIfAborted();
    try {
      const { state } = await store.load(media, id);
      await usage.correct(id, await customers.of(workspaceId), counted ?? null, bytesOf(state));
      corrected += 1;
    } catch (error) {
      if (isInfrastructureFault(error)) throw error;
      logger.warn({ err: error, assetId: id }, 'an asset could not be recounted; the others are');
    }
    reads += 1;
    if (reads === pieceReads) return { corrected, after: id };
  }
  return { corrected, after: sizes.length < pieceRows ? null : (sizes.at(-1)?.id ?? null) };
};

/** Runs in every media process until the signal; a failed piece is tried again. */
export const runRecount = async (deps: RecountDeps, signal: AbortSignal): Promise<void> => {
  const customers = new Customers(deps.store);
  let corrected = 0;
  while (!signal.aborted) {
    let restMs = idleMs;
    const began = performance.now();
    try {
      const piece = await recountPiece(deps, customers, signal);
      corrected += piece.corrected;
      if (piece.more) restMs = (performance.now() - began) * restShare;
      else if (corrected > 0) {
        deps.logger.info({ assets: corrected }, 'the quota of assets was corrected');
        corrected = 0;
      }
    } catch (error) {
      if (!signal.aborted) deps.logger.warn({ err: error }, 'a piece of the library could not be recounted');
    }
    await pause(restMs, signal);
  }
};
