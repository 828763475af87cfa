import type { ReportFormat } from '#schemas/report.ts';
import type { Contents } from '../contents.ts';
import { csvOf } from './csv.ts';
import { jsonOf } from './json.ts';

/** The table of formats. The same contents and options make the same bytes. */

export interface ExportOptions {
  /** Whether a CSV begins with U+FEFF. Without it Excel reads the file in the code page of its user. */
  readonly bom: boolean;
}

interface Export {
  readonly contentType: string;
  readonly make: (contents: Contents, options: ExportOptions) => Promise<Buffer>;
}

export const exportsOf: Readonly<Record<ReportFormat, Export>> = {
  csv: {
    contentType: 'text/csv; charset=utf-8',
    make: async (contents, { bom }) => Buffer.from(`${bom ? '\ufeff' : ''}${csvOf(contents)}`),
  },
  json: { contentType: 'application/json', make: async (contents) => Buffer.from(jsonOf(contents)) },
  // Loads its fonts only when a PDF is drawn.
  pdf: { contentType: 'application/pdf', make: async (contents) => (await import('./pdf/index.ts')).pdfOf(contents) },
};
