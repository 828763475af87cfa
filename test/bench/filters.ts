/**
 * Lists by each filter and by each pair of filters, over 1,000,000 targets of 100,000 posts of one workspace: the first
 * page and one from the middle, by the queries of GET /post-targets and GET /posts on a connection of the read pool.
 *
 * Run alone: node test/bench/filters.ts (QUICK=1 for 100,000 targets; PLANS=1 prints the plan of the slowest).
 */
import type { Knex } from 'knex';
import { openPool } from '#infra/postgres/pool.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import { migrate } from '#projections/engine/tables.ts';
import { listPosts } from '#projections/queries/post-queries.ts';
import { listTargets } from '#projections/queries/target-queries.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { openReadPool } from '#services/api/call/lists.ts';
import { fillLists, postValues, singlesAndPairs, targetValues, workspaceId } from '#test/support/filtered-lists.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { environment } from './environment.ts';
import { type BenchRow, percentile, printRows } from './row.ts';

const goalMs = 50;
const pageRows = 100;

interface Timed {
  readonly name: string;
  readonly ms: number;
}

/** A key in the middle of all rows. */
const middle = (posts: number) => {
  const at = new Date(Date.UTC(2026, 0, 1) + (posts >> 1) * 60_000).toISOString();
  const id = '80000000-0000-4000-8000-000000000000';
  return { targets: { scheduledAt: at, id }, posts: { createdAt: at, id } };
};

const measure = async (
  name: string,
  cases: readonly { readonly name: string; readonly run: () => Promise<unknown> }[],
  turns: number,
): Promise<BenchRow> => {
  const all: number[] = [];
  const worst: Timed[] = [];
  for (const one of cases) {
    await one.run();
    const times: number[] = [];
    for (let turn = 0; turn < turns; turn += 1) {
      const begun = performance.now();
      await one.run();
      times.push(performance.now() - begun);
    }
    all.push(...times);
    worst.push({ name: one.name, ms: percentile(times, 0.5) });
  }
  worst.sort((a, b) => b.ms - a.ms);
  for (const { name: slow, ms } of worst.slice(0, 12)) console.log(`  ${ms.toFixed(1)} ms  ${slow}`);
  const p99 = percentile(all, 0.99);
  const [slowest] = worst;
  return {
    name,
    unit: 'ms p99',
    ours: p99,
    goal: `≤ ${goalMs}`,
    ok: p99 <= goalMs && (slowest?.ms ?? 0) <= goalMs,
    note: `${cases.length} queries, ${pageRows} rows a page; slowest p50 ${slowest?.ms.toFixed(1)} (${slowest?.name})`,
  };
};

const cases = (knex: Knex, posts: number) => {
  const keys = middle(posts);
  const pages = ['first', 'middle'] as const;
  return {
    targets: singlesAndPairs(targetValues(posts)).flatMap(({ name, filters }) =>
      pages.map((page) => ({
        name: `${name}, ${page}`,
        run: () =>
          listTargets(knex, workspaceId, filters, { after: page === 'first' ? null : keys.targets, limit: pageRows }),
      })),
    ),
    posts: singlesAndPairs(postValues(posts)).flatMap(({ name, filters }) =>
      pages.map((page) => ({
        name: `${name}, ${page}`,
        run: () =>
          listPosts(knex, workspaceId, filters, { after: page === 'first' ? null : keys.posts, limit: pageRows }),
      })),
    ),
  };
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const posts = quick ? 10_000 : 100_000;
  const server = await sharedServer();
  for (const line of await environment(server.url)) console.log(line);
  const pool = openPool({ url: server.url, max: 2 });
  const knex = openReadPool({ url: server.url, connections: 1, logger: createLogger('bench', 'warn') });
  try {
    await migrateSchema(pool);
    await migrate(pool);
    await fillLists(pool, posts);
    const { targets, posts: ofPosts } = cases(knex, posts);
    const count = (posts * 10).toLocaleString('en');
    return [
      await measure(`filters: GET /post-targets over ${count} targets`, targets, quick ? 3 : 10),
      await measure(`filters: GET /posts over ${count} targets`, ofPosts, quick ? 3 : 10),
    ];
  } finally {
    await knex.destroy();
    await pool.end();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
