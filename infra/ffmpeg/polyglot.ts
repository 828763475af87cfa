/**
 * Whether another reader would take a file for another type. Checks what that reader would need: a picture that holds a
 * film or a second picture (a phone's motion photo, MPO) is honest, as is anything compressed inside.
 */
import type { Bytes } from './bytes.ts';

/** A ZIP reader searches the last 65,557 bytes for the directory. */
const tailBytes = 65_600;

/** Whether the end record of a ZIP points to a real directory. */
const endsInZip = async (bytes: Bytes, tail: Buffer, exact: boolean): Promise<boolean> => {
  const tailAt = bytes.size - tail.length;
  for (let at = tail.lastIndexOf('PK\x05\x06', undefined, 'latin1'); at >= 0; ) {
    if (at + 22 <= tail.length) {
      const size = tail.readUInt32LE(at + 12);
      const comment = tail.readUInt16LE(at + 20);
      const directory = await bytes.read(tailAt + at - size, 4);
      const fits = size > 0 && tailAt + at >= size && directory.toString('latin1') === 'PK\x01\x02';
      if (fits && (!exact || at + 22 + comment === tail.length)) return true;
    }
    at = at === 0 ? -1 : tail.lastIndexOf('PK\x05\x06', at - 1, 'latin1');
  }
  return false;
};

const script = /<script[\s>]|<\?php\s|<!doctype\s+html|<html[\s>]/i;

/**
 * Begins `GIF89a/*` or `FF D8 FF E0 /*`: a browser that takes the file for a script reads the beginning of a comment.
 */
const beginsAsScript = (head: Buffer, contentType: string): boolean =>
  (contentType === 'image/gif' && /^GIF8[79]a(?:\/\*|=)/.test(head.toString('latin1', 0, 8))) ||
  (contentType === 'image/jpeg' && head.toString('latin1', 4, 6) === '/*');

/** The bytes after the picture's end, for formats that state their end. */
const afterEnd = (tail: Buffer, contentType: string): Buffer | null => {
  const end = contentType === 'image/png' ? tail.lastIndexOf('IEND\xae\x42\x60\x82', undefined, 'latin1') : -1;
  return end < 0 ? null : tail.subarray(end + 8);
};
const archives = ['Rar!\x1a\x07', '7z\xbc\xaf\x27\x1c', '\x1f\x8b\x08', 'MZ', '\x7fELF'];

/** Null: the file is one type only. @returns the other type, for a person */
export const isTwoThings = async (bytes: Bytes, head: Buffer, contentType: string): Promise<string | null> => {
  const document = contentType === 'application/pdf';
  const tail = await bytes.read(Math.max(0, bytes.size - tailBytes), tailBytes);
  // A PDF may hold a whole archive as an attachment; then the file does not end with it.
  if (await endsInZip(bytes, tail, document)) return 'a ZIP archive';
  if (document) return null;
  if (head.subarray(0, 1_024).includes('%PDF-', 0, 'latin1')) return 'a PDF';
  if (script.test(head.toString('latin1')) || script.test(tail.toString('latin1'))) return 'a script';
  if (beginsAsScript(head, contentType)) return 'a script';
  const rest = afterEnd(tail, contentType);
  const begins = rest?.toString('latin1', 0, 8) ?? '';
  return archives.some((mark) => begins.startsWith(mark)) ? 'an archive or a program' : null;
};
