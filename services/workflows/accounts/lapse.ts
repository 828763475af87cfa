import { account } from '#domain/account.ts';
import type { CommandContext, DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';

/** Longest reason that the event takes, in characters. */
const maxReason = 500;

/**
 * Records that an account lapsed and only its owner can mend that. The account's decider records it once per lapse. An
 * account that was reauthorized after the caller read it is left as it is: the caller saw the former consent fail.
 * @param reason the network's words
 * @param readAt revision of the account that the caller read before it saw the lapse
 */
export const lapse = async (
  store: DomainStore,
  accountId: string,
  reason: string,
  context: CommandContext,
  readAt: number,
): Promise<void> => {
  try {
    const command = { type: 'RequireReauth', reason: wellFormedText(reason, maxReason) } as const;
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

class Renewed extends Error {}
