import { globSync, readFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { type MadeRendition, TranscodeError } from '#contracts/ports/transcoder.ts';
import { minVideoBytes } from '#domain/platforms/index.ts';
import { type Ended, limits, runTool } from './child.ts';
import { encodeCommand, encoderThreads, remuxCommand, shownMs, type VideoOutput } from './command.ts';
import { tooMuchWork, unreadable } from './failures.ts';
import { keptColours, writesHevc } from './hdr.ts';
import { fillVideo, fingerprint, lookAt, markVideo } from './made.ts';
import type { Colours } from './picture.ts';
import { failedRendition, type Render, type Wanted } from './rendering.ts';
import { beginningOf, coloursOf } from './streams.ts';

/** Pins a render to its number of processors, however many threads the encoders start. */

/** `0-2,5` */
const listed = (text: string): readonly number[] =>
  text.split(',').flatMap((part) => {
    const [first = 0, last = first] = part.split('-').map(Number);
    return Array.from({ length: last - first + 1 }, (_, index) => first + index);
  });

const allowedTo = (process: string): readonly number[] =>
  listed(/^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync(`/proc/${process}/status`, 'utf8'))?.[1] ?? '');

/** Processors to which running renders of this or another worker are pinned. */
const busy = (mine: readonly number[]): readonly number[] =>
  globSync('/proc/[0-9]*/comm').flatMap((file) => {
    try {
      if (readFileSync(file, 'utf8').trim() !== 'ffmpeg') return [];
      const held = allowedTo(file.split('/')[2] ?? '');
      return held.length < mine.length ? held : [];
    } catch {
      return []; // It ended in between.
    }
  });

/** The processors with the fewest renders. Null: all, or a system that does not report them. */
const processorsFor = (threads: number): readonly number[] | null => {
  if (threads >= availableParallelism()) return null;
  try {
    const mine = allowedTo('self');
    const held = busy(mine);
    const uses = (processor: number): number => held.filter((each) => each === processor).length;
    return [...mine].sort((a, b) => uses(a) - uses(b)).slice(0, threads);
  } catch {
    return null;
  }
};

const GiB = 1024 ** 3;
const maxCpuSeconds = 48 * 3_600;

/** In pictures of 1080p, at least one. */
const areaOf = (width: number, height: number): number => Math.max(1, (width * height) / (1_920 * 1_080));

