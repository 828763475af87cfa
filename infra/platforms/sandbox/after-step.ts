/** The call that gives a published post what follows it: its refusals, its lost answers, and its row in the ledger. */
import type { AfterStepOutcome, AfterStepRequest } from '#contracts/ports/platform.ts';
import type { Failure } from '#schemas/target.ts';
import { coverForbidden, down, refused, versionEnded } from './answers.ts';
import { type Fault, type FaultName, faultsOf } from './faults.ts';
import { withoutCovers } from './ids.ts';
import { imitations } from './imitations.ts';
import type { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';
import type { SandboxOptions } from './options.ts';
import { answers, refusals, said, untilAborted } from './script.ts';

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
  const faults = ownFaults(request.content);
  const striking = async (name: FaultName): Promise<Fault | null> => {
    const fault = faults.find((one) => one.name === name);
    return fault !== undefined && (await network.fires(`${targetId}/${step}`, fault)) ? fault : null;
  };
  const row = (outcome: 'done' | 'refused', refusal: string | null) => {
    const { mediaId, sha256 } = cover;
    const parties = { platform, accountId: account.id, targetId, postId };
    return network.afterStep({ ...parties, step, mediaId, sha256, callStartedAt: new Date(), outcome, refusal });
  };
  try {
    if ((await striking('down')) !== null) return unanswered('503 Service Unavailable');
    await cover.file();
    const refusal = await refusalOf(network, request, striking);
    let answer: (typeof answers)[number] | null = null;
    for (const name of refusal === null ? answers : []) {
      if (answer === null && (await striking(name)) !== null) answer = name;
    }
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

async function refusalOf(
  network: Network,
  { platform, account, externalId }: AfterStepRequest,
  striking: (name: FaultName) => Promise<Fault | null>,
): Promise<Refused | null> {
  const failed = (failure: Failure): Refused => ({ kind: 'failed', failure });
  const ended = await network.endedVersion(platform);
  if (ended !== null) {
    const retryAt = new Date(Date.now() + 900_000).toISOString();
    return { kind: 'rate_limited', retryAt, failure: versionEnded(ended) };
  }
  const { covers } = imitations[platform];
  if (covers === undefined) throw new Error(`${platform} takes no cover behind the publication`);
  if (account.username?.startsWith(withoutCovers) === true) return failed(coverForbidden(covers.forbidden));
  for (const name of refusals) {
    const fault = await striking(name);
    if (fault === null) continue;
    const failure = refused(platform, name);
    if (name !== 'rate_limit') return failed(failure);
    const retryAt = new Date(Date.now() + (fault.durationMs ?? 2000)).toISOString();
    return { kind: 'rate_limited', retryAt, failure };
  }
  if (await network.shows(platform, account.id, externalId)) return null;
  return failed({ ...refused(platform, 'reject'), platformMessage: 'The video is not there' });
}
