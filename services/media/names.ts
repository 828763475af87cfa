/**
 * Keys of an asset's blobs. Each ends in a hash of its content, so a stale worker that still writes never changes a
 * file that a stream names already.
 */

const extensions: Readonly<Record<string, string>> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/heic': 'heic',
  'image/tiff': 'tiff',
  'image/gif': 'gif',
  'video/mp4': 'mp4',
  'video/quicktime': 'mov',
  'video/webm': 'webm',
  'video/x-matroska': 'mkv',
  'video/x-msvideo': 'avi',
  'video/mp2t': 'ts',
  'application/pdf': 'pdf',
};

/** `name`: `original`, `poster`, or a rendition's id. `mark`: a hash of the content. */
export const blobKey = (workspaceId: string, assetId: string, name: string, mark: string, contentType: string) =>
  `${workspaceId}/${assetId}/${name}-${mark.slice(0, 8)}.${extensions[contentType] ?? 'bin'}`;
