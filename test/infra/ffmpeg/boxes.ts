/** The boxes of an MP4, taken apart and put together otherwise than programs do. */
import sharp from 'sharp';

export const box = (type: string, ...parts: readonly Uint8Array[]): Buffer => {
  const head = Buffer.alloc(8);
  head.write(type, 4, 'latin1');
  const whole = Buffer.concat([head, ...parts]);
  whole.writeUInt32BE(whole.length);
  return whole;
};

/**
 * A film in which every box at the end of `path` holds what `change` makes of it, and all around it say their new size.
 * NOTE: where the index lies before the data, the data moves and the index does not know.
 */
export const changed = (
  film: Buffer,
  [type, ...path]: readonly string[],
  change: (content: Buffer) => Uint8Array,
): Buffer => {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < film.length; at += film.readUInt32BE(at)) {
    const content = film.subarray(at + 8, at + film.readUInt32BE(at));
    const found = film.toString('latin1', at + 4, at + 8);
    const ours = found === type;
    const kept = path.length === 0 ? change : (inner: Buffer) => changed(inner, path, change);
    parts.push(box(found, ours ? kept(content) : content));
  }
  return Buffer.concat(parts);
};

/** Box number of XMP that lies on its own. */
export const xmpNumber = Buffer.from('be7acfcb97a942e89c71999491e3afac', 'hex');

const zeros = (length: number): Buffer => Buffer.alloc(length);

/** A red cover before the film's own streams, which makes it the first of them. */
export const covered = async (film: Buffer): Promise<Buffer> => {
  const red = { create: { width: 64, height: 64, channels: 3 as const, background: 'red' } };
  const isPng = Buffer.from([0, 0, 0, 14, 0, 0, 0, 0]);
  const list = box('ilst', box('covr', box('data', isPng, await sharp(red).png().toBuffer())));
  const handler = box('hdlr', zeros(8), Buffer.from('mdirappl'), zeros(9));
  const cover = box('udta', box('meta', zeros(4), handler, list));
  return changed(film, ['moov'], (index) => {
    const header = index.readUInt32BE(0);
    return Buffer.concat([index.subarray(0, header), cover, index.subarray(header)]);
  });
};

/** A reference of a film's index to another file in its folder, in place of "in this file": an alias of the Macintosh. */
export const alias = (path: string): Buffer => {
  const name = Buffer.from(path);
  const record = zeros(150);
  // Levels up from the film to the folder both are in, and down from there to the other.
  record.writeUInt16BE(1, 130);
  record.writeUInt16BE(1, 132);
  const absolute = zeros(4);
  absolute.writeUInt16BE(2, 0);
  absolute.writeUInt16BE(name.length, 2);
  const end = Buffer.from([0xff, 0xff, 0, 0]);
  return box('alis', zeros(4), record, absolute, name, zeros(name.length % 2), end);
};
