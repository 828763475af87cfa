import { within } from '#contracts/base/pause.ts';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { noAdapter, publishingHeld } from '#domain/publish-failures.ts';
import { wellFormedText } from '#runtime/eventing/well-formed.ts';
import { PublishingHeld } from '#runtime/work/publishing-wall.ts';
import type { Failure, FollowUpIssue } from '#schemas/target.ts';
import { graceMs } from './call.ts';
import { heldBy, type WorkContext } from './context.ts';
import type { Deadline } from './deps.ts';
import { accountFault } from './faults.ts';
import { cleanFailure } from './files.ts';
import type { Conditions } from './related-streams.ts';

/** What the worker's steps behind a publication have in common: the first comment, and a step such as a cover. */

/** Why no call can succeed; null: one can. @param archived what is said where the client was archived meanwhile */
export const refusalOf = (
  { account, client }: Conditions,
  adapter: PlatformAdapter | null,
  archived: Failure,
): Failure | null => {
  if (client.state.status !== 'live') return archived;
  const fault = accountFault(account.state);
  if (fault !== null) return fault.failure;
  return adapter === null ? noAdapter : null;
};

/**
 * Calls the adapter once. While publishing is held nothing is called, and the try waits.
 * @param lost what it means that the adapter threw, or that no answer came
 */
export const answerOf = <Outcome>(
  context: WorkContext,
  { targetId, step }: { readonly targetId: string; readonly step: string },
  deadline: Deadline,
  asked: Promise<Outcome>,
  lost: () => Outcome,
): Promise<Outcome | { readonly kind: 'deferred'; readonly failure: Failure }> => {
  const answered = asked.catch(async (error: unknown) => {
    if (error instanceof PublishingHeld) {
      return { kind: 'deferred', failure: (await heldBy(context)) ?? publishingHeld } as const;
    }
    context.tools.logger.error({ err: error, targetId, step }, 'the adapter threw behind the publication');
    return lost();
  });
  return within(deadline.leftMs() + graceMs, answered, lost);
};

/** The words of the network follow ours. */
export const issueOf = (failure: Failure): FollowUpIssue => {
  const { code, message, platformCode, platformMessage } = cleanFailure(failure);
  const words = platformMessage === null ? message : `${message} The network: ${platformMessage}`;
  return { code, message: wellFormedText(words, 2_000), platformCode };
};
