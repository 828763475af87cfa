import type { ReportFormat } from '#schemas/report.ts';

/**
 * Keys of a run's blobs. Each ends in a hash of its content, so a stale worker that still writes never changes a file
 * that a stream names already.
 */
export const blobKey = (workspaceId: string, runId: string, format: ReportFormat, sha256: string): string =>
  `${workspaceId}/reports/${runId}/report-${sha256.slice(0, 16)}.${format}`;
