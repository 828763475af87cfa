/** What networks tell of posts and accounts, as figures of ours: tables, and the pure functions that read them. */
import type { Platform } from '#schemas/common.ts';
import { type AccountFigures, AccountTold, type Demographics, PostFigures } from '#schemas/insights.ts';
import type { MediaUse } from '#schemas/media.ts';
import { issuesOf } from '#schemas/validator.ts';
import { ImpossibleFigure, type Source } from './figure-source.ts';
import type { AccountTable, InsightsTable, PostTable } from './insights-table.ts';
import { rulesOf } from './registry.ts';

const postTable = (platform: Platform, use: MediaUse): PostTable => {
  const { post } = rulesOf(platform).insights;
  return use === 'reel' || use === 'story' ? post[use] : post.feed;
};

export interface Asked<Field extends string> {
  /** A post without a video has no figures of one: null. Not given: what is missing is absent. */
  readonly hasVideo?: boolean;
  /** Figures the network was asked for: what is missing of these it does not tell. */
  readonly fields?: readonly Field[];
}

/** A figure that cannot be what the network told. `reason` names the member that is at fault, never what it was. */
export interface OddFigure {
  readonly field: string;
  readonly reason: string;
}

/** `odd`: figures that are left out, as if nobody had asked for them. Where no other told anything the answer is nonsense. */
export type MappedPost =
  | { readonly kind: 'figures'; readonly figures: PostFigures; readonly odd: readonly OddFigure[] }
  | { readonly kind: 'nonsense'; readonly reason: string };
export type MappedAccount =
  | {
      readonly kind: 'figures';
      readonly figures: AccountFigures;
      /** Absent: not asked for; null: the network does not tell. */
      readonly demographics?: Demographics | null;
      readonly odd: readonly OddFigure[];
    }
  | { readonly kind: 'nonsense'; readonly reason: string };

interface Read {
  readonly figures: Readonly<Record<string, unknown>>;
  readonly odd: readonly OddFigure[];
}

const maxReason = 500;

/** Null stays null, what is not there stays away: neither becomes a 0. One odd figure keeps no other from being read. */
const read = (table: object, raw: unknown, { hasVideo, fields = [] }: Asked<string>): Read => {
  const figures: Record<string, unknown> = {};
  const odd: OddFigure[] = [];
  for (const [field, source] of Object.entries(table) as [string, Source<unknown> | null][]) {
    try {
      const told = source === null || (source.ofVideo && hasVideo === false) ? null : source.read(raw);
      if (told !== undefined) figures[field] = told;
      else if (fields.includes(field)) figures[field] = null;
    } catch (error) {
      if (!(error instanceof ImpossibleFigure)) throw error;
      odd.push({ field, reason: error.message.slice(0, maxReason) });
    }
  }
  return { figures, odd };
};

/** Without the figures that the schema refuses. */
const fitting = (schema: Parameters<typeof issuesOf>[0], { figures, odd }: Read): Read => {
  const issues = issuesOf(schema, figures);
  if (issues.length === 0) return { figures, odd };
  const refused = new Map(issues.map(({ path, message }) => [path.split('/')[1] ?? '', `${path.slice(1)} ${message}`]));
  const kept = Object.fromEntries(Object.entries(figures).filter(([field]) => !refused.has(field)));
  const found = [...refused].map(([field, reason]) => ({ field, reason: reason.slice(0, maxReason) }));
  // An answer with many faults names only some of them at once.
  return fitting(schema, { figures: kept, odd: [...odd, ...found] });
};

/** A figure with a number in it: an address that can be read beside numbers that cannot does not make an answer. */
const tells = (told: unknown): boolean =>
  typeof told === 'number' || (typeof told === 'object' && told !== null && Object.keys(told).length > 0);

/** Why an answer is nonsense as a whole; null: it is not. */
const wholly = ({ figures, odd }: Read): string | null =>
  odd[0] === undefined || Object.values(figures).some(tells) ? null : odd[0].reason;

/** It is kept as it came beside its figures, in an event: an append takes no more than about a mebibyte. */
const maxCharacters = 256 * 1024;

const unfit = (raw: unknown): string | null => {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return 'the answer is not an object';
  return JSON.stringify(raw).length > maxCharacters ? `the answer has more than ${maxCharacters} characters` : null;
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
  const told = fitting(PostFigures, read(postTable(platform, use), raw, asked));
  const reason = wholly(told);
  if (reason !== null) return { kind: 'nonsense', reason };
  return { kind: 'figures', figures: told.figures as PostFigures, odd: told.odd };
}

/** @param raw what the network told of an account, in the shape its table describes */
export function accountFiguresOf(
  platform: Platform,
  raw: unknown,
  asked: Asked<keyof AccountFigures | 'demographics'> = {},
): MappedAccount {
  const wrong = unfit(raw);
  if (wrong !== null) return { kind: 'nonsense', reason: wrong };
  const { account, demographics: source } = rulesOf(platform).insights;
  const all = fitting(AccountTold, read({ ...account, demographics: source }, raw, asked));
  const reason = wholly(all);
  if (reason !== null) return { kind: 'nonsense', reason };
  const { demographics, ...figures } = all.figures as AccountFigures & { readonly demographics?: Demographics | null };
  return { kind: 'figures', figures, ...(demographics === undefined ? {} : { demographics }), odd: all.odd };
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
export const accountFieldsOf = (platform: Platform): Names<AccountTable & Pick<InsightsTable, 'demographics'>> => {
  const { account, demographics } = rulesOf(platform).insights;
  return named({ ...account, demographics });
};
