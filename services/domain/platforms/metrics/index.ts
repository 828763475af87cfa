/** What networks tell of posts and accounts, as figures of ours: tables, and the pure functions that read them. */
import type { Platform } from '#schemas/common.ts';
import type { MediaUse } from '#schemas/media.ts';
import { AccountFigures, Demographics, PostFigures } from '#schemas/metrics.ts';
import { issuesOf } from '#schemas/validator.ts';
import { bluesky } from './bluesky.ts';
import { facebook } from './facebook.ts';
import { instagram } from './instagram.ts';
import { linkedin } from './linkedin.ts';
import { pinterest } from './pinterest.ts';
import { Nonsense, type Source } from './source.ts';
import type { AccountTable, MetricsTable, PostTable } from './table.ts';
import { telegram } from './telegram.ts';
import { threads } from './threads.ts';
import { tiktok } from './tiktok.ts';
import { x } from './x.ts';
import { youtube } from './youtube.ts';

const tables: { readonly [P in Platform]: MetricsTable } = {
  x,
  instagram,
  tiktok,
  youtube,
  facebook,
  linkedin,
  threads,
  pinterest,
  bluesky,
  telegram,
};

const postTable = (platform: Platform, use: MediaUse): PostTable => {
  const { post } = tables[platform];
  return use === 'reel' || use === 'story' ? post[use] : post.feed;
};

export interface Asked<Field extends string> {
  /** A post without a video has no figures of one: null. Not given: what is missing is absent. */
  readonly hasVideo?: boolean;
  /** Figures the network was asked for: what is missing of these it does not tell. */
  readonly fields?: readonly Field[];
}

/** `reason` names the member that is at fault, never what it was. */
export type MappedPost =
  | { readonly kind: 'figures'; readonly figures: PostFigures }
  | { readonly kind: 'nonsense'; readonly reason: string };
export type MappedAccount =
  | {
      readonly kind: 'figures';
      readonly figures: AccountFigures;
      /** Absent: not asked for; null: the network does not tell. */
      readonly demographics?: Demographics | null;
    }
  | { readonly kind: 'nonsense'; readonly reason: string };

/** Null stays null, what is not there stays away: neither becomes a 0. */
const read = (table: object, raw: unknown, { hasVideo, fields = [] }: Asked<string>): Record<string, unknown> => {
  const figures: Record<string, unknown> = {};
  for (const [field, source] of Object.entries(table) as [string, Source<unknown> | null][]) {
    const told = source === null || (source.ofVideo && hasVideo === false) ? null : source.read(raw);
    if (told !== undefined) figures[field] = told;
    else if (fields.includes(field)) figures[field] = null;
  }
  return figures;
};

/** It is kept as it came beside its figures, in an event: an append takes no more than about a mebibyte. */
const mostCharacters = 256 * 1024;

const unfit = (raw: unknown): string | null => {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return 'the answer is not an object';
  return JSON.stringify(raw).length > mostCharacters ? `the answer has more than ${mostCharacters} characters` : null;
};

const nonsense = (error: unknown): { readonly kind: 'nonsense'; readonly reason: string } => {
  if (error instanceof Nonsense) return { kind: 'nonsense', reason: error.message.slice(0, 500) };
  throw error;
};

const refuted = (schema: Parameters<typeof issuesOf>[0], figures: unknown): string | null => {
  const [issue] = issuesOf(schema, figures);
  return issue === undefined ? null : `${issue.path.slice(1)} ${issue.message}`.slice(0, 500);
};

/** @param raw what the network told, in the shape its table describes; unknown members are ignored */
export function postFiguresOf(
  platform: Platform,
  use: MediaUse,
  raw: unknown,
  asked: Asked<keyof PostFigures> = {},
): MappedPost {
  const wrong = unfit(raw);
  if (wrong !== null) return { kind: 'nonsense', reason: wrong };
  try {
    const figures = read(postTable(platform, use), raw, asked);
    const reason = refuted(PostFigures, figures);
    return reason === null ? { kind: 'figures', figures: figures as PostFigures } : { kind: 'nonsense', reason };
  } catch (error) {
    return nonsense(error);
  }
}

/** @param raw what the network told of an account, in the shape its table describes */
export function accountFiguresOf(
  platform: Platform,
  raw: unknown,
  asked: Asked<keyof AccountFigures | 'demographics'> = {},
): MappedAccount {
  const wrong = unfit(raw);
  if (wrong !== null) return { kind: 'nonsense', reason: wrong };
  const { account, demographics: source } = tables[platform];
  try {
    const { demographics, ...figures } = read({ ...account, demographics: source }, raw, asked);
    const reason = refuted(AccountFigures, figures) ?? (demographics ? refuted(Demographics, demographics) : null);
    if (reason !== null) return { kind: 'nonsense', reason };
    const told = demographics === undefined ? {} : { demographics: demographics as Demographics | null };
    return { kind: 'figures', figures: figures as AccountFigures, ...told };
  } catch (error) {
    return nonsense(error);
  }
}

type Names<Table> = { readonly [F in keyof Table]: string | null };

const named = <Table extends object>(table: Table): Names<Table> =>
  Object.fromEntries(
    Object.entries(table).map(([field, source]: [string, Source<unknown> | null]) => [
      field,
      source === null ? null : source.derived ? 'derived' : source.name,
    ]),
  ) as Names<Table>;

/** For every figure the network's own name, null where it does not tell it, `derived` where it is computed. */
export const fieldsOf = (platform: Platform, use: MediaUse): Names<PostTable> => named(postTable(platform, use));
export const accountFieldsOf = (platform: Platform): Names<AccountTable & Pick<MetricsTable, 'demographics'>> =>
  named({ ...tables[platform].account, demographics: tables[platform].demographics });
