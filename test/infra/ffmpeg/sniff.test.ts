import { deepEqual, equal, rejects } from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import sharp from 'sharp';
import { TranscodeError } from '#contracts/ports/transcoder.ts';
import { makeClip, makeGif } from '#test/support/media/clips.ts';
import { flatPng, gradient, manyFrames, save, tinyPdf, tinyZip } from '#test/support/media/pictures.ts';
import { transcoding } from '#test/support/media/world.ts';
import { suite } from '#test/support/suite.ts';

suite('type of a file by its bytes', (t) => {
  const { folder, transcoder } = transcoding();
  const jpeg = () => gradient(64, 48).jpeg().toBuffer();
  const type = async (ending: string, bytes: Uint8Array) =>
    (await transcoder.sniff(await save(folder, ending, bytes)))?.contentType ?? null;
  const refused = async (bytes: Uint8Array, kind: string, code: string, ending = 'jpg') =>
    rejects(type(ending, bytes), (error: unknown) => {
      deepEqual(error instanceof TranscodeError && [error.kind, error.failure?.code], [kind, code]);
      return true;
    });

  t('images are found whatever their name', async () => {
    equal(await type('mp4', await jpeg()), 'image/jpeg');
    equal(await type('jpg', await gradient(9, 9, true).png().toBuffer()), 'image/png');
    equal(await type('jpg', await gradient(9, 9).webp().toBuffer()), 'image/webp');
    equal(await type('jpg', await gradient(9, 9).avif().toBuffer()), 'image/avif');
    equal(await type('jpg', await gradient(9, 9).tiff().toBuffer()), 'image/tiff');
    equal(await type('txt', tinyPdf()), 'application/pdf');
  });

  t('videos are found whatever their name', async () => {
    const types: [Parameters<typeof makeClip>[1], string][] = [
      [{ container: 'mp4' }, 'video/mp4'],
      [{ container: 'mov' }, 'video/quicktime'],
      [{ container: 'webm', codec: 'vp9' }, 'video/webm'],
      [{ container: 'mkv' }, 'video/x-matroska'],
      [{ container: 'avi', codec: 'mpeg4' }, 'video/x-msvideo'],
      [{ container: 'ts' }, 'video/mp2t'],
    ];
    for (const [clip, contentType] of types) {
      const path = await makeClip(folder, { seconds: 0.5, ...clip });
      deepEqual(await transcoder.sniff(path), { kind: 'video', contentType });
    }
  });

  t('a GIF of one frame is an image', async () => {
    equal((await transcoder.sniff(await makeGif(folder, 3)))?.kind, 'gif');
    equal((await transcoder.sniff(await save(folder, 'gif', manyFrames(1))))?.kind, 'image');
  });

  t('text and noise have no type', async () => {
    equal(await type('txt', Buffer.from('hello, world')), null);
    equal(await type('bin', Buffer.alloc(5_000, 7)), null);
  });

  t('markup, playlists and scripts are refused as hostile', async () => {
    const texts = [
      '<svg xmlns="http://www.w3.org/2000/svg"><image href="http://127.0.0.1/"/></svg>',
      '\ufeff  <?xml version="1.0"?><svg/>',
      '<!DOCTYPE html><html></html>',
      '#EXTM3U\n#EXTINF:1,\nhttp://127.0.0.1/a.ts\n',
      'ffconcat version 1.0\nfile /etc/passwd\n',
      '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011"></MPD>',
      '#!/bin/sh\ntrue\n',
      '<?php echo 1;',
    ];
    for (const text of texts) await refused(Buffer.from(text), 'hostile', 'media_reaches_out', 'mp4');
    await refused(Buffer.from('\ufeff<svg/>', 'utf16le'), 'hostile', 'media_reaches_out');
  });

  t('archives and programs are refused', async () => {
    await refused(tinyZip(), 'hostile', 'media_unsupported');
    await refused(Buffer.from('7z\xbc\xaf\x27\x1c\0\x04', 'latin1'), 'hostile', 'media_unsupported');
    await refused(
      Buffer.concat([Buffer.from('\x7fELF\x02\x01\x01', 'latin1'), Buffer.alloc(64)]),
      'hostile',
      'media_unsupported',
    );
  });

  t('a file that is two types at once is refused', async () => {
    const picture = await jpeg();
    const gif = manyFrames(2);
    const png = flatPng(4, 4);
    const clip = await readFile(await makeClip(folder, { seconds: 0.5 }));
    for (const first of [picture, gif, png, clip]) {
      await refused(Buffer.concat([first, tinyZip()]), 'hostile', 'media_polyglot');
      await refused(Buffer.concat([first, Buffer.from('<script>alert(1)</script>')]), 'hostile', 'media_polyglot');
      await refused(Buffer.concat([first, Buffer.from('<?php system($_GET[0]); ?>')]), 'hostile', 'media_polyglot');
    }
    await refused(Buffer.concat([tinyPdf(), tinyZip()]), 'hostile', 'media_polyglot');
    await refused(Buffer.concat([Buffer.from('junk'), tinyPdf()]), 'hostile', 'media_polyglot');
    const comment = Buffer.concat([Buffer.from([0xff, 0xfe, 0, 22]), Buffer.from('%PDF-1.4 hidden here')]);
    const hidden = Buffer.concat([picture.subarray(0, 2), comment, picture.subarray(2)]);
    await refused(hidden, 'hostile', 'media_polyglot');
    const script = Buffer.concat([Buffer.from('GIF89a/*'), gif.subarray(8), Buffer.from('*/=1;alert(1)')]);
    await refused(script, 'hostile', 'media_polyglot');
    await refused(Buffer.concat([png, Buffer.from('Rar!\x1a\x07\x01\0', 'latin1')]), 'hostile', 'media_polyglot');
  });

  t('motion photos, attachments and other harmless combinations are taken', async () => {
    const picture = await jpeg();
    const clip = await readFile(await makeClip(folder, { seconds: 0.5 }));
    equal(await type('jpg', Buffer.concat([picture, clip])), 'image/jpeg', 'a motion photo');
    equal(await type('jpg', Buffer.concat([picture, picture])), 'image/jpeg', 'two pictures in one file');
    equal(await type('jpg', Buffer.concat([picture, Buffer.alloc(4_096)])), 'image/jpeg', 'padding');
    const attached = Buffer.concat([tinyPdf().subarray(0, 60), tinyZip(), tinyPdf().subarray(60)]);
    equal(await type('pdf', attached), 'application/pdf', 'an attachment');
    const described = await sharp(picture)
      .withXmp('<x:xmpmeta xmlns:x="adobe:ns:meta/"><a>see &lt;script&gt; and <b>html</b></a></x:xmpmeta>')
      .jpeg()
      .toBuffer();
    equal(await type('jpg', described), 'image/jpeg');
  });

  t('a harmless type that we do not take is refused as unsupported', async () => {
    await refused(Buffer.from('\0\0\0\x18ftyphevc\0\0\0\0msf1hevc', 'latin1'), 'unsupported', 'media_unsupported');
    await refused(new Uint8Array(), 'unreadable', 'media_empty');
  });
});
