import { rm } from 'node:fs/promises';
import {
  type MadeRendition,
  type RenderOptions,
  type SourceFile,
  TranscodeError,
  type WantedRendition,
} from '#contracts/ports/transcoder.ts';
import type { RenditionSpec } from '#schemas/media.ts';
import { unavailableCode } from './failures.ts';
import { folderIn } from './isolation.ts';
import { renderFrames, renderImages } from './render-images.ts';
import { renderVideos } from './render-videos.ts';
import { failedRendition, type Render, type Wanted } from './rendering.ts';
import type { Tools } from './tools.ts';

const of = <K extends RenditionSpec['kind']>(wanted: readonly WantedRendition[], kind: K): readonly Wanted<K>[] =>
  wanted.filter((each): each is Wanted<K> => each.spec.kind === kind);

/** A picture needs no ffmpeg: where videos are refused, only its video outputs fail. */
const whereAvailable = async <W extends { readonly id: string }>(
  wanted: readonly W[],
  make: (wanted: readonly W[]) => Promise<readonly MadeRendition[]>,
): Promise<readonly MadeRendition[]> => {
  try {
    return await make(wanted);
  } catch (error) {
    const { code, message } = (error instanceof TranscodeError && error.failure) || { code: null, message: '' };
    if (code !== unavailableCode) throw error;
    return wanted.map(({ id }) => failedRendition(id, code, message));
  }
};

const progressEveryMs = 500;

/** Forwards at most twice a second, never backwards, and 1 at the end. */
const throttled = (onProgress: RenderOptions['onProgress']): ((done: number) => void) => {
  let last = Number.NEGATIVE_INFINITY;
  let highest = 0;
  return (done) => {
    const now = performance.now();
    if (done <= highest || (done < 1 && now - last < progressEveryMs)) return;
    last = now;
    highest = done;
    onProgress?.(Math.min(done, 1));
  };
};

/** @throws TranscodeError; all files are deleted first */
export const render = async (
  tools: Tools,
  source: SourceFile,
  wanted: readonly WantedRendition[],
  options: RenderOptions,
): Promise<readonly MadeRendition[]> => {
  const folder = await folderIn(tools.workDir, 'render-');
  const onProgress = throttled(options.onProgress);
  const run: Render = { tools, source, folder, options: { ...options, onProgress: (done) => onProgress(done * 0.95) } };
  const made: MadeRendition[] = [];
  try {
    made.push(...(await renderImages(run, of(wanted, 'image'))));
    made.push(...(await whereAvailable(of(wanted, 'frame'), (frames) => renderFrames(run, frames))));
    made.push(...(await whereAvailable(of(wanted, 'video'), (videos) => renderVideos(run, videos))));
    onProgress(1);
  } catch (error) {
    await Promise.all(wanted.map(({ to }) => rm(to, { force: true })));
    throw error;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const failed = new Set(made.flatMap(({ id, kind }) => (kind === 'failed' ? [id] : [])));
  await Promise.all(wanted.filter(({ id }) => failed.has(id)).map(({ to }) => rm(to, { force: true })));
  return wanted.map(
    ({ id }) => made.find((each) => each.id === id) ?? failedRendition(id, 'rendition_failed', 'It was not made.'),
  );
};
