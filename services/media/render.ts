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

/** What is made of a file that was stored: found out what it is, planned, made, and shown by a still. */

export const probeStep = async (held: LeasedAsset, { transcoder }: Tools): Promise<void> => {
  const { kind, contentType, key } = storedOf(held.asset);
  const file = await held.local(key);
  const probe = await transcoder.probe(file, { kind, contentType }, { signal: held.signal });
  await held.record({ type: 'RecordProbed', probe });
};

export const planStep = async (held: LeasedAsset): Promise<void> => {
  const { planned, needs, platforms } = held.asset;
  const probe = probeOf(held.asset);
  const wanted = [...needs.values()].filter(({ status }) => status === 'wanted');
  const first = planned ? [] : initialNeeds(probe.kind, platforms).filter((need) => !needs.has(needKey(need)));
  const all = [...first, ...wanted].map(({ platform, use }) => ({ platform, use }));
  await held.record({ type: 'Plan', initial: !planned, needs: planRenditions(probe, all) });
};

export const renderStep = async (held: LeasedAsset, tools: Tools): Promise<void> => {
  const asset = held.asset;
  const files = new Map<string, MadeFile>();
  const missing = new Set<string>();
  for (const need of asset.needs.values()) {
    if (need.status === 'ready') files.set(need.rendition, need.file);
    else if (need.status === 'planned') missing.add(need.rendition);
  }
  // Another network's file that was made to the same spec is this one's too.
  for (const rendition of missing) {
    const file = files.get(rendition);
    if (file === undefined) continue;
    await held.record({ type: 'RecordRendition', rendition, file });
    missing.delete(rendition);
  }
  for (const made of await rendered(held, tools, [...missing])) {
    if (made.kind === 'failed') {
      await held.record({ type: 'RecordRenditionFailed', rendition: made.id, failure: made.failure });
      continue;
    }
    const { width, height, durationMs } = made;
    const file = await held.put(made.id, made);
    faultPoint('media:after-rendition-put');
    await held.record({ type: 'RecordRendition', rendition: made.id, file: { ...file, width, height, durationMs } });
    faultPoint('media:after-rendition');
  }
};

export const finishStep = async (held: LeasedAsset, tools: Tools): Promise<void> => {
  const spec = posterSpec(probeOf(held.asset));
  const [made] = spec === null ? [] : await rendering(held, tools, [{ id: 'poster', spec }]);
  let poster = null;
  // A file without a still is shown without one.
  if (made?.kind === 'made' && made.width !== null && made.height !== null) {
    const { width, height } = made;
    poster = { ...(await held.put('poster', made)), width, height };
  }
  faultPoint('media:before-finish');
  await held.record({ type: 'RecordTranscoded', poster });
};

const rendered = async (held: LeasedAsset, tools: Tools, ids: readonly string[]): Promise<readonly MadeRendition[]> => {
  const { specs } = held.asset;
  const wanted = ids.flatMap((id) => {
    const spec = specs.get(id);
    return spec === undefined ? [] : [{ id, spec }];
  });
  const lost = ids.filter((id) => !specs.has(id));
  const failure = mediaFailure('rendition_failed');
  const made = wanted.length === 0 ? [] : await rendering(held, tools, wanted);
  return [...made, ...lost.map((id): MadeRendition => ({ id, kind: 'failed', failure }))];
};

/** Cores that one video can put to use. */
const maxThreads = 8;

type Wanted = readonly Omit<WantedRendition, 'to'>[];

/** A still takes one thread for a moment: it does not wait for the cores, which a video may keep for hours. */
const rendering = async (held: LeasedAsset, tools: Tools, wanted: Wanted): Promise<readonly MadeRendition[]> => {
  const { cores, videos } = tools;
  if (!wanted.some(({ spec }) => spec.kind === 'video')) return making(held, tools, wanted, 1, held.signal);
  videos.enter();
  try {
    // Fetched before there are cores to keep idle.
    await held.local(storedOf(held.asset).key);
    const taken = await cores.take(maxThreads, held.signal);
    try {
      return await making(held, tools, wanted, taken.threads, AbortSignal.any([held.signal, taken.signal]));
    } finally {
      taken.release();
    }
  } finally {
    videos.leave();
  }
};

const making = async (
  held: LeasedAsset,
  { transcoder, progress }: Tools,
  wanted: Wanted,
  threads: number,
  signal: AbortSignal,
): Promise<readonly MadeRendition[]> => {
  const source = { path: await held.local(storedOf(held.asset).key), probe: probeOf(held.asset) };
  const files = wanted.map((one) => ({ ...one, to: path.join(held.folder, `made-${one.id}`) }));
  return transcoder.render(source, files, { threads, signal, onProgress: (done) => progress(held.id, done) });
};

const storedOf = ({ stored }: Asset): NonNullable<Asset['stored']> => {
  if (stored === null) throw new BrokenInvariant('the file was not stored');
  return stored;
};

const probeOf = ({ probe }: Asset): MediaProbe => {
  if (probe === null) throw new BrokenInvariant('the file was not probed');
  return probe;
};
