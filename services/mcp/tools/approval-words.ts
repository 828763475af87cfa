import { hash } from 'node:crypto';
import type { Static } from 'typebox';
import type { Approval as ApprovalSchema } from '#schemas/http/approval.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { localTime } from './post-words.ts';

/** All that a decision covers in words for a model: exact, and in pages, since a post may be longer than an answer. */

export type Approval = Static<typeof ApprovalSchema>;
type Item = Approval['shown'][number];

/** Code units of one quotation. Each is at most six characters long once it is escaped. */
const maxQuoted = 2_000;
/** Characters of a page, where it is no single line that is longer. */
const maxPage = 12_000;
const maxKey = 60;

/** Signs that nobody sees, or that turn a text round: written out, so that a text reads as it is. */
const hidden = /[\u007f-\u009f\u200b\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]/g;

/** The whole text in quotation marks, on one line. */
const exact = (text: string): string =>
  JSON.stringify(text).replace(hidden, (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, '0')}`);

/** In pieces that end no character in half. */
const piecesOf = (text: string): readonly string[] => {
  const pieces: string[] = [];
  for (let from = 0; from < text.length || pieces.length === 0; ) {
    const last = text.charCodeAt(from + maxQuoted - 1);
    const to = from + maxQuoted - (last >= 0xd800 && last <= 0xdbff ? 1 : 0);
    pieces.push(text.slice(from, to));
    from = to;
  }
  return pieces;
};

const nounOf = ({ kind, key, part, position }: Item): string => {
  const name = key !== null && key.length > maxKey ? `${key.slice(0, maxKey)}…` : key;
  const of = name === null ? '' : ` ${/^\w+$/.test(name) ? name : exact(name)}`;
  return `${kind}${of}${position === null ? '' : ` ${position}`}${part === null ? '' : ` of part ${part}`}`;
};

const linesOfItem = (item: Item, due: string | undefined): readonly string[] => {
  const { kind, key, platforms, value, id, unsent } = item;
  const on = platforms.length === 0 ? '' : ` on ${platforms.join(', ')}`;
  const about = id === null ? '' : ` (${kind === 'account' ? 'accountId' : 'mediaId'} ${id})`;
  const what = `${unsent === null ? '' : 'NOT SENT: '}${nounOf(item)}${on}`;
  const why = unsent === null ? '' : ` ${unsent}`;
  const pieces = piecesOf(key !== null && key.length > maxKey ? `${key}: ${value}` : value);
  return pieces.map((piece, at) => {
    const which = pieces.length === 1 ? '' : ` [piece ${at + 1} of ${pieces.length}]`;
    return `- ${what}${which}: ${exact(piece)}${about}${due === undefined ? '' : `, due ${due}`}${why}`;
  });
};

const linesOf = ({ shown, post }: Approval): readonly string[] => {
  const dues = new Map(
    post.targets.map(({ accountId, scheduledAt, timezone }) => [accountId, localTime(scheduledAt, timezone)]),
  );
  return shown.flatMap((item) => linesOfItem(item, item.kind === 'account' ? dues.get(item.id ?? '') : undefined));
};

const pagesOf = (lines: readonly string[]): readonly (readonly string[])[] => {
  const pages: string[][] = [[]];
  let room = maxPage;
  for (const line of lines) {
    if (line.length > room && pages.at(-1)?.length !== 0) {
      pages.push([]);
      room = maxPage;
    }
    pages.at(-1)?.push(line);
    room -= line.length;
  }
  return pages;
};

export interface ApprovalPage {
  readonly lines: readonly string[];
  /** From 1. */
  readonly page: number;
  readonly pages: number;
  /** Null: this is the last page. */
  readonly nextCursor: string | null;
}

/**
 * The page of a cursor, and the first without one. A cursor proves that the pages before it were answered as they are
 * now: it is made of their text and of the hash, which only the last page gives.
 * @throws Refusal `invalid_cursor`
 */
export const pageOfApproval = (approval: Approval, cursor: string | undefined): ApprovalPage => {
  const pages = pagesOf(linesOf(approval));
  const cursorOf = (at: number): string =>
    `${at}.${hash('sha256', JSON.stringify([approval.id, approval.contentHash, pages.slice(0, at)]), 'base64url')}`;
  const at = cursor === undefined ? 0 : Number(cursor.split('.')[0]);
  const lines = pages[at];
  if (lines === undefined || (cursor !== undefined && cursor !== cursorOf(at))) {
    throw new Refusal('invalid_cursor', 'The cursor is not one of this request, or what it shows has changed since.');
  }
  return { lines, page: at + 1, pages: pages.length, nextCursor: at + 1 < pages.length ? cursorOf(at + 1) : null };
};
