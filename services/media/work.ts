import { TranscodeError } from '#contracts/ports/transcoder.ts';
import { bytesOf, filesOf, type MediaStep, nextStep } from '#domain/media.ts';
import { mediaFailure } from '#domain/media-failures.ts';
import { DownloadError } from '#runtime/egress/download.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { isInfrastructureFault } from '#runtime/process/faults.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { MediaFailure } from '#schemas/media.ts';
import type { Tools } from './deps.ts';
import type { Begun, JobLane } from './jobs.ts';
import type { LeasedAsset } from './leased-asset.ts';
import { Postponed } from './postponed.ts';
import { removeStep } from './remove.ts';
import { finishStep, planStep, probeStep, renderStep } from './render.ts';
import { storeStep } from './store.ts';

/**
 * Brings one asset as far as it goes. Each step ends in an event, so whoever dies in a step leaves a state whose next
 * step is the same one; a step that kills its workers again and again is ended by the count kept before it began.
 */

/** Times in a row that a step may be begun and not come to an end of its own. */
const maxDeaths = 5;
/** Downloads that may fail before an import is given up. */
const maxFetches = 6;

const steps: Readonly<Record<MediaStep, (held: LeasedAsset, tools: Tools) => Promise<void>>> = {
  store: storeStep,
  probe: probeStep,
  plan: planStep,
  render: renderStep,
  finish: finishStep,
  remove: removeStep,
};

/** @throws what stopped it, when there is something left to do */
export const processAsset = async (held: LeasedAsset, begun: Begun, tools: Tools): Promise<void> => {
  const { jobs } = tools;
  if (held.state.status === 'none' || held.state.status === 'offered') return forget(held, tools);
  if (begun.attempts > maxDeaths) await giveUp(held);
  for (let step = nextStep(held.state); step !== null; step = nextStep(held.state)) {
    await requireLane(held, step, tools);
    const { revision } = held;
    await take(held, step, begun, tools);
    if (held.revision === revision) throw new BrokenInvariant(`the step ${step} of asset ${held.id} left it as it was`);
    reached(step);
  }
  await tidy(held, tools);
  // Asked for more meanwhile: the row stays, and is found again at once.
  await jobs.done(held.id, held.revision);
};

/**
 * The store was put back to an earlier day: what was written is named by nobody, and a registration to come is heard of.
 * The row goes last, so a death in between repeats it.
 */
const forget = async (held: LeasedAsset, { jobs, importUrls, logger }: Tools): Promise<void> => {
  logger.warn({ assetId: held.id }, 'a media job was dropped: there is no such asset');
  for (const key of held.written) await held.blobs.delete(key);
  await importUrls.destroy(held.id);
  await jobs.drop(held.id);
};

/** What is left to do is done in a slot of another kind: the job goes there. */
export class OtherLane extends Postponed {
  readonly lane: JobLane;
  constructor(lane: JobLane) {
    super(`it belongs to the ${lane}`);
    this.lane = lane;
  }
}

/**
 * A download is for a slot of downloads alone, and nothing else is. The address goes before the job leaves the lane: if we
 * die in between, the next worker destroys it again and leaves.
 */
const requireLane = async ({ asset, id }: LeasedAsset, step: MediaStep, { lane, importUrls }: Tools): Promise<void> => {
  const isDownload = step === 'store' && asset.origin.kind === 'import';
  if (!isDownload && lane === 'downloads') {
    await importUrls.destroy(id);
    faultPoint('media:after-lane');
  }
  if (isDownload !== (lane === 'downloads')) throw new OtherLane(isDownload ? 'downloads' : 'files');
};

const reached = (step: MediaStep): void => {
  if (step === 'store') faultPoint('media:after-stored');
  if (step === 'probe') faultPoint('media:after-probed');
  if (step === 'plan') faultPoint('media:after-planned');
  if (step === 'remove') faultPoint('media:after-removed');
  if (step === 'finish') faultPoint('media:after-finish');
};

