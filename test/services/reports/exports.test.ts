import { deepEqual, equal, match, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import type { Totals } from '#projections/analytics/rollup.ts';
import { type CounterName, counters } from '#schemas/insights.ts';
import { issuesOf } from '#schemas/validator.ts';
import type { Contents } from '#services/reports/contents.ts';
import { csvOf } from '#services/reports/exports/csv.ts';
import { exportsOf } from '#services/reports/exports/index.ts';
import { jsonOf, ReportJson } from '#services/reports/exports/json.ts';
import { ticksOf } from '#services/reports/exports/pdf/chart.ts';
import { loadFonts } from '#services/reports/exports/pdf/fonts.ts';
import { pdfOf } from '#services/reports/exports/pdf/index.ts';
import { missing, printable } from '#services/reports/exports/pdf/page.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { readPdf } from './pdf-reader.ts';

const gains = (figures: Partial<Record<CounterName, number>>, engagementRate: number | null = null): Totals => ({
  ...(Object.fromEntries(counters.map((one) => [one, figures[one] ?? null])) as Record<CounterName, number | null>),
  engagementRate,
});
/** Of the other counters none was fetched. */
const fetched = (figures: Partial<Record<CounterName, number>>, engagementRate: number | null = null): Totals => ({
  ...figures,
  engagementRate,
});
const days = (count: number) =>
  Array.from({ length: count }, (_, at) => new Date(Date.UTC(2026, 1, 1 + at)).toISOString().slice(0, 10));

const contents: Contents = {
  ...{ reportId: randomUUID(), runId: randomUUID(), name: 'Monthly', kind: 'workspace', workspace: 'Agency' },
  ...{ client: 'Acme', platform: null, timezone: 'Europe/Berlin', from: '2026-02-01', to: '2026-03-02' },
  filters: { clientId: null, socialAccountId: null, platform: null },
  asOf: '2026-03-03T02:00:00.000Z',
  completeness: { complete: false, provisionalDays: ['2026-03-02'] },
  requestedAt: '2026-03-03T05:00:00.000Z',
  totals: gains({ impressions: 12_345, likes: 0, comments: -3, totalInteractions: 600 }, 0.0486),
  byPlatform: [
    { platform: 'instagram', ...gains({ impressions: 12_000, likes: 0 }, 0.05) },
    { platform: 'x', ...gains({ impressions: 345 }) },
  ],
  series: days(30).map((day, at) => ({
    ...{ day, provisional: at === 29 },
    ...(at === 4 ? gains({}) : gains({ impressions: 400 + at, likes: 0, comments: at === 7 ? -3 : 0 }, 0.04)),
  })),
};
const { demographics: _none, ...plain } = contents;
const ofAccount: Contents = {
  ...plain,
  ...{ kind: 'account', platform: 'instagram', byPlatform: [] },
  totals: { ...contents.totals, followerCount: 1_234 },
  series: contents.series.map((day, at) => ({ ...day, followerCount: at === 3 ? null : 1_200 + at })),
  audience: { profileViews: 12, accountsEngaged: null },
  demographics: {
    country: Object.fromEntries(Array.from({ length: 20 }, (_, at) => [`C${at}`, at])),
    '=age': { '-18': 3 },
  },
};

/** RFC 4180, strictly. */
const parsed = (csv: string): readonly (readonly string[])[] => {
  const rows: string[][] = [];
  let row: string[] = [];
  const cell = /("(?:[^"]|"")*"|[^",\r\n]*)(,|\r\n)/y;
  while (cell.lastIndex < csv.length) {
    const found = cell.exec(csv);
    if (found === null) throw new Error('this is no CSV');
    const [, text = '', end] = found;
    row.push(text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text);
    if (end !== ',') {
      rows.push(row);
      row = [];
    }
  }
  return rows;
};
const records = (csv: string): readonly Readonly<Record<string, string>>[] => {
  const [header = [], ...rows] = parsed(csv);
  return rows.map((row) => {
    equal(row.length, header.length);
    return Object.fromEntries(header.map((name, at) => [name, row[at] ?? '']));
  });
};

