import { createHash } from 'node:crypto';
import type { Knex } from 'knex';
import { canonicalJson } from '#domain/canonical.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { withinLimit } from './access.ts';
import type { Call, Many } from './operation.ts';
import { Refusal } from './refusal.ts';

/** Signed keyset cursors, bound to operation, tenant and filters. The page size may change between pages. */

interface Paging {
  readonly limit: number;
  readonly cursor?: string;
}

const filtersOf = (query: Paging): unknown => {
  const { limit: _limit, cursor: _cursor, ...filters } = query;
  return filters;
};

/** A hash, so that a cursor does not reveal the tenant and filters that it is bound to. */
const bindingOf = (operation: string, workspaceId: string, query: Paging): string =>
  createHash('sha256')
    .update(canonicalJson([operation, workspaceId, filtersOf(query)]))
    .digest('base64url');

const open = (secrets: Secrets, binding: string, cursor: string): unknown => {
  const payload = secrets.open('cursors', cursor);
  const refuse = () => new Refusal('invalid_cursor', 'The cursor is not one of this list with these filters.');
  if (payload === null) throw refuse();
  const [bound, after] = JSON.parse(payload) as [string, unknown];
  if (bound !== binding) throw refuse();
  return after;
};

type Listing = Pick<Call<unknown, Paging>, 'deps' | 'workspaceId' | 'principal' | 'query'>;

/** Where the page of a call begins, and the cursor of another position. @throws Refusal 400 `invalid_cursor` */
const positionsOf = <After>(operation: string, { deps: { secrets }, workspaceId, principal, query }: Listing) => {
  // A cursor is valid for one limit, too: pages of another one would begin elsewhere.
  const limited = { ...query, ...withinLimit(principal) };
  const binding = bindingOf(operation, workspaceId, limited);
  return {
    limited,
    after: query.cursor === undefined ? null : (open(secrets, binding, query.cursor) as After),
    cursorOf: (position: After): string => secrets.seal('cursors', JSON.stringify([binding, position])),
  };
};

/**
 * One page of a list. `rows` fetches the rows behind `after` (null: from the start); `keyOf` gives the key of a row for
 * the next page.
 * @throws Refusal 400 `invalid_cursor`.
 */
export const listPage = async <Row, After, Shown, Beside = undefined>(
  operation: string,
  call: Listing,
  steps: {
    readonly rows: (
      page: { readonly after: After | null; readonly limit: number },
      knex: Knex,
    ) => Promise<{
      readonly rows: readonly Row[];
      readonly hasMore: boolean;
      /** Where the next page begins. Default: behind the last row. */
      readonly next?: After | undefined;
    }>;
    readonly keyOf: (row: Row) => After;
    /** Fetches the data beside the rows from another store, after the list has released its slot. */
    readonly beside?: (rows: readonly Row[]) => Promise<Beside>;
    readonly show: (row: Row, beside: Beside) => Shown;
  },
): Promise<Many<Shown>> => {
  const { deps, principal, query } = call;
  const { limited, after, cursorOf } = positionsOf<After>(operation, call);
  // Live and test data of an agency share its slots, so that a second key gives no second share.
  const { rows, hasMore, next } = await deps.lists.run(principal.liveWorkspaceId, limited, (knex) =>
    steps.rows({ after, limit: query.limit }, knex),
  );
  const last = rows.at(-1);
  const position = next ?? (last === undefined ? undefined : steps.keyOf(last));
  const nextCursor = hasMore && position !== undefined ? cursorOf(position) : null;
  const beside = (await steps.beside?.(rows)) as Beside;
  return {
    data: rows.map((row) => steps.show(row, beside)),
    page: { hasMore, cursor: query.cursor ?? null, nextCursor },
  };
};

/**
 * One page of rows that are in memory, in the order of their keys. Rows that come and go between two pages move no other.
 * @param keyOf each row has its own
 * @throws Refusal 400 `invalid_cursor`
 */
export const memoryPage = <Row>(
  operation: string,
  call: Listing,
  rows: readonly Row[],
  keyOf: (row: Row) => string,
): Many<Row> => {
  const { limit, cursor = null } = call.query;
  const { after, cursorOf } = positionsOf<string>(operation, call);
  const keyed = rows.map((row) => ({ row, key: keyOf(row) })).toSorted((a, b) => (a.key < b.key ? -1 : 1));
  const left = after === null ? keyed : keyed.filter(({ key }) => key > after);
  const shown = left.slice(0, limit);
  const last = shown.at(-1);
  const hasMore = left.length > shown.length;
  const nextCursor = hasMore && last !== undefined ? cursorOf(last.key) : null;
  return { data: shown.map(({ row }) => row), page: { hasMore, cursor, nextCursor } };
};

/**
 * One page of rows that never change, the newest first. Each has its place, counted from the oldest one, so that rows which
 * come between two pages move no other.
 * @param rows the newest rows below this place, at most so many
 * @throws Refusal 400 `invalid_cursor`
 */
export const placedPage = async <Row extends { readonly place: number }>(
  operation: string,
  call: Listing,
  rows: (below: number, count: number) => Promise<readonly Row[]>,
): Promise<Many<Row>> => {
  const { limit, cursor = null } = call.query;
  const { after, cursorOf } = positionsOf<number>(operation, call);
  const found = await rows(after ?? Number.POSITIVE_INFINITY, limit + 1);
  const data = found.slice(0, limit);
  const last = data.at(-1);
  const hasMore = found.length > data.length;
  return { data, page: { hasMore, cursor, nextCursor: hasMore && last !== undefined ? cursorOf(last.place) : null } };
};

/** Keyset of lists that show the newest first. */
export const newestFirst = (row: { readonly created_at: string; readonly id: string }) => ({
  createdAt: row.created_at,
  id: row.id,
});

/** A list that has all its rows in one page: it is bounded by what it lists. */
export const wholeList = <Row>(data: readonly Row[]): Many<Row> => ({
  data,
  page: { hasMore: false, cursor: null, nextCursor: null },
});
