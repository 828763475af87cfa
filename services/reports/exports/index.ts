import type { ReportFormat } from '#schemas/report.ts';
import type { Contents } from '../contents.ts';
import { csvOf } from './csv.ts';
import { jsonOf } from './json.ts';

/** The table of formats. The same contents make the same bytes. */

interface Export {
  readonly contentType: string;
  readonly make: (contents: Contents) => Promise<Buffer>;
}

export const exportsOf: Readonly<Record<ReportFormat, Export>> = {
  csv: { contentType: 'text/csv; charset=utf-8', make: async (contents) => Buffer.from(csvOf(contents)) },
  json: { contentType: 'application/json', make: async (contents) => Buffer.from(jsonOf(contents)) },
  // Loads its fonts only when a PDF is drawn.
  pdf: { contentType: 'application/pdf', make: async (contents) => (await import('./pdf/index.ts')).pdfOf(contents) },
};
