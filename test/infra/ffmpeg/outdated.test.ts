import { deepEqual, equal, match, notEqual, rejects } from 'node:assert/strict';
import { mkdirSync } from 'node:fs';
import { chmod, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { TranscodeError } from '#contracts/ports/transcoder.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { outdatedFfmpegAt } from '#services/standalone/options.ts';
import { makeClip, makeGif } from '#test/support/media/clips.ts';
import { mediaFolder } from '#test/support/media/folder.ts';
import { gradient, save } from '#test/support/media/pictures.ts';
import { never, pictureSpec, videoSpec } from '#test/support/media/specs.ts';
import { suite } from '#test/support/suite.ts';

/** libavcodec of ffmpeg 4.4, 5.0 and 5.1. */
const [of44, of50, of51] = ['58.134.100', '59. 18.100', '59. 37.100'];

suite('an ffmpeg without security updates', { alone: true }, (t) => {
  const folder = mediaFolder();
  const workDir = join(folder, 'work');
  mkdirSync(workDir);
  let made = 0;
  /** The real tools, which say of themselves that they are of these versions. */
  const toolsOf = async (ffmpegsays: string, ffprobesays: string): Promise<string> => {
    made += 1;
    const place = join(folder, `bin-${made}`);
    mkdirSync(place);
    const real = await findBinaries(process.env.FFMPEG_PATH ?? null);
    for (const [name, said] of [['ffmpeg', ffmpegsays] as const, ['ffprobe', ffprobesays] as const]) {
      const words = `${name} version 5.1.9-0+deb12u1\nlibavcodec     ${said} / ${said}`;
      const script = `#!/bin/sh\ncase "$*" in *-version*) echo "${words}";; *) exec ${real[name]} "$@";; esac\n`;
      await writeFile(join(place, name), script);
      await chmod(join(place, name), 0o755);
    }
    return join(place, 'ffmpeg');
  };
  const opened = async (ffmpegPath: string, outdated: 'take' | 'refuse') => {
    const warnings: string[] = [];
    const warn = (message: string): void => void warnings.push(message);
    const transcoder = openTranscoder({ ffmpegPath, workDir, outdated, warn });
    const probe = async (path: string) => {
      const sniffed = await transcoder.sniff(path);
      if (sniffed === null) throw new Error('nothing that is taken');
      return transcoder.probe(path, sniffed, { signal: never() });
    };
    return { transcoder, probe, warnings };
  };
  const unavailable = (error: unknown): boolean => {
    deepEqual(error instanceof TranscodeError && [error.kind, error.failure?.code], [
      'unsupported',
      'media_videos_unavailable',
    ]);
    return true;
  };

  t('opens videos only where it is allowed for a local trial; images do not need it', async () => {
    const clip = await makeClip(folder, { seconds: 0.2 });
    const picture = await save(folder, 'jpg', gradient(60, 40).jpeg());
    for (const [ffmpeg, ffprobe] of [
      [of44, of44],
      [of50, of51],
      [of51, of50],
    ] as const) {
      const { transcoder, probe, warnings } = await opened(await toolsOf(ffmpeg, ffprobe), 'refuse');
      await rejects(probe(clip), unavailable);
      equal((await probe(picture)).kind, 'image');
      match(await transcoder.describe(), /outdated: videos are refused/);
      deepEqual([warnings.length, /videos are refused/.test(warnings[0] ?? '')], [1, true]);
    }
    const { transcoder, probe } = await opened(await toolsOf(of44, of44), 'refuse');
    const gif = await makeGif(folder, 3);
    const source = { path: gif, probe: await probe(gif) };
    const wanted = [
      { id: 'still', spec: pictureSpec(), to: join(folder, 'still.jpeg') },
      { id: 'film', spec: videoSpec({ audio: null }), to: join(folder, 'film.mp4') },
    ];
    const files = await transcoder.render(source, wanted, { threads: 1, signal: never() });
    deepEqual(
      files.map((each) => (each.kind === 'failed' ? each.failure.code : each.kind)),
      ['made', 'media_videos_unavailable'],
    );
    const taking = await opened(await toolsOf(of44, of44), 'take');
    equal((await taking.probe(clip)).kind, 'video');
    equal(taking.warnings.length, 1);
    const current = await opened(await toolsOf(of51, of51), 'refuse');
    equal((await current.probe(clip)).kind, 'video');
    deepEqual(current.warnings, []);
  });

  t('comes from npm where the ffmpeg on PATH cannot be run', async () => {
    const place = join(folder, 'half');
    mkdirSync(place);
    await writeFile(join(place, 'ffmpeg'), '#!/bin/sh\nexit 126\n');
    await chmod(join(place, 'ffmpeg'), 0o755);
    const path = process.env.PATH;
    process.env.PATH = `${place}:${path}`;
    try {
      const { ffmpeg, version } = await findBinaries(null);
      notEqual(ffmpeg, join(place, 'ffmpeg'));
      notEqual(version, 'unknown');
    } finally {
      process.env.PATH = path;
    }
  });

  t('is allowed by standalone on loopback alone', () => {
    for (const host of ['127.0.0.1', '127.8.9.1', '::1', 'localhost']) equal(outdatedFfmpegAt(host), 'take', host);
    for (const host of ['0.0.0.0', '::', '10.0.0.1', '192.168.1.4', '128.0.0.1', '::2', 'example.com', ''])
      equal(outdatedFfmpegAt(host), 'refuse', host);
  });
});
