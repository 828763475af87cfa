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
import { finishStep, planStep, probeStep, renderStep } from './render.ts';
import { storeStep } from './store.ts';

/**
 * Removes the files of a deleted asset when no post can need them. A post that was accepted beside the deletion is
 * published with the asset, so its files are kept until then. Files of an asset that cannot be published go at once:
 * only a draft can name it, and the api checks a draft again before it is published.
 */

/** Wait until the next check whether a post still needs the asset, milliseconds. */
const againMs = 3_600_000;
/** Wait until the next check whether the read models have caught up with the log, milliseconds. */
const behindMs = 5_000;

const notYet = (waitMs: number): Postponed => new Postponed('the files of a deleted asset may still be needed', waitMs);

const removeStep = async (leased: LeasedAsset, { uses, jobs }: Tools): Promise<void> => {
  if (leased.asset.status === 'transcoded') {
    if (!(await uses.isHidden(leased.id))) throw notYet(behindMs);
    const leftMs = uses.graceMs - (await jobs.hiddenMs(leased.id));
    if (leftMs > 0) throw notYet(leftMs);
    if (!(await uses.hasAllPosts())) throw notYet(behindMs);
    if (await uses.hasOpenPost(leased.workspaceId, leased.id)) throw notYet(againMs);
  }
  await leased.record({ type: 'RemoveFiles' });
};

/**
 * Takes one asset through all its steps. Each step ends in an event, so a worker that dies in a step leaves a state
 * with the same next step. The worker counts each try before it begins, so that a step that kills its workers ends.
 */

/** Tries of a step in a row that may begin and not end in order. */
const maxDeaths = 5;
/** Failed downloads after which an import is given up. */
const maxFetches = 6;

const steps: Readonly<Record<MediaStep, (leased: LeasedAsset, tools: Tools) => Promise<void>>> = {
  store: storeStep,
  probe: probeStep,
  plan: planStep,
  render: renderStep,
  finish: finishStep,
  remove: removeStep,
};

/** @throws the error that stopped the work; the job then stays */
export const processAsset = async (leased: LeasedAsset, begun: Begun, tools: Tools): Promise<void> => {
  const { jobs } = tools;
  if (leased.state.status === 'none' || leased.state.status === 'offered') return forget(leased, tools);
  if (begun.attempts > maxDeaths) await giveUp(leased);
  for (let step = nextStep(leased.state); step !== null; step = nextStep(leased.state)) {
    await requireLane(leased, step, tools);
    const { revision } = leased;
    await take(leased, step, begun, tools);
    if (leased.revision === revision)
      throw new BrokenInvariant(`the step ${step} of asset ${leased.id} left it as it was`);
    reached(step);
  }
  await tidy(leased, tools);
  // If an event asked for more work meanwhile, the row stays, and the next search finds it.
  await jobs.done(leased.id, leased.revision);
};

/**
 * For an event store that was restored to an earlier day: no event names the blobs, and a later registration makes a
 * new job. Deletes the row last, so a crash in between repeats this.
 */
const forget = async (leased: LeasedAsset, { jobs, importUrls, logger }: Tools): Promise<void> => {
  logger.warn({ assetId: leased.id }, 'a media job was dropped: there is no such asset');
  for (const key of leased.written) await leased.blobs.delete(key);
  await importUrls.destroy(leased.id);
  await jobs.drop(leased.id);
};

/** The next step needs a slot of another lane, so the job moves there. */
export class OtherLane extends Postponed {
  readonly lane: JobLane;
  constructor(lane: JobLane) {
    super(`it belongs to the ${lane}`);
    this.lane = lane;
  }
}

