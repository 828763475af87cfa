/**
 * Tables and statements of the Postgres event store. `s` is a schema name that passed `checkSchemaName`.
 */

/** Channel that every commit of a group notifies. */
export const channelOf = (s: string): string => `${s}_events`;

/**
 * bytea, because jsonb refuses NUL and rewrites numbers. Two indexes and no more: every append pays for each. Positions
 * come from a sequence that is only drawn from under the lock. NOTE: not from a counter row: while any snapshot is open
 * (a dump, a long query) every group leaves a dead version of that row, and appends slow down with it.
 */
export const tables = (s: string): string => `
  create table ${s}.event_rows (
    position bigint primary key,
    stream text collate "C" not null,
    revision bigint not null,
    id uuid not null,
    type text not null,
    data bytea not null,
    metadata bytea not null,
    created timestamptz not null default clock_timestamp(),
    topic text,
    partition integer,
    partition_key text not null,
    workspace uuid,
    unpacked_bytes integer,
    packing smallint,
    unique (stream, revision)
  );
  create sequence ${s}.positions;
  create table ${s}.layout (
    one boolean primary key default true check (one),
    partitions integer not null check (partitions > 0)
  );`;

/** Parameters of `append_group`, in order: name and type. */
const parameters = [
  ['streams', 'text[]'],
  ['firsts', 'int8[]'],
  ['revisions', 'int8[]'],
  ['ids', 'uuid[]'],
  ['types', 'text[]'],
  ['topics', 'text[]'],
  ['partitions', 'int4[]'],
  ['keys', 'text[]'],
  ['workspaces', 'uuid[]'],
  ['packings', 'int2[]'],
  ['sizes', 'int4[]'],
  ['data_starts', 'int4[]'],
  ['data_lengths', 'int4[]'],
  ['metadata_starts', 'int4[]'],
  ['metadata_lengths', 'int4[]'],
  ['bytes', 'bytea'],
] as const;

/**
 * The group transaction in one call, so that the lock is never held while a client thinks or sleeps: the server has all
 * of the group when it begins.
 *
 * The lock is its first statement, held to the commit. The second statement gets its own snapshot (the function is
 * volatile, the isolation read committed), so the heads it finds are final, positions are drawn in the order of
 * commits, and a reader that sees a position sees every lower one. A group that fails leaves only a gap.
 *
 * Every row whose stream ends right before its append is written; the others are left out, and so are their positions.
 * Arrays have one element a row; `firsts` is the first revision of the row's append. `bytes` is all data and metadata
 * end to end: one binary parameter, since arrays of bytea would travel as hex. Rows may share metadata: a fan-out has
 * one for all its events. `sizes` is the length of both before they were packed. `heads` is the last revision of each row's stream, -1 for an empty one. The notification is
 * sent with the commit.
 */
export const appendGroup = (s: string): string => `
  create function ${s}.append_group(
    ${parameters.map(([name, type]) => `${name} ${type}`).join(', ')}, out base int8, out heads int8[]
  ) language plpgsql volatile as $body$
  #variable_conflict use_column
  begin
    perform pg_advisory_xact_lock(hashtextextended('event store ${s}', 0));
    base := nextval('${s}.positions') - 1;
    perform setval('${s}.positions', base + cardinality(ids)), pg_notify('${channelOf(s)}', '');
    with incoming as materialized (
      select e.*, coalesce(
        (select w.revision from ${s}.event_rows w where w.stream = e.stream order by w.revision desc limit 1), -1) as head
      from unnest(streams, firsts, revisions, ids, types, topics, partitions, keys, workspaces, packings, sizes,
        data_starts, data_lengths, metadata_starts, metadata_lengths) with ordinality
        as e(stream, first, revision, id, type, topic, partition, key, workspace, packing, size,
          data, data_length, metadata, metadata_length, n)
    ), written as (
      insert into ${s}.event_rows (position, stream, revision, id, type, topic, partition, partition_key, workspace,
        packing, unpacked_bytes, data, metadata)
      select base + e.n, e.stream, e.revision, e.id, e.type, e.topic, e.partition, e.key, e.workspace, e.packing, e.size,
        substr(bytes, e.data, e.data_length), substr(bytes, e.metadata, e.metadata_length)
      from incoming e where e.head = e.first - 1
    )
    select array(select head from incoming order by n) into heads;
  end
  $body$;`;

