/** The call that gives a published post what follows it: its refusals, its lost answers, and its row in the ledger. */
import type { AfterStepOutcome, AfterStepRequest } from '#contracts/ports/platform.ts';
import { coverForbidden, down } from './answers.ts';
import { type Fault, faultsOf } from './faults.ts';
import { answerOf, refusalOf, strikingOf } from './follow-up.ts';
import { withoutCovers } from './ids.ts';
import { imitations } from './imitations.ts';
import type { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';
import type { SandboxOptions } from './options.ts';
import { said, untilAborted } from './script.ts';

type Refused = Exclude<AfterStepOutcome, { readonly kind: 'done' }>;

const unanswered = (words: string): Refused => ({ kind: 'deferred', failure: down(words) });

/** Sets the cover. The faults are those whose directive in the text of the post begins with `cover_`. */
export async function afterStep(
  network: Network,
  options: SandboxOptions,
  request: AfterStepRequest,
  signal: AbortSignal,
): Promise<AfterStepOutcome> {
  const silence = untilAborted(signal).then(() => unanswered(said.timeout_after));
  return Promise.race([call(network, options, request, signal), silence]);
}

/** `[[sandbox:cover_down once]]` strikes as `[[sandbox:down once]]`. */
const ownFaults = (text: string): readonly Fault[] =>
  [...text.matchAll(/\[\[sandbox:cover[_-]([^\]\n]{1,110})\]\]/g)].flatMap(([, words]) =>
    faultsOf(`[[sandbox:${words}]]`, null),
  );

async function call(
  network: Network,
  options: SandboxOptions,
  request: AfterStepRequest,
  signal: AbortSignal,
): Promise<AfterStepOutcome> {
  const { platform, targetId, externalId: postId, step, account, cover } = request;
  const striking = strikingOf(network, `${targetId}/${step}`, ownFaults(request.content));
  const row = (outcome: 'done' | 'refused', refusal: string | null) => {
    const { mediaId, sha256 } = cover;
    const parties = { platform, accountId: account.id, targetId, postId };
    return network.afterStep({ ...parties, step, mediaId, sha256, callStartedAt: new Date(), outcome, refusal });
  };
  try {
    if ((await striking('down')) !== null) return unanswered('503 Service Unavailable');
    await cover.file();
    const { covers } = imitations[platform];
    if (covers === undefined) throw new Error(`${platform} takes no cover behind the publication`);
    const isAllowed = account.username?.startsWith(withoutCovers) !== true;
    const forbidden = isAllowed ? null : coverForbidden(covers.forbidden);
    const refusal = await refusalOf(network, request, striking, forbidden, 'The video is not there');
    const answer = refusal === null ? await answerOf(striking) : null;
    // No await from this check to the call: a caller whose deadline has passed makes none.
    if (signal.aborted) return unanswered('the deadline passed before the call was made');
    if (refusal !== null) {
      await row('refused', refusal.failure.code);
      return refusal;
    }
    if (answer === 'timeout_before' || answer === 'error_before') await row('refused', answer);
    else {
      await row('done', null);
      options.faultPoint?.('sandbox.step_accepted');
      if (answer === null) return { kind: 'done' };
    }
    if (answer === 'timeout_before' || answer === 'timeout_after') await untilAborted(signal);
    return unanswered(said[answer]);
  } catch (error) {
    if (!(error instanceof NetworkUnavailable)) throw error;
    return unanswered(error.message);
  }
}