/**
 * Only downloads use slots of downloads. The worker destroys the address before the job leaves the lane: after a crash
 * in between the next worker destroys it again and moves the job.
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

const take = async (leased: LeasedAsset, step: MediaStep, begun: Begun, tools: Tools): Promise<void> => {
  const began = performance.now();
  const ended = (outcome: 'done' | 'refused' | 'stopped' | 'failed'): void =>
    tools.metrics?.step(step, outcome, (performance.now() - began) / 1_000);
  try {
    await steps[step](leased, tools);
    ended('done');
  } catch (error) {
    const stopped = leased.signal.aborted || error instanceof Postponed;
    const rejection = stopped ? null : rejectionOf(error, begun);
    ended(stopped ? 'stopped' : rejection === null ? 'failed' : 'refused');
    if (rejection === null) throw error;
    tools.logger.info({ assetId: leased.id, step, code: rejection.failure.code }, 'a media file was refused');
    await refuse(leased, rejection);
  }
};

interface AssetRejection {
  readonly hostile: boolean;
  readonly failure: MediaFailure;
}

/** Why the file is refused; null: the file is not to blame, or another try may help. */
const rejectionOf = (error: unknown, { fetches }: Begun): AssetRejection | null => {
  if (error instanceof TranscodeError)
    return error.failure === null ? null : { hostile: error.kind === 'hostile', failure: error.failure };
  if (error instanceof DownloadError) {
    if (error.retryable && fetches + 1 < maxFetches) return null;
    return { hostile: false, failure: mediaFailure(error.code) };
  }
  return null;
};

/** A file that can already be published stays so: only its missing renditions fail. */
const refuse = async (leased: LeasedAsset, { hostile, failure }: AssetRejection): Promise<void> => {
  if (leased.asset.status === 'transcoding') {
    await leased.record({ type: hostile ? 'RecordQuarantined' : 'RecordFailed', failure });
    return;
  }
  const needs = [...leased.asset.needs.values()];
  const wanted = needs.flatMap(({ platform, use, status }) =>
    status === 'wanted' ? [{ platform, use, outcome: 'failed' as const, failure }] : [],
  );
  if (wanted.length > 0) await leased.record({ type: 'Plan', initial: false, needs: wanted });
  const planned = new Set(needs.flatMap((need) => (need.status === 'planned' ? [need.rendition] : [])));
  for (const rendition of planned) await leased.record({ type: 'RecordRenditionFailed', rendition, failure });
};

const giveUp = async (leased: LeasedAsset): Promise<void> => {
  if (nextStep(leased.state) !== null)
    await refuse(leased, { hostile: false, failure: mediaFailure('processing_failed') });
};

/**
 * Deletes blobs that the stream does not name: the upload after its copy is recorded, and blobs from before a crash.
 * Deletes all blobs of a refused file, which no caller may fetch, and of a deleted asset. The remaining blobs count for
 * the quota; those of a deleted asset count until they are gone. The caller deletes the row last, so a crash in between
 * repeats this.
 */
const tidy = async (leased: LeasedAsset, { importUrls, usage }: Tools): Promise<void> => {
  const { state } = leased;
  if (state.status === 'none' || state.status === 'offered') return;
  if (state.status === 'deleted') {
    await importUrls.destroy(leased.id);
    for (const key of new Set([...leased.written, ...state.keys])) await leased.blobs.delete(key);
    faultPoint('media:after-blobs-gone');
    return usage.set(0);
  }
  const { origin } = state;
  if (origin.kind === 'import') await importUrls.destroy(leased.id);
  const files = filesOf(state).map(({ key }) => key);
  const refused = state.status === 'failed' || state.status === 'quarantined';
  const gone = new Set([...leased.written, ...(refused ? files : [])]);
  if (!refused) for (const key of files) gone.delete(key);
  if (origin.kind === 'upload') gone.add(origin.offer.key);
  for (const key of gone) await leased.blobs.delete(key);
  await usage.set(bytesOf(state));
};

/**
 * A fault of the machine, a dependency or a foreign server, and not of the file: the worker tries again without limit.
 */
export const isFaultOfSurroundings = (error: unknown): boolean => {
  if (error instanceof DownloadError || error instanceof Postponed) return true;
  if (error instanceof TranscodeError) return error.kind === 'interrupted';
  const code = error instanceof Error && 'code' in error ? String(error.code) : '';
  // No room, or too many open files, on this machine.
  return ['ENOSPC', 'EDQUOT', 'EMFILE', 'ENFILE', 'ENOMEM'].includes(code) || isInfrastructureFault(error);
};
