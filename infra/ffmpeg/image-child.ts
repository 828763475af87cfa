/**
 * The process in which sharp works on one picture: `node image-child.ts <job as JSON>` answers with JSON. A picture
 * that makes a decoder crash, or use up memory, ends only this process.
 */
import { writeFile } from 'node:fs/promises';
import sharp, { type Metadata, type Sharp, type SharpOptions } from 'sharp';
import { decodeHeic, isHeic, NoDecoder } from './heic.ts';
import type { ImageAnswer, ImageFound, ImageJob, ImageOutcome, ImageOutput } from './images.ts';
import { aiXmp, isPlaced, isSrgbProfile, sourceTypesIn } from './marks.ts';

sharp.cache(false);
sharp.block({ operation: ['VipsForeignLoad'] });
sharp.unblock({
  operation: ['Jpeg', 'Png', 'Webp', 'Heif', 'Nsgif', 'Tiff'].map((format) => `VipsForeignLoad${format}`),
});

const white = { r: 255, g: 255, b: 255, alpha: 1 };

const formatOf = (metadata: Metadata): string => {
  if (isHeic(metadata)) return 'heic';
  return metadata.format === 'heif' && metadata.compression === 'av1' ? 'avif' : (metadata.format ?? '');
};

/** Input of sharp: the file, or for a HEIC its decoded picture. */
type Pixels = string | Buffer;

const pixelsOf = async ({ path }: ImageJob, metadata: Metadata): Promise<Pixels> => {
  if (!isHeic(metadata)) return path;
  return decodeHeic(path, metadata).catch((error: Error) => {
    if (error instanceof NoDecoder) throw error;
    // Damaged, or AVIF with HEIC brands, which sharp decodes.
    return path;
  });
};

const metadataOf = ({ path }: ImageJob, options: SharpOptions): Promise<Metadata> =>
  sharp(path, { ...options, limitInputPixels: false }).metadata();

const plain = new Set(['srgb', 'b-w']);

const found = async (job: ImageJob, options: SharpOptions): Promise<ImageFound> => {
  const metadata = await metadataOf(job, options);
  const { width, height, pages = 1, space = '', icc, xmp, hasAlpha = false, orientation = 1 } = metadata;
  const turned = orientation > 4;
  const seen: ImageFound = {
    format: formatOf(metadata),
    width: turned ? height : width,
    height: turned ? width : height,
    pages,
    alpha: hasAlpha,
    srgb: plain.has(space) && (icc === undefined || isSrgbProfile(icc)),
    upright: orientation === 1,
    located: isPlaced(metadata),
    sourceTypes: sourceTypesIn(xmp?.toString('latin1') ?? ''),
  };
  // NOTE: checked before any pixel is unpacked; the caller refuses a picture that is too large.
  if (width * height > job.maxPixels) return seen;
  await sharp(await pixelsOf(job, metadata), options)
    .resize(64, 64, { fit: 'inside' })
    .raw()
    .toBuffer();
  return seen;
};

interface Step {
  readonly quality: number;
  readonly colours?: number;
}

/** From the requested quality down to the lowest acceptable one. */
const steps = ({ format, quality }: ImageOutput): readonly Step[] => {
  if (format === 'gif') return [256, 128, 64, 32].map((colours) => ({ quality, colours }));
  const lower = Array.from({ length: 12 }, (_, index) => quality - 5 * (index + 1)).filter((each) => each >= 35);
  return [quality, ...lower].map((each) => ({ quality: each }));
};

const encode = (picture: Sharp, { format, quality: asked }: ImageOutput, { quality, colours }: Step): Sharp => {
  switch (format) {
    case 'jpeg':
      return picture.jpeg({ quality, chromaSubsampling: quality >= 90 ? '4:4:4' : '4:2:0' });
    case 'webp':
      return picture.webp({ quality });
    case 'png':
      return quality === asked
        ? picture.png({ compressionLevel: 9 })
        : picture.png({ palette: true, quality, compressionLevel: 9 });
    case 'gif':
      return picture.gif({ colours: colours ?? 256 });
  }
};

const shaped = (picture: Sharp, { width, height, fit, format }: ImageOutput): Sharp => {
  const opaque = format === 'jpeg';
  return (opaque ? picture.flatten({ background: white }) : picture)
    .resize(width, height, {
      fit: fit === 'pad' ? 'contain' : 'fill',
      kernel: 'lanczos3',
      background: opaque ? white : { ...white, alpha: 0 },
    })
    .toColourspace('srgb');
};

const make = async (
  job: ImageJob,
  pixels: Pixels,
  output: ImageOutput,
  options: SharpOptions,
): Promise<ImageOutcome> => {
  const animated = output.format === 'gif';
  const source = shaped(sharp(pixels, { ...options, animated }).autoOrient(), output);
  // Decoded once, encoded as often as needed; animations are not held as pixels.
  const raw = animated ? null : await source.raw().toBuffer({ resolveWithObject: true });
  for (const step of steps(output)) {
    const again = raw === null ? source.clone() : sharp(raw.data, { raw: raw.info, limitInputPixels: false });
    const picture = encode(again, output, step);
    const marked = job.digitalSourceType === null || animated ? picture : picture.withXmp(aiXmp(job.digitalSourceType));
    const { data, info } = await marked.toBuffer({ resolveWithObject: true });
    if (output.maxBytes !== null && data.length > output.maxBytes) continue;
    await writeFile(output.to, data);
    return { kind: 'made', width: info.width, height: info.pageHeight ?? info.height };
  }
  return { kind: 'too_heavy' };
};

const work = async (job: ImageJob): Promise<ImageAnswer> => {
  sharp.concurrency(job.threads);
  const options: SharpOptions = { limitInputPixels: job.maxPixels, failOn: 'error', sequentialRead: true };
  if (job.outputs === null) return { found: await found(job, options) };
  const outcomes: ImageOutcome[] = [];
  const pixels = await pixelsOf(job, await metadataOf(job, options));
  for (const output of job.outputs) {
    outcomes.push(
      await make(job, pixels, output, options).catch((error: Error) => ({ kind: 'failed', reason: error.message })),
    );
  }
  return { outcomes };
};

const answer = await work(JSON.parse(process.argv[2] ?? '')).catch(
  (error: Error): ImageAnswer => (error instanceof NoDecoder ? { undecodable: true } : { error: error.message }),
);
process.stdout.write(JSON.stringify(answer));