suite('report as CSV', (t) => {
  t('has every figure: null is empty, 0 is 0, a decrease is negative', () => {
    const rows = records(csvOf(contents));
    deepEqual(
      rows.map(({ scope }) => scope),
      ['total', 'platform', 'platform', ...Array(30).fill('day')],
    );
    const [total, instagram, x] = rows;
    deepEqual(
      [total?.impressions, total?.likes, total?.comments, total?.saves, total?.engagementRate],
      ['12345', '0', '-3', '', '0.0486'],
    );
    deepEqual([instagram?.platform, instagram?.likes, x?.likes], ['instagram', '0', '']);
    for (const row of rows) deepEqual([row.report, row.client, row.asOf], ['Monthly', 'Acme', contents.asOf]);
    deepEqual(
      rows.slice(3).map(({ day }) => day),
      contents.series.map(({ day }) => day),
    );
    ok(!('followerCount' in (total ?? {})));
    // The sums hold a day that may still change, and so do they.
    deepEqual(
      rows.map(({ provisional }) => provisional),
      [...Array(3).fill('true'), ...Array(29).fill('false'), 'true'],
    );
    match(csvOf(contents).split('\r\n')[0] ?? '', /,provisional$/);
    const settled = records(csvOf({ ...contents, completeness: { complete: true, provisionalDays: [] } }));
    equal(settled[0]?.provisional, 'false');
  });

  t('of an account: a figure that was never requested has no column, one that the network lacks is empty', () => {
    const rows = records(csvOf(ofAccount));
    const [total] = rows;
    equal(total?.followerCount, '1234');
    deepEqual([total?.['audience.profileViews'], total?.['audience.accountsEngaged']], ['12', '']);
    ok(!('audience.videoViews' in (total ?? {})));
    equal(rows.filter(({ scope }) => scope === 'demographics').length, 21);
    ok(!csvOf({ ...contents, audience: {} }).includes('demographics'));
    match(csvOf({ ...contents, demographics: null }), /demographics\.count/);
  });

  t('begins with U+FEFF, by which spreadsheets know UTF-8, unless the definition says otherwise', async () => {
    const { make } = exportsOf.csv;
    const [marked, bare] = [await make(contents, { bom: true }), await make(contents, { bom: false })];
    equal(bare.toString(), csvOf(contents));
    ok(marked.equals(Buffer.concat([Buffer.from([0xef, 0xbb, 0xbf]), bare])));
    for (const format of ['json', 'pdf'] as const) {
      const made = await exportsOf[format].make(contents, { bom: true });
      ok(!made.subarray(0, 3).equals(marked.subarray(0, 3)), format);
    }
  });

  t('escapes formulas, quotes and line ends, and keeps every letter', () => {
    const names = ['=HYPERLINK("http://x","y")', '+1', '-1', '@a', 'a,"b"\r\nc', '日本 👩‍👩‍👧', 'ok'];
    // Spaces of every kind, and characters that show nothing; the signs in full width and in small form.
    for (const blank of [' ', '  ', '\u00a0', '\u3000', '\u200b', '\ufeff', '\u2060', '\u00ad', '\0'])
      names.push(`${blank}=1`, `${blank}a`);
    for (const sign of ['＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫', '−'])
      names.push(`${sign}1`, ` ${sign}1`, `1${sign}1`);
    for (const name of names) {
      const csv = csvOf({ ...ofAccount, name, client: name });
      const isFormula = /^[^\p{L}\p{N}\p{P}\p{S}]*[=+\-@＝＋－＠﹦﹢﹣﹫−]/u.test(name);
      for (const row of records(csv)) {
        equal(row.report, isFormula ? `'${name}` : name);
        equal(row.client, row.report);
      }
    }
    equal(records(csvOf(ofAccount)).at(-1)?.['demographics.dimension'], "'=age");
    equal(records(csvOf(ofAccount)).at(-1)?.['demographics.label'], "'-18");
  });

  t('no cell begins with a formula, also where a spreadsheet cuts at semicolons or tabs and knows no quotes', () => {
    const cases = [
      ['\t=1', "'\t'=1"],
      ['a;=1', "a;'=1"],
      ['a; ＝1;b', "a; '＝1;b"],
      ['a\r\n\n+1', "a\r\n\n'+1"],
      ['a;b', 'a;b'],
      ['a=1', 'a=1'],
    ] as const;
    for (const [name, shown] of cases) equal(records(csvOf({ ...contents, name }))[0]?.report, shown, name);
    const opening = fc.constantFrom('=', '＝', '-', ' ', '\t', '\n', '\r', ';', ',', '"', '\u200b', "'", 'a', '1');
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ unit: opening })), (name) => {
        const [row] = records(csvOf({ ...contents, name }));
        const [kept, whole] = [row?.report ?? '', name.toWellFormed()];
        for (const cell of kept.split(/[;\t\r\n]/)) ok(!/^[\s\p{C}]*[=+\-@＝＋－＠]/u.test(cell), JSON.stringify(kept));
        equal(kept.replaceAll("'", ''), whole.replaceAll("'", ''));
      }),
      { seed: seeded('report names').seed },
    );
    const long = '\t \u200b'.repeat(40_000);
    ok(csvOf({ ...contents, name: long, client: null, series: [], byPlatform: [] }).includes(long));
  });
});

