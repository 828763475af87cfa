import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { TranscodeError } from '#contracts/ports/transcoder.ts';
import { type Clip, makeClip, makeGif } from '#test/support/media/clips.ts';
import { makeHeic } from '#test/support/media/heic.ts';
import { flatPng, gradient, save, tinyPdf } from '#test/support/media/pictures.ts';
import { transcoding } from '#test/support/media/world.ts';
import { suite } from '#test/support/suite.ts';
import { box, changed, covered, xmpNumber } from './boxes.ts';

const ai = 'http://cv.iptc.org/newscodes/digitalsourcetype/trainedAlgorithmicMedia';
const aiXmp = `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" Iptc4xmpExt:DigitalSourceType="${ai}"/></rdf:RDF></x:xmpmeta>`;

suite('probe of a video', { drawn: true, costs: 19 }, (t) => {
  const { folder, sourceOf, leftovers } = transcoding();
  const probeOf = async (clip: Clip) => (await sourceOf(await makeClip(folder, { seconds: 0.5, ...clip }))).probe;

  t('finds size, frame rate, codec and container', async () => {
    const rows: [Clip, Record<string, unknown>][] = [
      [
        { width: 180, height: 320 },
        { container: 'mp4', codec: 'h264', fps: 30, constantRate: true },
      ],
      [
        { fps: 24, container: 'mov' },
        { container: 'mov', fps: 24, constantRate: true, interlaced: false },
      ],
      [
        { fps: 60, codec: 'hevc' },
        { codec: 'hevc', profile: 'main', fps: 60, hdr: false },
      ],
      [
        { fps: '30000/1001', container: 'mkv' },
        { container: 'matroska', fps: 29.97, constantRate: true },
      ],
      [
        { codec: 'vp9', container: 'webm' },
        { container: 'webm', codec: 'vp9', constantRate: true },
      ],
      [
        { codec: 'prores', container: 'mov' },
        { codec: 'prores', pixelFormat: 'yuv422p10le' },
      ],
      [
        { codec: 'mpeg4', container: 'avi' },
        { container: 'avi', codec: 'mpeg4' },
      ],
      [{ container: 'ts' }, { container: 'mpegts', codec: 'h264', fps: 30 }],
      [{ fps: 60, seconds: 2, variable: true }, { constantRate: false }],
      // Longer than what is looked at, at places where pictures stand out of order.
      [{ fps: 30, seconds: 6, group: 250 }, { constantRate: true }],
      [{ fps: 30, seconds: 15, group: 60 }, { constantRate: true }],
      [{ fps: '24000/1001', seconds: 12, group: 48 }, { constantRate: true }],
      [{ fps: 25, interlaced: true }, { interlaced: true }],
      [{ hdr: 'pq' }, { codec: 'hevc', hdr: true, pixelFormat: 'yuv420p10le' }],
      [{ hdr: 'hlg' }, { hdr: true }],
      [{ streamable: true }, { indexFirst: true, editList: false, located: false }],
      [{}, { indexFirst: false, editList: true }],
      [{ container: 'mov', metadata: { location: '+48.1+011.5/' } }, { located: true }],
    ];
    for (const [clip, expected] of rows) {
      const { video, width, height, durationMs } = await probeOf(clip);
      const seen = Object.fromEntries(Object.keys(expected).map((key) => [key, Reflect.get(video ?? {}, key)]));
      deepEqual(seen, expected, JSON.stringify(clip));
      deepEqual([width, height], [clip.width ?? 320, clip.height ?? 180]);
      const asked = (clip.seconds ?? 0.5) * 1_000;
      ok(Math.abs((durationMs ?? 0) - asked) < 120, `${durationMs} ms of ${JSON.stringify(clip)}`);
      ok((video?.bitrate ?? 0) > 1_000);
    }
    deepEqual(leftovers(), []);
  });

  t('swaps width and height of a rotated video', async () => {
    for (const [rotate, width, height] of [
      [90, 180, 320],
      [180, 320, 180],
      [270, 180, 320],
    ] as const) {
      const probe = await probeOf({ rotate });
      deepEqual([probe.video?.rotation, probe.width, probe.height], [rotate, width, height]);
    }
  });

  t('finds sound, or none', async () => {
    const { audio } = await probeOf({});
    deepEqual([audio?.codec, audio?.profile, audio?.channels, audio?.sampleRate], ['aac', 'lc', 2, 48_000]);
    equal((await probeOf({ sound: false })).audio, null);
  });

  t('finds the AI mark and a location in XMP, wherever an MP4 holds it', async () => {
    const film = await readFile(await makeClip(folder, { seconds: 0.5 }));
    const xmp = Buffer.from(aiXmp.replace(' Iptc4xmpExt:Dig', ' exif:GPSLatitude="48,8N" Iptc4xmpExt:Dig'));
    const own = box('uuid', xmpNumber, xmp);
    const user = box('udta', box('XMP_', xmp));
    const into = (path: readonly string[], added: Buffer) =>
      changed(film, path, (content) => Buffer.concat([content, added]));
    const films = [Buffer.concat([film, own]), into(['moov'], own), into(['moov'], user), into(['moov', 'trak'], user)];
    for (const bytes of [film, ...films]) {
      const { probe } = await sourceOf(await save(folder, 'mp4', bytes));
      const expected = bytes === film ? [null, false] : ['trainedAlgorithmicMedia', true];
      deepEqual([probe.digitalSourceType, probe.video?.located], expected);
    }
  });

  t('does not take a leading cover for the video', async () => {
    const film = await readFile(await makeClip(folder, { seconds: 2, fps: 60, variable: true }));
    const { probe } = await sourceOf(await save(folder, 'mp4', await covered(film)));
    deepEqual([probe.width, probe.height, probe.video?.codec], [320, 180, 'h264']);
    equal(probe.video?.constantRate, false, 'the frame rate of the video');
  });
});

