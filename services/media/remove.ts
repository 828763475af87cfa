import type { Tools } from './deps.ts';
import type { LeasedAsset } from './leased-asset.ts';
import { Postponed } from './postponed.ts';

/**
 * Removes the files of a deleted asset when no post can need them. A post that was accepted beside the deletion is
 * published with the asset, so its files are kept until then. Files of an asset that cannot be published go at once:
 * only a draft can name it, and the api checks a draft again before it is published.
 */

/** Wait until the next check whether a post still needs the asset, milliseconds. */
const againMs = 3_600_000;
/** Wait until the next check whether the read models have caught up with the log, milliseconds. */
const behindMs = 5_000;

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
