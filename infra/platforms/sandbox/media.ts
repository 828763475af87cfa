/**
 * Checks the files of a post as a network does: it probes them itself and trusts no announced value. This code and the
 * code that makes renditions share only the networks' rules, so that one finds mistakes of the other.
 */

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { open, stat } from 'node:fs/promises';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { rulesOf, useRules } from '#domain/platforms/index.ts';
import type { Bounds, SizeRules, UseRules } from '#domain/platforms/media-rules.ts';
import type { MediaUse } from '#schemas/media.ts';
import type { Failure } from '#schemas/target.ts';
import { findBinaries } from '../../ffmpeg/binaries.ts';
import { limits, runTool } from '../../ffmpeg/child.ts';
import { input } from '../../ffmpeg/input.ts';
import { crashed } from '../../ffmpeg/probe-video.ts';
import { mediaRefused } from './answers.ts';

/** One file of a post, with the values that the network found in it. */
export interface GivenMedia {
  readonly mediaId: string;
  readonly use: MediaUse;
  readonly contentType: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
  /** Codec of the pictures; null for a document. */
  readonly codec: string | null;
  readonly altText: string | null;
}

export interface Looked {
  /** In the order of the post, its cover last. */
  readonly given: readonly GivenMedia[];
  readonly refusal: Failure | null;
}

interface Found {
  /** `jpeg`, `png`, `webp`, `gif`, `pdf`, or the container of a video. */
  readonly format: string;
  readonly contentType: string;
  readonly width: number | null;
  readonly height: number | null;
  readonly durationMs: number | null;
  readonly codec: string | null;
  readonly pixelFormat: string | null;
  readonly fps: number | null;
  readonly audio: string | null;
  /** False: the probe crashed at the file, and only its format is known. */
  readonly probed: boolean;
}

/** Probes in the cache, by the file's hash. */
const maxKept = 500;

export class Looker {
  readonly #ffmpegPath: string | null;
  readonly #known = new BoundedMap<string, Found | null>(maxKept);

  /** @param ffmpegPath null: the one on PATH, else the npm package's */
  constructor(ffmpegPath: string | null) {
    this.#ffmpegPath = ffmpegPath;
  }

  async look(request: PublishRequest, signal: AbortSignal): Promise<Looked> {
    const { platform } = request;
    const given: GivenMedia[] = [];
    let refusal: Failure | null = null;
    for (const one of [...request.media, ...(request.cover === null ? [] : [request.cover])]) {
      const { found: seen, bytes, sha256 } = await this.#find(one, signal);
      // For a file that cannot be probed the announced values count.
      const { width, height, durationMs } = one;
      const found = seen === null || seen.probed ? seen : { ...seen, width, height, durationMs };
      const rules = useRules(platform, one.use);
      const wrong =
        sha256 !== one.sha256 || bytes !== one.bytes
          ? 'it is not the file that was announced'
          : found === null
            ? 'it is neither picture nor video nor document'
            : (problem(rules, found, bytes) ?? typeProblem(one, found));
      if (wrong !== null) refusal ??= mediaRefused(platform, one.mediaId, `${rulesOf(platform).name}: ${wrong}`);
      given.push({
        mediaId: one.mediaId,
        use: one.use,
        contentType: found?.contentType ?? one.contentType,
        bytes,
        sha256,
        width: found?.width ?? null,
        height: found?.height ?? null,
        durationMs: found?.durationMs ?? null,
        codec: found?.codec ?? null,
        altText: one.altText,
      });
    }
    return { given, refusal };
  }

  async #find(one: PublishMedia, signal: AbortSignal) {
    const file = await one.file();
    const hash = createHash('sha256');
    for await (const chunk of createReadStream(file)) {
      signal.throwIfAborted();
      hash.update(chunk);
    }
    const sha256 = hash.digest('hex');
    const bytes = (await stat(file)).size;
    let found = this.#known.get(sha256);
    if (found === undefined) {
      found = await this.#probe(file, signal);
      this.#known.set(sha256, found);
    }
    return { found, bytes, sha256 };
  }

  async #probe(file: string, signal: AbortSignal): Promise<Found | null> {
    const format = await formatOf(file);
    if (format === null) return null;
    const nothing = { width: null, height: null, durationMs: null, codec: null, pixelFormat: null, fps: null };
    const bare = { format, contentType: contentTypes[format] ?? 'application/octet-stream', ...nothing, audio: null };
    if (format === 'pdf') return { ...bare, probed: true };
    const { ffprobe } = await findBinaries(this.#ffmpegPath);
    const args = ['-v', 'error', '-show_streams', '-show_format', '-of', 'json', ...input(file, bare.contentType)];
    const limit = limits({ cpuSeconds: 20, wallMs: 60_000, answerBytes: 4 << 20, reads: [file] });
    const { code, struck, stdout } = await runTool(ffprobe, args, limit, signal);
    // NOTE: the npm package's ffprobe crashes on every MPEG transport stream.
    if (format === 'mpegts' && code === crashed) return { ...bare, probed: false };
    // A file that cannot be read is refused. A probe that cannot be started, or does not end, throws: the file is not
    // to blame.
    return code === 0 && struck === null ? readProbe(format, JSON.parse(stdout) as Probed) : null;
  }
}

interface Probed {
  readonly streams?: readonly {
    readonly codec_type?: string;
    readonly codec_name?: string;
    readonly width?: number;
    readonly height?: number;
    readonly pix_fmt?: string;
    readonly avg_frame_rate?: string;
    readonly duration?: string;
  }[];
  readonly format?: { readonly duration?: string };
}

