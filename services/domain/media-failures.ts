import type { MediaFailure } from '#schemas/media.ts';

/** What an asset, one of its renditions or its publication can fail with; each code is served under /errors/{code}. */

const words = {
  import_unreachable: 'The address could not be reached, or the connection broke.',
  import_too_large: 'The file at the address is larger than its kind may be.',
  import_not_media: 'What the address answered is no image, video, gif or PDF.',
  import_timeout: 'The address took too long to send the file.',
  import_refused: 'The server at the address answered with an error.',
  import_url_not_allowed: 'The address, or one that it redirected to, is not a public https address.',
  import_expired: 'The address is not kept any more: import the file again.',
  import_too_many_redirects: 'The address redirects too often.',
  import_no_room: 'The workspace has no room for the file: delete what no post needs, and import it again.',
  media_empty: 'The file has no bytes.',
  media_unreadable: 'The file is damaged: it could not be read as what it says it is.',
  media_unsupported: 'The file is of a kind that is not taken.',
  media_videos_unavailable: 'This server takes no videos until its operator has installed a current ffmpeg.',
  media_type_mismatch: 'The file is not of the type that it was sent as.',
  media_too_large: 'The file is larger than its kind may be: 100 MiB, a video 5 GiB.',
  media_bomb: 'The file unpacks to more than an honest one would.',
  media_reaches_out: 'The file points at other files or addresses.',
  media_polyglot: 'The file is of two types at once.',
  media_changed: 'The upload was changed or removed after it was registered.',
  processing_failed: 'The file could not be processed.',
  media_kind_not_taken: 'The network does not take this kind of media there.',
  media_too_long: 'The video is longer than the network takes it.',
  media_too_short: 'The video is shorter than the network takes it.',
  media_too_small: 'The picture has fewer pixels than the network takes.',
  media_too_heavy: 'The file cannot be made small enough for the network.',
  media_too_many_frames: 'The animation has more frames than the network takes.',
  media_aspect_ratio: 'The picture is wider or taller than the network takes it.',
  rendition_failed: 'The rendition could not be made of this file.',
  media_not_ready: 'The rendition for the network was not made in time.',
  media_missing: 'The asset is not usable any more.',
} as const;

export type MediaFailureCode = keyof typeof words;

/** Code → what it means, whatever the single case is. */
export const mediaFailures: Readonly<Record<MediaFailureCode, string>> = words;

/** @param message what is wrong in this case, for a person; default: what the code means. At most 500 characters. */
export const mediaFailure = (code: MediaFailureCode, message: string = words[code]): MediaFailure => ({
  code,
  message: message.slice(0, 500),
});
