import type { FindOutcome, ListedPost, ReconcileOutcome, Undecided } from '#contracts/ports/platform.ts';
import { listIn, type Members } from '../shared/members.ts';
import { beforeBoundary, type NetworkAnswer } from './errors.ts';

/**
 * Looks through an account's own posts, newest first, for the one of a call whose answer was lost. What is not there proves
 * nothing: the list of a network may be behind.
 */

export interface OwnPosts {
  /** Asks for a page. @param cursor null: the first */
  page(cursor: string | null): Promise<NetworkAnswer>;
  /** Member of an answer that has the posts. */
  readonly list: string;
  /** The next page; null: there is none. */
  next(body: Members): string | null;
  /** Milliseconds since the epoch; NaN: the network does not say. */
  at(post: Members): number;
  /** Milliseconds since the epoch: behind an older post nothing is looked for. */
  readonly since: number;
  isIt(post: Members): boolean;
  /** Null: it has no id. */
  show(post: Members): ListedPost | null;
  readonly maxPages: number;
}

type Listed =
  /** Newest first. `isWhole`: the account has no more of that time. */
  { readonly kind: 'listed'; readonly posts: readonly ListedPost[]; readonly isWhole: boolean } | Undecided;

const listOwn = async (own: OwnPosts, now: () => number): Promise<Listed> => {
  let cursor: string | null = null;
  const posts: ListedPost[] = [];
  for (let page = 0; page < own.maxPages; page += 1) {
    const answer = await own.page(cursor);
    if (answer.kind !== 'ok') return { kind: 'undecided', failure: beforeBoundary(answer, now()).failure };
    const shown = listIn(answer.body, own.list);
    for (const post of shown) {
      const one = own.at(post) < own.since || !own.isIt(post) ? null : own.show(post);
      if (one !== null) posts.push(one);
    }
    cursor = own.next(answer.body);
    const last = shown.at(-1);
    if (cursor === null || (last !== undefined && own.at(last) < own.since)) {
      return { kind: 'listed', posts, isWhole: true };
    }
  }
  return { kind: 'listed', posts, isWhole: false };
};

/** The list begins with the newest: of several the first one made is ours. */
export const lookFor = async (own: OwnPosts, now: () => number): Promise<ReconcileOutcome> => {
  const listed = await listOwn(own, now);
  if (listed.kind === 'undecided') return listed;
  const post = listed.posts.at(-1);
  if (post !== undefined) return { kind: 'present', ...post };
  return listed.isWhole ? { kind: 'absent' } : { kind: 'undecided' };
};

/** Posts that are listed for one question at most. */
const maxFound = 20;

export const findAll = async (own: OwnPosts, now: () => number): Promise<FindOutcome> => {
  const listed = await listOwn(own, now);
  if (listed.kind === 'undecided') return listed;
  if (listed.posts.length === 0 && !listed.isWhole) return { kind: 'undecided' };
  return { kind: 'listed', posts: listed.posts.toReversed().slice(0, maxFound) };
};
