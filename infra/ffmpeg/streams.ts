/** Facts about the source's streams that a render needs beyond its probe. */
import type { SourceFile } from '#contracts/ports/transcoder.ts';
import type { Binaries } from './binaries.ts';
import { limits, runTool } from './child.ts';
import { input } from './input.ts';
import type { Colours } from './picture.ts';

interface Stream {
  readonly index: number;
  readonly codec_type?: string;
  readonly start_time?: string;
  readonly color_space?: string;
  readonly color_transfer?: string;
  readonly color_primaries?: string;
  readonly disposition?: { readonly attached_pic?: number };
}

const ask = async (
  { ffprobe }: Binaries,
  { path, probe }: SourceFile,
  entries: string,
  signal: AbortSignal,
): Promise<readonly Stream[]> => {
  const shown = `stream=index,codec_type,${entries}:stream_disposition=attached_pic`;
  const args = ['-v', 'error', '-of', 'json', '-show_entries', shown, ...input(path, probe.contentType)];
  const { stdout } = await runTool(ffprobe, args, limits({ reads: [path] }), signal);
  return JSON.parse(stdout || '{}').streams ?? [];
};

/** To ffprobe, a cover is a video of one picture. */
export const isPictures = ({ codec_type, disposition }: Pick<Stream, 'codec_type' | 'disposition'>): boolean =>
  codec_type === 'video' && disposition?.attached_pic !== 1;

/** The pictures that the probe chose. */
const picturesIn = (streams: readonly Stream[], { probe }: SourceFile): Stream | undefined =>
  streams.find((each) => isPictures(each) && (probe.video?.stream ?? each.index) === each.index);

/** From this height on players assume HD. */
const hd = 720;

/** Null: nothing special. A probe says only that a source is HDR, not which kind. */
export const coloursOf = async (
  binaries: Binaries,
  source: SourceFile,
  signal: AbortSignal,
): Promise<Colours | null> => {
  const { video: probed, width, height } = source.probe;
  if (!probed?.hdr && Math.min(width ?? 0, height ?? 0) < hd) return null;
  const streams = await ask(binaries, source, 'color_space,color_transfer,color_primaries', signal);
  const video = picturesIn(streams, source);
  if (!probed?.hdr) return (video?.color_space ?? 'unknown') === 'unknown' ? { kind: 'unsaid' } : null;
  return { kind: 'hdr', transfer: video?.color_transfer ?? '', primaries: video?.color_primaries ?? 'bt2020' };
};

export interface Beginning {
  /** Index of the video stream. */
  readonly pictures: number;
  /** Between the first picture and the first sound. */
  readonly apartMs: number;
}

/** Null: the source cannot be read. */
export const beginningOf = async (
  binaries: Binaries,
  source: SourceFile,
  signal: AbortSignal,
): Promise<Beginning | null> => {
  const streams = await ask(binaries, source, 'start_time', signal);
  const video = picturesIn(streams, source);
  if (video === undefined) return null;
  const audio = source.probe.audio;
  const isSound = ({ index, codec_type: type }: Stream) => type === 'audio' && (audio?.stream ?? index) === index;
  const sound = audio === null ? video : streams.find(isSound);
  const [pictures, first] = [video, sound].map((stream) => Number(stream?.start_time ?? 0) || 0);
  return { pictures: video.index, apartMs: 1_000 * Math.abs((pictures ?? 0) - (first ?? 0)) };
};
