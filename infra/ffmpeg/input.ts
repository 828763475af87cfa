/**
 * How ffmpeg and ffprobe open a file: with the one reader that its bytes call for, which sees files and nothing else. A
 * name that begins with a dash or holds a colon is still a file.
 */

/** By the type that was sniffed. Never hls, concat, image2 or what else opens further files. */
const readers: Readonly<Record<string, string>> = {
  'video/mp4': 'mov',
  'video/quicktime': 'mov',
  'video/webm': 'matroska',
  'video/x-matroska': 'matroska',
  'video/x-msvideo': 'avi',
  'video/mp2t': 'mpegts',
  'image/gif': 'gif',
};

const MiB = 1024 ** 2;

/** Options of an input and the input. One block of memory and one picture are bounded as well. */
export const inputOptions = (contentType: string): readonly string[] => {
  const reader = readers[contentType];
  if (reader === undefined) throw new Error(`no reader for ${contentType}`);
  return ['-f', reader, '-protocol_whitelist', 'file', '-max_pixels', String(8_192 * 8_192), '-max_streams', '64'];
};

export const inputUrl = (path: string): string => `file:${path}`;

export const input = (path: string, contentType: string): readonly string[] => [
  ...inputOptions(contentType),
  '-i',
  inputUrl(path),
];

/** For the whole run: the largest block that may be asked for at once. */
export const blockLimit: readonly string[] = ['-max_alloc', String(512 * MiB)];

/**
 * The pictures of an input, in a graph of filters, which takes the first that fits: what is attached as a cover is none,
 * wherever it lies. NOTE: `V:0` is not the same: ffmpeg 4 counts covers when it comes to numbers.
 */
export const picturesOf = (input: number): string => `${input}:V`;
