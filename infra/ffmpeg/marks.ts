/** What a file says of itself beside its pictures: where it was taken, and whether a machine drew it. */
import type { Bytes } from './bytes.ts';

/** IPTC's newscodes, as XMP and C2PA manifests spell them out. */
const sourceType = /digitalsourcetype\/([A-Za-z]{3,60})/gi;

/** What weighs most when a file names several, as a C2PA manifest does of its ingredients. */
const weight = ['trainedAlgorithmicMedia', 'compositeWithTrainedAlgorithmicMedia', 'algorithmicMedia'];

export const heaviest = (types: readonly string[]): string | null =>
  weight.find((type) => types.includes(type)) ?? types[0] ?? null;

export const sourceTypesIn = (text: string): readonly string[] =>
  [...text.matchAll(sourceType)].map(([, type = '']) => type);

const windowBytes = 1_048_576;
/** Longer than any mention: two windows overlap by so much. */
const overlapBytes = 128;

/** Mentions in a part of the file, window by window. */
export const sourceTypesOf = async (bytes: Bytes, from = 0, to = bytes.size): Promise<readonly string[]> => {
  const found = new Set<string>();
  for (let at = from; at < to; at += windowBytes) {
    const window = await bytes.read(at, Math.min(windowBytes + overlapBytes, to - at));
    for (const type of sourceTypesIn(window.toString('latin1'))) found.add(type);
  }
  return [...found];
};

/** XMP that says this and nothing else. */
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

export const placeInXmp = /GPSL(?:at|ong)itude|LocationShown|LocationCreated|Iptc4xmpCore:Location|photoshop:City/;

export const isPlaced = (exif: Buffer | undefined, xmp: Buffer | undefined): boolean =>
  (exif !== undefined && hasGps(exif)) || (xmp !== undefined && placeInXmp.test(xmp.toString('latin1')));

/** The description of a colour profile, in either of its encodings. */
export const isSrgbProfile = (icc: Buffer): boolean =>
  icc.includes('sRGB', 0, 'latin1') || icc.includes(Buffer.from('\0s\0R\0G\0B', 'latin1'));
