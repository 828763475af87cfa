/**
 * Media: all renditions of a source beside the bare ffmpeg commands that make the same files, a source that fits from
 * its registration to `media.ready`, and uploads beside a bare stream to disk.
 *
 * Run alone: make bench-media, or a part: make bench-media ARGS="renditions upload" (QUICK=1 for the short form).
 */
import { fitting } from './media/fitting.ts';
import { renditions } from './media/renditions.ts';
import { sharing } from './media/sharing.ts';
import { machine } from './media/tools.ts';
import { benchCommand, type Part } from './parts.ts';
import { upload } from './upload.ts';

const parts: Readonly<Record<string, Part>> = {
  renditions: { says: 'one source that fits nobody, made into what ten networks take', run: renditions },
  fitting: { says: 'one source that fits, from its registration to media.ready', run: fitting },
  sharing: { says: 'two workers and six clips: how many processors they use', run: sharing },
  upload: { says: 'a large file through the api to a folder', run: (quick) => upload({ quick }) },
};

if (import.meta.main)
  await benchCommand({
    name: 'media',
    parts,
    machine,
    about:
      'Without a part: all of them, about 10 minutes; QUICK=1: 2 minutes, for development. FFMPEG_PATH names another ffmpeg.',
  });
