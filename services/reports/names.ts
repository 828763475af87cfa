import type { ReportFormat } from '#schemas/report.ts';

/**
 * Keys of a run's blobs. Each ends in a mark of its content, so a worker that slept through its lease and writes all the
 * same never changes a file that a stream names already.
 */
export const blobKey = (workspaceId: string, runId: string, format: ReportFormat, sha256: string): string =>
  `${workspaceId}/reports/${runId}/report-${sha256.slice(0, 16)}.${format}`;
