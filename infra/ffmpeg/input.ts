/**
 * How ffmpeg and ffprobe open a file: with the one demuxer for its bytes, which reads files only, and with the decoders
 * of the accepted formats. A build has some 500 decoders, and the rare ones are the least maintained. A name that
 * begins with a dash or holds a colon is still a file.
 */

/** By the sniffed type. Never hls, concat, image2 or another demuxer that opens further files. */
const readers: Readonly<Record<string, string>> = {
  'video/mp4': 'mov',
  'video/quicktime': 'mov',
  'video/webm': 'matroska',
  'video/x-matroska': 'matroska',
  'video/x-msvideo': 'avi',
  'video/mp2t': 'mpegts',
  'image/gif': 'gif',
  'image/jpeg': 'jpeg_pipe',
  'image/png': 'png_pipe',
  'image/webp': 'webp_pipe',
};

const MiB = 1024 ** 2;

/** By their names in any build: the decoder of one codec differs between builds. */
const decoders = {
  pictures: [
    ...['h264', 'hevc', 'vp8', 'libvpx', 'vp9', 'libvpx-vp9', 'av1', 'libdav1d', 'libaom-av1', 'prores', 'mpeg4'],
    ...['mpeg2video', 'mpeg1video', 'mjpeg', 'dnxhd', 'dvvideo', 'h263', 'msmpeg4', 'msmpeg4v2', 'wmv2', 'theora'],
    ...['cinepak', 'ffv1', 'rawvideo', 'huffyuv', 'qtrle', 'png'],
  ],
  sounds: [
    ...['aac', 'libfdk_aac', 'mp3float', 'mp3', 'mp2float', 'mp2', 'ac3', 'eac3', 'opus', 'libopus', 'vorbis'],
    ...['libvorbis', 'flac', 'alac', 'amrnb', 'amrwb', 'libopencore_amrnb', 'libopencore_amrwb', 'pcm_u8', 'pcm_s8'],
    ...['pcm_s16le', 'pcm_s16be', 'pcm_s24le', 'pcm_s24be', 'pcm_s32le', 'pcm_s32be', 'pcm_f32le', 'pcm_f32be'],
    ...['pcm_f64le', 'pcm_f64be', 'pcm_alaw', 'pcm_mulaw', 'pcm_bluray', 'pcm_dvd'],
  ],
  // ffprobe opens one for each stream or gives the file up; no packet of these is ever decoded.
  words: ['mov_text', 'srt', 'subrip', 'ass', 'ssa', 'webvtt', 'text', 'cc_dec', 'dvdsub', 'dvbsub', 'pgssub'],
};
const decodersOfVideos = [...decoders.pictures, ...decoders.sounds, ...decoders.words].join(',');
const decoderOfPicture: Readonly<Record<string, string>> = {
  'image/gif': 'gif',
  'image/jpeg': 'mjpeg',
  'image/png': 'png',
  'image/webp': 'webp',
};

/** ffmpeg's complaint about a stream outside of the list; the decoder is the first group. */
export const notOnList = /Codec \((\w[\w-]*)\) not on whitelist/;

/** Options of an input and the input. They also bound one block of memory and one picture. */
export const inputOptions = (contentType: string): readonly string[] => {
  const reader = readers[contentType];
  if (reader === undefined) throw new Error(`no reader for ${contentType}`);
  return [
    ...['-f', reader, '-format_whitelist', reader, '-protocol_whitelist', 'file'],
    ...['-codec_whitelist', decoderOfPicture[contentType] ?? decodersOfVideos],
    ...['-max_pixels', String(8_192 * 8_192), '-max_streams', '64'],
  ];
};

export const inputUrl = (path: string): string => `file:${path}`;

export const input = (path: string, contentType: string): readonly string[] => [
  ...inputOptions(contentType),
  '-i',
  inputUrl(path),
];

/** For the whole run: the largest block that may be allocated at once. */
export const blockLimit: readonly string[] = ['-max_alloc', String(512 * MiB)];

/**
 * The pictures of an input in a filter graph, which takes the first match: an attached cover never matches, wherever it
 * lies. NOTE: `V:0` is not the same: ffmpeg 4 counts covers in its numbers.
 * @param stream index of theirs; absent: the first
 */
export const picturesOf = (input: number, stream?: number): string => `${input}:${stream ?? 'V'}`;

/** The sound of an input. @param stream index of its; absent: the first */
export const soundOf = (input: number, stream?: number): string => `${input}:${stream ?? 'a:0'}`;
