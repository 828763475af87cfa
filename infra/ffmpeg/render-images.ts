import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { MadeRendition } from '#contracts/ports/transcoder.ts';
import { limits, runTool } from './child.ts';
import { frameCommand } from './command.ts';
import { type ImageOutput, workOnImage } from './images.ts';
import { fingerprint } from './made.ts';
import { failedRendition, type Render, type Wanted } from './rendering.ts';
import { coloursOf } from './streams.ts';

const outputOf = ({ to, spec }: Wanted<'image' | 'frame'>): ImageOutput => {
  const { format, width, height, fit, quality, maxBytes } = spec;
  return { to, format, width, height, fit, quality, maxBytes };
};

const made = async (
  { tools: _, source, options }: Render,
  { path, contentType }: { readonly path: string; readonly contentType: string },
  wanted: readonly Wanted<'image' | 'frame'>[],
): Promise<readonly MadeRendition[]> => {
  const { digitalSourceType, durationMs } = source.probe;
  const job = { path, contentType, threads: options.threads, digitalSourceType, outputs: wanted.map(outputOf) };
  const { outcomes = [] } = await workOnImage(job, options.signal);
  return Promise.all(
    wanted.map(async ({ id, to, spec }, index): Promise<MadeRendition> => {
      const outcome = outcomes[index];
      if (outcome?.kind === 'too_heavy') {
        return failedRendition(
          id,
          'media_too_heavy',
          `The picture cannot be made smaller than ${spec.maxBytes} bytes.`,
        );
      }
      if (outcome?.kind !== 'made')
        return failedRendition(id, 'rendition_failed', 'The picture could not be converted.');
      const { width, height } = outcome;
      const moves = spec.format === 'gif' && source.probe.kind === 'gif';
      const shape = { width, height, durationMs: moves ? durationMs : null };
      return { id, kind: 'made', path: to, contentType: `image/${spec.format}`, ...(await fingerprint(to)), ...shape };
    }),
  );
};

/** From a picture, or the first picture of a GIF; a GIF stays animated where GIF is requested. */
export const renderImages = async (
  run: Render,
  wanted: readonly Wanted<'image'>[],
): Promise<readonly MadeRendition[]> => {
  if (wanted.length === 0) return [];
  if (run.source.probe.kind === 'image' || run.source.probe.kind === 'gif')
    return made(run, { path: run.source.path, contentType: run.source.probe.contentType }, wanted);
  return wanted.map(({ id }) =>
    failedRendition(id, 'rendition_failed', 'No picture can be made of this kind of file.'),
  );
};

const frameLimits = { cpuSeconds: 300, wallMs: 600_000, fileBytes: 256 * 2 ** 20 };

/** Stills of a video. A position beyond the end gives the last picture. */
export const renderFrames = async (
  run: Render,
  wanted: readonly Wanted<'frame'>[],
): Promise<readonly MadeRendition[]> => {
  if (wanted.length === 0) return [];
  const { tools, source, options, folder } = run;
  const binaries = await tools.binaries();
  const colours = await coloursOf(binaries, source, options.signal);
  const end = Math.max(0, (source.probe.durationMs ?? 0) / 1_000 - 0.1);
  const results: MadeRendition[] = [];
  for (const each of wanted) {
    const still = join(folder, `${each.id}.png`);
    const seconds = Math.min(each.spec.atMs / 1_000, end);
    const places = [
      { seconds, exactly: false },
      { seconds, exactly: true },
      { seconds: 0, exactly: false },
    ];
    let result: MadeRendition | undefined;
    for (const at of places) {
      const args = frameCommand(source, each.spec, at, still, colours);
      const given = limits({ ...frameLimits, reads: [source.path], writes: [still] });
      const ended = await runTool(binaries.ffmpeg, args, given, options.signal);
      if (ended.code !== 0 || ended.struck !== null) continue;
      // ffmpeg reports success when there is no picture at the position; then there is no file, or an empty one.
      if (((await stat(still).catch(() => null))?.size ?? 0) === 0) continue;
      [result] = await made(run, { path: still, contentType: 'image/png' }, [each]);
      break;
    }
    results.push(result ?? failedRendition(each.id, 'rendition_failed', 'No picture could be taken out of the video.'));
  }
  return results;
};
