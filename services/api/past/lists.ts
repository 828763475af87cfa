import type { Knex } from 'knex';
import type { Model, Row } from '#projections/engine/model.ts';
import { type NewestFirst, toIso } from '#projections/engine/rows.ts';
import { view } from '#projections/shapes.ts';
import type { Past } from './past.ts';

/**
 * Which things there were. Their ids, clients and creations never change, so the read model as it is now names them; what
 * the answer says of each is folded from its stream. What the read model may not have yet is taken from the end of the feed.
 */

/** Events before the moment that the read models may not have applied yet. */
export const behind = 500;
/** Things that one call counts. */
const maxIds = 5_000;

/** Things of one kind. */
export interface Kind<Own extends object> {
  readonly model: Model<Own>;
  /** The events that create one. */
  readonly births: readonly string[];
  /** Null: of all clients, or the kind has none. */
  readonly clientId: string | null;
}

/** SQL: whether the stream was there at the moment. NOTE: not as `exists`, of which Postgres may make a join over all events. */
export const wasBorn = (kind: string, id: string): string =>
  `(select b.sequence from ops.feed_events b where b.stream = '${kind}-' || ${id} and b.workspace_id = ?
    order by b.revision limit 1) <= ?`;

interface Born {
  readonly id: string;
  readonly createdAt: string;
}

const named = async <Own extends object>(
  knex: Knex,
  { workspaceId, moment }: Past,
  { model, clientId }: Kind<Own>,
  { after, limit }: { readonly after: NewestFirst | null; readonly limit: number },
): Promise<readonly Born[]> => {
  const query = knex(`${view(model.name)} as o`)
    .select('o.id', 'o.created_at')
    .where('o.workspace_id', workspaceId)
    .whereRaw(wasBorn(model.kind, 'o.id'), [workspaceId, moment.sequence]);
  if (clientId !== null) query.where('o.client_id', clientId);
  if (after !== null) query.whereRaw('(o.created_at, o.id) < (?::timestamptz, ?::uuid)', [after.createdAt, after.id]);
  const rows: readonly { id: string; created_at: unknown }[] = await query
    .orderBy([
      { column: 'o.created_at', order: 'desc' },
      { column: 'o.id', order: 'desc' },
    ])
    .limit(limit);
  return rows.map(({ id, created_at: at }) => ({ id, createdAt: toIso(at) ?? '' }));
};

/** Ids of what was created just before the moment and has no row yet. */
const unnamed = async <Own extends object>(
  knex: Knex,
  { workspaceId, moment }: Past,
  { model, births, clientId }: Kind<Own>,
): Promise<readonly string[]> => {
  const id = `substr(f.stream, ${model.kind.length + 2})::uuid`;
  const { rows } = await knex.raw<{ rows: readonly { id: string }[] }>(
    `select distinct substr(f.stream, ${model.kind.length + 2}) as id from ops.feed_events f
     where f.workspace_id = ? and f.sequence > ? and f.sequence <= ? and f.type = any(?::text[])
       and (?::uuid is null or f.client_id = ?::uuid)
       and (select o.id from ${view(model.name)} o where o.id = ${id}) is null`,
    [workspaceId, moment.sequence - behind, moment.sequence, [...births], clientId, clientId],
  );
  return rows.map((row) => row.id);
};

/** All of one kind, in no order. @throws Refusal `history_too_long` */
export const idsThen = async <Own extends object>(past: Past, kind: Kind<Own>): Promise<readonly string[]> => {
  const { knex } = past.deps;
  const found = await named(knex, past, kind, { after: null, limit: maxIds + 1 });
  if (found.length > maxIds) past.tooMuch();
  return [...found.map(({ id }) => id), ...(await unnamed(knex, past, kind))];
};

interface Listed<Shown> extends NewestFirst {
  readonly shown: Shown;
}

const isBehind = (one: NewestFirst, after: NewestFirst): boolean =>
  one.createdAt === after.createdAt ? one.id < after.id : one.createdAt < after.createdAt;

/**
 * A page of the list that shows the newest first. A page may end early, with more behind it, where much was looked at.
 * @param show null: the list did not have it
 */
export const pageThen = async <Own extends object, Shown>(
  knex: Knex,
  past: Past,
  kind: Kind<Own>,
  { after, limit }: { readonly after: NewestFirst | null; readonly limit: number },
  show: (row: Row<Own>) => Promise<Shown | null>,
) => {
  const fresh = (await past.rows(kind.model, await unnamed(knex, past, kind)))
    .map(({ id, created_at: createdAt }): Born => ({ id, createdAt }))
    .filter((one) => after === null || isBehind(one, after));
  const rows: Listed<Shown>[] = [];
  for (let from = after; ; ) {
    const count = Math.max(10, limit + 1 - rows.length);
    const known = await named(knex, past, kind, { after: from, limit: count });
    const isEnd = known.length < count;
    const start = from;
    const last = known.at(-1);
    const beside = fresh.filter(
      (one) => (start === null || isBehind(one, start)) && (isEnd || (last !== undefined && !isBehind(one, last))),
    );
    const all = [...known, ...beside].sort((a, b) => (isBehind(a, b) ? 1 : -1));
    const shown = await past.each(all, async ({ id }) => {
      const row = await past.row(kind.model, id);
      return row === null ? null : show(row);
    });
    for (const [at, one] of all.entries()) {
      const made = shown[at] ?? null;
      if (made !== null) rows.push({ ...one, shown: made });
    }
    from = all.at(-1) ?? from;
    if (rows.length > limit) return { rows: rows.slice(0, limit), hasMore: true };
    if (isEnd) return { rows, hasMore: false };
    if (past.isTired && from !== null) return { rows, hasMore: true, next: keyOf(from) };
  }
};

export const keyOf = ({ createdAt, id }: NewestFirst): NewestFirst => ({ createdAt, id });
