/**
 * HEIC: HEVC in a picture's container, which sharp reads the container of and cannot decode, for its builds leave out what
 * patents are held on. libheif in WebAssembly does: whatever a picture makes of its decoder stays in its own memory.
 */
import { Console } from 'node:console';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Metadata } from 'sharp';

/** Of libheif-js, what is called. */
interface HeifImage {
  get_width(): number;
  get_height(): number;
  is_primary(): boolean;
  display(target: { readonly data: Uint8ClampedArray }, done: (shown: object | null) => void): void;
}
interface LibHeif {
  readonly HeifDecoder: new () => { decode(bytes: Buffer): readonly HeifImage[] };
}

/** The decoder is not installed: an operator may leave it out for the patents' sake. */
export class NoDecoder extends Error {}

/** As sharp tells by the file's brands: what is in it may be AV1 all the same. */
export const isHeic = ({ format, compression }: Metadata): boolean => format === 'heif' && compression === 'hevc';

const decoder = (): LibHeif => {
  try {
    return createRequire(import.meta.url)('libheif-js/wasm-bundle');
  } catch {
    throw new NoDecoder();
  }
};

/** A PNG that says its colours: raw pixels cannot, and a phone's are not sRGB. The profile follows the first chunk. */
const withProfile = (png: Buffer, icc: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from('iCCPicc\0\0', 'latin1'), deflateSync(icc)]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(body.length - 4);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  const end = 8 + 25;
  return Buffer.concat([png.subarray(0, end), chunk, png.subarray(end)]);
};

/** A PNG of it: upright, of eight bits, in the file's own colours. @throws NoDecoder, Error when it cannot be decoded */
export const decodeHeic = async (path: string, { hasAlpha, icc }: Metadata): Promise<Buffer> => {
  const { HeifDecoder } = decoder();
  // NOTE: it complains where our answer is written.
  globalThis.console = new Console(process.stderr);
  const images = new HeifDecoder().decode(await readFile(path));
  const image = images.find((each) => each.is_primary()) ?? images[0];
  if (image === undefined) throw new Error('the HEIC holds no picture');
  const [width, height] = [image.get_width(), image.get_height()];
  const data = new Uint8ClampedArray(4 * width * height);
  const shown = await new Promise<object | null>((resolve) => image.display({ data }, resolve));
  if (shown === null) throw new Error('the HEIC cannot be decoded');
  const raw = sharp(Buffer.from(data.buffer), { raw: { width, height, channels: 4 }, limitInputPixels: false });
  const png = await (hasAlpha ? raw : raw.removeAlpha()).png({ compressionLevel: 0 }).toBuffer();
  return icc === undefined ? png : withProfile(png, icc);
};
