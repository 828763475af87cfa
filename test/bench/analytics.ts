/**
 * Analytics: reads of 100,000,000 observations beside the best query written by hand, pages of the list of posts, and
 * observations from the logs into the store beside bare clients.
 *
 * Run alone: make bench-analytics, or a part: make bench-analytics ARGS="queries" (QUICK=1 for the short form).
 */
import { availableParallelism, cpus, loadavg } from 'node:os';
import { ingestion } from './analytics/ingest.ts';
import { pages } from './analytics/pages.ts';
import { queries } from './analytics/queries.ts';
import { benchCommand, type Part } from './parts.ts';

const parts: Readonly<Record<string, Part>> = {
  queries: { says: 'overviews over 100,000,000 observations of some 200 workspaces', run: queries },
  pages: { says: 'the list of posts with their figures, its first page and a deep one', run: pages },
  ingestion: { says: 'observations from both logs into the store', run: ingestion },
};

const machine = async (): Promise<readonly string[]> => [
  `cpu: ${cpus()[0]?.model ?? 'unknown'}, ${availableParallelism()} cores; load average ${loadavg()[0]?.toFixed(2)}`,
  `node: ${process.version}`,
];

if (import.meta.main)
  await benchCommand({
    name: 'analytics',
    parts,
    machine,
    about: `Without a part: all of them, about 40 minutes; QUICK=1: some minutes with a tenth of the rows, for development. The engine's
folder, some 25 GB, is in the folder for temporary files (TMPDIR).`,
  });
