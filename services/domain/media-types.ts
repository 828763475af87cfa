import type { MediaKind } from '#schemas/media.ts';

/**
 * The types that a caller may announce for a file, and the largest size of each kind. Only its bytes show the real type
 * of a file.
 */

const types: Readonly<Record<MediaKind, readonly string[]>> = {
  image: ['image/jpeg', 'image/png', 'image/webp', 'image/avif', 'image/heic', 'image/heif', 'image/tiff'],
  gif: ['image/gif'],
  video: [
    ...['video/mp4', 'video/quicktime', 'video/x-m4v', 'video/webm', 'video/x-matroska', 'video/matroska'],
    ...['video/x-msvideo', 'video/vnd.avi', 'video/mp2t'],
  ],
  document: ['application/pdf'],
};

const kinds: ReadonlyMap<string, MediaKind> = new Map(
  (Object.entries(types) as [MediaKind, readonly string[]][]).flatMap(([kind, all]) =>
    all.map((type) => [type, kind] as const),
  ),
);

export const takenTypes: readonly string[] = [...kinds.keys()];

/** Null: it is not taken. @param contentType in lower case, without parameters */
export const kindOfType = (contentType: string): MediaKind | null => kinds.get(contentType) ?? null;

const mib = 1_048_576;
/** Bytes of the largest file of each kind. */
export const largestOf: Readonly<Record<MediaKind, number>> = {
  image: 100 * mib,
  gif: 100 * mib,
  document: 100 * mib,
  video: 5 * 1024 * mib,
};

/** The quota of a workspace in bytes where neither an administrator nor the installation sets another: 100 GiB. */
export const standardMediaQuota = 100 * 1_024 ** 3;
