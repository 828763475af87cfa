import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { transcoderSuite } from '#contracts/ports/transcoder.suite.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { makeClip } from '#test/support/media/clips.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { gradient, save } from '#test/support/media/pictures.ts';
import { suite } from '#test/support/suite.ts';

suite('ffmpeg and sharp as a transcoder', (t) => {
  transcoderSuite(t, async () => {
    const folder = mediaFolder();
    const workDir = join(folder, 'work');
    mkdirSync(workDir);
    return {
      transcoder: openTranscoder({ ffmpegPath: process.env.FFMPEG_PATH ?? null, workDir, warn: () => {} }),
      folder,
      clip: (seconds = 1) => makeClip(folder, { seconds }),
      picture: () => save(folder, 'jpg', gradient(400, 300).jpeg()),
      leftovers: async () => readdirSync(workDir),
      close: async () => {},
    };
  });
});
