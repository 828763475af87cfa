import { colors, inner, page, type Sheet } from './page.ts';

/** A table that continues over pages, with its head on each. */

export interface Table {
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Points of the first column; the others share the rest. */
  readonly first: number;
}

const rowHeight = 17;

export const drawTable = (sheet: Sheet, { head, rows, first }: Table): void => {
  const { doc } = sheet;
  const others = head.length < 2 ? 0 : (inner - first) / (head.length - 1);
  const cells = (texts: readonly string[], style: { readonly bold: boolean; readonly color: string }): void => {
    for (const [column, text] of texts.entries()) {
      const left = page.margin + (column === 0 ? 6 : first + (column - 1) * others);
      const width = column === 0 ? first - 12 : others - 6;
      sheet.line(text, left, sheet.y + 4, width, { size: 8, align: column === 0 ? 'left' : 'right', ...style });
    }
    sheet.y += rowHeight;
  };
  const header = (): void => {
    cells(head, { bold: true, color: colors.soft });
    doc
      .moveTo(page.margin, sheet.y)
      .lineTo(page.margin + inner, sheet.y)
      .lineWidth(0.8)
      .stroke(colors.soft);
  };
  sheet.need(rowHeight * 3);
  header();
  for (const [place, row] of rows.entries()) {
    const on = doc.bufferedPageRange().count;
    sheet.need(rowHeight);
    if (doc.bufferedPageRange().count !== on) header();
    if (place % 2 === 1) doc.rect(page.margin, sheet.y, inner, rowHeight).fill(colors.band);
    cells(row, { bold: false, color: colors.ink });
  }
  sheet.y += 14;
};
