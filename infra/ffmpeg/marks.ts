/** Reads a file's statements beside its pictures: where it was taken, and whether a machine made it. */
import { type Budget, spend } from './budget.ts';
import type { Bytes } from './bytes.ts';

/** IPTC's newscodes, as XMP and C2PA manifests spell them out. */
const sourceType = /digitalsourcetype\/([A-Za-z]{3,60})/gi;

/** The order of importance when a file names several, as a C2PA manifest does for its ingredients. */
const weight = ['trainedAlgorithmicMedia', 'compositeWithTrainedAlgorithmicMedia', 'algorithmicMedia'];

export const heaviest = (types: readonly string[]): string | null =>
  weight.find((type) => types.includes(type)) ?? types[0] ?? null;

export const sourceTypesIn = (text: string): readonly string[] =>
  [...text.matchAll(sourceType)].map(([, type = '']) => type);

const placeInXmp =
  /GPSL(?:at|ong)itude|LocationShown|LocationCreated|Iptc4xmpCore:(?:Location|CountryCode)|photoshop:(?:City|State|Country)/;

const windowBytes = 1_048_576;
/** Longer than any mention: two windows overlap by this much. */
const overlapBytes = 128;
/** Cost of a window in the budget: scanning a mebibyte takes as long as some hundred short reads. */
const windowCost = 100;

export interface Marks {
  /** The most important of those named. */
  readonly sourceType: string | null;
  /** Whether its XMP names a place. */
  readonly placed: boolean;
}

/** Mentions in a range of the file, window by window. */
export const marksOf = async (bytes: Bytes, budget: Budget, from = 0, to = bytes.size): Promise<Marks> => {
  let named: string | null = null;
  let placed = false;
  for (let at = from; at < to; at += windowBytes) {
    spend(budget, windowCost);
    const text = (await bytes.read(at, Math.min(windowBytes + overlapBytes, to - at))).toString('latin1');
    placed ||= placeInXmp.test(text);
    for (const { index, 1: type = '' } of text.matchAll(sourceType)) {
      // One that begins in the overlap may be cut; the next window has it whole.
      if (index < windowBytes) named = heaviest(named === null ? [type] : [named, type]);
    }
  }
  return { sourceType: named, placed };
};

/** XMP that states only this. */
export const aiXmp = (type: string): string =>
  `<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="" xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/" Iptc4xmpExt:DigitalSourceType="http://cv.iptc.org/newscodes/digitalsourcetype/${type}"/></rdf:RDF></x:xmpmeta><?xpacket end="w"?>`;

const gpsTag = 0x8825;

/** Whether the first directory of an EXIF block points to one of GPS. */
const hasGps = (exif: Buffer): boolean => {
  const tiff = exif.subarray(exif.toString('latin1', 0, 4) === 'Exif' ? 6 : 0);
  if (tiff.length < 14) return false;
  const little = tiff.toString('latin1', 0, 2) === 'II';
  const word = (at: number): number =>
    at + 2 > tiff.length ? 0 : little ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at);
  const directory = little ? tiff.readUInt32LE(4) : tiff.readUInt32BE(4);
  return Array.from({ length: word(directory) }, (_, index) => directory + 2 + 12 * index).some(
    (entry) => word(entry) === gpsTag,
  );
};

/** In IPTC's record 2: content location, city, sublocation, state, country. */
const placeDatasets = new Set([26, 27, 90, 92, 95, 100, 101]);

/** IPTC-IIM: repeated record of 0x1c, record, dataset, length, value. */
const placedInDatasets = (iim: Buffer): boolean => {
  for (let at = 0; at + 5 <= iim.length && iim[at] === 0x1c; ) {
    const length = iim.readUInt16BE(at + 3);
    if (iim[at + 1] === 2 && placeDatasets.has(iim[at + 2] ?? 0) && length > 0) return true;
    // From the highest bit on, the number gives the length of the length; no software writes that, so the rest is
    // unknown.
    if (length > 0x7fff) return true;
    at += 5 + length;
  }
  return false;
};

const iimResource = 0x0404;

/**
 * Photoshop's resources, as a JPEG's APP13 holds them: `8BIM`, number, name, length, data, each padded to an even
 * length.
 */
const placedInIptc = (block: Buffer): boolean => {
  const first = block.indexOf('8BIM', 0, 'latin1');
  if (first < 0) return placedInDatasets(block);
  for (let at = first; at + 12 <= block.length && block.toString('latin1', at, at + 4) === '8BIM'; ) {
    const name = 1 + (block[at + 6] ?? 0);
    const data = at + 6 + name + (name % 2) + 4;
    if (data > block.length) return false;
    const length = block.readUInt32BE(data - 4);
    if (block.readUInt16BE(at + 4) === iimResource && placedInDatasets(block.subarray(data, data + length)))
      return true;
    at = data + length + (length % 2);
  }
  return false;
};

/** The blocks of a picture that may name a place. */
export interface Blocks {
  readonly exif?: Buffer | undefined;
  readonly iptc?: Buffer | undefined;
  readonly xmp?: Buffer | undefined;
}

export const isPlaced = ({ exif, iptc, xmp }: Blocks): boolean =>
  (exif !== undefined && hasGps(exif)) ||
  (iptc !== undefined && placedInIptc(iptc)) ||
  (xmp !== undefined && placeInXmp.test(xmp.toString('latin1')));

/** The description of a colour profile, in either of its encodings. */
export const isSrgbProfile = (icc: Buffer): boolean =>
  icc.includes('sRGB', 0, 'latin1') || icc.includes(Buffer.from('\0s\0R\0G\0B', 'latin1'));
