/**
 * The packed rows as a person sees them: the view `events` shows the rows of `event_rows` with the bytes that were
 * appended. `s` is a schema name that passed `checkSchemaName`.
 */
import { memberForms, members, runs, shortWords } from './words.ts';

const literal = (text: string): string => `'${text.replaceAll("'", "''")}'`;
const array = (texts: readonly string[]): string => `array[${texts.map(literal).join(', ')}]`;

/** The uuid at the end of a text, or null. */
const uuidOf = (text: string): string =>
  `case when right(${text}, 36) ~ '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then right(${text}, 36)::uuid end`;

/** `unpack.ts` in SQL; slow, as no process reads it. */
const unpackFunction = (s: string): string => `
  create function ${s}.unpack(packed bytea, known uuid[]) returns bytea language plpgsql immutable parallel safe as $body$
  declare
    words constant text[] := ${array(shortWords)};
    members constant text[] := ${array(members)};
    befores constant text[] := ${array(memberForms.map(([before]) => before))};
    afters constant text[] := ${array(memberForms.map(([, after]) => after))};
    runs constant text[] := ${array(runs)};
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
        piece := coalesce(
          befores[1 + number % ${memberForms.length}] || members[1 + number / ${memberForms.length}]
            || afters[1 + number % ${memberForms.length}],
          runs[1 + number - ${members.length * memberForms.length}]);
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

export const unpackedView = (s: string): string => `
  ${unpackFunction(s)};
  create view ${s}.events as
    select position, stream, revision, id, type, ${bytesOf(s, 'data', uuidOf('stream'))} as data,
      ${bytesOf(s, 'metadata', 'null')} as metadata, created, topic, partition, partition_key
    from ${s}.event_rows;`;
