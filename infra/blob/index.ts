import path from 'node:path';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import { DiskBlobs } from './disk.ts';
import type { UrlSecrets } from './signed-urls.ts';

export interface BlobConfig {
  readonly dataDir: string;
  readonly blobDir: string | null;
  readonly s3Endpoint: string | null;
  readonly s3PublicEndpoint: string | null;
  readonly s3Bucket: string;
  readonly s3Region: string;
  readonly s3AccessKeyId: string | null;
  readonly s3SecretAccessKey: string | null;
}

/**
 * @param origin where the api serves presigned URLs
 * @throws when S3 is configured without its keys
 */
export const openBlobs = async (config: BlobConfig, secrets: UrlSecrets, origin: () => string): Promise<BlobStore> => {
  const { s3Endpoint: endpoint, s3AccessKeyId: accessKeyId, s3SecretAccessKey: secretAccessKey } = config;
  if (endpoint === null) {
    const root = path.resolve(config.blobDir ?? path.join(config.dataDir, 'blobs'));
    return new DiskBlobs({ root, secrets, origin });
  }
  if (accessKeyId === null || secretAccessKey === null) {
    throw new Error('S3_ENDPOINT needs S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY');
  }
  // The client is imported on use: otherwise every thread of standalone would hold it in memory.
  const { S3Blobs } = await import('./s3.ts');
  return new S3Blobs({
    endpoint,
    publicEndpoint: config.s3PublicEndpoint ?? endpoint,
    bucket: config.s3Bucket,
    region: config.s3Region,
    accessKeyId,
    secretAccessKey,
    ...{ secrets, origin },
  });
};