const withTop: Contents = {
  ...contents,
  topPosts: [
    {
      ...{ postId: randomUUID(), publishedAt: '2026-02-03T23:30:00.000Z', platforms: ['instagram', 'x'] },
      ...{ impressions: 4_321, interactions: 987, engagementRate: 0.25 },
    },
    {
      ...{ postId: randomUUID(), publishedAt: '2026-02-04T10:00:00.000Z', platforms: ['bluesky'] },
      ...{ impressions: null, interactions: 0, engagementRate: null },
    },
  ],
};

suite('top posts of a report', (t) => {
  t('are in every format, with their local publication time; null is not 0', async () => {
    const rows = records(csvOf(withTop)).filter(({ scope }) => scope === 'post');
    const [first, second] = withTop.topPosts ?? [];
    deepEqual(
      rows.map((row) => [row['post.id'], row.platform, row.impressions, row['post.interactions'], row.engagementRate]),
      [
        [first?.postId, 'instagram x', '4321', '987', '0.25'],
        [second?.postId, 'bluesky', '', '0', ''],
      ],
    );
    ok(!csvOf(contents).includes('post.id'));
    const json = JSON.parse(jsonOf(withTop)) as ReportJson;
    deepEqual([issuesOf(ReportJson, json), json.topPosts], [[], withTop.topPosts]);
    const { pages } = await readPdf(await pdfOf(withTop, { compress: false }));
    const page = pages.find(({ text }) => text.includes('Top posts'))?.text ?? [];
    for (const words of ['4 February 2026 at 00:30', 'Instagram, X', '4,321', '987', '25%', 'Bluesky', '–'])
      ok(page.includes(words), `${words}: ${page.join(' | ')}`);
  });
});

suite('report as JSON', (t) => {
  t('fits its schema and has the contents of the report, without absent members', () => {
    for (const one of [contents, ofAccount, { ...ofAccount, demographics: null }]) {
      const json = JSON.parse(jsonOf(one)) as ReportJson;
      deepEqual(issuesOf(ReportJson, json), []);
      deepEqual(json, { object: 'report_export', version: 1, ...JSON.parse(JSON.stringify(one)) });
    }
    ok(!('demographics' in (JSON.parse(jsonOf(contents)) as object)));
  });
});

const [, , , , unmeasured] = contents.series;
/** `contents` with absent counters in the place of its nulls. */
const unfetched: Contents = {
  ...contents,
  totals: fetched({ impressions: 12_345, likes: 0, comments: -3, totalInteractions: 600 }, 0.0486),
  byPlatform: [
    { platform: 'instagram', ...fetched({ impressions: 12_000, likes: 0 }, 0.05) },
    { platform: 'x', ...fetched({ impressions: 345 }) },
  ],
  series: contents.series.map(({ day, provisional, impressions, likes, comments, engagementRate }) => ({
    ...{ day, provisional },
    ...(day === unmeasured?.day
      ? fetched({})
      : fetched({ impressions: impressions ?? 0, likes: likes ?? 0, comments: comments ?? 0 }, engagementRate)),
  })),
};

suite('counters that were never fetched', (t) => {
  t('are absent in JSON, empty in CSV and a dash in PDF, and never 0', async () => {
    const json = JSON.parse(jsonOf(unfetched)) as ReportJson;
    deepEqual([issuesOf(ReportJson, json), json.totals, json.series], [[], unfetched.totals, unfetched.series]);
    ok(!('saves' in json.totals) && !('likes' in (json.series[4] ?? {})));
    equal(csvOf(unfetched), csvOf(contents));
    const textOf = async (one: Contents) =>
      (await readPdf(await pdfOf(one, { compress: false }))).pages.map(({ text }) => text);
    deepEqual(await textOf(unfetched), await textOf(contents));
    ok((await textOf(unfetched)).flat().includes('–'));
  });
});

