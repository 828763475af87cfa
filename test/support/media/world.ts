/** A transcoder with a folder of its own. */
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { MadeRendition, RenderOptions, SourceFile } from '#contracts/ports/transcoder.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import type { RenditionSpec } from '#schemas/media.ts';
import { mediaFolder } from './folder.ts';
import { never } from './specs.ts';

export { never, pictureSpec, videoSpec } from './specs.ts';

export const transcoding = () => {
  const folder = mediaFolder();
  const workDir = join(folder, 'work');
  mkdirSync(workDir);
  const transcoder = openTranscoder({ ffmpegPath: process.env.FFMPEG_PATH ?? null, workDir, warn: () => {} });
  let count = 0;
  const sourceOf = async (path: string): Promise<SourceFile> => {
    const sniffed = await transcoder.sniff(path);
    if (sniffed === null) throw new Error(`${path} is nothing that is taken`);
    return { path, probe: await transcoder.probe(path, sniffed, { signal: never() }) };
  };
  return {
    folder,
    transcoder,
    leftovers: (): readonly string[] => readdirSync(workDir),
    sourceOf,
    render: (
      source: SourceFile,
      specs: readonly RenditionSpec[],
      options: Partial<RenderOptions> = {},
    ): Promise<readonly MadeRendition[]> => {
      const wanted = specs.map((spec) => {
        count += 1;
        const id = count.toString(16).padStart(32, '0');
        return { id, spec, to: join(folder, `${id}.${spec.kind === 'video' ? 'mp4' : spec.format}`) };
      });
      return transcoder.render(source, wanted, { threads: 2, signal: never(), ...options });
    },
  };
};

export const pathOf = (made: MadeRendition | undefined): string => {
  if (made?.kind !== 'made') throw new Error(`not made: ${JSON.stringify(made)}`);
  return made.path;
};
