import { createHash } from 'node:crypto';
import { stat } from 'node:fs/promises';
import path from 'node:path';
import { BlobError, type BlobInfo } from '#contracts/ports/blob-store.ts';
import { type SniffedType, TranscodeError } from '#contracts/ports/transcoder.ts';
import type { MediaFile, Offer, Origin } from '#domain/media.ts';
import { mediaFailure } from '#domain/media-failures.ts';
import { kindOfType, largestOf } from '#domain/media-types.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { MediaKind } from '#schemas/media.ts';
import type { Tools } from './deps.ts';
import { type LeasedAsset, sha256Of } from './leased-asset.ts';
import { blobKey } from './names.ts';

/**
 * The first step: the bytes are brought to where nobody can change them, and looked at. What they are is said by them
 * alone. Whatever this step wrote and did not record is noted, and deleted when the asset is finished.
 */

const refused = (kind: 'unsupported' | 'hostile', code: Parameters<typeof mediaFailure>[0]): TranscodeError =>
  new TranscodeError(kind, mediaFailure(code));

export const storeStep = async (held: LeasedAsset, tools: Tools): Promise<void> => {
  const { origin } = held.asset;
  const file = origin.kind === 'upload' ? await stored(held, tools, origin.offer) : await imported(held, tools, origin);
  await held.record({ type: 'RecordStored', ...file });
};

type Stored = MediaFile & { readonly kind: MediaKind };

/** The upload may be written again as long as its URL is valid, so it is copied as it is now, and only the copy is read. */
const stored = async (held: LeasedAsset, tools: Tools, offer: Offer): Promise<Stored> => {
  const copy = await copied(held, offer);
  faultPoint('media:after-store-blob');
  const file = await held.local(copy.key);
  const sniffed = await judged(tools, file, copy.bytes, 'upload');
  const claimed = kindOfType(offer.contentType);
  if (claimed !== null && familyOf(claimed) !== familyOf(sniffed.kind)) throw refused('hostile', 'media_type_mismatch');
  const { contentType, kind } = sniffed;
  const sha256 = await sha256Of(file, held.signal);
  if (contentType === copy.contentType) return { key: copy.key, contentType, bytes: copy.bytes, sha256, kind };
  // Served as what it is, not as what it was said to be.
  return { ...(await held.put('original', { path: file, contentType, bytes: copy.bytes, sha256 })), kind };
};

const copied = async (held: LeasedAsset, offer: Offer): Promise<BlobInfo> => {
  const found = await held.blobs.head(offer.key);
  if (found === null || found.bytes !== offer.bytes || found.contentType !== offer.contentType)
    throw refused('unsupported', 'media_changed');
  // The content's own hash is known only once it is read; until then its version names it as well.
  const mark = createHash('sha256').update(found.etag).digest('hex');
  const key = blobKey(held.workspaceId, held.id, 'original', mark, found.contentType);
  await held.note(key);
  try {
    return await held.blobs.copy(offer.key, key, found.etag);
  } catch (error) {
    if (error instanceof BlobError && (error.code === 'precondition' || error.code === 'not_found'))
      throw refused('unsupported', 'media_changed');
    throw error;
  }
};

type Import = Extract<Origin, { kind: 'import' }>;

const imported = async (held: LeasedAsset, tools: Tools, { url: kept, source }: Import): Promise<Stored> => {
  const url = source === null ? kept : await tools.importUrls.find(source);
  if (url === null) throw refused('unsupported', 'import_expired');
  const to = path.join(held.folder, 'import');
  const { bytes, sha256 } = await tools.fetchFile(url, { to, maxBytes: largestOf.video, signal: held.signal });
  await tools.counted();
  const { contentType, kind } = await judged(tools, to, bytes, 'import');
  if (!(await tools.usage.reserve(bytes))) throw refused('unsupported', 'import_no_room');
  const file = await held.put('original', { path: to, contentType, bytes, sha256 });
  faultPoint('media:after-store-blob');
  return { ...file, kind };
};

/**
 * What an upload is kept away for is at an address only a mistake: it leads to a page, an archive, or more than is taken.
 * A file made to deceive stays one, and what is declined with words of its own keeps them.
 */
const judged = async (tools: Tools, file: string, bytes: number, from: 'upload' | 'import'): Promise<SniffedType> => {
  const imports = from === 'import';
  if ((await stat(file)).size === 0) throw new TranscodeError('unreadable', mediaFailure('media_empty'));
  const sniffed = await tools.transcoder.sniff(file).catch((error: unknown) => {
    throw imports && isOther(error) ? refused('unsupported', 'import_not_media') : error;
  });
  if (sniffed === null) throw refused('unsupported', imports ? 'import_not_media' : 'media_unsupported');
  if (bytes > largestOf[sniffed.kind])
    throw imports ? refused('unsupported', 'import_too_large') : refused('hostile', 'media_too_large');
  return sniffed;
};

/** Markup, a playlist, an archive, a program. */
const isOther = (error: unknown): boolean =>
  error instanceof TranscodeError &&
  error.kind === 'hostile' &&
  ['media_reaches_out', 'media_unsupported'].includes(error.failure?.code ?? '');

/** A picture that moves is a picture: neither was sent to deceive. */
const familyOf = (kind: MediaKind): MediaKind => (kind === 'gif' ? 'image' : kind);
