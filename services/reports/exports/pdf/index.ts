import PDFDocument from 'pdfkit';
import type { Contents } from '../../contents.ts';
import { page, Sheet } from './page.ts';
import { charts, cover, pageNumbers, tables, totals } from './parts.ts';

/** A report for a person: cover, totals, charts, tables. The same contents make the same bytes. */

export const pdfOf = (contents: Contents, { compress = true } = {}): Promise<Buffer> => {
  const doc = new PDFDocument({
    size: [page.width, page.height],
    // `Sheet` places everything; with a margin PDFKit would break pages itself.
    margin: 0,
    bufferPages: true,
    compress,
    lang: 'en',
    displayTitle: true,
    info: {
      Title: contents.name,
      Author: contents.workspace,
      Creator: 'postline',
      Producer: 'postline',
      CreationDate: new Date(contents.requestedAt),
    },
  });
  const chunks: Buffer[] = [];
  const made = new Promise<Buffer>((resolve, reject) => {
    doc.on('data', (chunk: Buffer) => chunks.push(chunk));
    doc.once('end', () => resolve(Buffer.concat(chunks)));
    doc.once('error', reject);
  });
  const sheet = new Sheet(doc);
  cover(sheet, contents);
  totals(sheet, contents);
  charts(sheet, contents);
  tables(sheet, contents);
  pageNumbers(sheet, contents);
  doc.end();
  return made;
};
