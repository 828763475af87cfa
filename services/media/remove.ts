import type { Pool } from 'pg';
import { deletedWithoutJob } from '#projections/media.ts';
import { inTransaction } from '#runtime/postgres/transactions.ts';
import type { Tools } from './deps.ts';
import { enqueue } from './jobs.ts';
import type { LeasedAsset } from './leased-asset.ts';
import { Postponed } from './postponed.ts';

/**
 * The files of a deleted asset are removed when no post can need them. A post that was accepted beside the deletion goes out
 * with the asset, so its files are kept until then. Only a draft takes a file that cannot be published, and a draft is
 * checked again before it goes out.
 */

/** Until the worker asks again whether a post still has it, milliseconds. */
const againMs = 3_600_000;
/** Until the worker asks again whether the read models have caught up with the log, milliseconds. */
const behindMs = 5_000;
/** Deleted assets that one look enqueues. */
const batch = 100;
/** Minutes after which the worker looks for a deletion whose event made no job. */
const unheardMinutes = 10;

const notYet = (waitMs: number): Postponed => new Postponed('the files of a deleted asset may still be needed', waitMs);

export const removeStep = async (leased: LeasedAsset, { uses, jobs }: Tools): Promise<void> => {
  if (leased.asset.status === 'transcoded') {
    if (!(await uses.isHidden(leased.id))) throw notYet(behindMs);
    const leftMs = uses.graceMs - (await jobs.hiddenMs(leased.id));
    if (leftMs > 0) throw notYet(leftMs);
    if (!(await uses.hasAllPosts())) throw notYet(behindMs);
    if (await uses.hasOpenPost(leased.workspaceId, leased.id)) throw notYet(againMs);
  }
  await leased.record({ type: 'RemoveFiles' });
};

/** Makes the jobs of deletions whose events an older release passed over. @returns how many */
export const enqueueUnheard = async (pool: Pool): Promise<number> => {
  const rows = await deletedWithoutJob(pool, unheardMinutes, batch);
  if (rows.length === 0) return 0;
  await inTransaction(pool, async (tx) => {
    await enqueue(
      tx,
      rows.map((one) => ({ ...one, urgent: false, download: false })),
    );
    return { commit: true, result: null };
  });
  return rows.length;
};
