/**
 * HEIC is HEVC in a picture's container. sharp reads the container but cannot decode it, because its builds leave out
 * patented codecs. libheif in WebAssembly decodes it: a hostile picture reaches only the decoder's own memory.
 */
import { Console } from 'node:console';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { crc32, deflateSync } from 'node:zlib';
import sharp, { type Metadata } from 'sharp';

/** The methods of libheif-js that are called. */
interface HeifImage {
  get_width(): number;
  get_height(): number;
  is_primary(): boolean;
  display(target: { readonly data: Uint8ClampedArray }, done: (shown: object | null) => void): void;
}
interface LibHeif {
  readonly HeifDecoder: new () => { decode(bytes: Buffer): readonly HeifImage[] };
}

/** The decoder is not installed: an operator may leave it out because of the patents. */
export class NoDecoder extends Error {}

/** By the file's brands, as sharp reports them: the content may still be AV1. */
export const isHeic = ({ format, compression }: Metadata): boolean => format === 'heif' && compression === 'hevc';

const decoder = (): LibHeif => {
  try {
    return createRequire(import.meta.url)('libheif-js/wasm-bundle');
  } catch {
    throw new NoDecoder();
  }
};

/**
 * A PNG that carries its colour profile: raw pixels cannot, and a phone's are not sRGB. The profile follows the first
 * chunk.
 */
const withProfile = (png: Buffer, icc: Buffer): Buffer => {
  const body = Buffer.concat([Buffer.from('iCCPicc\0\0', 'latin1'), deflateSync(icc)]);
  const chunk = Buffer.alloc(body.length + 8);
  chunk.writeUInt32BE(body.length - 4);
  body.copy(chunk, 4);
  chunk.writeUInt32BE(crc32(body), body.length + 4);
  const end = 8 + 25;
  return Buffer.concat([png.subarray(0, end), chunk, png.subarray(end)]);
};

/**
 * A PNG of the picture: upright, of eight bits, in the file's own colours. @throws NoDecoder, Error when it cannot be
 * decoded
 */
export const decodeHeic = async (path: string, { hasAlpha, icc }: Metadata): Promise<Buffer> => {
  const { HeifDecoder } = decoder();
  // NOTE: libheif prints its complaints on standard output, where the answer of this process goes.
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
