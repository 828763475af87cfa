import { type Figure, shortly } from './labels.ts';
import { colors, inner, page, type Sheet } from './page.ts';

/** Draws charts as lines and areas, never as images. A missing figure leaves a gap and does not count as zero. */

export interface Point {
  readonly label: string;
  readonly value: number | null;
}

interface Chart {
  readonly title: string;
  readonly figure: Figure;
  readonly points: readonly Point[];
}

const height = 130;
const axis = 52;

/** Round steps that cover the values and zero. */
export const ticksOf = (values: readonly number[], count = 4): readonly number[] => {
  const [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  const span = high - low === 0 ? 1 : high - low;
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = power * ([1, 2, 2.5, 5, 10].find((one) => one * power >= raw) ?? 10);
  const first = Math.floor(low / step);
  const last = Math.ceil((high === 0 && low === 0 ? step : high) / step);
  return Array.from({ length: last - first + 1 }, (_, at) => (first + at) * step);
};

interface Frame {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  /** Where a value lies on the page. */
  readonly at: (value: number) => number;
}

const frame = (sheet: Sheet, { title, figure, points }: Chart): Frame => {
  const { doc } = sheet;
  sheet.need(height + 60);
  sheet.line(title, page.margin, sheet.y, inner, { size: 11, bold: true });
  const [x, y, width] = [page.margin + axis, sheet.y + 22, inner - axis];
  const ticks = ticksOf(points.flatMap(({ value }) => (value === null ? [] : [value])));
  const [low, high] = [ticks[0] ?? 0, ticks.at(-1) ?? 1];
  const at = (value: number): number => y + height - ((value - low) / (high - low)) * height;
  for (const tick of ticks) {
    doc.moveTo(x, at(tick)).lineTo(x + width, at(tick));
    doc.lineWidth(tick === 0 ? 1 : 0.5).stroke(tick === 0 ? colors.soft : colors.line);
    const label = shortly(figure, tick);
    sheet.line(label, page.margin, at(tick) - 5, axis - 8, { size: 8, color: colors.soft, align: 'right' });
  }
  const labels = Math.min(6, points.length);
  for (let n = 0; n < labels; n += 1) {
    const place = labels === 1 ? 0 : Math.round((n * (points.length - 1)) / (labels - 1));
    const label = points[place]?.label ?? '';
    const middle = x + ((place + 0.5) / points.length) * width;
    const left = Math.min(Math.max(middle - 35, x), x + width - 70);
    sheet.line(label, left, y + height + 6, 70, { size: 8, color: colors.soft, align: 'center' });
  }
  sheet.y = y + height + 28;
  return { x, y, width, at };
};

export const barChart = (sheet: Sheet, chart: Chart): void => {
  const { doc } = sheet;
  const { x, width, at } = frame(sheet, chart);
  const slot = width / Math.max(1, chart.points.length);
  const thick = Math.min(slot * 0.7, 28);
  for (const [place, { value }] of chart.points.entries()) {
    if (value === null) continue;
    const [top, end] = [Math.min(at(value), at(0)), Math.max(at(value), at(0))];
    doc.rect(x + slot * (place + 0.5) - thick / 2, top, thick, Math.max(0.5, end - top));
    doc.fill(value < 0 ? colors.second : colors.main);
  }
};

export const lineChart = (sheet: Sheet, chart: Chart): void => {
  const { doc } = sheet;
  const { x, width, at } = frame(sheet, chart);
  const slot = width / Math.max(1, chart.points.length);
  let before: readonly [number, number] | null = null;
  for (const [place, { value }] of chart.points.entries()) {
    const here: readonly [number, number] | null = value === null ? null : [x + slot * (place + 0.5), at(value)];
    if (here !== null) {
      if (before !== null) {
        doc.moveTo(...before).lineTo(...here);
        doc.lineWidth(1.5).stroke(colors.main);
      }
      doc.circle(...here, 1.8).fill(colors.main);
    }
    before = here;
  }
};

/** One bar for each name, from the left. */
export const rowChart = (sheet: Sheet, { title, figure, points }: Chart): void => {
  const { doc } = sheet;
  const row = 20;
  sheet.need(30 + row * points.length);
  sheet.line(title, page.margin, sheet.y, inner, { size: 11, bold: true });
  sheet.y += 22;
  const [names, figures] = [90, 70];
  const room = inner - names - figures;
  const max = Math.max(1, ...points.map(({ value }) => Math.abs(value ?? 0)));
  for (const { label, value } of points) {
    sheet.line(label, page.margin, sheet.y + 2, names - 8, { size: 9 });
    if (value !== null) {
      const long = Math.max(0.5, (Math.abs(value) / max) * room);
      doc.rect(page.margin + names, sheet.y, long, row - 6).fill(value < 0 ? colors.second : colors.main);
      const place = page.margin + names + long + 6;
      sheet.line(shortly(figure, value), place, sheet.y + 2, figures - 6, { size: 9, color: colors.soft });
    }
    sheet.y += row;
  }
  sheet.y += 12;
};
