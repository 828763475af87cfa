/**
 * One refresh at a time for each account, across processes. The lease is a column that one compare-and-set takes; no
 * transaction or connection is held while the network is asked. The answer is stored by the version it replaces: a
 * consent or a destruction during the call wins.
 */

import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import pg from 'pg';
import { type BackOff, backOff } from '#contracts/base/back-off.ts';
import { pause } from '#contracts/base/pause.ts';
import type { Credential, NewCredential, Refresh, Refreshed } from '#contracts/ports/credentials.ts';
import { type CredentialRow, lapseSql, leaseSql, releaseSql, storeSql } from './credential-rows.ts';
import { instantOf, reasonWithout, type Secret, seal } from './credential-seal.ts';
import { answeredWithin, backoffMs, isConnectionLost } from './pool.ts';

/** Milliseconds. */
export interface RefreshLimits {
  /** How long a refresh may hold its account, by the database's clock. */
  readonly leaseMs: number;
  /** From the beginning of the lease until the call is aborted; the rest of the lease is for storing the answer. */
  readonly callMs: number;
  /** How long a call may go on after the caller's signal. */
  readonly graceMs: number;
  /** One statement: within a lease there must be time for another try. */
  readonly answerMs: number;
  /** The first and the longest rest after refreshes that were unavailable. */
  readonly restMs: number;
  readonly maxRestMs: number;
}

export const usualLimits: RefreshLimits = {
  leaseMs: 30_000,
  callMs: 20_000,
  graceMs: 5_000,
  answerMs: 5_000,
  restMs: 30_000,
  maxRestMs: 3_600_000,
};

/** How long a call may take to end after its signal. */
const lateMs = 500;
/** Between two looks at a refresh of another. */
const pollWaits: BackOff = { firstMs: 25, maxMs: 500 };

export type SealedRow = Pick<CredentialRow, 'clientId' | 'version' | 'sealed' | 'expiresAt'>;

export interface Opened {
  readonly credential: Credential;
  readonly key: Buffer;
}

export interface RefreshDeps {
  readonly pool: pg.Pool;
  readonly limits: RefreshLimits;
  readonly faultPoint:
    | ((name: 'credentials.leased' | 'credentials.answered' | 'credentials.stored' | 'credentials.lapsed') => void)
    | undefined;
  readonly find: () => Promise<CredentialRow | null>;
  /** Null: the client was erased. */
  readonly opened: (row: SealedRow) => Promise<Opened | null>;
}

type Ask = (former: Credential, signal: AbortSignal) => Promise<Refresh>;

interface Lease {
  readonly accountId: string;
  readonly version: number;
  readonly refresher: string;
  /** Monotonic milliseconds: earlier than the end of the lease by the database's clock. */
  readonly until: number;
}

interface RefreshLease extends Lease {
  readonly former: Credential;
  readonly key: Buffer;
  readonly callUntil: number;
}

const unavailable = (reason: string): Refreshed => ({ kind: 'unavailable', reason });

export const refreshCredential = async (
  deps: RefreshDeps,
  accountId: string,
  seen: number,
  ask: Ask,
  signal: AbortSignal,
): Promise<Refreshed> => {
  /** Failures when this call began to wait for the refresh of another. */
  let failures: number | null = null;
  for (let polls = 0; ; polls += 1) {
    if (signal.aborted) return unavailable('the caller stopped');
    const row = await deps.find();
    const ended = await endedAs(deps, row, seen);
    if (ended !== null || row === null) return ended ?? { kind: 'missing' };
    if (failures !== null && row.failures > failures) return unavailable('another refresh of the account failed');
    if (!row.isHeld) {
      const held = await lease(deps, accountId, seen);
      if (held === 'erased') return { kind: 'missing' };
      if (held !== null) return refreshHeld(deps, held, ask, signal);
    }
    failures ??= row.failures;
    const waitMs = backOff(polls, pollWaits) * (0.5 + Math.random() / 2);
    await pause(waitMs, signal);
  }
};

/** How a refresh of the version `seen` ended; null: it has not. */
const endedAs = async (deps: RefreshDeps, row: CredentialRow | null, seen: number): Promise<Refreshed | null> => {
  if (row === null) return { kind: 'missing' };
  const { version, lapseReason, isLost } = row;
  if (version !== seen) {
    const opened = await deps.opened(row);
    return opened === null ? { kind: 'missing' } : { kind: 'current', credential: opened.credential };
  }
  return lapseReason === null ? null : lapsed(version, lapseReason, isLost);
};

/** The owner of the account reads these words. */
const lapsed = (version: number, said: string, isLost: boolean): Refreshed => {
  const reason = isLost
    ? `The network's answer to a refresh was lost, so it may have replaced the account's token. It now says: ${said}`
    : said;
  return { kind: 'lapsed', version, reason, isLost };
};

/** Null: another one has it. */
const lease = async (
  deps: RefreshDeps,
  accountId: string,
  version: number,
): Promise<RefreshLease | 'erased' | null> => {
  const { pool, limits } = deps;
  const refresher = randomUUID();
  const from = performance.now();
  const { rows } = await pool.query<Omit<SealedRow, 'version'>>({
    text: leaseSql,
    values: [accountId, version, refresher, limits.leaseMs],
    ...answeredWithin(limits.answerMs),
  });
  const [row] = rows;
  if (row === undefined) return null;
  const held = { accountId, version, refresher, until: from + limits.leaseMs };
  try {
    const opened = await deps.opened({ ...row, version });
    if (opened === null) return 'erased';
    return { ...held, former: opened.credential, key: opened.key, callUntil: from + limits.callMs };
  } catch (error) {
    // Nothing was asked, so nothing can be lost. The first error is the one to report.
    await release(deps, held, false).catch(() => undefined);
    throw error;
  }
};

