/** What a render asks of the source's streams that its probe does not say. */
import type { SourceFile } from '#contracts/ports/transcoder.ts';
import type { Binaries } from './binaries.ts';
import { limits, runTool } from './child.ts';
import { input } from './input.ts';
import type { Colours } from './picture.ts';

const ask = async (
  { ffprobe }: Binaries,
  { path, probe }: SourceFile,
  entries: string,
  signal: AbortSignal,
): Promise<readonly Readonly<Record<string, string>>[]> => {
  const args = ['-v', 'error', '-of', 'json', '-show_entries', `stream=codec_type,${entries}`];
  const { stdout } = await runTool(ffprobe, [...args, ...input(path, probe.contentType)], limits({}), signal);
  return JSON.parse(stdout || '{}').streams ?? [];
};

/** Null: the source is SDR. A probe says only that it is HDR, not how. */
export const coloursOf = async (
  binaries: Binaries,
  source: SourceFile,
  signal: AbortSignal,
): Promise<Colours | null> => {
  if (!source.probe.video?.hdr) return null;
  const streams = await ask(binaries, source, 'color_transfer,color_primaries', signal);
  const video = streams.find(({ codec_type: type }) => type === 'video');
  return { transfer: video?.color_transfer ?? '', primaries: video?.color_primaries ?? 'bt2020' };
};

/** Between the first picture and the first sound. */
export const startsApartMs = async (binaries: Binaries, source: SourceFile, signal: AbortSignal): Promise<number> => {
  if (source.probe.audio === null) return 0;
  const streams = await ask(binaries, source, 'start_time', signal);
  const [picture, sound] = ['video', 'audio'].map((kind) =>
    Number(streams.find(({ codec_type: type }) => type === kind)?.start_time ?? 0),
  );
  return 1_000 * Math.abs((picture || 0) - (sound || 0));
};
