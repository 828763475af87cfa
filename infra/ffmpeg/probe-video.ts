import { rm, stat } from 'node:fs/promises';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { SniffedType } from '#contracts/ports/transcoder.ts';
import type { MediaProbe } from '#schemas/media.ts';
import type { Binaries } from './binaries.ts';
import type { Bytes } from './bytes.ts';
import { type Ended, limits, runTool } from './child.ts';
import { layoutOf } from './containers.ts';
import { bomb, tooMuchWork, unreadable, unsupported } from './failures.ts';
import { input, notOnList, picturesOf } from './input.ts';
import { folderIn } from './isolation.ts';
import { heaviest, sourceTypesIn } from './marks.ts';
import type { Layout } from './mp4.ts';
import { type ReadLines, readPackets, type Tally } from './packets.ts';
import { isPictures } from './streams.ts';
import type { Tools } from './tools.ts';

/** The members of ffprobe's JSON that are read. Numbers are text, and any member may be missing. */
export interface Stream {
  readonly index?: number;
  readonly codec_type?: string;
  readonly codec_name?: string;
  readonly codec_tag_string?: string;
  readonly profile?: string;
  readonly width?: number;
  readonly height?: number;
  readonly pix_fmt?: string;
  readonly sample_aspect_ratio?: string;
  readonly field_order?: string;
  readonly color_transfer?: string;
  readonly color_primaries?: string;
  readonly r_frame_rate?: string;
  readonly avg_frame_rate?: string;
  readonly bit_rate?: string;
  readonly channels?: number;
  readonly sample_rate?: string;
  readonly disposition?: { readonly attached_pic?: number; readonly default?: number };
  readonly tags?: Readonly<Record<string, string>>;
  readonly side_data_list?: readonly { readonly rotation?: number }[];
}
interface Shown {
  readonly streams?: readonly Stream[];
  readonly format?: { readonly start_time?: string; readonly tags?: Readonly<Record<string, string>> };
}

const maxStreams = 32;
const maxSide = 8_192;
const maxSeconds = 12 * 3_600;

const videoCodecs = new Set(
  'h264 hevc vp8 vp9 av1 prores mpeg4 mpeg2video mpeg1video mjpeg dnxhd dvvideo h263 msmpeg4v3 msmpeg4v2 wmv2 theora cinepak ffv1 rawvideo huffyuv qtrle png'.split(
    ' ',
  ),
);
const isAudioCodec = (codec: string): boolean =>
  /^(?:aac|mp3|mp2|ac3|eac3|opus|vorbis|flac|alac|pcm_\w+|amr_\w+)$/.test(codec);

/** By the type of the file, the one demuxer that may open it. */
const containers: Readonly<Record<string, string>> = {
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/x-matroska': 'matroska',
  'video/x-msvideo': 'avi',
  'video/mp2t': 'mpegts',
};

/** ffprobe over the file, or over a copy of its streams. */
interface Probing {
  readonly show: (args: readonly string[]) => Promise<Shown>;
  readonly readLines: ReadLines;
  /** A copy has the first pictures and the first sound alone, whatever their numbers are in the file. */
  readonly copied: boolean;
}

export const crashed = 128 + constants.signals.SIGSEGV;

/**
 * NOTE: the npm package's ffprobe crashes on every MPEG transport stream (its static C library cannot convert the names
 * of stations). Such streams are copied unchanged into another container and probed there.
 */