/** Generous limits for an honest file of this length and size; a slow machine is not the file's fault. */
const limitsFor = ({ source, options }: Render, outputs: readonly VideoOutput[]) => {
  const { path, probe } = source;
  const seconds = Math.max(...outputs.map(({ spec }) => shownMs(source, spec))) / 1_000;
  const area = areaOf(probe.width ?? 0, probe.height ?? 0);
  const encoding = outputs.map(({ spec }) => areaOf(spec.width, spec.height) * (spec.range === 'hdr' ? 4 : 1));
  const perSecond = 30 * encoding.reduce((sum, each) => sum + each, 0) + 20 * area;
  const cpuSeconds = Math.min(maxCpuSeconds, Math.ceil(120 + seconds * perSecond));
  const kbps = Math.max(...outputs.map(({ spec }) => spec.videoKbps + (spec.audio?.kbps ?? 0)));
  const copies = outputs.some(({ spec }) => spec.mode === 'remux') ? probe.bytes : 0;
  return limits({
    // Each thread of each encoder has its stack and its pictures.
    memory:
      (3 +
        Math.max(...encoding) / 2 +
        outputs.length / 4 +
        (encoderThreads(options.threads) * (2 + outputs.length)) / 32) *
      GiB,
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
  const total = 1_000 * Math.max(1, ...outputs.map(({ spec }) => shownMs(source, spec)));
  return runTool(ffmpeg, args, limitsFor(run, outputs), options.signal, (line) => {
    const done = /^out_time_(?:us|ms)=(\d+)/.exec(line)?.[1];
    if (done !== undefined) options.onProgress?.(Number(done) / total);
  });
};

type Judged = MadeRendition | { readonly kind: 'short' } | { readonly kind: 'heavy'; readonly bytes: number };

/** Checks a file against its spec. `short`: the source broke off; `heavy`: larger than allowed. */
const judge = async (
  run: Render,
  { id, spec, to }: Wanted<'video'>,
  colours: Colours | null = null,
): Promise<Judged> => {
  const { tools, source, options } = run;
  const seen = await lookAt(await tools.binaries(), to, options.signal);
  const wrong = failedRendition(id, 'rendition_failed', 'What was made of the video is not what was asked for.');
  if (seen === null) return wrong;
  const kept = colours?.kind === 'kept' ? colours : null;
  const codec = spec.mode === 'encode' ? (kept === null ? 'h264' : 'hevc') : source.probe.video?.codec;
  if (kept !== null && seen.transfer !== kept.transfer) return wrong;
  if (seen.codec !== codec || Math.abs(seen.width - spec.width) > 1 || Math.abs(seen.height - spec.height) > 1)
    return wrong;
  const expected = shownMs(source, spec);
  if (seen.durationMs < expected - Math.max(500, 0.05 * expected)) return { kind: 'short' };
  if (source.probe.digitalSourceType !== null) await markVideo(to, source.probe.digitalSourceType);
  const { size } = await stat(to);
  if (spec.maxBytes !== null && size > spec.maxBytes) return { kind: 'heavy', bytes: size };
  await fillVideo(to, minVideoBytes);
  const { bytes, sha256 } = await fingerprint(to);
  const { width, height, durationMs } = seen;
  return { id, kind: 'made', path: to, contentType: 'video/mp4', bytes, sha256, width, height, durationMs };
};

const brokeOff = () => unreadable('The video breaks off: less can be decoded than it says it holds.');

const lowestKbps = 80;
const maxTries = 4;

/** Encodes one output, at lower rates for as long as it is too large. */
const encodeOne = async (run: Render, wanted: Wanted<'video'>, colours: Colours | null): Promise<MadeRendition> => {
  let { videoKbps } = wanted.spec;
  for (let tried = 1; tried <= maxTries && videoKbps >= lowestKbps; tried += 1) {
    const ended = await encode(run, [{ to: wanted.to, spec: { ...wanted.spec, mode: 'encode', videoKbps } }], colours);
    if (ended.struck === 'processor') {
      throw tooMuchWork('The video takes more work than a video of its length is given.');
    }
    if (ended.code !== 0) return failedRendition(wanted.id, 'rendition_failed', 'The video could not be converted.');
    const judged = await judge(run, { ...wanted, spec: { ...wanted.spec, mode: 'encode' } }, colours);
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

/** Null: the copy does not fit the spec, so the caller encodes. */
const remux = async (run: Render, wanted: Wanted<'video'>): Promise<MadeRendition | null> => {
  const { tools, source, options } = run;
  const binaries = await tools.binaries();
  const beginning = await beginningOf(binaries, source, options.signal);
  // Without an edit list no header delays the sound.
  if (beginning === null || beginning.apartMs > apartMs) return null;
  const args = remuxCommand(source, beginning.pictures, wanted);
  const ended = await runTool(binaries.ffmpeg, args, limitsFor(run, [wanted]), options.signal);
  if (ended.code !== 0 || ended.struck !== null) return null;
  const judged = await judge(run, wanted);
  if (judged.kind === 'short') throw brokeOff();
  if (judged.kind !== 'made') return null;
  // A copy would show the parts that an edit list has cut.
  return (judged.durationMs ?? 0) - (source.probe.durationMs ?? 0) > apartMs ? null : judged;
};

/** Null: the source is not HDR after all, or this ffmpeg cannot write HDR: then only the size is kept. */
const keptOf = async ({ tools, source, options }: Render, colours: Colours | null): Promise<Colours | null> => {
  if (colours?.kind !== 'hdr') return null;
  const binaries = await tools.binaries();
  if (await writesHevc(binaries)) return keptColours(binaries, source, colours, options.signal);
  tools.warn(`ffmpeg ${binaries.version} has no libx265: HDR is made SDR`);
  return null;
};

/**
 * One command, which decodes once. An output that fails gets a command of its own: a fault of one output ends them all.
 */
const encodeAll = async (
  run: Render,
  wanted: readonly Wanted<'video'>[],
  colours: Colours | null,
): Promise<readonly MadeRendition[]> => {
  if (wanted.length === 0) return [];
  const together = await encode(run, wanted, colours);
  const made: MadeRendition[] = [];
  const one: Wanted<'video'>[] = [];
  for (const each of wanted) {
    // For an output that was to be a copy, its encoding.
    const encoded = { ...each, spec: { ...each.spec, mode: 'encode' as const } };
    const judged = together.code === 0 ? await judge(run, encoded, colours) : null;
    if (judged?.kind === 'short') throw brokeOff();
    if (judged?.kind === 'made') made.push(judged);
    else one.push(each);
  }
  for (const each of one) made.push(await encodeOne(run, each, colours));
  return made;
};

/** @throws TranscodeError when nothing can be decoded, or `interrupted` */
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
  const kept = rest.some(({ spec }) => spec.range === 'hdr') ? await keptOf(run, colours) : null;
  const inKept = (each: Wanted<'video'>): boolean => kept !== null && each.spec.range === 'hdr';
  const apart = rest.filter((each) => !inKept(each));
  for (const each of await encodeAll(run, apart, colours)) made.set(each.id, each);
  for (const each of await encodeAll(run, rest.filter(inKept), kept)) made.set(each.id, each);
  const results = [...made.values()];
  const nothing = results.every((each) => each.kind === 'failed' && each.failure.code === 'rendition_failed');
  if (nothing)
    throw new TranscodeError('unreadable', { code: 'media_unreadable', message: 'The video cannot be decoded.' });
  return results;
};
