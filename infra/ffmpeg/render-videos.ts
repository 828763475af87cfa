import { stat } from 'node:fs/promises';
import { type MadeRendition, TranscodeError } from '#contracts/ports/transcoder.ts';
import { leastVideoBytes } from '#domain/platforms/index.ts';
import { type Ended, limits, runTool } from './child.ts';
import { encodeCommand, encoderThreads, remuxCommand, type VideoOutput } from './command.ts';
import { tooMuchWork, unreadable } from './failures.ts';
import { fillVideo, fingerprint, lookAt, markVideo } from './made.ts';
import type { Colours } from './picture.ts';
import { processorsFor } from './processors.ts';
import { failedRendition, type Render, type Wanted } from './render.ts';
import { beginningOf, coloursOf } from './streams.ts';

const GiB = 1024 ** 3;
const mostCpuSeconds = 48 * 3_600;

/** What an honest file of this length and size may cost, with plenty to spare; a slow machine is no fault of the file. */
const limitsFor = ({ source: { path, probe }, options }: Render, outputs: readonly VideoOutput[]) => {
  const seconds = (probe.durationMs ?? 0) / 1_000;
  const area = ((probe.width ?? 0) * (probe.height ?? 0)) / (1_920 * 1_080);
  const perSecond = 30 * outputs.length + 20 * Math.max(1, area);
  const cpuSeconds = Math.min(mostCpuSeconds, Math.ceil(120 + seconds * perSecond));
  const kbps = Math.max(...outputs.map(({ spec }) => spec.videoKbps + (spec.audio?.kbps ?? 0)));
  const copies = outputs.some(({ spec }) => spec.mode === 'remux') ? probe.bytes : 0;
  return limits({
    // Each thread of each encoder has its stack and its pictures.
    memory: (3 + outputs.length / 4 + (encoderThreads(options.threads) * (2 + outputs.length)) / 32) * GiB,
    cpuSeconds,
    wallMs: Math.min(2 ** 31 - 1, 4_000 * cpuSeconds),
    fileBytes: 1.2 * copies + 2 * kbps * 125 * (seconds + 10) + 2 ** 24,
    processors: processorsFor(options.threads),
    reads: [path],
    writes: outputs.map(({ to }) => to),
  });
};

const encode = async (run: Render, outputs: readonly VideoOutput[], colours: Colours | null): Promise<Ended> => {
  const { tools, source, options } = run;
  const { ffmpeg } = await tools.binaries();
  const args = encodeCommand(source, outputs, colours, options.threads);
  const total = 1_000 * Math.max(1, source.probe.durationMs ?? 1);
  return runTool(ffmpeg, args, limitsFor(run, outputs), options.signal, (line) => {
    const done = /^out_time_(?:us|ms)=(\d+)/.exec(line)?.[1];
    if (done !== undefined) options.onProgress?.(Number(done) / total);
  });
};

type Judged = MadeRendition | { readonly kind: 'short' } | { readonly kind: 'heavy'; readonly bytes: number };

/** Whether a file is what was asked for. `short`: the source broke off; `heavy`: larger than it may be. */
const judge = async (run: Render, { id, spec, to }: Wanted<'video'>): Promise<Judged> => {
  const { tools, source, options } = run;
  const seen = await lookAt(await tools.binaries(), to, options.signal);
  const wrong = failedRendition(id, 'rendition_failed', 'What was made of the video is not what was asked for.');
  if (seen === null) return wrong;
  const codec = spec.mode === 'encode' ? 'h264' : source.probe.video?.codec;
  if (seen.codec !== codec || Math.abs(seen.width - spec.width) > 1 || Math.abs(seen.height - spec.height) > 1)
    return wrong;
  const expected = source.probe.durationMs ?? 0;
  if (seen.durationMs < expected - Math.max(500, 0.05 * expected)) return { kind: 'short' };
  if (source.probe.digitalSourceType !== null) await markVideo(to, source.probe.digitalSourceType);
  const { size } = await stat(to);
  if (spec.maxBytes !== null && size > spec.maxBytes) return { kind: 'heavy', bytes: size };
  await fillVideo(to, leastVideoBytes);
  const { bytes, sha256 } = await fingerprint(to);
  const { width, height, durationMs } = seen;
  return { id, kind: 'made', path: to, contentType: 'video/mp4', bytes, sha256, width, height, durationMs };
};

