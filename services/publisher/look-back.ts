import type { Pool } from 'pg';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { LogWriter } from '#contracts/ports/log.ts';
import type { TargetIn } from '#domain/post-target/target.ts';
import { findOlderCopy } from '#runtime/consuming/older-copy.ts';
import type { Logger } from '#runtime/process/telemetry.ts';
import { newestRestore, restored } from '#runtime/work/restores.ts';
import type { WorkContext } from './context.ts';
import { findLost, isAskable, type Lost, settleAsFound } from './restored.ts';

/**
 * What a start looks at to learn that nobody said of a restore. A false alarm would hold a healthy service, so only what
 * is certain declares one.
 */

/**
 * Before the first search: whether the store is older than the log or than what consumers have read. What cannot be read
 * says nothing: relay and consumers make the same comparison for themselves.
 * @param log null: the log is the store itself
 */
export const declareOlderCopy = async ({
  store,
  pool,
  openLog,
  logger,
}: {
  readonly store: Pick<EventStore, 'readAll' | 'head'>;
  readonly pool: Pool;
  readonly openLog: () => Promise<Pick<LogWriter, 'lastRecords' | 'close'> | null>;
  readonly logger: Logger;
}): Promise<void> => {
  try {
    const log = await openLog();
    try {
      const found = await findOlderCopy(store, pool, log);
      if (found === null) return;
      const { storeAsOf, knownUntil, evidence } = found;
      const newest = await newestRestore(pool);
      if (newest !== null && newest.restoredAt > knownUntil) return;
      await restored(pool, storeAsOf, `the start: ${evidence}`, { again: newest?.storeAsOf === storeAsOf });
      logger.error(
        { storeAsOf, evidence },
        'this store is an older copy: a restore is declared and publishing is held',
      );
    } finally {
      await log?.close();
    }
  } catch (error) {
    logger.warn({ err: error }, 'whether the store is an older copy could not be found out at the start');
  }
};

/** A target that is later than this at the start, milliseconds, was due while nobody published here. */
const lateMs = 60_000;
/** Targets whose networks are asked, and milliseconds in which others that are as late wait for the first answers. */
const maxAsked = 20;
const graceMs = 10_000;
const restMs = 500;
/**
 * From so many milliseconds before the start on, a post tells nothing: it may be that of another target with the same
 * text, whose outcome this process or one beside it has not recorded yet, or whose row does not show it.
 */
const ownPostsMs = 60_000;
/** How near to its time a post went out by this service, milliseconds; a person who stands in takes longer. */
const ownLatenessMs = 60_000;
/** How much older than its oldest sign a copy is taken to be, milliseconds. */
const olderMs = 3_600_000;

/**
 * Whether networks have posts of targets that this store never tried, and that were due before this process started. A
 * service that was down has such targets, and its networks have none of them; an older copy has them, and its networks
 * have all. Only posts from before the start tell anything. A post within a minute of its target’s time, or a second
 * one at any time, is certain. A single one at another time may be a person’s: its target counts as published, and
 * nothing more is said.
 * @returns as `settleRestored`
 */
export const lookBack = async (context: WorkContext, target: TargetIn<'pending'>): Promise<'go on' | number | null> => {
  const { common } = target;
  const { tools } = context;
  const { startedAt, lookedBack: seen } = tools;
  const due = Date.parse(common.dueAt);
  const isOlder = Date.parse(common.bornAt) < startedAt && due <= startedAt - lateMs;
  if (common.attempts > 0 || common.scheduleMode === 'native' || !isOlder) return null;
  const now = tools.now();
  if (!(await isAskable(context, target))) return seen.open > 0 || now < startedAt + graceMs ? restMs : null;
  if (seen.asked >= maxAsked) return seen.open > 0 ? restMs : null;
  seen.asked += 1;
  seen.open += 1;
  const span = { storeAsOf: common.dueAt, restoredAt: new Date(now).toISOString() };
  const lost = await findLost(context, target, span, startedAt - ownPostsMs).finally(() => {
    seen.open -= 1;
  });
  // A network without an answer says nothing, and its targets are not kept back for it.
  return lost.kind === 'found' ? tell(context, target, lost) : null;
};

/**
 * The row of the restore comes first: if we die before it, the next start asks again; after it, the row decides what
 * becomes of this target, too.
 */
const tell = async (
  context: WorkContext,
  target: TargetIn<'pending'>,
  lost: Extract<Lost, { readonly kind: 'found' }>,
): Promise<'go on' | number | null> => {
  const { logger, lookedBack: seen, now } = context.tools;
  const due = Date.parse(target.common.dueAt);
  const apart = Date.parse(lost.post.publishedAt) - due;
  if (apart < -ownLatenessMs) return null;
  seen.found += 1;
  seen.oldestDue = Math.min(seen.oldestDue, due);
  const { targetId } = target.common;
  if (apart > ownLatenessMs && seen.found === 1) {
    logger.warn({ targetId }, 'a network has the post of a target that was never tried here: it counts as published');
    return settleAsFound(context, target, lost.post, new Date(now()).toISOString());
  }
  const storeAsOf = new Date(seen.oldestDue - olderMs).toISOString();
  const evidence = `${target.common.platform} has the post of target ${targetId}, which was never tried here`;
  seen.declared ??= declare(context.tools, storeAsOf, evidence);
  await seen.declared;
  return restMs;
};

const declare = async (
  { restores, logger, lookedBack }: WorkContext['tools'],
  storeAsOf: string,
  evidence: string,
): Promise<void> => {
  try {
    await restores.declare(storeAsOf, `the start: ${evidence}`);
  } catch (error) {
    lookedBack.declared = null;
    throw error;
  }
  logger.error({ storeAsOf, evidence }, 'this store is an older copy: a restore is declared and publishing is held');
};