const withProbe = async (
  tools: Tools,
  path: string,
  contentType: string,
  signal: AbortSignal,
  look: (probing: Probing) => Promise<MediaProbe>,
): Promise<MediaProbe> => {
  const { ffmpeg, ffprobe } = await tools.binaries();
  const run = (file: string, type: string, args: readonly string[]) =>
    runTool(ffprobe, [...args, ...input(file, type)], limits({ cpuSeconds: 60, reads: [file] }), signal);
  const probing = (file: string, type: string): Probing => ({
    show: async (args) => JSON.parse(checked(await run(file, type, args)).stdout),
    readLines: async (args, onLine, limit, until) => {
      const given = limits({ ...limit, reads: [file] });
      checked(await runTool(ffprobe, [...args, ...input(file, type)], given, until, onLine));
    },
    copied: file !== path,
  });
  const first = contentType === 'video/mp2t' ? await run(path, contentType, ['-v', 'error']) : null;
  if (first?.code !== crashed) return look(probing(path, contentType));
  const folder = await folderIn(tools.workDir, 'probe-');
  try {
    const copy = join(folder, 'copy.mkv');
    const { size } = await stat(path);
    const args = ['-v', 'error', '-nostdin', ...input(path, contentType)];
    // Such a stream holds no covers.
    const to = ['-map', '0:v:0', '-map', '0:a:0?', '-c', 'copy', '-f', 'matroska', copy];
    const copying = limits({ fileBytes: 2 * size, reads: [path], writes: [copy] });
    checked(await runTool(ffmpeg, [...args, '-y', ...to], copying, signal));
    return await look(probing(copy, 'video/x-matroska'));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
};

const checked = (ended: Ended): Ended => {
  if (ended.struck !== null) throw tooMuchWork('Looking into the video takes more work than it is given.');
  if (ended.code === 0) return ended;
  const codec = notOnList.exec(ended.stderr)?.[1];
  if (codec !== undefined) throw unsupported(`The file holds a stream in ${codec}, which is not taken.`);
  throw unreadable('The video is damaged, or the file is not a video.', new Error(ended.stderr));
};

const number = (text: string | undefined): number | null => {
  const value = Number(text);
  return text !== undefined && Number.isFinite(value) ? value : null;
};
const positive = (text: string | undefined): number | null => {
  const value = number(text);
  return value !== null && value > 0 ? Math.round(value) : null;
};
const ratio = (text: string | undefined, mark: string): number | null => {
  const [over, under] = (text ?? '').split(mark).map(Number);
  return over && under && Number.isFinite(over / under) ? over / under : null;
};

export const rotationOf = ({ tags, side_data_list: side }: Stream): number => {
  const counter = side?.find(({ rotation }) => rotation !== undefined)?.rotation;
  const degrees = counter === undefined ? (number(tags?.rotate) ?? 0) : -counter;
  return (((Math.round(degrees / 90) * 90) % 360) + 360) % 360;
};

const transfers = ['smpte2084', 'arib-std-b67'];
export const isHdr = ({ color_transfer: transfer = '', color_primaries: primaries }: Stream): boolean =>
  transfers.includes(transfer) || primaries === 'bt2020';

const namesPlace =
  /location|xyz$|gps|^make$|^model$|manufacturer|com\.apple\.quicktime\.(?:make|model|software|location)|^com\.android\./i;
/** Tracks in which cameras and phones store places. */
const placeTracks = new Set(['gpmd', 'camm', 'mebx', 'rtmd', 'fdsc']);

const isLocated = (shown: Shown): boolean =>
  [shown.format?.tags ?? {}, ...(shown.streams ?? []).map(({ tags }) => tags ?? {})].some((tags) =>
    Object.keys(tags).some((key) => namesPlace.test(key)),
  ) || (shown.streams ?? []).some(({ codec_tag_string: tag = '' }) => placeTracks.has(tag));

const isSound = ({ codec_type: type }: Stream): boolean => type === 'audio';

const refuseHuge = ({ width = 0, height = 0 }: Stream): void => {
  if (Math.max(width, height) <= maxSide) return;
  throw bomb(`The video is ${width} by ${height} pixels; sides of ${maxSide} are taken.`);
};

const sizeOf = (video: Stream, rotation: number) => {
  const { width = 0, height = 0 } = video;
  if (width < 1 || height < 1) throw unreadable('The video has no size.');
  const pixelAspect = ratio(video.sample_aspect_ratio, ':') ?? 1;
  if (pixelAspect < 1 / 8 || pixelAspect > 8) throw unreadable('The pixels of the video have no sensible shape.');
  const shownWidth = Math.max(1, Math.round(width * pixelAspect));
  const turned = rotation % 180 !== 0;
  return {
    width: turned ? height : shownWidth,
    height: turned ? shownWidth : height,
    squarePixels: Math.abs(pixelAspect - 1) < 0.001,
  };
};

/** Descending: the first member in which two lists of figures differ decides. */
const byFigures = (a: readonly number[], b: readonly number[]): number => {
  const at = a.findIndex((figure, index) => figure !== b[index]);
  return at < 0 ? 0 : (b[at] ?? 0) - (a[at] ?? 0);
};

/** Whether players show it where the file offers a choice: QuickTime keeps tracks that are switched off. */
const isOn = ({ disposition }: Stream): number => disposition?.default ?? 0;

/**
 * The pictures and the sound that a player shows. Recorders put previews, tracks that are switched off and tracks
 * without content before them.
 * @throws TranscodeError when there are no pictures, or none of a codec that is taken
 */
const chosen = (streams: readonly Stream[], tallies: ReadonlyMap<number, Tally>) => {
  const packets = ({ index = 0 }: Stream): number => tallies.get(index)?.packets ?? 0;
  const best = (all: readonly Stream[], figures: (stream: Stream) => readonly number[]): Stream | undefined =>
    all.filter((each) => packets(each) > 0).toSorted((a, b) => byFigures(figures(a), figures(b)))[0];
  if (!streams.some(isPictures)) throw unsupported('The file holds no moving pictures.');
  const video = best(streams.filter(isPictures), (stream) => [
    Number(videoCodecs.has(codecOf(stream))),
    isOn(stream),
    Number(packets(stream) > 1),
    (stream.width ?? 0) * (stream.height ?? 0),
  ]);
  if (video === undefined) throw unreadable('The video holds no pictures: it was not written to its end.');
  if (!videoCodecs.has(codecOf(video))) throw unsupported(`Video in ${codecOf(video)} is not taken.`);
  const audio = best(streams.filter(isSound), (stream) => [Number(isAudioCodec(codecOf(stream))), isOn(stream)]);
  if (audio !== undefined && !isAudioCodec(codecOf(audio))) {
    throw unsupported(`Sound in ${codecOf(audio)} is not taken.`);
  }
  return { video, audio };
};

const codecOf = ({ codec_name: codec = 'unknown' }: Stream): string => codec;

/** What a header states is a rounding of what was measured, or it is not believed. */
const isNear = (stated: number, measured: number, part: number): boolean =>
  Math.abs(stated - measured) <= part * measured;

const bitrateOf = ({ stream, tally }: Read): number => {
  const seconds = tally.end - tally.first;
  const measured = seconds > 0 ? (tally.bytes * 8) / seconds : 0;
  const stated = positive(stream.bit_rate);
  return stated !== null && isNear(stated, measured, 0.1) ? stated : Math.round(measured);
};

/** Times are rounded to a millisecond in some containers, so a rate that is stated is the more exact one. */
const rateOf = ({ stream, tally }: Read, interlaced: boolean) => {
  const { packets, first, last } = tally;
  const stated = [ratio(stream.avg_frame_rate, '/'), ratio(stream.r_frame_rate, '/')].filter((rate) => rate !== null);
  if (packets < 2 || last <= first) return { fps: stated[0] ?? null, frames: packets };
  const measured = (packets - 1) / (last - first);
  const fps = stated.find((rate) => isNear(rate, measured, 0.005));
  if (fps !== undefined) return { fps, frames: packets };
  // Camcorders write each field of a picture into a packet of its own.
  const ofFields = interlaced ? stated.find((rate) => isNear(2 * rate, measured, 0.1)) : undefined;
  if (ofFields !== undefined) return { fps: ofFields, frames: Math.ceil(packets / 2) };
  return { fps: measured, frames: packets };
};

/**
 * Decodes one picture at the beginning and one near the end: a file that is broken there is refused, not half
 * published.
 * @param pictures index of their stream; absent: the first
 * @param last seconds from the beginning of the file to its last picture
 */
const decodes = async (
  { ffmpeg }: Binaries,
  path: string,
  type: string,
  pictures: number | undefined,
  last: number,
  signal: AbortSignal,
) => {
  const from = Math.max(0, last - 2);
  const end = from > 0 ? ['-ss', from.toFixed(3), ...input(path, type)] : [];
  const args = ['-v', 'error', '-nostdin', '-threads', '1', ...input(path, type), ...end];
  const places = from > 0 ? [0, 1] : [0];
  const graph = places.map((place) => `[${picturesOf(place, pictures)}]null[p${place}]`).join(';');
  const maps = places.flatMap((place) => ['-map', `[p${place}]`]);
  const out = ['-filter_complex_threads', '1', '-filter_complex', graph, ...maps, '-frames:v', '1', '-f', 'null', '-'];
  const ended = await runTool(ffmpeg, [...args, ...out], limits({ cpuSeconds: 60, reads: [path] }), signal);
  if (ended.struck !== null) throw tooMuchWork('Decoding the video takes more work than it is given.');
  if (ended.code !== 0) throw unreadable('The video cannot be decoded.', new Error(ended.stderr));
};

/** @throws TranscodeError */
export const probeVideo = async (
  tools: Tools,
  path: string,
  bytes: Bytes,
  { contentType }: SniffedType,
  signal: AbortSignal,
): Promise<MediaProbe> => {
  const layout = await layoutOf(bytes, contentType, signal);
  return withProbe(tools, path, contentType, signal, async (probing) => {
    const shown = await probing.show(['-v', 'error', '-of', 'json', '-show_format', '-show_streams']);
    const streams = shown.streams ?? [];
    if (streams.length > maxStreams) throw bomb(`The video has ${streams.length} streams; ${maxStreams} are taken.`);
    for (const each of streams.filter(isPictures)) refuseHuge(each);
    const tallies = await readPackets(probing.readLines, contentType === 'video/mp2t', signal);
    const { video, audio } = chosen(streams, tallies);
    const [pictures, sound] = [tallies.get(video.index ?? 0), tallies.get(audio?.index ?? -1)];
    if (pictures === undefined) throw new Error('the chosen pictures have no packets');
    const known = { shown, layout, contentType, size: bytes.size, copied: probing.copied };
    const probe = probeOf(known, { stream: video, tally: pictures }, audio && sound && { stream: audio, tally: sound });
    const begins = number(shown.format?.start_time) ?? 0;
    const index = probe.video?.stream;
    await decodes(await tools.binaries(), path, contentType, index, pictures.lastInFile - begins, signal);
    return probe;
  });
};

/** What the file says outside of its packets. */
interface Known {
  readonly shown: Shown;
  readonly layout: Layout;
  readonly contentType: string;
  readonly size: number;
  readonly copied: boolean;
}

interface Read {
  readonly stream: Stream;
  readonly tally: Tally;
}

/** The probe's statement that a stream is not the first of its kind, which a render takes otherwise. */
const indexOf = ({ shown, copied }: Known, { index = 0 }: Stream, isKind: (stream: Stream) => boolean) =>
  copied || shown.streams?.find(isKind)?.index === index ? {} : { stream: index };

/** Seconds for which a player shows pictures or sound. */
const lengthOf = ({ contentType }: Known, tallies: readonly Tally[]): number => {
  // But in a transport stream, no time before 0 is ever shown.
  const least = contentType === 'video/mp2t' ? Number.NEGATIVE_INFINITY : 0;
  const begin = Math.max(least, Math.min(...tallies.map(({ first }) => first)));
  return Math.max(...tallies.map(({ end }) => end)) - begin;
};

const probeOf = (known: Known, video: Read, audio: Read | undefined): MediaProbe => {
  const { shown, layout, contentType, size: bytes } = known;
  const rotation = rotationOf(video.stream);
  const { width, height, squarePixels } = sizeOf(video.stream, rotation);
  const seconds = lengthOf(known, [video.tally, ...(audio === undefined ? [] : [audio.tally])]);
  if (!Number.isFinite(seconds) || seconds <= 0) throw unreadable('The video shows nothing for any time.');
  if (seconds > maxSeconds) throw unsupported('The video is longer than 12 hours.');
  const { codec_name: codec = 'unknown', pix_fmt: pixelFormat = null, field_order: order = '' } = video.stream;
  const profile = video.stream.profile?.toLowerCase();
  const interlaced = ['tt', 'bb', 'tb', 'bt'].includes(order);
  const { fps, frames } = rateOf(video, interlaced);
  return {
    kind: 'video',
    contentType,
    bytes,
    width,
    height,
    durationMs: Math.round(seconds * 1_000),
    frames,
    image: null,
    video: {
      container: containers[contentType] ?? 'unknown',
      codec,
      profile: profile === undefined || profile === 'unknown' ? null : profile,
      pixelFormat,
      rotation,
      squarePixels,
      fps: fps === null ? null : Math.round(fps * 1_000) / 1_000,
      constantRate: video.tally.steady,
      interlaced,
      hdr: isHdr(video.stream),
      bitrate: bitrateOf(video),
      indexFirst: layout.indexFirst,
      editList: layout.editList,
      located: layout.located || isLocated(shown),
      ...indexOf(known, video.stream, isPictures),
    },
    audio:
      audio === undefined
        ? null
        : {
            codec: audio.stream.codec_name ?? 'unknown',
            profile: audio.stream.profile?.toLowerCase() ?? null,
            channels: audio.stream.channels ?? 0,
            sampleRate: positive(audio.stream.sample_rate) ?? 0,
            bitrate: bitrateOf(audio),
            ...indexOf(known, audio.stream, isSound),
          },
    digitalSourceType: heaviest([
      ...(layout.sourceType === null ? [] : [layout.sourceType]),
      ...sourceTypesIn(JSON.stringify(shown.format?.tags ?? {})),
    ]),
  };
};
