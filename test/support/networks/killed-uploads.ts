/** A large video to each simulated network that takes one in parts, whose worker is killed twice on the way. */
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { appOf } from '#infra/platforms/kit/app.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Platform } from '#schemas/common.ts';
import { mediaOf } from '#test/support/networks/world-parts.ts';
import { facebookWorld } from './facebook/world.ts';
import { type KilledUpload, killedUpload } from './killed-upload.ts';
import { appOf as tiktokAppOf, tiktokWorld } from './tiktok/world.ts';
import { xWorld } from './x/world.ts';
import { youtubeWorld } from './youtube/world.ts';

/** What the network has in the end. The small video of the last worker does not count. */
export interface UploadLedger extends KilledUpload {
  /** Uploads that it began. */
  readonly begun: number;
  readonly posts: number;
  /** Bytes of the video that it has. */
  readonly held: number;
  /** Bytes that it received more than once. */
  readonly againBytes: number;
}

export interface LargeUpload {
  readonly says: string;
  readonly bytes: number;
  /** What the kills may cost: the parts since the last checkpoint, and those that left before the worker died. */
  readonly mostAgainBytes: number;
  run(): Promise<UploadLedger>;
}

const settingsOf = (platform: Platform, env: Readonly<Record<string, string>>): NetworkApp => {
  const app = appOf(platform, readConfig(env));
  if (app === null) throw new Error(`there is no app of ${platform}`);
  return app;
};

const mb = 1_024 ** 2;

const toX = (bytes: number) => async (): Promise<UploadLedger> => {
  const folder = mkdtempSync(path.join(tmpdir(), 'x-upload-'));
  const world = await xWorld();
  const { state, origin } = world.network;
  try {
    const held = (name: string, size: number) => {
      const file = path.join(folder, name);
      writeFileSync(file, '');
      truncateSync(file, size);
      return mediaOf(file, { kind: 'video', contentType: 'video/mp4', bytes: size });
    };
    const account = await world.account();
    const done = await killedUpload({
      app: {
        ...{ id: state.app.clientId, secret: state.app.clientSecret, version: null, monthlyReads: null },
        addresses: { api: origin, authorize: origin },
      },
      secret: (await world.credentials.read(account.id))?.secret,
      request: world.request(account, { media: [held('video', bytes)] }),
      kills: [3, 2],
    });
    const [upload] = [...state.uploads.values()];
    return {
      ...done,
      begun: state.calls.filter(({ path: at }) => at.endsWith('/initialize')).length,
      posts: state.posts.length,
      held: bytes,
      againBytes: (upload?.received ?? 0) - bytes,
    };
  } finally {
    world.network.close();
    rmSync(folder, { recursive: true, force: true });
  }
};

const toYouTube = (bytes: number) => async (): Promise<UploadLedger> => {
  const world = await youtubeWorld();
  const { state, env } = world.network;
  const smallBytes = 17 * mb;
  try {
    const account = await world.account();
    const done = await killedUpload({
      app: settingsOf('youtube', env),
      secret: (await world.credentials.read(account.id))?.secret,
      request: world.request(account, { media: [world.video(bytes)] }),
      small: world.video(smallBytes),
      kills: [3, 5],
    });
    const sent = state.calls.reduce((sum, call) => sum + (call.method === 'PUT' ? call.sent : 0), 0);
    const large = state.videos.filter((made) => made.bytes !== smallBytes);
    return {
      ...{ ...done, begun: state.sessions.size - 1, posts: large.length, held: large[0]?.bytes ?? 0 },
      againBytes: sent - smallBytes - bytes,
    };
  } finally {
    world.close();
  }
};

const toTikTok = (bytes: number) => async (): Promise<UploadLedger> => {
  const world = await tiktokWorld();
  const { state } = world.network;
  const smallBytes = 30_000_000;
  try {
    const account = await world.account();
    const done = await killedUpload({
      app: tiktokAppOf(world.network),
      secret: (await world.credentials.read(account.id))?.secret,
      request: world.request(account, { media: [world.files.video({}, bytes)] }),
      small: world.files.video({}, smallBytes),
      kills: [3, 2],
    });
    // An init makes a post.
    const posts = state.posts.filter(({ upload }) => upload?.size !== smallBytes);
    const upload = posts[0]?.upload;
    return {
      ...{ ...done, begun: posts.length, posts: posts.length, held: upload?.received ?? 0 },
      againBytes: (upload?.arrived ?? 0) - bytes,
    };
  } finally {
    world.close();
  }
};

/** A video of the feed, in the parts that Facebook asks for. */
const toFacebook = (bytes: number) => async (): Promise<UploadLedger> => {
  const world = await facebookWorld();
  const { state, env } = world.network;
  const smallBytes = 6 * mb;
  try {
    const account = await world.account();
    const done = await killedUpload({
      app: settingsOf('facebook', env),
      secret: (await world.credentials.read(account.id))?.secret,
      request: world.request(account, { media: [world.video(bytes)] }),
      small: world.video(smallBytes),
      kills: [3, 5],
    });
    const videos = [...state.videos.values()].filter(({ size }) => size !== smallBytes);
    const parts = state.calls.filter(({ params }) => params.upload_phase === 'transfer');
    return {
      ...{ ...done, begun: videos.length, posts: videos.filter(({ made }) => made !== null).length },
      ...{ held: videos[0]?.got ?? 0, againBytes: parts.length * state.partBytes - smallBytes - bytes },
    };
  } finally {
    world.close();
  }
};

const [ofX, ofYouTube, ofTikTok, ofFacebook] = [100 * mb, 2 * 1_024 ** 3 + 1_234_567, 500_000_000, 100 * mb];

export const largeUploads = {
  x: { says: '100 MB video to X', bytes: ofX, mostAgainBytes: 2 * 8 * 4_000_000, run: toX(ofX) },
  youtube: {
    says: '2 GB video to YouTube',
    bytes: ofYouTube,
    mostAgainBytes: 2 * 2 * 34 * mb,
    run: toYouTube(ofYouTube),
  },
  tiktok: { says: '500 MB video to TikTok', bytes: ofTikTok, mostAgainBytes: 2 * 10_000_000, run: toTikTok(ofTikTok) },
  facebook: {
    says: '100 MB video of the feed to Facebook',
    bytes: ofFacebook,
    mostAgainBytes: 2 * 8 * mb,
    run: toFacebook(ofFacebook),
  },
} as const satisfies Readonly<Record<string, LargeUpload>>;
