import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { copyFile, readFile, writeFile } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { TranscodeError } from '#contracts/ports/transcoder.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { type ReadLines, readPackets } from '#infra/ffmpeg/packets.ts';
import { makeClip } from '#test/support/media/clips.ts';
import { toolsOf } from '#test/support/media/groups.ts';
import { flatPng, gradient, manyFrames, pngChunk, save } from '#test/support/media/pictures.ts';
import { tiffOf } from '#test/support/media/recorders.ts';
import { pathOf, pictureSpec, transcoding, videoSpec } from '#test/support/media/world.ts';
import { suite } from '#test/support/suite.ts';
import { alias, box, changed } from './boxes.ts';

const run = promisify(execFile);

suite('hostile files', { drawn: true, costs: 13 }, (t) => {
  const { folder, transcoder, sourceOf, render, leftovers } = transcoding();
  const outcome = async (path: string): Promise<readonly (string | undefined)[]> => {
    try {
      await sourceOf(path);
      return ['taken'];
    } catch (error) {
      return error instanceof TranscodeError ? [error.kind, error.failure?.code] : [String(error)];
    }
  };
  const ends = async (ending: string, bytes: Uint8Array, ...expected: readonly string[]) =>
    deepEqual(await outcome(await save(folder, ending, bytes)), expected);

  /** The largest that all tools together were while `work` ran. */
  const peakOf = async (work: Promise<unknown>): Promise<number> => {
    let peak = 0;
    let done = false;
    const end = () => {
      done = true;
    };
    work.then(end, end);
    while (!done) {
      peak = Math.max(
        peak,
        toolsOf(process.pid).reduce((sum, { residentBytes }) => sum + residentBytes, 0),
      );
      await new Promise((resolve) => setImmediate(resolve));
    }
    return peak;
  };

  t('bombs of pixels and of frames are refused before they are decoded', async () => {
    const png = outcome(await save(folder, 'png', flatPng(30_000, 30_000)));
    ok((await peakOf(png)) < 400 * 2 ** 20);
    deepEqual(await png, ['hostile', 'media_bomb']);
    await ends('gif', manyFrames(100_000), 'hostile', 'media_bomb');
    const huge = manyFrames(2);
    huge.writeUInt16LE(65_535, 6);
    huge.writeUInt16LE(65_535, 8);
    await ends('gif', huge, 'hostile', 'media_bomb');
    const wide = await makeClip(folder, { seconds: 0.5, width: 8_256, height: 16, fps: 5, sound: false });
    deepEqual(await outcome(wide), ['hostile', 'media_bomb']);
  });

  t('a size that a video declares falsely is not trusted', async () => {
    const path = await makeClip(folder, { seconds: 0.5 });
    const bytes = await readFile(path);
    // Changes the frame size in the index; the frames themselves stay small.
    const entry = bytes.indexOf('avc1', bytes.indexOf('stsd', 0, 'latin1'), 'latin1');
    bytes.writeUInt16BE(65_000, entry + 28);
    bytes.writeUInt16BE(65_000, entry + 30);
    const lying = await save(folder, 'mp4', bytes);
    const looking = outcome(lying);
    ok((await peakOf(looking)) < 700 * 2 ** 20);
    const count = Buffer.from(await readFile(path));
    const table = count.indexOf('stsz', 0, 'latin1');
    count.writeUInt32BE(0x7fffffff, table + 12);
    const many = outcome(await save(folder, 'mp4', count));
    ok((await peakOf(many)) < 700 * 2 ** 20);
    ok((await many)[0] !== undefined);
  });

  t('no file makes a tool open a connection or another file', async () => {
    let calls = 0;
    const server = createServer((socket) => {
      calls += 1;
      socket.destroy();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/a`;
    const clip = await makeClip(folder, { seconds: 0.5 });
    const texts = [
      `#EXTM3U\n#EXT-X-MEDIA-SEQUENCE:0\n#EXTINF:10.0,\n${url}.ts\n#EXT-X-ENDLIST\n`,
      `ffconcat version 1.0\nfile '${url}'\n`,
      `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><image href="${url}" width="9" height="9"/></svg>`,
      `<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011"><BaseURL>${url}</BaseURL></MPD>`,
    ];
    for (const text of texts) {
      const path = await save(folder, 'mp4', Buffer.from(text));
      deepEqual(await outcome(path), ['hostile', 'media_reaches_out']);
      // Whoever skipped sniffing: each reader is forced, so the text is no video to it.
      for (const contentType of ['video/mp4', 'video/webm', 'video/mp2t', 'video/x-msvideo']) {
        const sniffed = { kind: 'video', contentType } as const;
        const error = await transcoder
          .probe(path, sniffed, { signal: new AbortController().signal })
          .catch((thrown) => thrown);
        ok(error instanceof TranscodeError && error.kind !== 'interrupted', `${contentType}: ${error}`);
      }
      const image = { kind: 'image', contentType: 'image/png' } as const;
      const error = await transcoder
        .probe(path, image, { signal: new AbortController().signal })
        .catch((thrown) => thrown);
      ok(error instanceof TranscodeError && error.kind === 'unreadable');
      const source = await sourceOf(clip);
      await render({ path, probe: source.probe }, [videoSpec()]).catch(() => null);
    }
    server.close();
    await once(server, 'close');
    equal(calls, 0);
    deepEqual(leftovers(), []);
  });

  t('an index that points to another file does not open it', async () => {
    const other = await makeClip(folder, { seconds: 0.5, container: 'mov', picture: 'smptebars' });
    const references = ['moov', 'trak', 'mdia', 'minf', 'dinf', 'dref'];
    const pointing = changed(await readFile(other), references, (list) =>
      Buffer.concat([list.subarray(0, 8), alias(other)]),
    );
    const path = await save(
      folder,
      'mov',
      changed(pointing, ['mdat'], (data) => Buffer.alloc(data.length)),
    );
    // Whoever allows it sees the other's pictures: the reference is a good one.
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const still = join(folder, 'still.png');
    await run(ffmpeg, ['-v', 'error', '-enable_drefs', '1', '-i', path, '-frames:v', '1', still]);
    ok((await sharp(still).stats()).entropy > 1);
    deepEqual(await outcome(path), ['unreadable', 'media_unreadable']);
    const { probe } = await sourceOf(other);
    const wanted = [videoSpec(), videoSpec({ mode: 'remux' })];
    for (const spec of wanted) {
      await rejects(render({ path, probe }, [spec]), { kind: 'unreadable' });
    }
    const shape = { kind: 'frame', format: 'jpeg', atMs: 0, width: 320, height: 180, fit: 'scale' } as const;
    const [frame] = await render({ path, probe }, [{ ...shape, quality: 80, maxBytes: null }]);
    equal(frame?.kind, 'failed');
  });

  t('a video with too many boxes is refused early', async () => {
    const beginning = box('ftyp', Buffer.from('mp42\0\0\0\0mp42isom', 'latin1'));
    const many = (type: string, count: number) => Buffer.concat(new Array(count).fill(box(type)));
    const track = box('trak', many('edts', 100_000));
    const tracks = Buffer.concat([beginning, box('moov', track, track, track)]);
    await ends('mp4', tracks, 'hostile', 'media_bomb');
    await ends('mp4', Buffer.concat([beginning, many('free', 250_000)]), 'hostile', 'media_bomb');
    await ends('mp4', Buffer.concat([beginning, many('meta', 250_000)]), 'hostile', 'media_bomb');
    const handler = box('hdlr', Buffer.alloc(8), Buffer.from('vide'));
    const sizes = box('minf', box('stbl', box('stsz', Buffer.alloc(65 * 2 ** 20))));
    const table = Buffer.concat([beginning, box('moov', box('trak', box('mdia', handler, sizes)))]);
    await ends('mp4', table, 'hostile', 'media_bomb');
    const path = await save(folder, 'mp4', tracks);
    const stop = new AbortController();
    const looking = transcoder.probe(path, { kind: 'video', contentType: 'video/mp4' }, { signal: stop.signal });
    setImmediate(() => stop.abort());
    await rejects(looking, { kind: 'interrupted' });
  });

  t('a video of endless packets is given up, and a picture of endless parts', async () => {
    const endless: ReadLines = async (_, onLine, __, until) => {
      for (let packet = 0; packet < 100 && !until.aborted; packet += 1)
        onLine(`stream_index=0|pts_time=${packet}|flags=K_`);
      throw new Error('the tool was ended');
    };
    await rejects(readPackets(endless, false, new AbortController().signal, 20), { kind: 'hostile' });
    const round = tiffOf([1]);
    // The next directory is this one.
    round.writeUInt32LE(8, round.length - 8);
    await ends('tiff', round, 'hostile', 'media_bomb');
    const dot = flatPng(1, 1);
    const chunks = new Array(3_000).fill(pngChunk('noTe', Buffer.alloc(0)));
    await ends('png', Buffer.concat([dot.subarray(0, 33), ...chunks, dot.subarray(33)]), 'hostile', 'media_bomb');
  });

  t('a truncated file is refused', async () => {
    const clips = await Promise.all([
      makeClip(folder, { streamable: true }),
      makeClip(folder, { container: 'mkv' }),
      makeClip(folder, { container: 'avi', codec: 'mpeg4' }),
    ]);
    const pictures = await Promise.all(
      [
        gradient(300, 300).jpeg(),
        gradient(300, 300).png(),
        gradient(300, 300).webp(),
        gradient(300, 300).avif(),
        gradient(300, 300).tiff(),
      ].map((picture) => picture.toBuffer()),
    );
    const files = [...(await Promise.all(clips.map((path) => readFile(path)))), ...pictures, manyFrames(3)];
    for (const [index, bytes] of files.entries()) {
      for (const part of [0.3, 0.9]) {
        const path = await save(folder, 'bin', bytes.subarray(0, Math.floor(bytes.length * part)));
        const [kind] = await outcome(path);
        // The directory of a TIFF may lie at its end: without it the type is unknown.
        ok(kind === 'unreadable' || kind?.includes('nothing that is taken'), `file ${index} at ${part}: ${kind}`);
      }
    }
  });

  t('noise behind a valid beginning ends in a result or an error, never in a crash', async () => {
    const bytes = await readFile(await makeClip(folder, { seconds: 1, streamable: true }));
    const noisy = Buffer.from(bytes);
    for (let at = bytes.indexOf('mdat', 0, 'latin1') + 2_000; at < noisy.length; at += 7) noisy[at] = (at * 31) % 256;
    const path = await save(folder, 'mp4', noisy);
    const [kind] = await outcome(path);
    ok(kind === 'taken' || kind === 'unreadable');
    if (kind === 'taken') {
      const made = await render(await sourceOf(path), [videoSpec()]).catch((error: unknown) => error);
      ok(Array.isArray(made) || made instanceof TranscodeError, String(made));
    }
    deepEqual(leftovers(), []);
  });

  t('a decoder that is not on the list is never opened', async () => {
    const { ffmpeg } = await findBinaries(process.env.FFMPEG_PATH ?? null);
    const odd = async (name: string, ...options: readonly string[]): Promise<string> => {
      const path = join(folder, name);
      const inputs = ['-f', 'lavfi', '-i', 'testsrc2=s=64x64:r=10', '-f', 'lavfi', '-i', 'sine', '-t', '0.5'];
      await run(ffmpeg, ['-v', 'error', '-nostdin', '-y', ...inputs, ...options, path]);
      return path;
    };
    const h264 = ['-c:v', 'libx264', '-preset', 'ultrafast', '-pix_fmt', 'yuv420p', '-c:a:0', 'aac'];
    // A second sound that no network would be sent: to look at the file is to open its decoder all the same.
    const hidden = await odd('hidden.mkv', ...['-map', '0:v', '-map', '1:a', '-map', '1:a'], ...h264, '-c:a:1', 'tta');
    await rejects(sourceOf(hidden), (error: TranscodeError) => {
      deepEqual([error.kind, error.failure?.code], ['unsupported', 'media_unsupported']);
      match(error.failure?.message ?? '', /\btta\b/);
      return true;
    });
    // Where the look was skipped, rendering opens none either.
    const { probe } = await sourceOf(await odd('honest.mkv', ...h264));
    const strange = await odd('strange.mkv', '-c:v', 'flv', '-c:a', 'aac');
    await rejects(render({ path: strange, probe }, [videoSpec({ width: 64, height: 64 })]), { kind: 'unreadable' });
  });

  t('a file name is never read as an option, a pattern or an address', async () => {
    const clip = await makeClip(folder, { seconds: 0.5 });
    for (const name of ['-i.mp4', 'concat:a|b.mp4', 'a%03d.mp4', 'with space & "quotes".mp4', 'http:nothing.mp4']) {
      const path = join(folder, name);
      await copyFile(clip, path);
      const source = await sourceOf(path);
      const [made] = await render(source, [videoSpec({ width: 160, height: 90 })]);
      pathOf(made);
    }
    const picture = join(folder, '[0].jpg');
    await writeFile(picture, await gradient(90, 60).jpeg().toBuffer());
    pathOf((await render(await sourceOf(picture), [pictureSpec()]))[0]);
  });
});
