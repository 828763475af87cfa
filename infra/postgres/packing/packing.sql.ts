/**
 * The packed rows as every other reader sees them. The events lie in `event_rows`; `events` is a view of them with the
 * bytes that were appended, for processes of the former release, which read and write it, and for people. `s` is a
 * schema name that passed `checkSchemaName`.
 */
import { memberForms, members, shortWords } from './words.ts';

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const array = (texts: readonly string[]): string => `array[${texts.map(literal).join(', ')}]`;

/** The uuid at the end of a text, or null. */
const uuidOf = (text: string): string =>
  `case when right(${text}, 36) ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then right(${text}, 36)::uuid end`;

/** `unpack.ts` in SQL; slow, as it only serves readers that are there for the time of a deploy. */
const unpackFunction = (s: string): string => `
  create function ${s}.unpack(packed bytea, known uuid[]) returns bytea language plpgsql immutable parallel safe as $body$
  declare
    words constant text[] := ${array(shortWords)};
    members constant text[] := ${array(members)};
    befores constant text[] := ${array(memberForms.map(([before]) => before))};
    afters constant text[] := ${array(memberForms.map(([, after]) => after))};
    unpacked bytea := '';
    piece text;
    at int := 0;
    code int;
    number int;
    shift int;
  begin
    while at < octet_length(packed) loop
      code := get_byte(packed, at);
      at := at + 1;
      piece := null;
      if code between 32 and 127 then
        unpacked := unpacked || substr(packed, at, 1);
      elsif code >= 128 then
        piece := words[code - 127];
      elsif code >= 16 then
        number := (code - 16) * 256 + get_byte(packed, at);
        at := at + 1;
        piece := befores[1 + number % ${memberForms.length}] || members[1 + number / ${memberForms.length}]
          || afters[1 + number % ${memberForms.length}];
      elsif code >= 4 then
        piece := known[code - 3]::text;
      elsif code = 3 then
        piece := encode(substr(packed, at + 1, 32), 'hex');
        at := at + 32;
      elsif code = 2 then
        piece := to_char(
          timestamp '1970-01-01' + ('x' || encode(substr(packed, at + 1, 6), 'hex'))::bit(48)::int8 * interval '1 millisecond',
          'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"');
        at := at + 6;
      elsif code = 1 then
        piece := encode(substr(packed, at + 1, 16), 'hex')::uuid::text;
        known := known || piece::uuid;
        at := at + 16;
      else
        number := 0;
        shift := 0;
        loop
          code := get_byte(packed, at);
          at := at + 1;
          number := number + ((code & 127) << shift);
          shift := shift + 7;
          exit when code < 128;
        end loop;
        unpacked := unpacked || substr(packed, at + 1, number);
        at := at + number;
        continue;
      end if;
      if piece is not null then
        unpacked := unpacked || convert_to(piece, 'SQL_ASCII');
      elsif code not between 32 and 127 then
        raise exception 'code % at % is not of version 1', code, at;
      end if;
    end loop;
    return unpacked;
  end
  $body$`;

const bytesOf = (s: string, column: string, stream: string): string =>
  `case when packing is null then ${column} else ${s}.unpack(${column}, array[workspace, ${uuidOf('partition_key')}, ${stream}]) end`;

/** Changes tables in which `events` is a table; the old rows stay as they are. */
export const packedTables = (s: string): string => `
  alter table ${s}.events rename to event_rows;
  alter table ${s}.event_rows
    add column workspace uuid,
    add column unpacked_bytes integer,
    add column packing smallint;
  ${unpackFunction(s)};
  create view ${s}.events as
    select position, stream, revision, id, type, ${bytesOf(s, 'data', uuidOf('stream'))} as data,
      ${bytesOf(s, 'metadata', 'null')} as metadata, created, topic, partition, partition_key
    from ${s}.event_rows;
  create function ${s}.insert_event() returns trigger language plpgsql as $body$
  begin
    insert into ${s}.event_rows (position, stream, revision, id, type, data, metadata, created, topic, partition, partition_key)
    values (new.position, new.stream, new.revision, new.id, new.type, new.data, new.metadata,
      coalesce(new.created, clock_timestamp()), new.topic, new.partition, new.partition_key);
    return new;
  end
  $body$;
  create trigger insert_event instead of insert on ${s}.events for each row execute function ${s}.insert_event();`;