const refreshHeld = async (
  deps: RefreshDeps,
  held: RefreshLease,
  ask: Ask,
  signal: AbortSignal,
): Promise<Refreshed> => {
  deps.faultPoint?.('credentials.leased');
  let answer: Refresh;
  try {
    answer = await answerOf(deps, held, ask, signal);
  } catch (error) {
    await release(deps, held, true).catch(() => undefined);
    throw error;
  }
  deps.faultPoint?.('credentials.answered');
  switch (answer.kind) {
    case 'refreshed':
      return store(deps, held, answer.credential);
    case 'refused': {
      const reason = reasonWithout(answer.reason, held.former.secret);
      const { rows } = await untilStored<{ isLost: boolean }>(deps, held, lapseSql, [reason]);
      deps.faultPoint?.('credentials.lapsed');
      const [row] = rows;
      if (row === undefined) return otherwise(deps, held.version);
      return lapsed(held.version, reason, row.isLost);
    }
    case 'unavailable':
      await release(deps, held, answer.isSilent === true);
      return unavailable(reasonWithout(answer.reason, held.former.secret));
  }
};

/** Calls the network once. Its signal aborts at the deadline, or some time after the caller's. */
const answerOf = async (
  { limits }: RefreshDeps,
  { former, callUntil }: RefreshLease,
  ask: Ask,
  signal: AbortSignal,
): Promise<Refresh> => {
  const call = new AbortController();
  const timers = new Set<NodeJS.Timeout>();
  const after = (ms: number, run: () => void): void => void timers.add(setTimeout(run, ms));
  const abort = (): void => call.abort(new Error('the network did not answer to a refresh in time'));
  const stopping = (): void => after(limits.graceMs, abort);
  const silent = { kind: 'unavailable', reason: 'the network did not answer in time', isSilent: true } as const;
  const leftMs = callUntil - performance.now();
  if (leftMs <= 0) return { kind: 'unavailable', reason: 'the database answered too late' };
  after(leftMs, abort);
  if (signal.aborted) stopping();
  signal.addEventListener('abort', stopping, { once: true });
  try {
    return await new Promise<Refresh>((resolve, reject) => {
      call.signal.addEventListener('abort', () => after(lateMs, () => resolve(silent)), { once: true });
      ask(former, call.signal).then(
        // We ended the call, so the adapter cannot know what the network did.
        (answer) => resolve(call.signal.aborted && answer.kind === 'unavailable' ? silent : answer),
        (error: unknown) => (call.signal.aborted ? resolve(silent) : reject(error)),
      );
    });
  } finally {
    signal.removeEventListener('abort', stopping);
    for (const timer of timers) clearTimeout(timer);
  }
};

/** A member that the answer left out keeps its former value. */
const merged = (former: Secret, next: Secret): Secret => ({
  ...former,
  ...Object.fromEntries(Object.entries(next).filter(([, value]) => value !== undefined)),
});

const store = async (deps: RefreshDeps, held: RefreshLease, next: NewCredential): Promise<Refreshed> => {
  const { accountId, former, key } = held;
  const version = former.version + 1;
  const secret = merged(former.secret, next.secret);
  let expiresAt: string | null;
  let sealed: Buffer;
  try {
    expiresAt = instantOf(next.expiresAt);
    sealed = seal(key, { accountId, version }, secret);
  } catch (error) {
    await release(deps, held, true).catch(() => undefined);
    throw error;
  }
  const { rowCount } = await untilStored(deps, held, storeSql, [sealed, expiresAt]);
  deps.faultPoint?.('credentials.stored');
  if (rowCount === 1) return { kind: 'current', credential: { version, secret, expiresAt } };
  return otherwise(deps, former.version);
};

/** No row was ours: a consent or a destruction came, or an earlier try was stored though its answer was lost. */
const otherwise = async (deps: RefreshDeps, version: number): Promise<Refreshed> =>
  (await endedAs(deps, await deps.find(), version)) ?? unavailable('another process took the refresh over');

const release = async (deps: RefreshDeps, lease: Lease, isLost: boolean): Promise<void> => {
  await untilStored(deps, lease, releaseSql, [isLost, deps.limits.restMs, deps.limits.maxRestMs]);
};

/** Tries for as long as the lease lasts: what the network answered cannot be asked for again. */
const untilStored = async <Row extends pg.QueryResultRow>(
  { pool, limits }: RefreshDeps,
  { accountId, version, refresher, until }: Lease,
  text: string,
  values: readonly unknown[],
): Promise<pg.QueryResult<Row>> => {
  for (let failures = 0; ; failures += 1) {
    const leftMs = until - performance.now();
    const query = {
      ...{ text, values: [accountId, version, refresher, ...values] },
      ...answeredWithin(Math.max(100, Math.min(limits.answerMs, leftMs))),
    };
    try {
      return await pool.query<Row>(query);
    } catch (error) {
      const waitMs = backoffMs(failures);
      if (!mayPass(error) || waitMs > until - performance.now()) throw error;
      await delay(waitMs);
    }
  }
};

/** Conflicts, lack of resources and an operator's doing pass, as a lost connection does. */
const mayPass = (error: unknown): boolean =>
  isConnectionLost(error) || (error instanceof pg.DatabaseError && /^(40|53|55|57)/.test(error.code ?? ''));
