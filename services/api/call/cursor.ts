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

/**
 * One page of a list. `rows` fetches the rows behind `after` (null: from the start); `keyOf` gives the key of a row for
 * the next page.
 * @throws Refusal 400 `invalid_cursor`.
 */
export const listPage = async <Row, After, Shown, Beside = undefined>(
  operation: string,
  { deps, workspaceId, principal, query }: Pick<Call<unknown, Paging>, 'deps' | 'workspaceId' | 'principal' | 'query'>,
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
  // A cursor is valid for one limit, too: pages of another one would begin elsewhere.
  const limited = { ...query, ...withinLimit(principal) };
  const binding = bindingOf(operation, workspaceId, limited);
  const after = query.cursor === undefined ? null : (open(deps.secrets, binding, query.cursor) as After);
  // Live and test data of an agency share its slots, so that a second key gives no second share.
  const { rows, hasMore, next } = await deps.lists.run(principal.liveWorkspaceId, limited, (knex) =>
    steps.rows({ after, limit: query.limit }, knex),
  );
  const last = rows.at(-1);
  const position = next ?? (last === undefined ? undefined : steps.keyOf(last));
  const nextCursor =
    hasMore && position !== undefined ? deps.secrets.seal('cursors', JSON.stringify([binding, position])) : null;
  const beside = (await steps.beside?.(rows)) as Beside;
  return {
    data: rows.map((row) => steps.show(row, beside)),
    page: { hasMore, cursor: query.cursor ?? null, nextCursor },
  };
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
