import { type AccountCommand, account } from '#domain/account.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';

/** Ends what a former consent gave. */

class Renewed extends Error {}

/**
 * An account that was reauthorized after the caller read it is left as it is: what the caller saw is about the former consent.
 * @param readAt revision of the account that the caller read
 */
const unlessRenewed = async (
  store: DomainStore,
  accountId: string,
  command: AccountCommand,
  context: CommandContext,
  readAt: number,
): Promise<void> => {
  try {
    await execute(store, account, accountId, command, context, {
      guard: ({ events }) => {
        const renewed = events.some(({ type, revision }) => type === 'AccountReauthorized' && revision > readAt);
        if (renewed) throw new Renewed();
      },
    });
  } catch (error) {
    if (!(error instanceof Renewed)) throw error;
  }
};

/** Longest reason that the event takes, in characters. */
const maxReason = 500;

/**
 * Records that an account lapsed and only its owner can mend that. The account's decider records it once per lapse.
 * @param reason the network's words
 * @param readAt revision of the account that the caller read before it saw the lapse
 */
export const lapse = (
  store: DomainStore,
  accountId: string,
  reason: string,
  context: CommandContext,
  readAt: number,
): Promise<void> =>
  unlessRenewed(
    store,
    accountId,
    { type: 'RequireReauth', reason: wellFormedText(reason, maxReason) },
    context,
    readAt,
  );

/**
 * Records that the account's owner wants nothing of theirs kept. A repeat yields no event.
 * @param readAt revision of the account that the caller read
 */
export const forgetOwner = (
  store: DomainStore,
  accountId: string,
  reason: string,
  context: CommandContext,
  readAt: number,
): Promise<void> => unlessRenewed(store, accountId, { type: 'ForgetOwner', reason }, context, readAt);
