/** Checks a rendition before it is reported. */
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { appendFile, stat } from 'node:fs/promises';
import { pipeline } from 'node:stream/promises';
import type { Binaries } from './binaries.ts';
import { limits, runTool } from './child.ts';
import { input } from './input.ts';
import { aiXmp } from './marks.ts';

export const fingerprint = async (path: string): Promise<{ readonly bytes: number; readonly sha256: string }> => {
  const hash = createHash('sha256');
  let bytes = 0;
  await pipeline(createReadStream(path), async (source: AsyncIterable<Buffer>) => {
    for await (const chunk of source) {
      bytes += chunk.length;
      hash.update(chunk);
    }
  });
  return { bytes, sha256: hash.digest('hex') };
};

export interface SeenVideo {
  readonly codec: string;
  /** ffprobe's name of the transfer function; null: absent. */
  readonly transfer: string | null;
  readonly width: number;
  readonly height: number;
  readonly durationMs: number;
}

/** Null: the file cannot be read. Sizes are as displayed: a player may still turn a copy. */
export const lookAt = async ({ ffprobe }: Binaries, path: string, signal: AbortSignal): Promise<SeenVideo | null> => {
  const entries =
    'stream=codec_name,color_transfer,width,height,sample_aspect_ratio:stream_side_data=rotation:stream_tags=rotate:format=duration';
  const args = ['-v', 'error', '-of', 'json', '-select_streams', 'v:0', '-show_entries', entries];
  const ended = await runTool(ffprobe, [...args, ...input(path, 'video/mp4')], limits({ reads: [path] }), signal);
  if (ended.code !== 0 || ended.struck !== null) return null;
  const { streams, format } = JSON.parse(ended.stdout);
  const stream = streams?.[0];
  const seconds = Number(format?.duration);
  if (stream === undefined || !(seconds > 0)) return null;
  const rotation = stream.side_data_list?.find((data: { rotation?: number }) => data.rotation !== undefined)?.rotation;
  const turned = Math.abs(Math.round(Number(rotation ?? stream.tags?.rotate ?? 0) / 90)) % 2 === 1;
  const [over = 1, under = 1] = String(stream.sample_aspect_ratio ?? '1:1')
    .split(':')
    .map(Number);
  const width = over > 0 && under > 0 ? Math.round((stream.width * over) / under) : stream.width;
  return {
    codec: stream.codec_name,
    transfer: stream.color_transfer ?? null,
    width: turned ? stream.height : width,
    height: turned ? width : stream.height,
    durationMs: Math.round(seconds * 1_000),
  };
};

/** XMP's own box, by the standard's number; at the end, where it moves no other box. */
const xmpBox = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex');

/** Players and networks skip a box of this type: ISO/IEC 14496-12, 8.1.2. */
export const fillVideo = async (path: string, minBytes: number): Promise<void> => {
  const { size } = await stat(path);
  if (size >= minBytes) return;
  const free = Buffer.alloc(Math.max(8, minBytes - size));
  free.writeUInt32BE(free.length, 0);
  free.write('free', 4, 'latin1');
  await appendFile(path, free);
};

/** ffmpeg writes no XMP into MP4. */
export const markVideo = async (path: string, digitalSourceType: string): Promise<void> => {
  const xmp = Buffer.from(aiXmp(digitalSourceType));
  const head = Buffer.alloc(8);
  head.writeUInt32BE(head.length + xmpBox.length + xmp.length, 0);
  head.write('uuid', 4, 'latin1');
  await appendFile(path, Buffer.concat([head, xmpBox, xmp]));
};
