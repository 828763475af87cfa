/**
 * Compares a file with the published limits of its network. Shares nothing with the planner or its rules: its own probe
 * and its own table, from the networks' documents (section 4 of their facts).
 */
import { execFile } from 'node:child_process';
import { open, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';

const run = promisify(execFile);
const MB = 1_000_000;

type Pair = readonly [least: number, most: number];
interface VideoLimits {
  readonly seconds: Pair;
  readonly megabytes: number;
  readonly kilobytes?: number;
  readonly aspect?: Pair;
  readonly fps?: Pair;
  readonly mbps?: number;
  readonly width?: Pair;
  /** Longer and shorter side. */
  readonly long?: Pair;
  readonly short?: Pair;
  readonly containers?: readonly string[];
  readonly codecs?: readonly string[];
  /** Meta: index first, no edit list, closed groups, 4:2:0, AAC up to 48 kHz in one or two channels. */
  readonly strict?: boolean;
}
interface ImageLimits {
  readonly formats: readonly string[];
  readonly megabytes: number;
  readonly aspect?: Pair;
  readonly width?: Pair;
  readonly long?: Pair;
  readonly short?: Pair;
  readonly pixels?: number;
  readonly sum?: number;
}
interface Limits {
  readonly video?: VideoLimits;
  readonly image?: ImageLimits;
}

const mp4 = ['mp4'];
const movs = ['mp4', 'mov'];
const instagramVideo: Omit<VideoLimits, 'seconds'> = {
  ...{ megabytes: 300, fps: [23, 60], mbps: 25, containers: movs, codecs: ['h264', 'hevc'], strict: true },
  aspect: [0.01, 10],
  width: [1, 1_920],
};
const instagramImage: ImageLimits = { formats: ['jpeg'], megabytes: 8, aspect: [0.8, 1.91], width: [320, 1_440] };
const facebookImage: ImageLimits = { formats: ['jpeg', 'png'], megabytes: 4 };
const facebookUpright: Omit<VideoLimits, 'seconds'> = {
  ...{ megabytes: 1_000, containers: mp4 },
  fps: [24, 60],
  long: [960, 4_096],
  short: [540, 4_096],
  aspect: [0.5, 0.6],
};

export const limits: { readonly [P in Platform]: { readonly [U in MediaUse]?: Limits } } = {
  x: {
    feed: {
      video: {
        ...{
          seconds: [0.5, 140],
          megabytes: 512,
          aspect: [1 / 3, 3],
          fps: [1, 60],
          long: [32, 1_280],
          short: [32, 1_080],
        },
        ...{ containers: movs, codecs: ['h264'] },
      },
      image: { formats: ['jpeg', 'png', 'webp', 'gif'], megabytes: 5 },
    },
  },
  instagram: {
    feed: { image: instagramImage, video: { ...instagramVideo, seconds: [3, 900] } },
    carousel: { image: instagramImage, video: { ...instagramVideo, seconds: [3, 60], megabytes: 100 } },
    reel: { video: { ...instagramVideo, seconds: [3, 900] } },
    story: {
      image: { formats: ['jpeg'], megabytes: 8 },
      video: { ...instagramVideo, seconds: [3, 60], megabytes: 100 },
    },
    cover: { image: { formats: ['jpeg'], megabytes: 8 } },
  },
  tiktok: {
    feed: {
      video: {
        ...{ seconds: [3, 600], megabytes: 4_000, fps: [23, 60], long: [360, 4_096], short: [360, 4_096] },
        containers: ['mp4', 'mov', 'webm'],
      },
      image: { formats: ['jpeg', 'webp'], megabytes: 20, long: [1, 1_920], short: [1, 1_080] },
    },
  },
  youtube: {
    feed: { video: { seconds: [0.1, 43_200], megabytes: 256_000 } },
    cover: { image: { formats: ['jpeg', 'png'], megabytes: 2 } },
  },
  facebook: {
    feed: { video: { seconds: [0.1, 14_400], megabytes: 10_000, containers: movs }, image: facebookImage },
    reel: { video: { ...facebookUpright, seconds: [3, 90] } },
    story: { video: { ...facebookUpright, seconds: [3, 60] }, image: facebookImage },
    cover: { image: { formats: ['jpeg', 'png'], megabytes: 10 } },
  },
  linkedin: {
    feed: {
      video: {
        seconds: [3, 1_800],
        megabytes: 500,
        kilobytes: 75,
        aspect: [1 / 2.4, 2.4],
        fps: [1, 60],
        containers: mp4,
      },
      image: { formats: ['jpeg', 'png', 'gif'], megabytes: 8, pixels: 36_152_319 },
    },
    cover: { image: { formats: ['jpeg', 'png'], megabytes: 10 } },
  },
  threads: {
    feed: {
      video: {
        ...{ seconds: [0.1, 300], megabytes: 1_000, aspect: [0.01, 10], fps: [23, 60], mbps: 100, width: [1, 1_920] },
        ...{ containers: movs, codecs: ['h264', 'hevc'], strict: true },
      },
      image: { formats: ['jpeg', 'png'], megabytes: 8, aspect: [0.1, 10], width: [320, 1_440] },
    },
  },
  pinterest: {
    feed: {
      video: {
        seconds: [4, 900],
        megabytes: 2_000,
        aspect: [0.5, 1.91],
        fps: [1, 60],
        codecs: ['h264', 'hevc'],
        containers: movs,
      },
      image: { formats: ['jpeg', 'png'], megabytes: 20 },
    },
    cover: { image: { formats: ['jpeg', 'png'], megabytes: 20 } },
  },
  bluesky: {
    feed: {
      video: { seconds: [0.1, 600], megabytes: 300, containers: mp4 },
      image: { formats: ['jpeg', 'png', 'webp'], megabytes: 2 },
    },
  },
  telegram: {
    feed: {
      video: { seconds: [0.1, 43_200], megabytes: 50, containers: mp4, codecs: ['h264'] },
      image: { formats: ['jpeg', 'png', 'webp'], megabytes: 10, aspect: [1 / 20, 20], sum: 10_000 },
    },
    cover: { image: { formats: ['jpeg', 'png', 'webp'], megabytes: 10 } },
  },
};

/** One percent is rounding of sides to whole or even pixels. */
const outside = (value: number, pair: Pair | undefined, slack = 0): boolean =>
  pair !== undefined && (value < pair[0] * (1 - slack) || value > pair[1] * (1 + slack));

const size = (width: number, height: number, rule: VideoLimits | ImageLimits): readonly string[] => [
  ...(outside(width / height, rule.aspect, 0.01) ? [`aspect ${(width / height).toFixed(3)}`] : []),
  ...(outside(width, rule.width) ? [`width ${width}`] : []),
  ...(outside(Math.max(width, height), rule.long) ? [`long side ${Math.max(width, height)}`] : []),
  ...(outside(Math.min(width, height), rule.short) ? [`short side ${Math.min(width, height)}`] : []),
];

/** Names of the top boxes in order, and whether there is an edit list. */
const boxesOf = async (path: string): Promise<{ readonly order: readonly string[]; readonly edits: boolean }> => {
  const file = await open(path);
  try {
    const { size: end } = await file.stat();
    const order: string[] = [];
    let edits = false;
    for (let at = 0; at + 8 <= end; ) {
      const head = Buffer.alloc(16);
      await file.read(head, 0, 16, at);
      const type = head.toString('latin1', 4, 8);
      const length = head.readUInt32BE(0) === 1 ? Number(head.readBigUInt64BE(8)) : head.readUInt32BE(0) || end - at;
      order.push(type);
      if (type === 'moov') {
        const body = Buffer.alloc(Math.min(length, 32 * MB));
        await file.read(body, 0, body.length, at);
        edits = body.includes('elst', 0, 'latin1');
      }
      at += Math.max(8, length);
    }
    return { order, edits };
  } finally {
    await file.close();
  }
};

const headOf = async (path: string): Promise<string> => {
  const file = await open(path);
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(64), 0, 64, 0);
    return buffer.subarray(0, bytesRead).toString('latin1');
  } finally {
    await file.close();
  }
};

