/** A small clip that every network accepts unchanged. */
import { execFile } from 'node:child_process';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { PublishMedia } from '#contracts/ports/platform.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import type { DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import { type AssetOptions, type ReadyAsset, readyAsset } from './assets.ts';

const cache = fileURLToPath(new URL('../../node_modules/.cache/media/', import.meta.url));
const clipMs = 5_000;
const size = { width: 720, height: 1280 };
/** How it is made; another recipe gives another file. */
const recipe = [
  ...['-f', 'lavfi', '-i', `testsrc2=size=${size.width}x${size.height}:rate=30`],
  ...['-f', 'lavfi', '-i', 'sine=frequency=440:sample_rate=48000', '-t', String(clipMs / 1_000)],
  ...['-c:v', 'libx264', '-preset', 'ultrafast', '-profile:v', 'main', '-crf', '40', '-pix_fmt', 'yuv420p'],
  ...['-c:a', 'aac', '-ac', '2', '-b:a', '96k', '-movflags', '+faststart', '-use_editlist', '0', '-f', 'mp4'],
];

let made: Promise<Buffer> | null = null;

/** 5 s of 720 by 1280 at 30 pictures a second, H.264 and AAC; made once on a machine. */
export const clip = (): Promise<Buffer> => {
  made ??= makeClip();
  return made;
};

const makeClip = async (): Promise<Buffer> => {
  const file = path.join(cache, `${createHash('sha256').update(recipe.join(' ')).digest('hex').slice(0, 16)}.mp4`);
  if (!existsSync(file)) {
    mkdirSync(cache, { recursive: true });
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const draft = `${file}.${randomUUID()}`;
    await promisify(execFile)(ffmpeg, ['-nostdin', '-v', 'error', ...recipe, draft]);
    renameSync(draft, file);
  }
  return readFileSync(file);
};

/** The clip as an asset that can be published everywhere, with its bytes in the store. */
export const readyClip = async (
  store: DomainStore,
  workspaceId: string,
  blobs: BlobStore,
  options: AssetOptions & { readonly positions?: Positions } = {},
): Promise<ReadyAsset> => {
  const probe = { ...size, durationMs: clipMs, frames: (clipMs * 30) / 1_000 };
  return readyAsset(store, workspaceId, 'video', { body: await clip(), blobs, probe, ...options });
};

/** The clip as an adapter gets it. */
export const clipForAdapter = async (mediaId: string = randomUUID()): Promise<PublishMedia> => {
  const body = await clip();
  const sha256 = createHash('sha256').update(body).digest('hex');
  const file = path.join(cache, `${sha256.slice(0, 16)}.lent.mp4`);
  if (!existsSync(file)) {
    const draft = `${file}.${randomUUID()}`;
    writeFileSync(draft, body);
    renameSync(draft, file);
  }
  return {
    mediaId,
    kind: 'video',
    use: 'feed',
    contentType: 'video/mp4',
    bytes: body.length,
    sha256,
    ...size,
    durationMs: clipMs,
    altText: null,
    file: async () => file,
    url: async () => {
      throw new Error('this clip has no address');
    },
  };
};
