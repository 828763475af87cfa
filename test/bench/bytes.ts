/**
 * Bytes of disk that a published target leaves behind: posts of six targets go through standalone with production
 * defaults until every target is published, and Postgres tells how much each of its tables grew. The ledgers of the
 * sandbox networks are left out: no network of a real installation is ours.
 *
 * Run alone: node test/bench/bytes.ts (QUICK=1 for the short form; TABLES=1 prints every table and index).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import type pg from 'pg';
import { view } from '#projections/shapes.ts';
import { TourClient } from '#services/standalone/tour-client.ts';
import { closedLoop, wire } from './load.ts';
import { type BenchRow, printRows } from './row.ts';
import { caughtUp, type Standalone, startStandalone } from './standalone.ts';

const goal = 5_000;
export const perPost = 6;
const callers = 4;
/** Without progress for so long the bench gives up. */
const standstillMs = 60_000;

const content = 'A post of ordinary length, as people write them, with a link https://example.com/winter. '.repeat(2);

interface Size {
  readonly name: string;
  /** The table, index or overflow table alone. */
  readonly bytes: number;
  readonly isIndex: boolean;
}

/**
 * By table and index of the schemas that hold data of ours. Tables whose rows change are compacted: what an update
 * leaves free, later rows fill again, and a short run would count it as growth. Events are as the appends left them.
 */
const sizesOf = async (pool: pg.Pool): Promise<readonly Size[]> => {
  await pool.query('vacuum');
  const { rows: tables } = await pool.query<{ name: string }>(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('read', 'ops')`,
  );
  for (const { name } of tables) await pool.query(`vacuum full ${name}`);
  const { rows } = await pool.query<Size>(
    `select n.nspname || '.' || t.relname || case when c.oid = t.oid then '' else ' ' || c.relname end as name,
       pg_relation_size(c.oid)::float8 as bytes, c.relkind = 'i' as "isIndex"
     from pg_class t join pg_namespace n on n.oid = t.relnamespace
     join pg_class c on c.oid = t.oid or c.oid = t.reltoastrelid
       or c.oid in (select indexrelid from pg_index where indrelid in (t.oid, t.reltoastrelid))
     where t.relkind = 'r' and n.nspname in ('es', 'read', 'ops')`,
  );
  return rows;
};

export const publish = async (world: Standalone, count: number): Promise<void> => {
  const http = new TourClient(`http://127.0.0.1:${world.port}/v1`, world.nextKey(), new AbortController().signal);
  const accounts = await http.get<readonly { readonly id: string }[]>(`/accounts?clientId=${world.clientId}`);
  const body = JSON.stringify({
    clientId: world.clientId,
    content,
    targets: {
      mode: 'selection',
      clientId: world.clientId,
      accountIds: accounts.slice(0, perPost).map(({ id }) => id),
    },
    variants: [{ platform: 'x', contentOverride: 'A short text for the one that takes no more.' }],
    schedule: { type: 'now' },
  });
  let left = count;
  const next = () => {
    left -= 1;
    return wire({ method: 'POST', path: '/v1/posts', key: world.nextKey(), body, idempotencyKey: randomUUID() });
  };
  while (left > 0) await closedLoop(world.port, { callers: Math.min(left, callers), ms: 1, next });
};

/** Until so many targets are published, and the insights worker has planned to read the figures of each. */
export const settled = async (pool: pg.Pool, wanted: number): Promise<void> => {
  const reached = async (): Promise<number> => {
    const { rows } = await pool.query<{ n: number }>(
      `select least((select count(*) from ${view('post_targets')} where status = 'published'),
         (select count(*) from ops.insights_jobs where post_id is not null))::int as n`,
    );
    return rows[0]?.n ?? 0;
  };
  let last = -1;
  for (let until = performance.now() + standstillMs; ; await delay(500)) {
    const now = await reached();
    if (now === wanted) break;
    if (now !== last) until = performance.now() + standstillMs;
    else if (performance.now() > until) throw new Error(`of ${wanted} targets ${now} are published`);
    last = now;
  }
  await caughtUp(pool);
};

const events = async (pool: pg.Pool): Promise<number> =>
  Number((await pool.query('select count(*) as n from es.events')).rows[0].n);

export const run = async ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> => {
  const posts = quick ? 300 : 2_000;
  const world = await startStandalone({ keys: 200 });
  try {
    const { pool } = world;
    await publish(world, 20);
    await settled(pool, 20 * perPost);
    const before = new Map((await sizesOf(pool)).map(({ name, bytes }) => [name, bytes]));
    const eventsBefore = await events(pool);
    await publish(world, posts);
    await settled(pool, (20 + posts) * perPost);
    const each = (bytes: number): number => bytes / (posts * perPost);
    const grown = (await sizesOf(pool))
      .map((one) => ({ ...one, bytes: each(one.bytes - (before.get(one.name) ?? 0)) }))
      .filter(({ bytes }) => bytes !== 0)
      .sort((a, b) => b.bytes - a.bytes);
    if (process.env.TABLES === '1') {
      for (const { name, bytes } of grown) console.log(`${bytes.toFixed(0).padStart(7)}  ${name}`);
    }
    const sum = (of: (size: Size) => boolean): number => grown.filter(of).reduce((all, { bytes }) => all + bytes, 0);
    const isEvents = ({ name }: Size): boolean => name.startsWith('es.event');
    const total = sum(() => true);
    const appended = (await events(pool)) - eventsBefore;
    const perEvent = (bytes: number): string => ((bytes * posts * perPost) / appended).toFixed(0);
    return [
      {
        name: 'bytes: a published target',
        unit: 'bytes',
        ours: total,
        goal: `≤ ${goal.toLocaleString('en')}`,
        ok: total <= goal,
        note:
          `${posts} posts of ${perPost} targets, ${(appended / posts).toFixed(1)} events a post; ` +
          `an event takes ${perEvent(sum((size) => isEvents(size) && !size.isIndex))} and ` +
          `${perEvent(sum((size) => isEvents(size) && size.isIndex))} in indexes; events ${sum(isEvents).toFixed(0)}, ` +
          `es ${sum(({ name }) => name.startsWith('es.')).toFixed(0)}, read ${sum(({ name }) => name.startsWith('read.')).toFixed(0)}, ` +
          `ops ${sum(({ name }) => name.startsWith('ops.')).toFixed(0)}`,
      },
    ];
  } finally {
    await world.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