suite('report as PDF', (t) => {
  const read = async (one: Contents) => readPdf(await pdfOf(one, { compress: false }));

  t('has a cover, totals, charts and tables; its charts are lines and areas, and nothing is a picture', async () => {
    const { pages, raw } = await read(contents);
    ok(pages.length >= 4, String(pages.length));
    const [cover, totals] = pages;
    for (const words of ['Agency', 'Monthly', 'Acme', '2026-02-01 to 2026-03-02', 'Europe/Berlin'])
      ok(cover?.text.includes(words), `${words}: ${cover?.text.join(' | ')}`);
    ok(cover?.text.some((line) => line.startsWith('3 March 2026 at 03:00')));
    for (const words of ['Totals', 'Impressions', '12,345', 'Likes', '0', 'Comments', '-3', '4.86%'])
      ok(totals?.text.includes(words), words);
    ok(!totals?.text.includes('Saves'), 'what nobody told is no total');
    const all = pages.flatMap(({ text }) => text);
    for (const words of ['Day by day', 'Impressions by network', 'By network', 'By day', 'Instagram', 'X', '–'])
      ok(all.includes(words), words);
    for (const { day, provisional } of contents.series) ok(all.includes(provisional ? `${day} *` : day), day);
    ok(cover?.text.includes('2026-03-02: these figures may still change'), cover?.text.join(' | '));
    ok(all.some((line) => line.startsWith('*: provisional')));
    ok(all.includes(`2 / ${pages.length}`) && all.includes(`${pages.length} / ${pages.length}`));
    const charts = pages.find(({ text }) => text.includes('Day by day'));
    ok((charts?.content.match(/ re$/gm) ?? []).length >= 29, 'bars');
    ok((charts?.content.match(/ l$/gm) ?? []).length > 5, 'lines');
    ok(!raw.includes('/Subtype /Image'));
    ok(!all.some((line) => line.includes('?')));
  });

  t('reports of an account, of one day and without data can be rendered', async () => {
    const account = (await read(ofAccount)).pages.flatMap(({ text }) => text);
    for (const words of ['Followers', '1,234', 'Profile views', 'Audience by country', 'C19'])
      ok(account.includes(words), words);
    ok(!account.includes('C2'), 'only the largest entries');
    const nothing = {
      ...contents,
      asOf: null,
      completeness: { complete: true, provisionalDays: [] },
      totals: gains({}),
      byPlatform: [],
      series: days(90).map((day) => ({ day, provisional: false, ...gains({}) })),
    };
    const { pages } = await read(nothing);
    equal(pages.length, 2);
    ok(!pages.some(({ text }) => text.join().includes('rovisional')), 'all of it is final');
    ok(pages[0]?.text.includes('none were there'));
    ok(pages[1]?.text.includes('No network reported a figure for these days.'));
    const [one] = contents.series;
    ok((await read({ ...contents, series: one === undefined ? [] : [one] })).pages.length >= 4);
  });

  t('tables of 90 days are complete, with their head on every page', async () => {
    const full = gains(Object.fromEntries(counters.map((one) => [one, 1_234_567_890])), 0.5);
    const { pages } = await read({
      ...contents,
      totals: full,
      series: days(90).map((day) => ({ day, provisional: false, ...full })),
    });
    for (const { text } of pages.filter((page) => page.text.filter((line) => line === '1,234,567,890').length > 40))
      ok(text.includes('Day') || text.includes('Network'));
    const dates = pages.flatMap(({ text }) => text).filter((line) => line === '2026-02-17').length;
    ok(dates >= Math.ceil(19 / 6), String(dates));
  });

  t('a character without a glyph becomes one box, every other stays', async () => {
    const { has } = loadFonts();
    const shown = (text: string): string => printable(text, has);
    equal(shown('Crêperie Ελλάδα Москва Żółw'), 'Crêperie Ελλάδα Москва Żółw');
    equal(shown('日本 👩‍👩‍👧 ok\u0000\u202e'), `${missing}${missing} ${missing} ok`);
    equal(shown('שלום עולם'), 'שלום\u00a0עולם');
    equal(shown('\ud800'), '\ufffd');
    const { pages } = await read({ ...contents, name: 'Ελλάδα 日本 Żółw' });
    ok(pages[0]?.text.includes(`Ελλάδα ${missing}${missing} Żółw`), pages[0]?.text.join(' | '));
    ok((await read({ ...contents, name: 'W'.repeat(200), client: '字'.repeat(200) })).pages.length >= 4);
  });

  t('the same contents give the same bytes in every format', async () => {
    const bom = { bom: true };
    for (const { make } of Object.values(exportsOf)) ok((await make(contents, bom)).equals(await make(contents, bom)));
    const bytes = await exportsOf.pdf.make(contents, bom);
    equal(bytes.subarray(0, 5).toString(), '%PDF-');
    ok(bytes.length < 200_000, String(bytes.length));
  });

  t('an axis covers its values and zero in round steps', () => {
    deepEqual(ticksOf([0, 100]), [0, 25, 50, 75, 100]);
    deepEqual(ticksOf([]), [0, 0.25]);
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -1e9, max: 1e12 }), { minLength: 1 }), (values) => {
        const ticks = ticksOf(values);
        ok((ticks[0] ?? 1) <= Math.min(0, ...values) && (ticks.at(-1) ?? -1) >= Math.max(0, ...values));
        ok(ticks.length >= 2 && ticks.length <= 8);
      }),
      { seed: seeded('axes').seed },
    );
  });
});