const contentTypes: Readonly<Record<string, string>> = {
  jpeg: 'image/jpeg',
  png: 'image/png',
  webp: 'image/webp',
  gif: 'image/gif',
  pdf: 'application/pdf',
  mp4: 'video/mp4',
  mov: 'video/quicktime',
  webm: 'video/webm',
  matroska: 'video/x-matroska',
  avi: 'video/x-msvideo',
  mpegts: 'video/mp2t',
};
const stills: readonly string[] = ['jpeg', 'png', 'webp'];

const readProbe = (format: string, { streams = [], format: whole }: Probed): Found | null => {
  const picture = streams.find((one) => one.codec_type === 'video');
  if (picture === undefined) return null;
  const seconds = Number(whole?.duration ?? picture.duration ?? Number.NaN);
  const [count = 0, per = 0] = (picture.avg_frame_rate ?? '').split('/').map(Number);
  return {
    format,
    contentType: contentTypes[format] ?? 'application/octet-stream',
    width: picture.width ?? null,
    height: picture.height ?? null,
    durationMs: stills.includes(format) || Number.isNaN(seconds) ? null : Math.round(seconds * 1_000),
    codec: picture.codec_name ?? null,
    pixelFormat: picture.pix_fmt ?? null,
    fps: per === 0 ? null : count / per,
    audio: streams.find((one) => one.codec_type === 'audio')?.codec_name ?? null,
    probed: true,
  };
};

/** Of an MPEG transport stream; each begins with the same byte. */
const packetBytes = 188;

/** From the first bytes. */
const formatOf = async (file: string): Promise<string | null> => {
  const handle = await open(file);
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(packetBytes + 1), 0, packetBytes + 1, 0);
    const text = buffer.subarray(0, bytesRead).toString('latin1');
    if (text.startsWith('\xff\xd8\xff')) return 'jpeg';
    if (text.startsWith('\x89PNG')) return 'png';
    if (text.startsWith('GIF8')) return 'gif';
    if (text.startsWith('%PDF-')) return 'pdf';
    if (text.startsWith('RIFF') && text.slice(8, 12) === 'WEBP') return 'webp';
    if (text.startsWith('RIFF') && text.slice(8, 12) === 'AVI ') return 'avi';
    if (text.startsWith('\x1a\x45\xdf\xa3')) return text.slice(0, 64).includes('matroska') ? 'matroska' : 'webm';
    if (text.slice(4, 8) === 'ftyp') return text.slice(8, 12) === 'qt  ' ? 'mov' : 'mp4';
    // Older files begin without a brand.
    if (['moov', 'mdat', 'wide', 'free', 'skip'].includes(text.slice(4, 8))) return 'mov';
    if (text[0] === 'G' && text[packetBytes] === 'G') return 'mpegts';
    return null;
  } finally {
    await handle.close();
  }
};

/** Networks trust the announced type of an upload, so a wrong one is refused. */
const typeProblem = ({ contentType }: PublishMedia, found: Found): string | null =>
  contentType === found.contentType ? null : `it was said to be ${contentType} and is ${found.contentType}`;

const outside = (value: number, range: Bounds | null): boolean =>
  range !== null && (value < range.min || value > range.max);

const problem = (rules: UseRules | null, found: Found, bytes: number): string | null => {
  const { format } = found;
  if (format === 'pdf') {
    const max = rules?.document?.bytes ?? null;
    return max === null ? 'documents are not taken here' : outside(bytes, max) ? `${bytes} bytes are too many` : null;
  }
  if (format === 'gif' && rules?.gif)
    return outside(bytes, rules.gif.bytes) ? `${bytes} bytes are too many` : sizeProblem(rules.gif, found);
  if (stills.includes(format) || format === 'gif') {
    const image = rules?.image ?? null;
    if (image === null || !image.formats.includes(format)) return `${format} is not taken here`;
    return outside(bytes, image.bytes) ? `${bytes} bytes are too many` : sizeProblem(image, found);
  }
  const video = rules?.video ?? null;
  if (video === null || !video.containers.includes(format)) return `${format} is not taken here`;
  const { codec, pixelFormat, durationMs, fps, audio, probed } = found;
  if (durationMs === null || outside(durationMs, video.durationMs)) return `${durationMs} ms is no length it takes`;
  if (outside(bytes, video.bytes)) return `${bytes} bytes are too many`;
  if (!probed) return sizeProblem(video, found);
  if (!video.codecs.some((one) => one.codec === codec)) return `the codec ${codec} is not taken`;
  if (pixelFormat === null || !video.pixelFormats.includes(pixelFormat)) return `${pixelFormat} is not taken`;
  if (audio !== null && !video.audio.codecs.some((one) => one.codec === audio)) return `sound as ${audio} is not taken`;
  // Rates deviate a little: 23.976 counts as 24.
  if (fps === null || fps < video.fps.min - 0.1 || fps > video.fps.max + 0.1) return `${fps} pictures a second`;
  return sizeProblem(video, found);
};

const sizeProblem = (rules: SizeRules, { width, height }: Found): string | null => {
  if (width === null || height === null) return 'it has no size';
  const { maxPixels, maxSum } = rules;
  const wrong =
    outside(width, rules.width) ||
    outside(height, rules.height) ||
    outside(Math.max(width, height), rules.long) ||
    outside(Math.min(width, height), rules.short) ||
    outside(width / height, rules.aspect) ||
    (maxPixels !== null && width * height > maxPixels) ||
    (maxSum !== null && width + height > maxSum);
  return wrong ? `${width} by ${height} is no size it takes` : null;
};
