import { createHash } from 'node:crypto';
import { canonicalJson } from '#runtime/canonical.ts';
import type { Secrets } from '#runtime/secrets.ts';
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

/** Hashed: a cursor shows nothing of what it is bound to. */
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
 * One page of a list. `rows` fetches behind `after` (null = from the start); `keyOf` names a row for the next page.
 * @throws Refusal 400 `invalid_cursor`.
 */
export const listPage = async <Row, After, Shown>(
  operation: string,
  { deps, workspaceId, query }: Pick<Call<unknown, Paging>, 'deps' | 'workspaceId' | 'query'>,
  steps: {
    readonly rows: (page: {
      readonly after: After | null;
      readonly limit: number;
    }) => Promise<{ readonly rows: readonly Row[]; readonly hasMore: boolean }>;
    readonly keyOf: (row: Row) => After;
    readonly show: (row: Row) => Shown;
  },
): Promise<Many<Shown>> => {
  const binding = bindingOf(operation, workspaceId, query);
  const after = query.cursor === undefined ? null : (open(deps.secrets, binding, query.cursor) as After);
  const { rows, hasMore } = await steps.rows({ after, limit: query.limit });
  const last = rows.at(-1);
  const nextCursor =
    hasMore && last !== undefined ? deps.secrets.seal('cursors', JSON.stringify([binding, steps.keyOf(last)])) : null;
  return { data: rows.map(steps.show), page: { hasMore, cursor: query.cursor ?? null, nextCursor } };
};

/** Keyset of lists that show the newest first. */
export const newestFirst = (row: { readonly created_at: string; readonly id: string }) => ({
  createdAt: row.created_at,
  id: row.id,
});
