/**
 * The messages for faults of a file. Codes are served under /errors/{code}; no message shows anything of this machine.
 */
import { TranscodeError, type TranscodeErrorKind } from '#contracts/ports/transcoder.ts';

const fault =
  (kind: TranscodeErrorKind, code: string) =>
  (message: string, cause?: unknown): TranscodeError =>
    new TranscodeError(kind, { code, message: message.slice(0, 500) }, { cause });

export const empty = (): TranscodeError => fault('unreadable', 'media_empty')('The file is empty.');
export const unreadable = fault('unreadable', 'media_unreadable');
export const unsupported = fault('unsupported', 'media_unsupported');
export const unavailableCode = 'media_videos_unavailable';
export const videosUnavailable = (): TranscodeError =>
  fault(
    'unsupported',
    unavailableCode,
  )('This server takes no videos until its operator has installed ffmpeg 5.1 or newer.');
export const bomb = fault('hostile', 'media_bomb');
export const polyglot = fault('hostile', 'media_polyglot');
export const reachesOut = fault('hostile', 'media_reaches_out');
export const refusedKind = fault('hostile', 'media_unsupported');
export const tooMuchWork = fault('unreadable', 'processing_failed');

/** Not the file's fault: the work was stopped, or the machine had no room for it. */
export const interrupted = (cause: unknown): TranscodeError => new TranscodeError('interrupted', null, { cause });
