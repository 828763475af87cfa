/** Decides before the boundary how the network answers one try. */
import type { PublishOutcome, PublishRequest } from '#contracts/ports/platform.ts';
import { publishCheck } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { refused, versionEnded } from './answers.ts';
import type { Fault, FaultName } from './faults.ts';
import { sandboxProfile } from './ids.ts';
import { imitations } from './imitations.ts';
import type { Looked } from './media.ts';
import type { Network } from './network.ts';

export const answers = ['timeout_before', 'timeout_after', 'error_before', 'error_after', 'late'] as const;
export const refusals = ['token_death', 'rate_limit', 'reject', 'duplicate'] as const;
type Answer = (typeof answers)[number];

/** The text of the answer that the caller of the boundary gets, or of its absence. */
export const said: Readonly<Record<Answer, string>> = {
  timeout_before: 'no answer before the deadline',
  timeout_after: 'no answer before the deadline',
  error_before: '500 Internal Server Error',
  error_after: '500 Internal Server Error',
  late: '504 Gateway Timeout',
};

export const untilAborted = (signal: AbortSignal) =>
  new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });

/**
 * The answer to the boundary call. It is decided before the boundary: no await may lie between the boundary and the
 * call.
 */
export interface Script {
  readonly refusal: PublishOutcome | null;
  readonly answer: Answer | null;
  /** Milliseconds until the post becomes visible. */
  readonly lateMs: number;
  /** Milliseconds for which the worker hangs after the boundary append. */
  readonly hangMs: number;
  /** Null: the network shows the post at once. */
  readonly processing: Fault | null;
}

const processingFaults = ['processing_failed', 'processing_never', 'processing'] as const;

/** What is scripted of a post that the network looks at before it shows it; null: nothing. */
export const processingOf = (platform: Platform, faults: readonly Fault[]): Fault | null =>
  imitations[platform].processes === true
    ? (faults.find(({ name }) => processingFaults.some((one) => one === name)) ?? null)
    : null;

/** Milliseconds that the network looks at it. */
export const processingMs = ({ durationMs }: Fault): number => durationMs ?? 5_000;

/** The scripted fault of that name; null where it does not strike now. */
export async function firing(
  network: Network,
  request: PublishRequest,
  faults: readonly Fault[],
  name: FaultName,
): Promise<Fault | null> {
  const fault = faults.find((one) => one.name === name);
  if (fault === undefined) return null;
  const { targetId, thread } = request;
  return (await network.fires(thread === null ? targetId : `${targetId}/${thread.index}`, fault)) ? fault : null;
}

/** The refusal of the first call of this try; null where the network accepts the content. */
export async function refusalOf(
  network: Network,
  request: PublishRequest,
  faults: readonly Fault[],
  { refusal }: Looked,
): Promise<PublishOutcome | null> {
  const ended = await network.endedVersion(request.platform);
  if (ended !== null) {
    return {
      kind: 'rate_limited',
      retryAt: new Date(Date.now() + 900_000).toISOString(),
      failure: versionEnded(ended),
    };
  }
  for (const name of refusals) {
    const fault = await firing(network, request, faults, name);
    if (fault === null) continue;
    const failure = refused(request.platform, name);
    if (name !== 'rate_limit') return { kind: 'failed', failure };
    const retryAt = new Date(Date.now() + (fault.durationMs ?? 2000)).toISOString();
    return { kind: 'rate_limited', retryAt, failure };
  }
  const { platform, content, overrides, thread, account } = request;
  if (thread?.replyTo && !(await network.shows(platform, account.id, thread.replyTo.parent))) {
    return {
      kind: 'failed',
      failure: { ...refused(platform, 'reject'), platformMessage: 'The post replied to is not there' },
    };
  }
  const media = request.media.map(({ mediaId, kind, altText }) => ({
    ...{ id: mediaId, kind, probe: null },
    alt: { own: altText, asset: null },
  }));
  const scopes = account.username === null ? [] : sandboxProfile(platform, account.username).scopes;
  const failure = publishCheck({ platform, content, overrides, scopes, media }) ?? refusal;
  return failure === null ? null : { kind: 'failed', failure };
}

/** @param admitted the network has already checked and accepted the content of this try */
export async function scriptOf(
  network: Network,
  request: PublishRequest,
  faults: readonly Fault[],
  media: Looked,
  admitted: boolean,
): Promise<Script> {
  const refusal = admitted ? null : await refusalOf(network, request, faults, media);
  const hang = await firing(network, request, faults, 'hang');
  const looked = refusal === null ? processingOf(request.platform, faults) : null;
  const processing = looked === null ? null : await firing(network, request, [looked], looked.name);
  const rest = { refusal, processing, hangMs: hang === null ? 0 : (hang.durationMs ?? 5000) };
  for (const name of refusal === null ? answers : []) {
    const fault = await firing(network, request, faults, name);
    if (fault !== null) return { ...rest, answer: name, lateMs: fault.durationMs ?? 5000 };
  }
  return { ...rest, answer: null, lateMs: 0 };
}