/** Bytes of a row as they were appended. */
export const ownBytes = 'coalesce(unpacked_bytes, octet_length(data) + octet_length(metadata))';

/** In the order of `EventRow`. */
const columnsWith = (bytes: (column: string) => string): string =>
  `position, stream, revision, id, type, ${bytes('data')}, ${bytes('metadata')}, created, topic, partition, partition_key,
    workspace, packing, ${ownBytes}`;

/** Bytes travel as base64: pg's default, hex, is half as long again. */
export const eventColumns = columnsWith((column) => `encode(${column}, 'base64')`);

/**
 * Bytes that are not packed travel as text at about half the cost; the statement fails if any of them are not valid
 * text.
 */
const textColumns = columnsWith(
  (column) => `case when packing is null then convert_from(${column}, 'UTF8') else encode(${column}, 'base64') end`,
);

/**
 * Rows of `from`, in order, up to $3 bytes; the first row always comes. A window frame of rows costs half of the default
 * one.
 */
const withinBytes = (columns: string, from: string): string => `
  select ${columns} from (
    select *, sum(own) over (order by position rows unbounded preceding) as bytes from ${from}
  ) as sized where bytes <= $3::int8 or bytes = own order by position`;

/** $1 position before the first, $2 most rows, $3 most bytes, $4 topics or null for all. */
const tailOf = (schema: string, columns: string): string =>
  withinBytes(
    columns,
    `(select *, ${ownBytes} as own from ${schema}.event_rows
      where position > $1::int8 and ($4::text[] is null or topic = any($4::text[]))
      order by position limit $2::int8) as page`,
  );

/**
 * $1 position before the first, $2 most rows read, $3 most bytes, $4 types. Of the rows read, it returns those of these
 * types and the last one of each topic, so that a reader's position passes the others. The last column is the number of
 * rows read. It sends one row of eleven where a fan-out is read for the sake of its post.
 */
const tailOfTypes = (schema: string, columns: string): string => `
  with page as materialized (
    select *, ${ownBytes} as own from ${schema}.event_rows where position > $1::int8 order by position limit $2::int8)
  ${withinBytes(
    `${columns}, (select count(*)::int4 from page)`,
    'page where type = any($4::text[]) or position in (select max(position) from page group by topic)',
  )}`;

export const statements = (s: string) => ({
  /** $1 streams, $2 first and $3 last revisions: the stored events of these ranges. */
  inPlace: `
    select e.stream, e.revision, e.id, e.position
    from unnest($1::text[], $2::int8[], $3::int8[]) as w(stream, low, high)
    join ${s}.event_rows e on e.stream = w.stream and e.revision between w.low and w.high`,

  /** Parameters as `append_group` names them. One row: the position before the first, and each row's head. */
  append: `select base, heads from ${s}.append_group(${parameters.map((_, i) => `$${i + 1}`).join(', ')})`,

  /** $1 stream, $2 first revision, $3 most rows or null. */
  read: `select ${eventColumns} from ${s}.event_rows where stream = $1 and revision >= $2::int8 order by revision limit $3::int8`,

  /**
   * $1 streams, $2 bytes: their events, each stream's in order, up to and including the one that exceeds the bytes. The
   * last column is the sum of the bytes up to and including the row.
   */
  readWhole: `
    select ${eventColumns}, bytes from (
      select *, ${ownBytes} as own, sum(${ownBytes}) over (order by stream, revision) as bytes
      from ${s}.event_rows where stream = any($1::text[])) as sized
    where bytes - own < $2::int8 order by stream, revision`,

  tail: tailOf(s, textColumns),
  /** For a page in which some bytes are not text. */
  tailOfBytes: tailOf(s, eventColumns),
  typed: tailOfTypes(s, textColumns),
  typedOfBytes: tailOfTypes(s, eventColumns),

  /** Not the sequence: that is ahead of the commits. */
  head: `select max(position) from ${s}.event_rows`,
});
