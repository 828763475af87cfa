import path from 'node:path';
import type { MadeRendition, WantedRendition } from '#contracts/ports/transcoder.ts';
import { type Asset, type MadeFile, needKey } from '#domain/media.ts';
import { mediaFailure } from '#domain/media-failures.ts';
import { initialNeeds, planRenditions, posterSpec } from '#domain/renditions/index.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { BrokenInvariant } from '#runtime/process/invariant.ts';
import type { MediaProbe } from '#schemas/media.ts';
import type { Tools } from './deps.ts';
import type { LeasedAsset } from './leased-asset.ts';

/** The steps after a file is stored: probe it, plan its renditions, render them, and make a poster. */

export const probeStep = async (leased: LeasedAsset, { transcoder }: Tools): Promise<void> => {
  const { kind, contentType, key } = storedOf(leased.asset);
  const file = await leased.local(key);
  const probe = await transcoder.probe(file, { kind, contentType }, { signal: leased.signal });
  await leased.record({ type: 'RecordProbed', probe });
};

export const planStep = async (leased: LeasedAsset): Promise<void> => {
  const { planned, needs, platforms } = leased.asset;
  const probe = probeOf(leased.asset);
  const wanted = [...needs.values()].filter(({ status }) => status === 'wanted');
  const first = planned ? [] : initialNeeds(probe, platforms).filter((need) => !needs.has(needKey(need)));
  const all = [...first, ...wanted].map(({ platform, use }) => ({ platform, use }));
  await leased.record({ type: 'Plan', initial: !planned, needs: planRenditions(probe, all) });
};

export const renderStep = async (leased: LeasedAsset, tools: Tools): Promise<void> => {
  const asset = leased.asset;
  const files = new Map<string, MadeFile>();
  const missing = new Set<string>();
  for (const need of asset.needs.values()) {
    if (need.status === 'ready') files.set(need.rendition, need.file);
    else if (need.status === 'planned') missing.add(need.rendition);
  }
  // Networks with the same spec share one file.
  for (const rendition of missing) {
    const file = files.get(rendition);
    if (file === undefined) continue;
    await leased.record({ type: 'RecordRendition', rendition, file });
    missing.delete(rendition);
  }
  for (const made of await rendered(leased, tools, [...missing])) {
    if (made.kind === 'failed') {
      await leased.record({ type: 'RecordRenditionFailed', rendition: made.id, failure: made.failure });
      continue;
    }
    const { width, height, durationMs } = made;
    // mutant: rendition recorded before its file is there
    const file = await leased.put(made.id, made);
    faultPoint('media:after-rendition-put');
    await leased.record({ type: 'RecordRendition', rendition: made.id, file: { ...file, width, height, durationMs } });
    faultPoint('media:after-rendition');
  }
};

export const finishStep = async (leased: LeasedAsset, tools: Tools): Promise<void> => {
  const spec = posterSpec(probeOf(leased.asset));
  const [made] = spec === null ? [] : await rendering(leased, tools, [{ id: 'poster', spec }]);
  let poster = null;
  // A file without a poster is shown without one.
  if (made?.kind === 'made' && made.width !== null && made.height !== null) {
    const { width, height } = made;
    poster = { ...(await leased.put('poster', made)), width, height };
  }
  faultPoint('media:before-finish');
  await leased.record({ type: 'RecordTranscoded', poster });
};

const rendered = async (
  leased: LeasedAsset,
  tools: Tools,
  ids: readonly string[],
): Promise<readonly MadeRendition[]> => {
  const { specs } = leased.asset;
  const wanted = ids.flatMap((id) => {
    const spec = specs.get(id);
    return spec === undefined ? [] : [{ id, spec }];
  });
  const lost = ids.filter((id) => !specs.has(id));
  const failure = mediaFailure('rendition_failed');
  const made = wanted.length === 0 ? [] : await rendering(leased, tools, wanted);
  return [...made, ...lost.map((id): MadeRendition => ({ id, kind: 'failed', failure }))];
};

/** Cores that one video can use. */
const maxThreads = 8;

type Wanted = readonly Omit<WantedRendition, 'to'>[];

/** A still needs one thread for a moment, so it does not wait for cores, which a video may keep for hours. */
const rendering = async (leased: LeasedAsset, tools: Tools, wanted: Wanted): Promise<readonly MadeRendition[]> => {
  const { cores, videos } = tools;
  if (!wanted.some(({ spec }) => spec.kind === 'video')) return making(leased, tools, wanted, 1, leased.signal);
  videos.enter();
  try {
    // Fetches the file first, so that no cores are taken during the transfer.
    await leased.local(storedOf(leased.asset).key);
    const taken = await cores.take(maxThreads, leased.signal);
    try {
      return await making(leased, tools, wanted, taken.threads, AbortSignal.any([leased.signal, taken.signal]));
    } finally {
      taken.release();
    }
  } finally {
    videos.leave();
  }
};

const making = async (
  leased: LeasedAsset,
  { transcoder, progress }: Tools,
  wanted: Wanted,
  threads: number,
  signal: AbortSignal,
): Promise<readonly MadeRendition[]> => {
  const source = { path: await leased.local(storedOf(leased.asset).key), probe: probeOf(leased.asset) };
  const files = wanted.map((one) => ({ ...one, to: path.join(leased.folder, `made-${one.id}`) }));
  return transcoder.render(source, files, { threads, signal, onProgress: (done) => progress(leased.id, done) });
};

const storedOf = ({ stored }: Asset): NonNullable<Asset['stored']> => {
  if (stored === null) throw new BrokenInvariant('the file was not stored');
  return stored;
};

const probeOf = ({ probe }: Asset): MediaProbe => {
  if (probe === null) throw new BrokenInvariant('the file was not probed');
  return probe;
};
