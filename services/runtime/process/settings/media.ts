import { standardMediaQuota } from '#domain/media-types.ts';
import { integer, oneOf, optional, text, url, variable } from '../config-values.ts';

/** Media files: where they lie and how they are worked on. */
export const mediaSettings = {
  blobDir: variable(
    'BLOB_DIR',
    optional(text),
    null as string | null,
    'folder of the media files where S3_ENDPOINT is not set; none = blobs under DATA_DIR. All processes must see it',
  ),
  s3Endpoint: variable(
    'S3_ENDPOINT',
    optional(url('http:', 'https:')),
    null as string | null,
    'S3 for media files, as this process reaches it; none = a folder',
  ),
  s3PublicEndpoint: variable(
    'S3_PUBLIC_ENDPOINT',
    optional(url('http:', 'https:')),
    null as string | null,
    'S3 as callers and networks reach it, put into presigned URLs; none = S3_ENDPOINT',
  ),
  s3Bucket: variable('S3_BUCKET', text, 'postline', 'bucket of the media files'),
  s3Region: variable('S3_REGION', text, 'us-east-1', 'region that S3 requests are signed for'),
  s3AccessKeyId: variable('S3_ACCESS_KEY_ID', optional(text), null as string | null, 'S3 access key'),
  s3SecretAccessKey: variable('S3_SECRET_ACCESS_KEY', optional(text), null as string | null, 'its secret'),
  ffmpegPath: variable(
    'FFMPEG_PATH',
    optional(text),
    null as string | null,
    'ffmpeg; ffprobe is looked for beside it. None = the one on PATH, else the npm package’s',
  ),
  outdatedFfmpeg: variable(
    'OUTDATED_FFMPEG',
    oneOf('refuse', 'take'),
    'refuse',
    'videos where the ffmpeg found is older than 5.1, whose decoders have published holes. Standalone on loopback: take',
  ),
  mediaConcurrency: variable(
    'MEDIA_CONCURRENCY',
    integer(1, 64),
    4,
    'media files one process works on at once; the cores of the machine are shared out among all of them',
  ),
  mediaDownloads: variable(
    'MEDIA_DOWNLOADS',
    integer(1, 1_024),
    32,
    'imports one process brings from their addresses at once, beside MEDIA_CONCURRENCY',
  ),
  mediaDownloadsPerWorkspace: variable(
    'MEDIA_DOWNLOADS_PER_WORKSPACE',
    integer(1, 1_024),
    4,
    'of them for one workspace, its sandbox twin included',
  ),
  mediaQuota: variable(
    'MEDIA_QUOTA_BYTES',
    integer(1, 1_024 ** 5),
    standardMediaQuota,
    'bytes of media that a workspace may have, its sandbox twin and what is made of its files included; npm run admin -- media quota sets another for one workspace',
  ),
  mediaTempDir: variable(
    'MEDIA_TEMP_DIR',
    optional(text),
    null as string | null,
    'folder of files being worked on, needs room for some videos; none = media-work under DATA_DIR',
  ),
} as const;
