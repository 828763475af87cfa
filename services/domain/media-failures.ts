import { fileRules } from '#schemas/issues.ts';
import type { MediaFailure } from '#schemas/media.ts';

/** Failures of an asset, of one of its renditions or of its publication. GET /errors/{code} serves each code. */

const words = {
  import_unreachable: 'The address could not be reached, or the connection broke.',
  import_too_large: 'The file at the address is larger than its kind may be.',
  import_not_media: 'The answer of the address is no image, video, gif or PDF.',
  import_timeout: 'The address took too long to send the file.',
  import_refused: 'The server at the address answered with an error.',
  import_url_not_allowed: 'The address, or one that it redirected to, is not a public https address.',
  import_expired: 'The service no longer keeps the address: import the file again.',
  import_too_many_redirects: 'The address redirects too often.',
  import_no_room:
    'The workspace has no room for the file: delete assets that no post needs, and import the file again.',
  media_empty: 'The file has no bytes.',
  media_unsupported: 'The service does not take files of this kind.',
  media_videos_unavailable: 'This server takes no videos until its operator has installed a current ffmpeg.',
  media_type_mismatch: 'The file is not of the type that the upload announced.',
  media_too_large: 'The file is larger than its kind may be: 100 MiB, a video 5 GiB.',
  media_bomb: 'The file unpacks to far more data than an ordinary file of its kind.',
  media_reaches_out: 'The file points at other files or addresses.',
  media_polyglot: 'The file is of two types at once.',
  media_changed: 'The upload was changed or removed after it was registered.',
  processing_failed: 'The file could not be processed.',
  media_too_many_frames: 'The animation has more frames than the network allows.',
  media_aspect_ratio: 'The ratio of width to height is outside the range that the network allows.',
  ...fileRules,
  rendition_failed: 'The rendition could not be made of this file.',
  media_not_ready: 'The rendition for the network was not made in time.',
  media_missing: 'The asset can no longer be used.',
} as const;

export type MediaFailureCode = keyof typeof words;

/** Code → its meaning in general. */
export const mediaFailures: Readonly<Record<MediaFailureCode, string>> = words;

/** @param message the fault in this case, for a person; default: the meaning of the code. At most 500 characters. */
export const mediaFailure = (code: MediaFailureCode, message: string = words[code]): MediaFailure => ({
  code,
  message: message.slice(0, 500),
});
