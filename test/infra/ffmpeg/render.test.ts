import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { copyFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import type { MadeRendition } from '#contracts/ports/transcoder.ts';
import { minVideoBytes } from '#domain/platforms/index.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { type Clip, makeClip, makeGif } from '#test/support/media/clips.ts';
import { makeHeic } from '#test/support/media/heic.ts';
import { gradient, save } from '#test/support/media/pictures.ts';
import { pathOf, pictureSpec, transcoding, videoSpec } from '#test/support/media/world.ts';
import { suite } from '#test/support/suite.ts';
import { covered } from './boxes.ts';

const run = promisify(execFile);

suite('renditions of a video', { drawn: true, costs: 37 }, (t) => {
  const { folder, sourceOf, render, leftovers } = transcoding();
  const clipSource = async (clip: Clip) => sourceOf(await makeClip(folder, { seconds: 0.5, ...clip }));
  const packets = async (path: string, stream: string) => {
    const { ffprobe } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const args = ['-v', 'error', '-select_streams', stream, '-show_entries', 'packet=pts_time', '-of', 'csv=p=0', path];
    const { stdout } = await run(ffprobe, args);
    return stdout
      .split('\n')
      .filter(Boolean)
      .map(Number.parseFloat)
      .sort((a, b) => a - b);
  };
  const pixel = async (path: string, x: number, y: number) => {
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const png = join(folder, 'pixel.png');
    await run(ffmpeg, ['-v', 'error', '-y', '-i', path, '-frames:v', '1', png]);
    return [...(await sharp(png).extract({ left: x, top: y, width: 1, height: 1 }).removeAlpha().raw().toBuffer())];
  };

  t('any source becomes H.264 with its index first, no edit list and a constant frame rate from 0', async () => {
    const clips: Clip[] = [
      ...[{}, { codec: 'hevc' }, { codec: 'vp9', container: 'webm' }, { codec: 'prores', container: 'mov' }],
      ...[{ container: 'ts' }, { codec: 'mpeg4', container: 'avi' }, { variable: true, fps: 60, seconds: 1 }],
      ...[{ interlaced: true, fps: 25 }, { hdr: 'pq' }, { hdr: 'hlg' }, { sound: false }, { fps: '30000/1001' }],
    ] as Clip[];
    for (const clip of clips) {
      const source = await clipSource(clip);
      const [made] = await render(source, [videoSpec()]);
      const path = pathOf(made);
      const { video, audio, width, height, durationMs } = (await sourceOf(path)).probe;
      const reported = JSON.stringify(clip);
      deepEqual(
        [video?.container, video?.codec, video?.profile, video?.pixelFormat],
        ['mp4', 'h264', 'high', 'yuv420p'],
        reported,
      );
      deepEqual(
        [width, height, video?.squarePixels, video?.interlaced, video?.hdr],
        [320, 180, true, false, false],
        reported,
      );
      deepEqual([video?.indexFirst, video?.editList, video?.located], [true, false, false], reported);
      deepEqual([video?.fps, video?.constantRate, video?.rotation], [30, true, 0], reported);
      deepEqual(
        [audio?.codec, audio?.channels, audio?.sampleRate],
        clip.sound === false ? [undefined, undefined, undefined] : ['aac', 2, 48_000],
      );
      ok(Math.abs((durationMs ?? 0) - (source.probe.durationMs ?? 0)) < 150, reported);
      const times = await packets(path, 'v:0');
      equal(times[0], 0, reported);
      ok(
        times.slice(1).every((time, index) => Math.abs(time - (times[index] ?? 0) - 1 / 30) < 0.002),
        reported,
      );
      if (clip.sound !== false) ok(((await packets(path, 'a:0'))[0] ?? 1) < 0.03);
    }
    deepEqual(leftovers(), []);
  });

  t('a rotated source becomes upright and is padded without cropping', async () => {
    for (const rotate of [90, 180, 270] as const) {
      const source = await clipSource({ rotate, picture: 'smptebars' });
      const { width, height } = source.probe;
      if (width === null || height === null) throw new Error('no size');
      const [made] = await render(source, [videoSpec({ width, height })]);
      // The bars' bright left lies at the top, the right or the bottom.
      const corner = { 90: [width - 20, 20], 180: [width - 20, height - 20], 270: [20, height - 20] }[rotate];
      const [red = 0, green = 0, blue = 0] = await pixel(pathOf(made), corner[0] ?? 0, corner[1] ?? 0);
      ok(red > 150 && green > 150 && blue > 150, `${rotate}: ${red},${green},${blue}`);
    }
    const [made] = await render(await clipSource({ picture: 'smptebars' }), [
      videoSpec({ width: 180, height: 320, fit: 'pad' }),
    ]);
    const [red = 255, green = 255, blue = 255] = await pixel(pathOf(made), 90, 10);
    ok(red < 24 && green < 24 && blue < 24);
    const [bright = 0] = await pixel(pathOf(made), 10, 160);
    ok(bright > 150);
  });

  t('HDR becomes SDR with the colours of the source', async () => {
    const [plain] = await render(await clipSource({ picture: 'smptebars' }), [videoSpec()]);
    const [mapped] = await render(await clipSource({ picture: 'smptebars', hdr: 'hlg' }), [videoSpec()]);
    // Yellow, the second bar: red and green well over blue in both.
    for (const made of [plain, mapped]) {
      const [red = 0, green = 0, blue = 0] = await pixel(pathOf(made), 60, 40);
      ok(red > blue + 60 && green > blue + 60, `${red},${green},${blue}`);
    }
    const { ffprobe } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const { stdout } = await run(ffprobe, [
      '-v',
      'error',
      '-show_entries',
      'stream=color_transfer,color_space,color_primaries',
      pathOf(mapped),
    ]);
    match(stdout, /color_space=bt709[\s\S]*color_transfer=bt709[\s\S]*color_primaries=bt709/);
  });

  t('rotated HDR and 4K keep range and size, copied or encoded', async () => {
    const screen =
      'master-display=G(13250,34500)B(7500,3000)R(34000,16000)WP(15635,16450)L(10000000,50):max-cll=1000,400';
    const camera = { seconds: 0.1, container: 'mov', hdr: 'pq', x265: screen, rotate: 90, sound: false } as const;
    const { ffprobe } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const light = async (path: string) => {
      const args = [
        '-v',
        'error',
        '-of',
        'json',
        '-select_streams',
        'v',
        '-show_frames',
        '-read_intervals',
        '%+#1',
        path,
      ];
      const [frame] = JSON.parse((await run(ffprobe, args)).stdout).frames;
      const { color_transfer: transfer, color_primaries: primaries, color_space: matrix, side_data_list: side } = frame;
      const of = (type: string) =>
        side?.find((each: { side_data_type: string }) => each.side_data_type.startsWith(type));
      const [shown, content] = [of('Mastering'), of('Content')];
      return [transfer, primaries, matrix, shown?.max_luminance, shown?.red_x, content?.max_content];
    };
    const seen = async (made: MadeRendition | undefined) => {
      const { probe } = await sourceOf(pathOf(made));
      const { codec, profile, pixelFormat, rotation, hdr, located } = probe.video ?? {};
      return [codec, profile, pixelFormat, rotation, hdr, located, probe.width, probe.height];
    };
    const pq = ['smpte2084', 'bt2020', 'bt2020nc', '10000000/10000', '34000/50000', 1_000];
    const asked = { range: 'hdr', audio: null, videoKbps: 8_000 } as const;

    const large = await clipSource({ ...camera, width: 3_840, height: 2_160, metadata: { location: '+48.1+011.5/' } });
    deepEqual([large.probe.video?.hdr, large.probe.width, large.probe.height], [true, 2_160, 3_840]);
    const [copy] = await render(large, [
      videoSpec({ ...asked, mode: 'remux', fps: null, width: 2_160, height: 3_840 }),
    ]);
    deepEqual(await seen(copy), ['hevc', 'main 10', 'yuv420p10le', 90, true, false, 2_160, 3_840]);
    deepEqual(await light(pathOf(copy)), pq);

    const size = { width: 180, height: 320 };
    const [anew, flat] = await render(await clipSource(camera), [
      videoSpec({ ...asked, ...size }),
      videoSpec({ ...size, audio: null }),
    ]);
    deepEqual(await seen(anew), ['hevc', 'main 10', 'yuv420p10le', 0, true, false, 180, 320]);
    deepEqual(await light(pathOf(anew)), pq);
    deepEqual((await seen(flat)).slice(0, 5), ['h264', 'high', 'yuv420p', 0, false]);
  });

  t('sound above its bit rate is encoded, and the video stream is copied', async () => {
    const source = await clipSource({ seconds: 0.5, container: 'mov', audioKbps: 320 });
    const spec = videoSpec({
      mode: 'remux',
      sound: 'encode',
      fps: null,
      audio: { kbps: 64, sampleRate: 48_000, channels: 2 },
    });
    const [made] = await render(source, [spec]);
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const pictures = async (path: string) =>
      (await run(ffmpeg, ['-v', 'error', '-i', path, '-map', '0:v', '-c', 'copy', '-f', 'md5', '-'])).stdout;
    equal(await pictures(pathOf(made)), await pictures(source.path));
    const { probe } = await sourceOf(pathOf(made));
    ok((source.probe.audio?.bitrate ?? 0) > 120_000, `${source.probe.audio?.bitrate}`);
    ok((probe.audio?.bitrate ?? Number.NaN) < 90_000, `${probe.audio?.bitrate}`);
    deepEqual([probe.audio?.codec, probe.audio?.channels, probe.video?.editList], ['aac', 2, false]);
    ok(((await packets(pathOf(made), 'a:0'))[0] ?? 1) < 0.03);
  });

  t('HD without a colour matrix is read as BT.709, as players do', async () => {
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const path = join(folder, 'unsaid.mp4');
    await run(ffmpeg, [
      ...['-v', 'error', '-nostdin', '-y', '-f', 'lavfi', '-i', 'smptebars=s=1280x720:r=30', '-t', '0.5'],
      ...['-vf', 'format=rgb24,scale=out_color_matrix=bt709,format=yuv420p', '-c:v', 'libx264', '-preset', 'ultrafast'],
      ...['-bsf:v', 'h264_metadata=colour_primaries=2:transfer_characteristics=2:matrix_coefficients=2', path],
    ]);
    const [made] = await render(await sourceOf(path), [videoSpec({ width: 640, height: 360, audio: null })]);
    // The fourth bar is green: coded as BT.709 and read as BT.601 it would be off by twenty and more.
    const [red = 0, green = 0, blue = 0] = await pixel(pathOf(made), 320, 80);
    ok(Math.abs(red - 0) < 9 && Math.abs(green - 191) < 9 && Math.abs(blue - 0) < 9, `${red},${green},${blue}`);
  });

  t('a smaller rendition has the colours of the larger one', async () => {
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const path = join(folder, 'television.mp4');
    await run(ffmpeg, [
      ...['-v', 'error', '-nostdin', '-y', '-f', 'lavfi', '-i', 'smptebars=s=640x360:r=30', '-t', '0.5'],
      ...['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-colorspace', 'smpte170m', path],
    ]);
    const sizes = [640, 320].map((width) => videoSpec({ width, height: (width * 9) / 16, audio: null }));
    for (const [index, made] of (await render(await sourceOf(path), sizes)).entries()) {
      // Recoded from BT.601 to BT.709 a second time, green would be off by twenty and more.
      const [red = 0, green = 0, blue = 0] = await pixel(pathOf(made), 320 / (index + 1), 80);
      ok(Math.abs(red - 0) < 9 && Math.abs(green - 191) < 9 && Math.abs(blue - 0) < 9, `${red},${green},${blue}`);
    }
  });

  t('closed groups of pictures of 2 s', async () => {
    const [made] = await render(await clipSource({ seconds: 5, width: 160, height: 90 }), [
      videoSpec({ width: 160, height: 90 }),
    ]);
    const { ffprobe } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const args = [
      '-v',
      'error',
      '-select_streams',
      'v:0',
      '-skip_frame',
      'nokey',
      '-show_entries',
      'frame=pkt_dts_time,pts_time,best_effort_timestamp_time',
      '-of',
      'json',
    ];
    const { frames } = JSON.parse((await run(ffprobe, [...args, pathOf(made)])).stdout);
    const keys = frames.map((frame: { best_effort_timestamp_time: string }) =>
      Number(frame.best_effort_timestamp_time),
    );
    for (const second of [0, 2, 4])
      ok(
        keys.some((key: number) => Math.abs(key - second) < 0.05),
        `${keys}`,
      );
  });

  t('a remux copies the streams and removes the metadata', async () => {
    const source = await clipSource({ container: 'mov', metadata: { location: '+48.1+011.5/', title: 'x' } });
    const spec = videoSpec({ mode: 'remux', fps: 30 });
    const [made] = await render(source, [spec]);
    const { probe } = await sourceOf(pathOf(made));
    deepEqual([probe.video?.container, probe.video?.indexFirst, probe.video?.editList], ['mp4', true, false]);
    equal(probe.video?.located, false);
    equal(probe.video?.profile, source.probe.video?.profile, 'not encoded again');
    equal((await readFile(pathOf(made))).includes('+48.1'), false);
  });

  t('a file below the minimum size is filled up to it and still plays', async () => {
    const source = await clipSource({ width: 64, height: 64, container: 'mov' });
    ok(source.probe.bytes < minVideoBytes / 2);
    for (const mode of ['remux', 'encode'] as const) {
      const [made] = await render(source, [
        videoSpec({ mode, fps: mode === 'remux' ? null : 30, width: 64, height: 64 }),
      ]);
      const bytes = await readFile(pathOf(made));
      equal(bytes.length, minVideoBytes);
      equal(made?.kind === 'made' && made.bytes, minVideoBytes);
      const { probe } = await sourceOf(pathOf(made));
      deepEqual([probe.kind, probe.width, probe.video?.indexFirst], ['video', 64, true]);
    }
  });

  t('a leading cover is in no rendition', async () => {
    const film = await readFile(await makeClip(folder, { seconds: 0.5, picture: 'smptebars' }));
    const source = await sourceOf(await save(folder, 'mp4', await covered(film)));
    const shape = { width: 320, height: 180, fit: 'scale', quality: 80, maxBytes: null } as const;
    const made = await render(source, [
      videoSpec(),
      videoSpec({ mode: 'remux' }),
      { kind: 'frame', format: 'jpeg', atMs: 0, ...shape },
    ]);
    const copy = (await sourceOf(pathOf(made[1]))).probe;
    equal(copy.video?.profile, source.probe.video?.profile, 'not encoded again');
    for (const each of made) {
      // The first bar is light grey.
      const [red = 0, green = 0, blue = 0] = await pixel(pathOf(each), 10, 20);
      ok(Math.min(red, green, blue) > 150, `${each.id}: ${red},${green},${blue}`);
    }
  });

  t('a remux does not restore what an edit list cut away', async () => {
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const whole = await makeClip(folder, { seconds: 3, width: 160, height: 90 });
    const cut = join(folder, 'cut.mp4');
    await run(ffmpeg, ['-v', 'error', '-y', '-ss', '1.5', '-i', whole, '-c', 'copy', cut]);
    const source = await sourceOf(cut);
    equal(source.probe.video?.editList, true);
    const [made] = await render(source, [videoSpec({ mode: 'remux', width: 160, height: 90 })]);
    ok(made?.kind === 'made' && Math.abs((made.durationMs ?? 0) - 1_500) < 150, JSON.stringify(made));
  });

  t('location and device are removed; the AI mark stays', async () => {
    const path = await makeClip(folder, {
      metadata: { location: '+48.1+011.5/', make: 'Acme', comment: 'secret' },
      container: 'mov',
    });
    const source = await sourceOf(path);
    const marked = { ...source, probe: { ...source.probe, digitalSourceType: 'trainedAlgorithmicMedia' } };
    const [made] = await render(marked, [videoSpec()]);
    const bytes = await readFile(pathOf(made));
    for (const word of ['+48.1', 'Acme', 'secret']) equal(bytes.includes(word), false, word);
    equal((await sourceOf(pathOf(made))).probe.digitalSourceType, 'trainedAlgorithmicMedia');
  });

  t('a limit on bytes is kept, at a lower bit rate if necessary', async () => {
    const source = await clipSource({ seconds: 3, width: 640, height: 360, picture: 'mandelbrot' });
    const maxBytes = 150_000;
    const [made] = await render(source, [videoSpec({ width: 640, height: 360, videoKbps: 4_000, maxBytes })]);
    ok(made?.kind === 'made' && made.bytes <= maxBytes, JSON.stringify(made));
  });

  t('a frame at the given time, or the last frame', async () => {
    const source = await clipSource({ seconds: 2 });
    const frame = {
      kind: 'frame',
      format: 'jpeg',
      width: 320,
      height: 180,
      fit: 'scale',
      quality: 80,
      maxBytes: null,
    } as const;
    const made = await render(
      source,
      [0, 1_000, 999_000].map((atMs) => ({ ...frame, atMs })),
    );
    const shown = await Promise.all(made.map(async (each) => (await readFile(pathOf(each))).toString('base64')));
    equal(new Set(shown).size, 3);
    equal((await sharp(pathOf(made[0])).metadata()).format, 'jpeg');
  });

  t('a GIF as video keeps its duration and gets a white background', async () => {
    const source = await sourceOf(await makeGif(folder, 10, 160, 120, 10));
    const [made] = await render(source, [videoSpec({ width: 160, height: 120, audio: null })]);
    ok(made?.kind === 'made' && Math.abs((made.durationMs ?? 0) - 1_000) < 100, JSON.stringify(made));
    const [again, once] = await render(source, [
      videoSpec({ width: 160, height: 120, audio: null, rounds: 4 }),
      videoSpec({ width: 80, height: 60, audio: null }),
    ]);
    ok(again?.kind === 'made' && Math.abs((again.durationMs ?? 0) - 4_000) < 100, JSON.stringify(again));
    ok(once?.kind === 'made' && Math.abs((once.durationMs ?? 0) - 1_000) < 100, JSON.stringify(once));
    const dot = (left: number) => ({
      input: { create: { width: 8, height: 8, channels: 4 as const, background: 'red' } },
      left,
      top: 0,
    });
    const blank = { create: { width: 64, height: 64, channels: 4 as const, background: '#0000' } };
    const frames = [0, 40].map((left) =>
      sharp(blank)
        .composite([dot(left)])
        .png()
        .toBuffer(),
    );
    const moving = sharp(await Promise.all(frames), { join: { animated: true } }).gif({ delay: [500, 500] });
    const see = await sourceOf(await save(folder, 'gif', await moving.toBuffer()));
    deepEqual([see.probe.kind, see.probe.frames, see.probe.image?.alpha], ['gif', 2, true]);
    const [white] = await render(see, [videoSpec({ width: 64, height: 64, audio: null })]);
    const shown = await pixel(pathOf(white), 32, 48);
    ok(Math.min(...shown) > 230, `${shown}`);
  });

  t('a source that was replaced by noise is unreadable and leaves no file', async () => {
    const source = await clipSource({ seconds: 1 });
    await copyFile(await save(folder, 'bin', Buffer.alloc(50_000, 3)), source.path);
    const refused = await render(source, [videoSpec()]).catch((error) => error.kind);
    equal(refused, 'unreadable');
    deepEqual(leftovers(), []);
  });
});

suite('renditions of an image', (t) => {
  const { folder, sourceOf, render } = transcoding();
  const pictureSource = async (ending: string, bytes: Uint8Array) => sourceOf(await save(folder, ending, bytes));

  t('an image becomes upright, sRGB, without alpha and location, padded', async () => {
    const exif = { IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 8/1 0/1' } };
    const turned = await gradient(300, 200).withExif(exif).withMetadata({ orientation: 6 }).jpeg().toBuffer();
    const [upright] = await render(await pictureSource('jpg', turned), [pictureSpec({ width: 200, height: 300 })]);
    const { probe } = await sourceOf(pathOf(upright));
    deepEqual([probe.width, probe.height, probe.image?.upright, probe.image?.located], [200, 300, true, false]);
    const metadata = await sharp(pathOf(upright)).metadata();
    deepEqual([metadata.exif, metadata.icc, metadata.xmp], [undefined, undefined, undefined]);

    const clear = await sharp({ create: { width: 80, height: 60, channels: 4, background: '#f000' } })
      .png()
      .toBuffer();
    const [flat] = await render(await pictureSource('png', clear), [pictureSpec()]);
    deepEqual(
      [...(await sharp(pathOf(flat)).extract({ left: 9, top: 9, width: 1, height: 1 }).raw().toBuffer())],
      [255, 255, 255],
    );

    const inks = await gradient(80, 60).flatten().toColourspace('cmyk').jpeg().toBuffer();
    const [rgb] = await render(await pictureSource('jpg', inks), [pictureSpec({ width: 80, height: 60 })]);
    equal((await sharp(pathOf(rgb)).metadata()).space, 'srgb');

    const wide = await sharp({ create: { width: 200, height: 50, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    const [padded] = await render(await pictureSource('png', wide), [
      pictureSpec({ width: 100, height: 100, fit: 'pad' }),
    ]);
    const at = async (y: number) => [
      ...(await sharp(pathOf(padded)).extract({ left: 50, top: y, width: 1, height: 1 }).raw().toBuffer()),
    ];
    deepEqual(await at(3), [255, 255, 255]);
    ok(((await at(50))[1] ?? 255) < 30);
  });

  t('a HEIC becomes an upright sRGB JPEG without location', async () => {
    const gps = { IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 8/1 0/1' } };
    const { exif } = await sharp(await gradient(8, 8).withExif(gps).jpeg().toBuffer()).metadata();
    const { icc } = await sharp(await gradient(8, 8).withIccProfile('p3').jpeg().toBuffer()).metadata();
    if (exif === undefined || icc === undefined) throw new Error('no metadata was written');
    const source = await sourceOf(await makeHeic(folder, { turned: 1, exif, icc }));
    const [made, small] = await render(source, [
      pictureSpec({ width: 240, height: 320, quality: 95 }),
      pictureSpec({ format: 'webp', width: 60, height: 80 }),
    ]);
    const { probe } = await sourceOf(pathOf(made));
    deepEqual([probe.width, probe.height, probe.image?.srgb, probe.image?.located], [240, 320, true, false]);
    equal((await sharp(pathOf(small)).metadata()).format, 'webp');
    const at = async (x: number, y: number) => [
      ...(await sharp(pathOf(made)).extract({ left: x, top: y, width: 1, height: 1 }).raw().toBuffer()),
    ];
    // The bars' left lies below; their yellow of (191, 191, 0) is a stronger one where it is Display P3's.
    const [red = 0, green = 0, blue = 255] = await at(60, 250);
    ok(red > 180 && green > 180 && blue < 30, `yellow: ${red},${green},${blue}`);
    const [r = 0, g = 255, b = 255] = await at(60, 65);
    ok(r > 198 && g < 30 && b < 30, `red, which was 191 in the file: ${r},${g},${b}`);
  });

  t('every format can be made from every format', async () => {
    const picture = gradient(120, 80, true);
    for (const bytes of [
      await picture.clone().png().toBuffer(),
      await picture.clone().webp().toBuffer(),
      await picture.clone().avif().toBuffer(),
      await picture.clone().tiff().toBuffer(),
    ]) {
      const source = await pictureSource('bin', bytes);
      const made = await render(
        source,
        (['jpeg', 'png', 'webp'] as const).map((format) => pictureSpec({ format, width: 60, height: 40 })),
      );
      deepEqual(await Promise.all(made.map(async (each) => (await sharp(pathOf(each)).metadata()).format)), [
        'jpeg',
        'png',
        'webp',
      ]);
    }
  });

  t('the AI mark stays', async () => {
    const source = await pictureSource('jpg', await gradient(90, 60).jpeg().toBuffer());
    const marked = { ...source, probe: { ...source.probe, digitalSourceType: 'trainedAlgorithmicMedia' } };
    const made = await render(
      marked,
      (['jpeg', 'png', 'webp'] as const).map((format) => pictureSpec({ format })),
    );
    for (const each of made) equal((await sourceOf(pathOf(each))).probe.digitalSourceType, 'trainedAlgorithmicMedia');
  });

  t('a GIF is scaled as a GIF', async () => {
    const source = await sourceOf(await makeGif(folder, 6, 160, 120, 10));
    const [gif, jpeg] = await render(source, [
      pictureSpec({ format: 'gif', width: 80, height: 60 }),
      pictureSpec({ width: 80, height: 60 }),
    ]);
    const { probe } = await sourceOf(pathOf(gif));
    deepEqual([probe.frames, probe.width, probe.height, probe.durationMs], [6, 80, 60, 600]);
    equal((await sharp(pathOf(jpeg)).metadata()).format, 'jpeg');
  });

  t('an image of 12,000 by 12,000 pixels is scaled in bounded memory', async () => {
    const big = await sharp({ create: { width: 12_000, height: 12_000, channels: 3, background: 'teal' } })
      .jpeg()
      .toBuffer();
    const [made] = await render(await pictureSource('jpg', big), [pictureSpec({ width: 1_440, height: 1_440 })]);
    ok(made?.kind === 'made');
  });
});
