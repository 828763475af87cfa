import { isConflict } from '#contracts/ports/event-store.ts';
import type { ReportedProfile } from '#contracts/ports/platform-insights.ts';
import { type AccountState, account } from '#domain/account.ts';
import type { CommandContext, DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { shownProfile } from '#services/workflows/accounts/shown-profile.ts';

/**
 * Records that the network shows the account under another name or picture than before. If the process dies after the
 * append, the next poll finds the profile in the stream and appends nothing. An account that was changed since it was
 * read has a newer profile, perhaps: the next poll compares with that one.
 */
export const recordProfile = async (
  store: DomainStore,
  accountId: string,
  loaded: Loaded<AccountState>,
  shown: ReportedProfile,
  context: CommandContext,
): Promise<void> => {
  const command = { type: 'ChangeProfile', ...shownProfile(shown) } as const;
  try {
    const options = { loaded, redecide: false };
    const { appended } = await execute(store, account, accountId, command, context, options);
    if (appended.length > 0) faultPoint('insights:after-profile');
  } catch (error) {
    if (isConflict(error)) return;
    throw error;
  }
};
