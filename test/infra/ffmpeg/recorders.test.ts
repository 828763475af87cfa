import { deepEqual, ok } from 'node:assert/strict';
import { existsSync, mkdirSync, symlinkSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { delimiter, join } from 'node:path';
import sharp from 'sharp';
import { TranscodeError, type Transcoder } from '#contracts/ports/transcoder.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { makeHeic } from '#test/support/media/heic.ts';
import { flatPng, gradient, manyFrames, save } from '#test/support/media/pictures.ts';
import { animatedPng, patched, placeOf, recordings, sequence, tiffOf } from '#test/support/media/recorders.ts';
import { never, videoSpec } from '#test/support/media/specs.ts';
import { suite } from '#test/support/suite.ts';

/** Of the probe, of its members `video` and `image`, and the codec of `audio` as `sound`. */
type Figures = Readonly<Record<string, unknown>>;
/** A refusal: its kind, and words of its reason. */
type Refusal = readonly [kind: string, reason: RegExp];
type Row = readonly [name: string, bytes: Buffer, expected: Figures | Refusal];

/** Fragments begin where the sound of the former ends, a few hundredths of a second beside their pictures. */
const slack: Readonly<Record<string, number>> = { durationMs: 60, fps: 0.15 };

const isRefusal = (expected: Row[2]): expected is Refusal => Array.isArray(expected);

suite('files as recorders, phones, cameras and editors make them', { timeoutMs: 180_000 }, (t) => {
  const folder = mediaFolder();
  const workDir = join(folder, 'work');
  mkdirSync(workDir);
  const opened = (ffmpegPath: string): Transcoder => openTranscoder({ ffmpegPath, workDir, warn: () => {} });

  let made: ((name: string) => Buffer) | null = null;
  t.before(async () => {
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    made = await recordings(folder, ffmpeg);
  });
  const file = (name: string): Buffer => {
    const bytes = made?.(name) ?? Buffer.alloc(0);
    ok(bytes.length > 0, `${name} was made`);
    return bytes;
  };

  const seen = async (transcoder: Transcoder, bytes: Buffer): Promise<Figures | readonly [string, string]> => {
    try {
      const path = await save(folder, 'bin', bytes);
      const sniffed = await transcoder.sniff(path);
      if (sniffed === null) return ['unknown', 'nothing that is taken'];
      const { video, image, audio, ...rest } = await transcoder.probe(path, sniffed, { signal: never() });
      return { ...rest, ...image, ...video, sound: audio?.codec ?? null };
    } catch (error) {
      return error instanceof TranscodeError ? [error.kind, error.message] : ['fault', String(error)];
    }
  };
  const wrong = async (transcoder: Transcoder, [name, bytes, expected]: Row): Promise<string | null> => {
    const found = await seen(transcoder, bytes);
    const said = `${name}: ${JSON.stringify(found)}`;
    if (isRefusal(expected)) {
      const [kind, reason] = Array.isArray(found) ? found : [];
      return kind === expected[0] && expected[1].test(reason ?? '') ? null : said;
    }
    if (Array.isArray(found)) return said;
    const figures: Figures = found as Figures;
    const off = Object.entries(expected).filter(([member, value]) =>
      member in slack
        ? Math.abs(Number(figures[member]) - Number(value)) > (slack[member] ?? 0)
        : JSON.stringify(figures[member]) !== JSON.stringify(value),
    );
    return off.length === 0
      ? null
      : `${name}: ${off.map(([member, value]) => `${member} ${figures[member]} for ${value}`).join(', ')}`;
  };
  const check = async (transcoder: Transcoder, rows: readonly Row[]): Promise<void> => {
    const faults: string[] = [];
    for (const row of rows) faults.push(...[await wrong(transcoder, row)].filter((fault) => fault !== null));
    deepEqual(faults, []);
  };

  const plain = { width: 64, height: 48, durationMs: 2_000, frames: 20, fps: 10, constantRate: true, codec: 'h264' };
  const cut: Refusal = ['unreadable', /cut off/];
  const part = (bytes: Buffer, of: number): Buffer => bytes.subarray(0, Math.floor(bytes.length * of));

  /** The only edit of a film, of so many units from 0. */
  const edit =
    (length: number, begin = 0, rate = 0x10000) =>
    (bytes: Buffer, at: number) => {
      bytes.writeUInt32BE(length, at + 8);
      bytes.writeInt32BE(begin, at + 12);
      bytes.writeInt32BE(rate, at + 16);
    };

  const containers = (): readonly Row[] => {
    const [film, front] = [file('film.mp4'), file('front.mp4')];
    const fragmented = file('fragmented.mp4');
    const data = placeOf(front, 'mdat');
    const sizedTo = (size: number) => patched(front, 'mdat', (bytes, at) => bytes.writeUInt32BE(size, at - 8));
    return [
      ['an index behind the data', film, { ...plain, indexFirst: false, sound: 'aac', located: false }],
      ['an index before the data', front, { ...plain, indexFirst: true, located: false }],
      ['empty data before the index', emptyData(front), { ...plain, indexFirst: true }],
      ['fragments', fragmented, { ...plain, indexFirst: false, sound: 'aac' }],
      ['fragments, the first inside the index', file('first-inside.mp4'), { ...plain, indexFirst: false }],
      ['fragments, the last cut', part(fragmented, 0.9), cut],
      ['only the head of fragments', headOf(fragmented), ['unreadable', /holds no pictures|shows nothing/]],
      ['QuickTime', file('plain.mov'), { ...plain, container: 'mov' }],
      ['QuickTime without a brand', branded(file('plain.mov'), 'free', null), plain],
      ['a track of timecodes', file('timecode.mov'), { ...plain, sound: 'aac' }],
      ["a camera's own brand", branded(film, 'ftyp', 'XAVC'), { ...plain, container: 'mp4' }],
      ["an old phone's brand", branded(film, 'ftyp', '3gp5'), ['unsupported', /3GP/]],
      ['Matroska', file('plain.mkv'), { ...plain, container: 'matroska', frames: 20 }],
      ['Matroska of a live recorder', file('live.mkv'), plain],
      ['Matroska of a live recorder, cut', part(file('live.mkv'), 0.6), { width: 64, fps: 10, constantRate: true }],
      ['Matroska, cut', part(file('plain.mkv'), 0.9), cut],
      ['Matroska with an empty track of sound', file('mute.mkv'), { ...plain, sound: null }],
      ["WebM of a browser's recorder", file('browser.webm'), { ...plain, codec: 'vp8', sound: 'opus' }],
      ['a transport stream', file('plain.ts'), { ...plain, container: 'mpegts' }],
      ['a camcorder', file('camcorder.m2ts'), { ...plain, sound: 'aac' }],
      [
        'two transport streams in a row',
        Buffer.concat([file('plain.ts'), file('plain.ts')]),
        { ...plain, durationMs: 4_000, frames: 40 },
      ],
      ['AVI', file('old.avi'), { ...plain, codec: 'mpeg4', sound: 'pcm_s16le' }],
      ['AVI, cut', part(file('old.avi'), 0.9), cut],
      ['motion JPEG with its own sound', file('jpeg.mov'), { codec: 'mjpeg', sound: 'pcm_s16be', frames: 10 }],
      ['odd sides', file('odd.mov'), { width: 65, height: 49, frames: 10, durationMs: 1_000 }],
      ['cut in the data', part(front, 0.8), cut],
      ['cut in the index', part(film, 0.98), cut],
      ['cut before the index', film.subarray(0, placeOf(film, 'moov')), ['unreadable', /no index/]],
      ['no bytes', Buffer.alloc(0), ['unreadable', /empty/]],
      ['data that ends with the file', sizedTo(0), plain],
      ['data that claims more than is there and needed', sizedTo(front.length - data + 1_000), plain],
      ['what a recorder appends', Buffer.concat([film, Buffer.alloc(400, 0xee)]), { ...plain, located: true }],
      ['space that a recorder reserved', Buffer.concat([film, Buffer.alloc(4_096)]), { ...plain, located: false }],
    ];
  };

  const claims = (): readonly Row[] => {
    const [film, silent] = [file('film.mp4'), file('silent.mp4')];
    const previewed = file('preview-first.mp4');
    // Bit 0 of the flags: the track is on.
    const off = (nth: number) => patched(previewed, 'tkhd', (bytes, at) => bytes.writeUInt8(14, at + 3), nth);
    const long = (units: number) => (bytes: Buffer, at: number) => void bytes.writeUInt32BE(units, at + 16);
    const turned = patched(film, 'tkhd', (bytes, at) => {
      for (const [index, value] of [0, 1, 0, -1, 0].entries()) bytes.writeInt32BE(value * 65_536, at + 40 + 4 * index);
    });
    const lasting = patched(Buffer.from(file('plain.mkv')), '\x44\x89\x88', (bytes, at) =>
      bytes.writeDoubleBE(9e10, at - 1),
    );
    return [
      ['a length of ten hours in the header', patched(film, 'mvhd', long(36_000_000)), plain],
      ['no length in the header', patched(film, 'mvhd', long(0)), plain],
      ['years in the header of Matroska', lasting, plain],
      [
        'another count in the header of AVI',
        patched(file('old.avi'), 'strh', writeCount),
        { ...plain, codec: 'mpeg4' },
      ],
      ['an edit that cuts the end', patched(silent, 'elst', edit(1_000)), { editList: true, durationMs: 1_000 }],
      ['an edit that cuts nothing', patched(silent, 'elst', edit(2_000)), { ...plain, editList: false }],
      ['an edit at half speed', patched(silent, 'elst', edit(4_000, 0, 0x8000)), { editList: true }],
      ['a turned phone', turned, { ...plain, width: 48, height: 64, rotation: 90 }],
      ['a preview before the film', previewed, { width: 128, height: 96, stream: 1, sound: 'aac' }],
      ['a large track that is off', off(1), { width: 64, height: 48 }],
      ['sound without pictures', file('sound.mp4'), ['unsupported', /no moving pictures/]],
      ['sound of a recorder', branded(file('sound.mp4'), 'ftyp', 'M4A '), ['unsupported', /[Ss]ound/]],
      ['sound longer than the pictures', file('longer-sound.mp4'), { durationMs: 4_000, frames: 5, fps: 10 }],
      ['pictures that are missing late', file('gap.mp4'), { frames: 689, durationMs: 12_000, constantRate: false }],
      ['very many pictures', file('many.mkv'), { frames: 2_400, fps: 200, constantRate: true }],
      ['longer than 12 hours', file('day.mp4'), ['unsupported', /12 hours/]],
      [
        'protected',
        patched(film, 'avc1', (bytes, at) => void bytes.write('encv', at - 4), 1),
        ['unsupported', /protected/],
      ],
    ];
  };

  const pictures = async (): Promise<readonly Row[]> => {
    const base = () => gradient(60, 40).flatten();
    const [jpeg, png, avif] = await Promise.all(
      [base().jpeg(), base().png(), base().avif()].map((each) => each.toBuffer()),
    );
    if (jpeg === undefined || png === undefined || avif === undefined) throw new Error('no pictures');
    const webp = await sharp([jpeg, await base().negate().png().toBuffer()], { join: { animated: true } })
      .webp()
      .toBuffer();
    const deep = await base()
      .toColourspace('rgb16')
      .png({ bitdepth: 16 } as object)
      .toBuffer();
    const heic = await readFile(await makeHeic(folder, { depth: true }));
    const still = { width: 60, height: 40, frames: 1 };
    const moving = (name: string): Refusal => ['unsupported', new RegExp(`Animated ${name}`)];
    return [
      ['animated WebP', webp, moving('WebP')],
      ['animated AVIF', sequence(avif, 2), moving('AVIF')],
      ['animated PNG', animatedPng(png, 2), moving('PNG')],
      ['animated PNG that says so late', animatedPng(png, 2, 70_000), moving('PNG')],
      ['a PNG that an editor of animations wrote', animatedPng(png, 1), { ...still, format: 'png' }],
      ['16 bits', deep, { ...still, format: 'png', srgb: false }],
      ['one bit', flatPng(16, 8), { width: 16, height: 8, format: 'png' }],
      ['CMYK', await base().toColourspace('cmyk').jpeg().toBuffer(), { ...still, srgb: false }],
      ['a gain map behind the picture', Buffer.concat([jpeg, await gradient(30, 20).jpeg().toBuffer()]), still],
      ['a film behind the picture', Buffer.concat([jpeg, file('film.mp4')]), { ...still, format: 'jpeg' }],
      ['a depth picture in a HEIC', heic, { width: 320, height: 240, frames: 1, format: 'heic' }],
      ['a TIFF of two pages', tiffOf([0, 0]), ['unsupported', /several pages/]],
      ['a TIFF with a thumbnail', tiffOf([0, 1]), { width: 2, height: 2, frames: 1, format: 'tiff' }],
      ['a cut JPEG', part(jpeg, 0.6), ['unreadable', /damaged/]],
      ['a cut GIF', part(manyFrames(4), 0.8), ['unreadable', /GIF/]],
      ['a GIF without its end', manyFrames(4).subarray(0, -1), { kind: 'gif', frames: 4 }],
    ];
  };

  const folderOf = (name: string, tools: Readonly<Record<string, string>>): string => {
    const place = join(folder, name);
    mkdirSync(place);
    for (const [tool, path] of Object.entries(tools)) symlinkSync(path, join(place, tool));
    return join(place, 'ffmpeg');
  };
  const ofPackage = (name: string): string => createRequire(import.meta.url)(`@${name}-installer/${name}`).path;
  const packaged = () => folderOf('packaged', { ffmpeg: ofPackage('ffmpeg'), ffprobe: ofPackage('ffprobe') });

  t('pictures are accepted with their figures, or refused with the reason', async () => {
    await check(opened((await findBinaries(process.env.FFMPEG_PATH ?? null)).ffmpeg), await pictures());
  });

  t("videos are, by the package's ffmpeg, and what the probe chose is rendered", async () => {
    const transcoder = opened(packaged());
    const rows = [...containers(), ...claims()];
    ok(rows.length >= 40, `${rows.length} files`);
    await check(transcoder, rows);

    const path = await save(folder, 'mp4', file('preview-first.mp4'));
    const source = {
      path,
      probe: await transcoder.probe(path, { kind: 'video', contentType: 'video/mp4' }, { signal: never() }),
    };
    const size = { width: 128, height: 96 };
    const specs = [
      videoSpec({ ...size, fps: 10 }),
      videoSpec({ ...size, mode: 'remux', fps: null }),
      { kind: 'frame', format: 'jpeg', atMs: 500, ...size, fit: 'scale', quality: 90, maxBytes: null } as const,
    ];
    const wanted = specs.map((spec, index) => ({
      id: String(index).padStart(32, '0'),
      spec,
      to: join(folder, `red-${index}`),
    }));
    const files = await transcoder.render(source, wanted, { threads: 1, signal: never() });
    deepEqual(
      files.map((each) => (each.kind === 'made' ? [each.width, each.height] : each.failure.message)),
      wanted.map(() => [128, 96]),
    );
    const [red = 0, green = 255] = (await sharp(join(folder, 'red-2')).stats()).channels.map(({ mean }) => mean);
    ok(red > 200 && green < 40, `${red}, ${green}`);
  });

  const own = (process.env.PATH ?? '')
    .split(delimiter)
    .map((place) => join(place, 'ffmpeg'))
    .find((path) => existsSync(path));
  const title = "videos are, by the machine's own ffmpeg";
  if (own === undefined) t.skipExtra(title, 'no ffmpeg on PATH: install the package ffmpeg');
  else t(title, () => check(opened(own), [...containers(), ...claims()]));
});

/** The first box renamed or with another brand, at the same places. */
const branded = (film: Buffer, type: string, brand: string | null): Buffer => {
  const bytes = Buffer.from(film);
  bytes.write(type, 4, 'latin1');
  if (brand !== null) bytes.write(brand, 8, 'latin1');
  return bytes;
};

const headOf = (fragmented: Buffer): Buffer => fragmented.subarray(0, placeOf(fragmented, 'moof'));

/** The last two brands become a box of data that holds nothing. */
const emptyData = (film: Buffer): Buffer => {
  const bytes = Buffer.from(film);
  const behind = bytes.readUInt32BE(0);
  bytes.writeUInt32BE(behind - 8, 0);
  bytes.write('\0\0\0\x08mdat', behind - 8, 'latin1');
  return bytes;
};

/** 9,999 pictures in the header of a stream of AVI. */
const writeCount = (bytes: Buffer, at: number): void => void bytes.writeUInt32LE(9_999, at + 4 + 32);
