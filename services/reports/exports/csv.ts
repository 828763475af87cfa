import { counters } from '#schemas/insights.ts';
import type { Contents } from '../contents.ts';

/**
 * One table (RFC 4180): the total, each network, each day, the posts with the most interactions. An empty cell:
 * the network does not report the figure, or it was not fetched. A figure of the audience that was never asked for has no
 * column.
 */

type Cell = string | number | null | undefined;

/** What a spreadsheet takes for the beginning of a formula: it skips characters that show nothing. */
const formula = /^[\s\p{C}\p{Default_Ignorable_Code_Point}]*[=+\-@＝＋－＠﹦﹢﹣﹫−]/u;
/** A spreadsheet that separates cells by semicolons or tabs, or knows no quotes, begins a cell here. */
const laterCell = /([;\t\r\n][\s\p{C}\p{Default_Ignorable_Code_Point}]*)([=+\-@＝＋－＠﹦﹢﹣﹫−]?)/gu;

/** Puts a quote before what a spreadsheet would take for a formula; figures are never texts. */
const guarded = (text: string): string => {
  const rest = text.replace(laterCell, (all, before: string, sign: string) =>
    sign === '' ? all : `${before}'${sign}`,
  );
  return formula.test(text) ? `'${rest}` : rest;
};
const cellOf = (cell: Cell): string => {
  if (cell === null || cell === undefined) return '';
  if (typeof cell === 'number') return String(cell);
  const text = guarded(cell.toWellFormed());
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};

const gains = [...counters, 'engagementRate'] as const;

export const csvOf = (contents: Contents): string => {
  const { name, workspace, client, from, to, asOf, audience = {}, demographics, topPosts = [] } = contents;
  const hasFollowers = 'followerCount' in contents.totals;
  const audienceNames = Object.keys(audience) as (keyof typeof audience)[];
  const labels = demographics === undefined ? [] : (['dimension', 'label', 'count'] as const);
  const header = [
    ...['report', 'workspace', 'client', 'from', 'to', 'asOf', 'scope', 'platform', 'day', ...gains],
    ...(hasFollowers ? ['followerCount'] : []),
    ...audienceNames.map((one) => `audience.${one}`),
    ...labels.map((one) => `demographics.${one}`),
    ...(topPosts.length === 0 ? [] : ['post.id', 'post.publishedAt', 'post.interactions']),
    // Comes last: programs that find columns by their place rely on the columns before it.
    'provisional',
  ];
  const row = (
    scope: string,
    { platform = '', day = '', figures = {}, shown = {}, label = [], post = [], provisional }: RowParts,
  ): readonly Cell[] => [
    ...[name, workspace, client, from, to, asOf, scope, platform, day],
    ...gains.map((one) => figures[one]),
    ...(hasFollowers ? [figures.followerCount] : []),
    ...audienceNames.map((one) => shown[one]),
    ...labels.map((_, at) => label[at]),
    ...(topPosts.length === 0 ? [] : [0, 1, 2].map((at) => post[at])),
    provisional === undefined ? null : String(provisional),
  ];
  const provisional = !contents.completeness.complete;
  const rows = [
    row('total', { platform: contents.platform ?? '', figures: contents.totals, shown: audience, provisional }),
    ...contents.byPlatform.map(({ platform, series: _days, ...figures }) =>
      row('platform', { platform, figures, provisional }),
    ),
    ...contents.series.map(({ day, provisional: isOpen, ...figures }) =>
      row('day', { day, figures, provisional: isOpen }),
    ),
    ...Object.entries(demographics ?? {}).flatMap(([dimension, counts]) =>
      Object.entries(counts).map(([label, count]) => row('demographics', { label: [dimension, label, count] })),
    ),
    ...topPosts.map(({ postId, publishedAt, platforms, impressions, interactions, engagementRate }) =>
      row('post', {
        platform: platforms.join(' '),
        figures: { impressions, engagementRate },
        post: [postId, publishedAt, interactions],
      }),
    ),
  ];
  return [header, ...rows].map((cells) => `${cells.map(cellOf).join(',')}\r\n`).join('');
};

interface RowParts {
  readonly platform?: string;
  readonly day?: string;
  readonly figures?: Readonly<Record<string, number | null>>;
  readonly shown?: Readonly<Record<string, number | null>>;
  readonly label?: readonly Cell[];
  /** Id, instant of the publication, interactions. */
  readonly post?: readonly Cell[];
  /** A later observation or count may still change its figures. */
  readonly provisional?: boolean;
}
