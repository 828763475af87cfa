/**
 * Pages of the console on the server that serves them: from the request to the last byte, one reader on one connection,
 * for a member of a workspace with many keys, members, apps and clients. Signing in is a row of its own: its hash is
 * meant to be slow.
 *
 * Run alone: node test/bench/console.ts (QUICK=1 for the short form).
 */
import { ConsoleBrowser, consoleWorld, signedIn } from '#test/support/console.ts';
import type { World } from '#test/support/http.ts';
import { oauthOf } from '#test/support/oauth.ts';
import { personOf } from '#test/support/people.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { environment } from './environment.ts';
import { type BenchRow, percentile, printRows } from './row.ts';

const goalMs = 60;
const pages = ['/console', '/team', '/developers', '/apps', '/security'] as const;

type Member = Awaited<ReturnType<typeof signedIn>>;

/** What fills the lists of each page. */
const fill = async (world: World, { personId, memberId }: Member, count: number): Promise<void> => {
  const oauth = oauthOf(world);
  for (let at = 0; at < count; at += 1) {
    await world.keyOf(world.workspaceId, memberId, { mode: 'live', scopes: ['posts.read'] });
    await personOf(world, { role: 'viewer', name: `Member ${at}` });
    const app = await oauth.register({ client_name: `App ${at}` });
    await oauth.tokensOf(app, { result: { personId, memberId } });
  }
  await world.settled();
};

const timed = async (browser: ConsoleBrowser, page: string): Promise<number> => {
  const begun = performance.now();
  const { status, text } = await browser.get(page);
  const ms = performance.now() - begun;
  if (status !== 200) throw new Error(`${page} answered with ${status}: ${text.slice(0, 300)}`);
  return ms;
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const turns = quick ? 50 : 500;
  const entries = quick ? 10 : 100;
  const server = await sharedServer();
  for (const line of await environment(server.url)) console.log(line);
  const world = await consoleWorld();
  try {
    const member = await signedIn(world, { name: 'Olga Owner' });
    await fill(world, member, entries);
    const rows: BenchRow[] = [];
    for (const page of pages) {
      const all: number[] = [];
      for (let turn = -10; turn < turns; turn += 1) {
        const ms = await timed(member.browser, page);
        if (turn >= 0) all.push(ms);
      }
      const late = percentile(all, 0.99);
      rows.push({
        name: `console: ${page}`,
        unit: 'ms p99',
        ours: late,
        goal: `≤ ${goalMs}`,
        ok: late <= goalMs,
        note: `p50 ${percentile(all, 0.5).toFixed(1)}; ${entries} keys, members and apps; ${turns} turns`,
      });
    }
    const signIns: number[] = [];
    for (let turn = 0; turn < turns / 5; turn += 1) {
      const browser = new ConsoleBrowser(world.origin);
      await browser.get('/sign-in');
      const begun = performance.now();
      const { status, text } = await browser.post('/sign-in', { email: member.email, password: member.password });
      signIns.push(performance.now() - begun);
      if (status !== 303) throw new Error(`the sign-in answered with ${status}: ${text.slice(0, 300)}`);
    }
    return [
      ...rows,
      {
        name: 'console: POST /sign-in',
        unit: 'ms p50',
        ours: percentile(signIns, 0.5),
        goal: 'none',
        ok: true,
        note: `p99 ${percentile(signIns, 0.99).toFixed(0)}; with Argon2id`,
      },
    ];
  } finally {
    await world.close();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