suite('probe of an image', (t) => {
  const { folder, sourceOf } = transcoding();
  const probeOf = async (ending: string, bytes: Uint8Array) =>
    (await sourceOf(await save(folder, ending, bytes))).probe;
  const refused = async (bytes: Uint8Array, kind: string, code: string) =>
    rejects(probeOf('png', bytes), (error: unknown) => {
      deepEqual(error instanceof TranscodeError && [error.kind, error.failure?.code], [kind, code]);
      return true;
    });

  t('finds format, alpha, colours, orientation and location', async () => {
    const base = () => gradient(60, 40);
    const gps = {
      IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 8/1 0/1', GPSLongitudeRef: 'E', GPSLongitude: '11/1 30/1 0/1' },
    };
    const rows: [Uint8Array, object][] = [
      [await base().jpeg().toBuffer(), { format: 'jpeg', alpha: false, srgb: true, upright: true, located: false }],
      [await gradient(60, 40, true).png().toBuffer(), { format: 'png', alpha: true }],
      [await base().flatten().webp().toBuffer(), { format: 'webp' }],
      [await base().avif().toBuffer(), { format: 'avif' }],
      [await base().tiff().toBuffer(), { format: 'tiff' }],
      [await base().flatten().toColourspace('cmyk').jpeg().toBuffer(), { format: 'jpeg', srgb: false }],
      [await base().withIccProfile('p3').jpeg().toBuffer(), { srgb: false }],
      [await base().withIccProfile('srgb').jpeg().toBuffer(), { srgb: true }],
      [await base().withExif(gps).jpeg().toBuffer(), { located: true }],
      [
        await base()
          .withExif({ IFD0: { Make: 'Acme' } })
          .jpeg()
          .toBuffer(),
        { located: false },
      ],
    ];
    for (const [bytes, expected] of rows) {
      const { image, width, height, frames } = await probeOf('bin', bytes);
      const seen = Object.fromEntries(Object.keys(expected).map((key) => [key, Reflect.get(image ?? {}, key)]));
      deepEqual(seen, expected);
      deepEqual([width, height, frames], [60, 40, 1]);
    }
    const turned = await probeOf('jpg', await base().withMetadata({ orientation: 6 }).jpeg().toBuffer());
    deepEqual([turned.width, turned.height, turned.image?.upright], [40, 60, false]);
    const dot = await probeOf('png', flatPng(1, 1));
    deepEqual([dot.width, dot.height], [1, 1]);
  });

  t('finds orientation and location of a HEIC, and refuses one that it cannot decode with a code', async () => {
    const gps = { IFD3: { GPSLatitudeRef: 'N', GPSLatitude: '48/1 8/1 0/1' } };
    const { exif } = await sharp(await gradient(8, 8).withExif(gps).jpeg().toBuffer()).metadata();
    if (exif === undefined) throw new Error('no EXIF was written');
    const { icc } = await sharp(await gradient(8, 8).withIccProfile('p3').jpeg().toBuffer()).metadata();
    if (icc === undefined) throw new Error('no profile was written');
    const { probe } = await sourceOf(await makeHeic(folder, { turned: 1, exif, icc }));
    deepEqual([probe.kind, probe.contentType, probe.width, probe.height], ['image', 'image/heic', 240, 320]);
    deepEqual([probe.frames, probe.image?.format, probe.image?.located], [1, 'heic', true]);
    equal(probe.image?.srgb, false);
    equal((await sourceOf(await makeHeic(folder, { brand: 'mif1' }))).probe.image?.format, 'heic');
    const bytes = await readFile(await makeHeic(folder));
    const data = bytes.indexOf('mdat', 0, 'latin1') + 4;
    await refused(Buffer.concat([bytes.subarray(0, data + 400)]), 'unreadable', 'media_unreadable');
    await refused(
      Buffer.concat([bytes.subarray(0, data), Buffer.alloc(bytes.length - data, 7)]),
      'unreadable',
      'media_unreadable',
    );
    const avif = await gradient(60, 40).avif().toBuffer();
    avif.write('mif1', 8, 'latin1');
    equal((await probeOf('heif', avif)).width, 60, 'AVIF that says first that it is any picture');
  });

  t('finds a location in the IPTC data of a JPEG', async () => {
    const picture = await gradient(60, 40).jpeg().toBuffer();
    const resource = (number: number, data: Buffer) => {
      const head = Buffer.alloc(12);
      head.write('8BIM', 'latin1');
      head.writeUInt16BE(number, 4);
      head.writeUInt32BE(data.length, 8);
      return Buffer.concat([head, data, Buffer.alloc(data.length % 2)]);
    };
    const dataset = (number: number, value: string) =>
      Buffer.concat([Buffer.from([0x1c, 2, number, 0, value.length]), Buffer.from(value)]);
    const described = (...datasets: readonly Buffer[]) => {
      const other = resource(0x0425, Buffer.alloc(15, 7));
      const data = Buffer.concat([Buffer.from('Photoshop 3.0\0'), other, resource(0x0404, Buffer.concat(datasets))]);
      const head = Buffer.from([0xff, 0xed, 0, 0]);
      head.writeUInt16BE(data.length + 2, 2);
      return Buffer.concat([picture.subarray(0, 2), head, data, picture.subarray(2)]);
    };
    const located = async (bytes: Buffer) => (await probeOf('jpg', bytes)).image?.located;
    equal(await located(described(dataset(5, 'a title'), dataset(120, 'words'), dataset(90, ''))), false);
    for (const number of [90, 92, 95, 101]) {
      equal(await located(described(dataset(5, 'a title'), dataset(number, 'Somewhere'))), true, String(number));
    }
  });

  t('finds the AI mark', async () => {
    const marked = await gradient(60, 40).withXmp(aiXmp).jpeg().toBuffer();
    equal((await probeOf('jpg', marked)).digitalSourceType, 'trainedAlgorithmicMedia');
    equal((await probeOf('jpg', await gradient(60, 40).jpeg().toBuffer())).digitalSourceType, null);
  });

  t('takes 12,000 by 12,000 pixels and refuses one row more as a bomb', async () => {
    equal((await probeOf('png', flatPng(12_000, 12_000))).width, 12_000);
    await refused(flatPng(12_000, 12_001), 'hostile', 'media_bomb');
  });

  t('counts the frames of a GIF and adds up their delays', async () => {
    const { probe } = await sourceOf(await makeGif(folder, 12, 160, 120, 10));
    deepEqual([probe.kind, probe.frames, probe.durationMs, probe.video?.fps], ['gif', 12, 1_200, 10]);
  });

  t('refuses animated WebP', async () => {
    const moving = await sharp(await makeGif(folder, 3), { animated: true })
      .webp()
      .toBuffer();
    await refused(moving, 'unsupported', 'media_unsupported');
  });

  t('checks the beginning and the end of a PDF', async () => {
    const { kind, contentType, bytes } = await probeOf('pdf', tinyPdf());
    deepEqual([kind, contentType, bytes], ['document', 'application/pdf', tinyPdf().length]);
    await refused(tinyPdf().subarray(0, 80), 'unreadable', 'media_unreadable');
  });
});