const brokeOff = () => unreadable('The video breaks off: less can be decoded than it says it holds.');

const lowestKbps = 80;
const mostTries = 4;

/** One alone, at a lower rate as long as it is too large. */
const encodeOne = async (run: Render, wanted: Wanted<'video'>, colours: Colours | null): Promise<MadeRendition> => {
  let { videoKbps } = wanted.spec;
  for (let tried = 1; tried <= mostTries && videoKbps >= lowestKbps; tried += 1) {
    const ended = await encode(run, [{ to: wanted.to, spec: { ...wanted.spec, mode: 'encode', videoKbps } }], colours);
    if (ended.struck === 'processor') {
      throw tooMuchWork('The video takes more work than a video of its length is given.');
    }
    if (ended.code !== 0) return failedRendition(wanted.id, 'rendition_failed', 'The video could not be converted.');
    const judged = await judge(run, { ...wanted, spec: { ...wanted.spec, mode: 'encode' } });
    if (judged.kind === 'short') throw brokeOff();
    if (judged.kind !== 'heavy') return judged;
    videoKbps = Math.floor((videoKbps * 0.9 * (wanted.spec.maxBytes ?? judged.bytes)) / judged.bytes);
  }
  return failedRendition(
    wanted.id,
    'media_too_heavy',
    `The video cannot be made smaller than ${wanted.spec.maxBytes} bytes.`,
  );
};

const apartMs = 100;

/** Null: copying gave nothing that fits, so it is to be encoded. */
const remux = async (run: Render, wanted: Wanted<'video'>): Promise<MadeRendition | null> => {
  const { tools, source, options } = run;
  const binaries = await tools.binaries();
  const beginning = await beginningOf(binaries, source, options.signal);
  // Without an edit list nothing says that sound begins later.
  if (beginning === null || beginning.apartMs > apartMs) return null;
  const args = remuxCommand(source, beginning.pictures, wanted);
  const ended = await runTool(binaries.ffmpeg, args, limitsFor(run, [wanted]), options.signal);
  if (ended.code !== 0 || ended.struck !== null) return null;
  const judged = await judge(run, wanted);
  if (judged.kind === 'short') throw brokeOff();
  if (judged.kind !== 'made') return null;
  // What an edit list had cut away would be shown again.
  return (judged.durationMs ?? 0) - (source.probe.durationMs ?? 0) > apartMs ? null : judged;
};

/** @throws TranscodeError when nothing can be decoded at all, or `interrupted` */
export const renderVideos = async (
  run: Render,
  wanted: readonly Wanted<'video'>[],
): Promise<readonly MadeRendition[]> => {
  if (wanted.length === 0) return [];
  const { tools, source, options } = run;
  const made = new Map<string, MadeRendition>();
  for (const each of wanted.filter(({ spec }) => spec.mode === 'remux')) {
    const copied = await remux(run, each);
    if (copied !== null) made.set(each.id, copied);
  }
  const rest = wanted.filter(({ id }) => !made.has(id));
  if (rest.length === 0) return [...made.values()];
  const colours = await coloursOf(await tools.binaries(), source, options.signal);
  const together = await encode(run, rest, colours);
  const one = new Set<string>();
  for (const each of rest) {
    const judged = together.code === 0 ? await judge(run, each) : null;
    if (judged?.kind === 'short') throw brokeOff();
    if (judged?.kind === 'made') made.set(each.id, judged);
    else one.add(each.id);
  }
  // What did not come of the one command gets one of its own: a fault of one output ends them all.
  for (const each of rest.filter(({ id }) => one.has(id))) made.set(each.id, await encodeOne(run, each, colours));
  const results = [...made.values()];
  const nothing = results.every((each) => each.kind === 'failed' && each.failure.code === 'rendition_failed');
  if (nothing)
    throw new TranscodeError('unreadable', { code: 'media_unreadable', message: 'The video cannot be decoded.' });
  return results;
};
