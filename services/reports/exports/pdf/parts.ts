import { rulesOf } from '#domain/platforms/index.ts';
import { counters } from '#schemas/insights.ts';
import type { Contents } from '../../contents.ts';
import { barChart, lineChart, rowChart } from './chart.ts';
import { audienceNames, type Figure, figureNames, unknown, written } from './labels.ts';
import { colors, inner, page, type Sheet } from './page.ts';
import { drawTable } from './table.ts';

/** The parts of a PDF report, in their order. */

type Figures = Readonly<Partial<Record<Figure, number | null>>>;

const all: readonly Figure[] = ['followerCount', ...counters, 'engagementRate'];
/** Figures that have a value in at least one row. */
const knownIn = (rows: readonly Figures[]): readonly Figure[] =>
  all.filter((one) => rows.some((row) => row[one] !== null && row[one] !== undefined));

const instantOf = (iso: string, timezone: string): string =>
  new Intl.DateTimeFormat('en-GB', { dateStyle: 'long', timeStyle: 'short', timeZone: timezone }).format(new Date(iso));

/** The widest group that is legible beside a name. */
const groups = <T>(items: readonly T[], max = 6): readonly (readonly T[])[] =>
  Array.from({ length: Math.ceil(items.length / max) }, (_, at) => items.slice(at * max, (at + 1) * max));

/** Joins consecutive days into one range: a person reads two dates more easily than ninety. */
const provisionalOf = ({ provisionalDays }: Contents['completeness']): readonly string[] => {
  const [first, last] = [provisionalDays[0], provisionalDays.at(-1)];
  if (first === undefined || last === undefined) return [];
  return [first === last ? first : `${first} to ${last}`];
};

export const cover = (sheet: Sheet, contents: Contents): void => {
  const { name, workspace, client, platform, from, to, asOf, timezone, completeness } = contents;
  sheet.doc.rect(0, 0, page.width, 12).fill(colors.main);
  sheet.y = 190;
  sheet.line(workspace, page.margin, sheet.y, inner, { size: 12, color: colors.soft });
  sheet.y += 28;
  sheet.y += 16 + sheet.block(name, page.margin, sheet.y, inner, 4, { size: 30, bold: true });
  const about: readonly (readonly [string, string])[] = [
    ...(client === null ? [] : [['Client', client] as const]),
    ...(platform === null ? [] : [['Network', rulesOf(platform).name] as const]),
    ['Days', `${from} to ${to}`],
    ['Days begin in', timezone],
    ['Newest figures', asOf === null ? 'none were there' : `${instantOf(asOf, timezone)} (${timezone})`],
    ...provisionalOf(completeness).map((days) => ['Provisional', `${days}: these figures may still change`] as const),
  ];
  for (const [what, text] of about) {
    sheet.line(what, page.margin, sheet.y, 110, { size: 10, color: colors.soft });
    sheet.line(text, page.margin + 116, sheet.y, inner - 116, { size: 10 });
    sheet.y += 20;
  }
};

const tiles = (sheet: Sheet, items: readonly (readonly [name: string, value: string])[]): void => {
  const [columns, tall, gap] = [3, 54, 10];
  const wide = (inner - gap * (columns - 1)) / columns;
  for (const [place, [name, value]] of items.entries()) {
    const column = place % columns;
    if (column === 0) sheet.need(tall + gap);
    const x = page.margin + column * (wide + gap);
    sheet.doc.roundedRect(x, sheet.y, wide, tall, 4).fill(colors.band);
    sheet.line(name, x + 12, sheet.y + 10, wide - 24, { size: 8, color: colors.soft });
    sheet.line(value, x + 12, sheet.y + 24, wide - 24, { size: 16, bold: true });
    if (column === columns - 1 || place === items.length - 1) sheet.y += tall + gap;
  }
  sheet.y += 10;
};

export const totals = (sheet: Sheet, { totals: figures, audience = {}, kind }: Contents): void => {
  sheet.newPage();
  sheet.heading(kind === 'account' ? 'Posts of the account' : 'Totals');
  const known = knownIn([figures]);
  tiles(
    sheet,
    known.map((one) => [figureNames[one], written(one, figures[one])] as const),
  );
  if (known.length === 0) sheet.note('No network reported a figure for these days.');
  sheet.note('Gains of the days of the report, after corrections by the networks. Followers: the last count.');
  const asked = Object.entries(audience) as (readonly [keyof typeof audienceNames, number | null])[];
  if (asked.length === 0) return;
  sheet.y += 14;
  sheet.heading('The account itself');
  tiles(
    sheet,
    asked.map(([one, value]) => [audienceNames[one], written(null, value)] as const),
  );
  sheet.note(`${unknown}: the network does not report it.`);
};

