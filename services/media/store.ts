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
 * The first step: it copies the bytes to a key that no caller can write, and inspects them. Only the bytes decide the
 * type of a file. The step notes its blobs first: those that it does not record are deleted when the asset is finished.
 */

const refused = (kind: 'unsupported' | 'hostile', code: Parameters<typeof mediaFailure>[0]): TranscodeError =>
  new TranscodeError(kind, mediaFailure(code));

export const storeStep = async (leased: LeasedAsset, tools: Tools): Promise<void> => {
  const { origin } = leased.asset;
  const file =
    origin.kind === 'upload' ? await stored(leased, tools, origin.offer) : await imported(leased, tools, origin);
  await leased.record({ type: 'RecordStored', ...file });
};

type Stored = MediaFile & { readonly kind: MediaKind };

/** A caller can overwrite the upload while its URL is valid, so the step copies it and reads only the copy. */
const stored = async (leased: LeasedAsset, tools: Tools, offer: Offer): Promise<Stored> => {
  const copy = await copied(leased, offer);
  faultPoint('media:after-store-blob');
  const file = await leased.local(copy.key);
  const sniffed = await judged(tools, file, copy.bytes, 'upload');
  const claimed = kindOfType(offer.contentType);
  if (claimed !== null && familyOf(claimed) !== familyOf(sniffed.kind)) throw refused('hostile', 'media_type_mismatch');
  const { contentType, kind } = sniffed;
  const sha256 = await sha256Of(file, leased.signal);
  if (contentType === copy.contentType) return { key: copy.key, contentType, bytes: copy.bytes, sha256, kind };
  // Stores it under its real type, not under the type that the caller named.
  return { ...(await leased.put('original', { path: file, contentType, bytes: copy.bytes, sha256 })), kind };
};

const copied = async (leased: LeasedAsset, offer: Offer): Promise<BlobInfo> => {
  const found = await leased.blobs.head(offer.key);
  if (found === null || found.bytes !== offer.bytes || found.contentType !== offer.contentType)
    throw refused('unsupported', 'media_changed');
  // The hash of the content is not known before the file is read, so the etag identifies it.
  const mark = createHash('sha256').update(found.etag).digest('hex');
  const key = blobKey(leased.workspaceId, leased.id, 'original', mark, found.contentType);
  await leased.note(key);
  try {
    return await leased.blobs.copy(offer.key, key, found.etag);
  } catch (error) {
    if (error instanceof BlobError && (error.code === 'precondition' || error.code === 'not_found'))
      throw refused('unsupported', 'media_changed');
    throw error;
  }
};

type Import = Extract<Origin, { kind: 'import' }>;

const imported = async (leased: LeasedAsset, tools: Tools, { url: kept, source }: Import): Promise<Stored> => {
  const url = source === null ? kept : await tools.importUrls.find(source);
  if (url === null) throw refused('unsupported', 'import_expired');
  const to = path.join(leased.folder, 'import');
  const { bytes, sha256 } = await tools.fetchFile(url, { to, maxBytes: largestOf.video, signal: leased.signal });
  await tools.counted();
  const { contentType, kind } = await judged(tools, to, bytes, 'import');
  if (!(await tools.usage.reserve(bytes))) throw refused('unsupported', 'import_no_room');
  const file = await leased.put('original', { path: to, contentType, bytes, sha256 });
  faultPoint('media:after-store-blob');
  return { ...file, kind };
};

/**
 * A page, an archive or too large a file quarantines an upload, but is only a mistake in an import, whose address may
 * lead to anything. A file made to deceive is quarantined either way.
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

/** A GIF counts as a picture: a caller that confuses the two does not try to deceive. */
const familyOf = (kind: MediaKind): MediaKind => (kind === 'gif' ? 'image' : kind);
