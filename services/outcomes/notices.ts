import type { Pool } from 'pg';
import { backOff } from '#contracts/base/back-off.ts';
import { account } from '#domain/account.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { accountsOfPerson, haveCredentials } from '#projections/queries/person-accounts.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import {
  type DueNotice,
  dropOldNotices,
  dueNotices,
  finishNotice,
  postponeNotice,
} from '#runtime/work/network-notices.ts';
import { forgetOwner, lapse } from '#services/workflows/accounts/lapse.ts';
import { type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/**
 * Carries out what networks said of people. An owner who took the consent back: their accounts need a new one. An owner who asks
 * for the deletion of their data: the profile goes, the accounts are disconnected, and what networks gave for them is destroyed
 * as for every disconnected account. If we die anywhere, the next round begins anew, and a repeat yields no event.
 */

export interface NoticesDeps extends RoundDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  /** Milliseconds since the epoch by the database's clock. */
  readonly now: () => number;
  readonly onFailure?: (kind: SweptKind) => void;
}

const pageSize = 100;
/** Milliseconds for which a deletion looks again: the read models may not have shown an account at first. */
const settleMs = 15 * 60_000;
const waitMs = 60_000;
const rest = { firstMs: 60_000, maxMs: 3_600_000 };
/** Milliseconds by which the clock of a network may be behind ours. A consent that came so soon after is taken for the former one. */
const skewMs = 5_000;

/** Runs until the signal aborts. */
export const runNotices = (deps: NoticesDeps, signal: AbortSignal): Promise<void> =>
  runRounds(deps, 'notices', (stop) => noticeRound(deps, stop), signal);

/** Each due notice once. @throws when a dependency is unavailable: every later one would fail alike */
export const noticeRound = async (deps: NoticesDeps, signal: AbortSignal): Promise<void> => {
  const { pool, logger, onFailure } = deps;
  await dropOldNotices(pool);
  for (let page = await dueNotices(pool, pageSize); page.length > 0; page = await dueNotices(pool, pageSize)) {
    for (const notice of page) {
      if (signal.aborted) return;
      const { id, network, platform, kind, failures } = notice;
      try {
        const isDone = await settle(deps, notice);
        faultPoint('outcomes:before-notice-done');
        if (isDone) await finishNotice(pool, id);
        else await postponeNotice(pool, id, waitMs, false);
      } catch (error) {
        if (isInfrastructureFault(error)) throw error;
        onFailure?.('account');
        logger.error(
          { err: error, network, platform, kind },
          'what a network said of a person could not be carried out',
        );
        await postponeNotice(pool, id, backOff(failures, rest), true);
      }
    }
  }
};

/** @returns whether nothing is left to do */
const settle = async (deps: NoticesDeps, notice: DueNotice): Promise<boolean> => {
  const ended: string[] = [];
  for (let after: string | null = null; ; ) {
    const page: Awaited<ReturnType<typeof accountsOfPerson>> = await accountsOfPerson(
      deps.pool,
      notice,
      after,
      pageSize,
    );
    for (const { id, workspaceId } of page) if (await end(deps, notice, id, workspaceId)) ended.push(id);
    after = page.at(-1)?.id ?? null;
    if (page.length < pageSize) break;
  }
  if (notice.kind === 'deauthorized') return true;
  return notice.ageMs >= settleMs && !(await haveCredentials(deps.pool, ended));
};

/** @returns whether the notice concerns the account: a later consent is another one */
const end = async (
  { store, now, logger }: NoticesDeps,
  { platform, kind, saidAt }: DueNotice,
  id: string,
  workspaceId: string,
): Promise<boolean> => {
  const { events, revision } = await store.load(account, id);
  const consent = events.findLast(({ type }) => type === 'AccountConnected' || type === 'AccountReauthorized');
  if (consent === undefined || Date.parse(consent.metadata.occurredAt) > Date.parse(saidAt) + skewMs) return false;
  const context = serviceContext('notices', causedByNewest(events, workspaceId, id), now());
  const { name } = rulesOf(platform);
  if (kind === 'deauthorized') {
    await lapse(store, id, `The owner took the permission of this app back on ${name}.`, context, revision);
  } else {
    await forgetOwner(store, id, `The owner asked ${name} to have their data deleted.`, context, revision);
    // By this line an operator repeats after a restore what the copy does not know.
    logger.info(
      { accountId: id },
      'an account was disconnected, because its owner asked for the deletion of their data',
    );
  }
  faultPoint('outcomes:after-notice');
  return true;
};