const checkVideo = async (path: string, rule: VideoLimits): Promise<readonly string[]> => {
  const { ffmpeg, ffprobe } = await findBinaries(process.env.FFMPEG_PATH ?? null);
  // The npm package's ffprobe crashes on transport streams, so they are copied into another container first.
  const readable = path.endsWith('.ts') ? `${path}.mkv` : path;
  if (readable !== path) await run(ffmpeg, ['-v', 'error', '-y', '-i', path, '-c', 'copy', readable]);
  const { stdout } = await run(ffprobe, ['-v', 'error', '-of', 'json', '-show_streams', '-show_format', readable]);
  const { streams, format } = JSON.parse(stdout);
  const video = streams.find((each: { codec_type: string }) => each.codec_type === 'video');
  const audio = streams.find((each: { codec_type: string }) => each.codec_type === 'audio');
  if (video === undefined) return ['no pictures'];
  const { order, edits } = await boxesOf(path);
  const mp4 = format.tags?.major_brand?.startsWith('qt') ? 'mov' : 'mp4';
  // EBML has its document type in its first bytes.
  const other = (await headOf(path)).includes('webm') ? 'webm' : 'other';
  const container = order[0] === 'ftyp' ? mp4 : other;
  const bytes = (await stat(path)).size;
  const [over, under] = video.avg_frame_rate.split('/').map(Number);
  const strict = rule.strict === true;
  const said = Object.keys({ ...format.tags, ...video.tags }).filter((key) => /location|make|model|gps/i.test(key));
  return [
    ...size(video.width, video.height, rule),
    ...(outside(Number(format.duration), rule.seconds, 0.01) ? [`${format.duration} s`] : []),
    ...(bytes > rule.megabytes * MB ? [`${bytes} bytes`] : []),
    ...(bytes < (rule.kilobytes ?? 0) * 1_000 ? [`only ${bytes} bytes`] : []),
    ...(outside(over / under, rule.fps, 0.002) ? [`${(over / under).toFixed(2)} pictures a second`] : []),
    ...(rule.mbps !== undefined && (bytes * 8) / Number(format.duration) > rule.mbps * 1.05 * MB
      ? ['too many bits a second']
      : []),
    ...(rule.containers !== undefined && !rule.containers.includes(container) ? [`container ${container}`] : []),
    ...(rule.codecs !== undefined && !rule.codecs.includes(video.codec_name) ? [`codec ${video.codec_name}`] : []),
    ...(video.codec_name === 'h264' && video.pix_fmt !== 'yuv420p' ? [`pixels ${video.pix_fmt}`] : []),
    ...(strict && !['progressive', 'unknown', undefined].includes(video.field_order)
      ? [`fields ${video.field_order}`]
      : []),
    ...(strict && order.indexOf('moov') > order.indexOf('mdat') ? ['index behind the data'] : []),
    ...(strict && edits ? ['an edit list'] : []),
    ...(strict && !['1:1', undefined, '0:1'].includes(video.sample_aspect_ratio) ? ['pixels that are not square'] : []),
    ...(strict &&
    audio !== undefined &&
    (audio.codec_name !== 'aac' || Number(audio.sample_rate) > 48_000 || audio.channels > 2)
      ? [`sound ${audio.codec_name} ${audio.sample_rate} ${audio.channels}`]
      : []),
    ...said.map((key) => `says ${key}`),
  ];
};

