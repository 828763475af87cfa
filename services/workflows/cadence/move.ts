import { account } from '#domain/account.ts';
import { callsOf } from '#domain/cadence.ts';
import { newestBody, post } from '#domain/post/post.ts';
import { movedTo, type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { type CadenceSource, faultAt } from './check.ts';

/**
 * The limit of its account that a target would break at the time which this command gives it, in words; null: none.
 * @param own targets that move with it: their former times do not count
 */
export const faultOfMove = async (
  store: DomainStore,
  source: CadenceSource,
  state: TargetState,
  command: TargetCommand,
  own: ReadonlySet<string>,
): Promise<string | null> => {
  if (state.status === 'none') return null;
  const dueAt = movedTo(target.decide(command, state));
  if (dueAt === null) return null;
  const { accountId, postId, postRevision, platform } = state.common;
  const { state: of } = await store.load(account, accountId);
  // Nothing limits a sandbox account without rules: its post need not be read.
  if (of.status === 'none' || (source.rules === null && of.network === 'sandbox' && of.observed.length === 0)) {
    return null;
  }
  const { state: whole } = await store.load(post, postId, postRevision);
  const calls = 'body' in whole ? callsOf(newestBody(whole), platform) : 1;
  const timed = { accountId, account: of, at: Date.parse(dueAt), calls };
  return faultAt(source, timed, ({ targetId }) => !own.has(targetId));
};