/** Figures that are shown where they have a value, in this order. */
const charted: readonly Figure[] = ['impressions', 'totalInteractions', 'likes', 'videoViews', 'comments', 'clicks'];
const maxCharts = 4;

export const charts = (sheet: Sheet, { series, byPlatform }: Contents): void => {
  const known = knownIn(series);
  if (known.length === 0) return;
  sheet.newPage();
  sheet.heading('Day by day');
  const drawn = (figure: Figure) => ({
    title: figureNames[figure],
    figure,
    points: series.map((day) => ({ label: day.day, value: (day as Figures)[figure] ?? null })),
  });
  for (const one of charted.filter((figure) => known.includes(figure)).slice(0, maxCharts)) barChart(sheet, drawn(one));
  for (const one of ['engagementRate', 'followerCount'] as const) if (known.includes(one)) lineChart(sheet, drawn(one));
  sheet.note('Days without a figure were not measured; what was gained on them counts on the next measured day.');
  const ranked = charted.filter((figure) => byPlatform.some((row) => ((row as Figures)[figure] ?? null) !== null));
  const [first] = ranked;
  if (first === undefined || byPlatform.length < 2) return;
  sheet.y += 14;
  const points = byPlatform.map((row) => ({
    label: rulesOf(row.platform).name,
    value: (row as Figures)[first] ?? null,
  }));
  rowChart(sheet, { title: `${figureNames[first]} by network`, figure: first, points });
};

const topTable = (sheet: Sheet, { topPosts = [], timezone }: Contents): void => {
  if (topPosts.length === 0) return;
  sheet.newPage();
  sheet.heading('Top posts');
  const rows = topPosts.map(({ publishedAt, platforms, impressions, interactions, engagementRate }) => [
    instantOf(publishedAt, timezone),
    platforms.map((one) => rulesOf(one).name).join(', '),
    written('impressions', impressions),
    written(null, interactions),
    written('engagementRate', engagementRate),
  ]);
  const head = ['Went out', 'Networks', 'Impressions', 'Interactions', 'Engagement rate'];
  drawTable(sheet, { first: 140, head, rows });
  sheet.note('Posts of the days with the most interactions, by all that is known of them at the end of the last day.');
};

export const tables = (sheet: Sheet, contents: Contents): void => {
  const { byPlatform, series, demographics } = contents;
  topTable(sheet, contents);
  const known = knownIn([...byPlatform, ...series]);
  if (known.length > 0) sheet.newPage();
  const table = <R extends object>(
    title: string,
    first: string,
    rows: readonly R[],
    nameOf: (row: R) => string,
  ): void => {
    if (rows.length === 0 || known.length === 0) return;
    sheet.heading(title);
    for (const group of groups(known)) {
      drawTable(sheet, {
        first: 84,
        head: [first, ...group.map((one) => figureNames[one])],
        rows: rows.map((row) => [nameOf(row), ...group.map((one) => written(one, (row as Figures)[one]))]),
      });
    }
  };
  table('By network', 'Network', byPlatform, ({ platform }) => rulesOf(platform).name);
  table('By day', 'Day', series, ({ day, provisional }) => (provisional ? `${day} *` : day));
  if (known.length > 0) sheet.note(`${unknown}: the network does not report it, or was not asked for it.`);
  if (known.length > 0 && series.some(({ provisional }) => provisional))
    sheet.note('*: provisional; a later measurement of a post may still change the day, and so the totals.');
  if (demographics === null || demographics === undefined) return;
  for (const [dimension, counts] of Object.entries(demographics)) {
    const largest = Object.entries(counts).sort(([, a], [, b]) => b - a);
    sheet.heading(`Audience by ${dimension}`);
    const rows = largest.slice(0, maxLabels).map(([label, count]) => [label, written(null, count)]);
    drawTable(sheet, { first: inner - 120, head: [dimension, 'People'], rows });
    if (largest.length > maxLabels) sheet.note(`The largest ${maxLabels} of ${largest.length}.`);
  }
};
const maxLabels = 12;

export const pageNumbers = (sheet: Sheet, { name }: Contents): void => {
  const { start, count } = sheet.doc.bufferedPageRange();
  for (let at = start + 1; at < start + count; at += 1) {
    sheet.doc.switchToPage(at);
    const [y, style] = [page.height - 40, { size: 8, color: colors.soft } as const];
    sheet.line(name, page.margin, y, inner - 80, style);
    sheet.line(`${at + 1} / ${count}`, page.margin + inner - 70, y, 70, { ...style, align: 'right' });
  }
};