const checkImage = async (path: string, rule: ImageLimits): Promise<readonly string[]> => {
  const { width, height, format, space, orientation = 1, exif, icc } = await sharp(path).metadata();
  const bytes = (await stat(path)).size;
  return [
    ...size(width, height, rule),
    ...(rule.formats.includes(format) ? [] : [`format ${format}`]),
    ...(bytes > rule.megabytes * MB ? [`${bytes} bytes`] : []),
    ...(rule.pixels !== undefined && width * height > rule.pixels ? [`${width * height} pixels`] : []),
    ...(rule.sum !== undefined && width + height > rule.sum ? [`sides of ${width + height}`] : []),
    ...(space === 'srgb' || space === 'b-w' ? [] : [`colours ${space}`]),
    ...(icc !== undefined && !icc.includes('sRGB', 0, 'latin1') && !icc.includes('s\0R\0G\0B', 0, 'latin1')
      ? ['a profile of its own']
      : []),
    ...(orientation === 1 ? [] : ['turned']),
    ...(exif?.includes(Buffer.from([0x88, 0x25])) || exif?.includes(Buffer.from([0x25, 0x88])) ? ['a place'] : []),
  ];
};

/** The violations of the network's limits; empty when it accepts the file. */
export const violations = async (
  path: string,
  moves: boolean,
  platform: Platform,
  use: MediaUse,
): Promise<readonly string[]> => {
  const rule = limits[platform][use];
  if (moves) return rule?.video === undefined ? ['no video there'] : checkVideo(path, rule.video);
  return rule?.image === undefined ? ['no picture there'] : checkImage(path, rule.image);
};
