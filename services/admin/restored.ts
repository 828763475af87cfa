import { account } from '#domain/account.ts';
import { Rejection } from '#domain/decider.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { completedRestoreOf, newestRestore, restored, trustAccount } from '#runtime/work/restores.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { idOf } from './find.ts';

/** Tells this installation that its database or its store is an older copy. */

const instantOf = (text: string, now: number): string => {
  const at = /^\d{4}-\d\d-\d\dT.*(?:Z|[+-]\d\d:\d\d)$/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(at) || at > now) {
    throw new UsageError('--store-as-of is the instant of the copy, in the past, such as 2026-01-31T08:00:00Z.');
  }
  return new Date(at).toISOString();
};

/**
 * One statement decides everything: from then on every process asks before it claims. A repeat goes on with the same
 * restore; `--again` declares another one of the same copy.
 */
export const declareRestored = async (admin: Admin, { flag, has }: Given): Promise<CommandOutput> => {
  const { pool, operator, note } = admin;
  const storeAsOf = instantOf(flag('store-as-of') ?? '', operator.clock());
  const known = has('again') ? null : await completedRestoreOf(pool, storeAsOf);
  if (known === null) await restored(pool, storeAsOf, operator.actor.id, { again: has('again') });
  else note('This restore was declared before and is recorded; --again declares another restore of the same copy.');
  const restore = known ?? (await newestRestore(pool));
  if (known === null) {
    note('Publishing is held. The outcomes process records what was due as unknown, and networks are asked.');
    note('Once you have looked at those targets: npm run admin -- publishing resume');
  }
  return {
    storeAsOf,
    restoredAt: restore?.restoredAt ?? null,
    recorded: restore?.completedAt ?? 'under way',
  };
};

export const trustRestored = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const { pool, store, operator } = admin;
  const id = idOf(at(0), 'account');
  const { state } = await store.load(account, id);
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such account.');
  await trustAccount(pool, id, operator.actor.id);
  return { accountId: id, trusted: true };
};
