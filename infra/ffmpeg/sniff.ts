import { fileTypeFromBuffer } from 'file-type';
import type { SniffedType } from '#contracts/ports/transcoder.ts';
import { type Bytes, withBytes } from './bytes.ts';
import { empty, polyglot, reachesOut, refusedKind, unsupported } from './failures.ts';
import { gifFrames } from './gif.ts';
import { isTwoThings } from './polyglot.ts';

/** Accepted types, by the names of `file-type`. */
const accepted: Readonly<Record<string, SniffedType>> = {
  'image/jpeg': { kind: 'image', contentType: 'image/jpeg' },
  'image/png': { kind: 'image', contentType: 'image/png' },
  // Editors write a still so too; the probe counts its pictures.
  'image/apng': { kind: 'image', contentType: 'image/png' },
  'image/webp': { kind: 'image', contentType: 'image/webp' },
  'image/avif': { kind: 'image', contentType: 'image/avif' },
  // By their usual content; the probe decides.
  'image/heic': { kind: 'image', contentType: 'image/heic' },
  'image/heif': { kind: 'image', contentType: 'image/heic' },
  'image/tiff': { kind: 'image', contentType: 'image/tiff' },
  'image/gif': { kind: 'gif', contentType: 'image/gif' },
  'video/mp4': { kind: 'video', contentType: 'video/mp4' },
  'video/x-m4v': { kind: 'video', contentType: 'video/mp4' },
  'video/quicktime': { kind: 'video', contentType: 'video/quicktime' },
  'video/webm': { kind: 'video', contentType: 'video/webm' },
  'video/matroska': { kind: 'video', contentType: 'video/x-matroska' },
  'video/vnd.avi': { kind: 'video', contentType: 'video/x-msvideo' },
  'video/mp2t': { kind: 'video', contentType: 'video/mp2t' },
  'application/pdf': { kind: 'document', contentType: 'application/pdf' },
};

/** Harmless types that are refused with their own message. */
const declined: Readonly<Record<string, string>> = {
  'image/heic-sequence': 'Animated HEIC is not taken; send a GIF or a video.',
  'image/heif-sequence': 'Animated HEIF is not taken; send a GIF or a video.',
  'video/3gpp': '3GP is not taken; send an MP4.',
  'video/3gpp2': '3GP is not taken; send an MP4.',
};

/** Types that hold other files, or run. */
const archiveOrProgram =
  /^application\/(?:zip|x-(?:7z|rar|tar|gtar|bzip2|xz|lzip|compress|cpio|archive|ms-dos|msdownload|elf|mach|sh|deb|rpm|iso|apple-diskimage|google-chrome)\S*|gzip|zstd|java-vm|vnd\.(?:rar|ms-cab\S*|microsoft\S*|android\S*)|wasm)$/;

/** Beginnings of text that a decoder would follow to other files, or a browser would run. */
const markup =
  /^(?:#extm3u|ffconcat\b|\[playlist\]|\[reference\]|<\?xml|<!doctype|<!--|<(?:html|head|body|script|svg|mpd|smil|asx|playlist|rss|iframe|img|meta)\b|<\?php|<\?=|#!\s*\/)/;

const beginningAsText = (head: Buffer): string => {
  const [first, second] = head;
  const wide = first === 0xff && second === 0xfe ? 'utf16le' : null;
  const text = wide === null ? head.subarray(0, 1_024).toString('latin1') : head.subarray(2, 2_050).toString(wide);
  return text
    .replace(/^\xef\xbb\xbf/, '')
    .trimStart()
    .toLowerCase();
};

/** No reader searches further for the type of a file. */
const headBytes = 65_536;

const sniffBytes = async (bytes: Bytes): Promise<SniffedType | null> => {
  if (bytes.size === 0) throw empty();
  const head = await bytes.read(0, headBytes);
  if (markup.test(beginningAsText(head))) {
    throw reachesOut('The file is markup, a playlist or a script, which can reach for other files.');
  }
  const mime = (await fileTypeFromBuffer(head).catch(() => undefined))?.mime ?? '';
  const type = accepted[mime];
  if (type === undefined) {
    const words = declined[mime] ?? (mime.startsWith('audio/') ? 'Sound alone is not taken; send a video.' : undefined);
    if (words !== undefined) throw unsupported(words);
    if (archiveOrProgram.test(mime)) throw refusedKind('The file is an archive or a program.');
    // A PDF reader searches for its header anywhere near the beginning.
    if (head.subarray(0, 1_024).toString('latin1').trimStart().indexOf('%PDF-') > 0) {
      throw polyglot('The file holds a PDF behind something else.');
    }
    return null;
  }
  const second = await isTwoThings(bytes, head, type.contentType);
  if (second !== null) throw polyglot(`The file is two things at once: ${type.contentType} and ${second}.`);
  // A GIF of one picture is a still.
  if (type.kind === 'gif' && (await gifFrames(bytes, 2)).frames < 2) return { ...type, kind: 'image' };
  return type;
};

/** @throws TranscodeError for an evidently hostile file */
export const sniff = (path: string): Promise<SniffedType | null> => withBytes(path, sniffBytes);
