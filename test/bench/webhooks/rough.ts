/**
 * A queue as one writes it in an hour, as fast as possible: one table with prepared rows, claimed, sent by a plain
 * client and recorded in batches. It has no mint, no signature, no guard, no limits, no schedule, and a lease that no
 * process checks.
 */
import pg from 'pg';
import { plainSender } from './senders.ts';

const batch = 200;
/** Batches under way: the database claims one and records another while the third is sent. */
const loops = 3;
/** Deliveries a second that it will not reach: so many rows are made. */
const ceiling = 25_000;

const table = (endpoints: number, rows: number): string => `
drop table if exists bench_queue;
create table bench_queue (
  id int8 primary key, endpoint int4 not null, body bytea not null, status int2 not null default 0,
  attempt int4 not null default 0, leased_until timestamptz, answer int2, delivered_at timestamptz
) with (fillfactor = 45);
create index on bench_queue (id) where status = 0;
insert into bench_queue (id, endpoint, body)
select n, n % ${endpoints}, decode(repeat(md5(n::text), 64), 'hex') from generate_series(1, ${rows}) n;
analyze bench_queue;
checkpoint`;

/** No row below $1 is pending: without the bound the claim would scan all finished rows. */
const claim = `
with next as (
  select id from bench_queue where status = 0 and id > $1 order by id limit ${batch} for update skip locked
)
update bench_queue q set status = 1, attempt = attempt + 1, leased_until = now() + interval '30 seconds'
from next where q.id = next.id returning q.id::int4, q.endpoint, q.body`;
const record = `
update bench_queue set status = 2, answer = 204, delivered_at = now() where id = any($1::int8[]) and status = 1`;

interface Claimed {
  readonly id: number;
  readonly endpoint: number;
  readonly body: Buffer;
}

/** Deliveries a second. */
export const rough = async (
  databaseUrl: string,
  urls: readonly string[],
  { warmMs, ms }: { readonly warmMs: number; readonly ms: number },
): Promise<number> => {
  const db = new pg.Pool({ connectionString: databaseUrl, max: loops });
  for (const statement of table(urls.length, (ceiling * (warmMs + ms)) / 1_000).split(';')) await db.query(statement);
  const send = plainSender(urls);
  let last = 0;
  const run = async (forMs: number): Promise<number> => {
    const start = performance.now();
    let done = 0;
    const loop = async (): Promise<void> => {
      while (performance.now() < start + forMs) {
        const from = Math.max(0, last - loops * batch);
        const { rows } = await db.query<Claimed>({ name: 'claim', text: claim, values: [from] });
        if (rows.length === 0) throw new Error('there were too few rows');
        await Promise.all(rows.map(({ endpoint, body }) => send(endpoint, body)));
        await db.query({ name: 'record', text: record, values: [`{${rows.map(({ id }) => id).join(',')}}`] });
        last = Math.max(last, ...rows.map(({ id }) => id));
        done += rows.length;
      }
    };
    await Promise.all(Array.from({ length: loops }, loop));
    return (done * 1_000) / (performance.now() - start);
  };
  await run(warmMs);
  const rate = await run(ms);
  await db.query('drop table bench_queue');
  await db.end();
  return rate;
};
