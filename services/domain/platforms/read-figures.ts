/** Reads the figures of a post or an account from what its network reported. */
import type { Platform } from '#schemas/common.ts';
import { type AccountFigures, AccountObservedFigures, type Demographics, PostFigures } from '#schemas/insights.ts';
import type { MediaUse } from '#schemas/media.ts';
import { issuesOf } from '#schemas/validator.ts';
import { type FigureSource, ImpossibleFigure } from './figure-source.ts';
import type { AccountTable, InsightsTable, PostTable } from './insights-table.ts';
import { rulesOf } from './registry.ts';

const postTable = (platform: Platform, use: MediaUse): PostTable => {
  const { post } = rulesOf(platform).insights;
  return use === 'reel' || use === 'story' ? post[use] : post.feed;
};

interface ReadOptions<Field extends string> {
  /** False: figures of a video are null. Not given: they are absent where the answer lacks them. */
  readonly hasVideo?: boolean;
  /** Figures the network was asked for: one of these that the answer lacks is null. */
  readonly fields?: readonly Field[];
}

/** A figure with an impossible value. `reason` names the member, never its value. */
export interface OddFigure {
  readonly field: string;
  readonly reason: string;
}

/** `odd`: figures left out because their values are impossible. An answer in which no other figure has a number is nonsense. */
type MappedPost =
  | { readonly kind: 'figures'; readonly figures: PostFigures; readonly odd: readonly OddFigure[] }
  | { readonly kind: 'nonsense'; readonly reason: string };
type MappedAccount =
  | {
      readonly kind: 'figures';
      readonly figures: AccountFigures;
      /** Absent: not asked for; null: the network does not report them. */
      readonly demographics?: Demographics | null;
      readonly odd: readonly OddFigure[];
    }
  | { readonly kind: 'nonsense'; readonly reason: string };

interface Read {
  readonly figures: Readonly<Record<string, unknown>>;
  readonly odd: readonly OddFigure[];
}

const maxReason = 500;

/** A null stays null and a missing member stays absent: neither becomes 0. The other figures of an odd one are still read. */
const read = (table: object, raw: unknown, { hasVideo, fields = [] }: ReadOptions<string>): Read => {
  const figures: Record<string, unknown> = {};
  const odd: OddFigure[] = [];
  for (const [field, source] of Object.entries(table) as [string, FigureSource<unknown> | null][]) {
    try {
      const reported = source === null || (source.ofVideo && hasVideo === false) ? null : source.read(raw);
      if (reported !== undefined) figures[field] = reported;
      else if (fields.includes(field)) figures[field] = null;
    } catch (error) {
      if (!(error instanceof ImpossibleFigure)) throw error;
      odd.push({ field, reason: error.message.slice(0, maxReason) });
    }
  }
  return { figures, odd };
};

/** Moves figures that the schema refuses to `odd`. */
const fitting = (schema: Parameters<typeof issuesOf>[0], { figures, odd }: Read): Read => {
  const issues = issuesOf(schema, figures);
  if (issues.length === 0) return { figures, odd };
  const refused = new Map(issues.map(({ path, message }) => [path.split('/')[1] ?? '', `${path.slice(1)} ${message}`]));
  const kept = Object.fromEntries(Object.entries(figures).filter(([field]) => !refused.has(field)));
  const found = [...refused].map(([field, reason]) => ({ field, reason: reason.slice(0, maxReason) }));
  // The validator names only some of many faults at once.
  return fitting(schema, { figures: kept, odd: [...odd, ...found] });
};

/** Whether a figure holds a number: a permalink beside impossible numbers is no answer. */
const hasNumber = (reported: unknown): boolean =>
  typeof reported === 'number' ||
  (typeof reported === 'object' && reported !== null && Object.keys(reported).length > 0);

/** Why the whole answer is nonsense; null: it is not. */
const wholly = ({ figures, odd }: Read): string | null =>
  odd[0] === undefined || Object.values(figures).some(hasNumber) ? null : odd[0].reason;

/** The event keeps the answer beside its figures, and an append takes about a mebibyte at most. */
const maxCharacters = 256 * 1024;

const unfit = (raw: unknown): string | null => {
  if (typeof raw !== 'object' || raw === null || Array.isArray(raw)) return 'the answer is not an object';
  return JSON.stringify(raw).length > maxCharacters ? `the answer has more than ${maxCharacters} characters` : null;
};

/** @param raw the network's answer, in the shape that its `insights.ts` describes; unknown members are ignored */
export function postFiguresOf(
  platform: Platform,
  use: MediaUse,
  raw: unknown,
  asked: ReadOptions<keyof PostFigures> = {},
): MappedPost {
  const wrong = unfit(raw);
  if (wrong !== null) return { kind: 'nonsense', reason: wrong };
  const reported = fitting(PostFigures, read(postTable(platform, use), raw, asked));
  const reason = wholly(reported);
  if (reason !== null) return { kind: 'nonsense', reason };
  return { kind: 'figures', figures: reported.figures as PostFigures, odd: reported.odd };
}

/** @param raw the network's answer about an account, in the shape that its `insights.ts` describes */
export function accountFiguresOf(
  platform: Platform,
  raw: unknown,
  asked: ReadOptions<keyof AccountFigures | 'demographics'> = {},
): MappedAccount {
  const wrong = unfit(raw);
  if (wrong !== null) return { kind: 'nonsense', reason: wrong };
  const { account, demographics: source } = rulesOf(platform).insights;
  const all = fitting(AccountObservedFigures, read({ ...account, demographics: source }, raw, asked));
  const reason = wholly(all);
  if (reason !== null) return { kind: 'nonsense', reason };
  const { demographics, ...figures } = all.figures as AccountFigures & { readonly demographics?: Demographics | null };
  return { kind: 'figures', figures, ...(demographics === undefined ? {} : { demographics }), odd: all.odd };
}

type Names<Table> = { readonly [F in keyof Table]: string | null };

const named = <Table extends object>(table: Table): Names<Table> =>
  Object.fromEntries(
    Object.entries(table).map(([field, source]: [string, FigureSource<unknown> | null]) => [
      field,
      source === null ? null : source.derived ? 'derived' : source.name,
    ]),
  ) as Names<Table>;

/** The network's own name of every figure; null: not reported; `derived`: computed from others. */
export const fieldsOf = (platform: Platform, use: MediaUse): Names<PostTable> => named(postTable(platform, use));
export const accountFieldsOf = (platform: Platform): Names<AccountTable & Pick<InsightsTable, 'demographics'>> => {
  const { account, demographics } = rulesOf(platform).insights;
  return named({ ...account, demographics });
};
