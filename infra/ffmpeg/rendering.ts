import type { MadeRendition, RenderOptions, SourceFile, WantedRendition } from '#contracts/ports/transcoder.ts';
import type { RenditionSpec } from '#schemas/media.ts';
import type { Tools } from './tools.ts';

/** One render: everything that the makers of pictures, frames and videos need. */
export interface Render {
  readonly tools: Tools;
  readonly source: SourceFile;
  readonly options: RenderOptions;
  /** Its own folder, deleted when it ends. */
  readonly folder: string;
}

export type Wanted<K extends RenditionSpec['kind']> = Omit<WantedRendition, 'spec'> & {
  readonly spec: Extract<RenditionSpec, { kind: K }>;
};

export const failedRendition = (id: string, code: string, message: string): MadeRendition => ({
  id,
  kind: 'failed',
  failure: { code, message },
});