const take = async (held: LeasedAsset, step: MediaStep, begun: Begun, tools: Tools): Promise<void> => {
  const began = performance.now();
  const ended = (outcome: 'done' | 'refused' | 'stopped' | 'failed'): void =>
    tools.metrics?.step(step, outcome, (performance.now() - began) / 1_000);
  try {
    await steps[step](held, tools);
    ended('done');
  } catch (error) {
    const stopped = held.signal.aborted || error instanceof Postponed;
    const verdict = stopped ? null : rejectionOf(error, begun);
    ended(stopped ? 'stopped' : verdict === null ? 'failed' : 'refused');
    if (verdict === null) throw error;
    tools.logger.info({ assetId: held.id, step, code: verdict.failure.code }, 'a media file was refused');
    await refuse(held, verdict);
  }
};

interface AssetRejection {
  readonly hostile: boolean;
  readonly failure: MediaFailure;
}

/** What the file itself is to blame for; null: nothing, and again may help. */
const rejectionOf = (error: unknown, { fetches }: Begun): AssetRejection | null => {
  if (error instanceof TranscodeError)
    return error.failure === null ? null : { hostile: error.kind === 'hostile', failure: error.failure };
  if (error instanceof DownloadError) {
    if (error.retryable && fetches + 1 < maxFetches) return null;
    return { hostile: false, failure: mediaFailure(error.code) };
  }
  return null;
};

/** A file that can be published already stays so: only what was still wanted of it has failed. */
const refuse = async (held: LeasedAsset, { hostile, failure }: AssetRejection): Promise<void> => {
  if (held.asset.status === 'transcoding') {
    await held.record({ type: hostile ? 'RecordQuarantined' : 'RecordFailed', failure });
    return;
  }
  const needs = [...held.asset.needs.values()];
  const wanted = needs.flatMap(({ platform, use, status }) =>
    status === 'wanted' ? [{ platform, use, outcome: 'failed' as const, failure }] : [],
  );
  if (wanted.length > 0) await held.record({ type: 'Plan', initial: false, needs: wanted });
  const planned = new Set(needs.flatMap((need) => (need.status === 'planned' ? [need.rendition] : [])));
  for (const rendition of planned) await held.record({ type: 'RecordRenditionFailed', rendition, failure });
};

const giveUp = async (held: LeasedAsset): Promise<void> => {
  if (nextStep(held.state) !== null) await refuse(held, { hostile: false, failure: mediaFailure('processing_failed') });
};

/**
 * Deletes what the stream does not name: the upload once its copy is recorded, what was written before a death and made
 * anew after it, and everything of a file that was refused: nobody may fetch it, and its code says what it was. Then what
 * is left counts. The row goes last, so a death in between repeats it. Of a deleted asset all goes, and counts until it is gone.
 */
const tidy = async (held: LeasedAsset, { importUrls, usage }: Tools): Promise<void> => {
  const { state } = held;
  if (state.status === 'none' || state.status === 'offered') return;
  if (state.status === 'deleted') {
    await importUrls.destroy(held.id);
    for (const key of new Set([...held.written, ...state.keys])) await held.blobs.delete(key);
    faultPoint('media:after-blobs-gone');
    return usage.set(0);
  }
  const { origin } = state;
  if (origin.kind === 'import') await importUrls.destroy(held.id);
  const files = filesOf(state).map(({ key }) => key);
  const refused = state.status === 'failed' || state.status === 'quarantined';
  const gone = new Set([...held.written, ...(refused ? files : [])]);
  if (!refused) for (const key of files) gone.delete(key);
  if (origin.kind === 'upload') gone.add(origin.offer.key);
  for (const key of gone) await held.blobs.delete(key);
  await usage.set(bytesOf(state));
};

/** A fault of what the file needs and not of the file: the worker tries again without end and blames no file. */
export const isFaultOfSurroundings = (error: unknown): boolean => {
  if (error instanceof DownloadError || error instanceof Postponed) return true;
  if (error instanceof TranscodeError) return error.kind === 'interrupted';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // No room, or too many open files, on this machine.
  return ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM'].includes(code) || isInfrastructureFault(error);
};
