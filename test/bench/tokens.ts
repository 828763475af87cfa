/**
 * Access tokens of apps: the check of one that was never seen, beside the bare signature; a call with one beside the
 * same call with an API key, turn by turn on one connection; and refreshes, each of which spends a token and signs
 * another, beside the two statements and the signature that no server can do without.
 *
 * Run alone: node test/bench/tokens.ts (QUICK=1 for the short form).
 */
import { generateKeyPairSync, randomBytes, randomUUID, sign, verify } from 'node:crypto';
import type { Pool } from 'pg';
import { AccessTokens } from '#services/auth/access-tokens.ts';
import { composer } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { type App, type OAuth, oauthOf, oauthWorld, type Tokens } from '#test/support/oauth.ts';
import { personOf } from '#test/support/people.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { environment } from './environment.ts';
import { Connection } from './load.ts';
import { type BenchRow, percentile, printRows, spread } from './row.ts';

const goal = { checkMs: 0.15, ofKey: 0.95, refreshes: 300 };
const callers = 16;

interface Sizes {
  readonly tokens: number;
  readonly turns: number;
  readonly roundMs: number;
  readonly rounds: number;
}

interface Apps {
  readonly world: World;
  readonly oauth: OAuth;
  readonly app: App;
  tokens(): Promise<Tokens>;
}

const appsOf = async (world: World): Promise<Apps> => {
  const oauth = oauthOf(world);
  const { personId, memberId } = await personOf(world);
  const app = await oauth.register();
  const result = { personId, memberId, scopes: ['clients.read', 'posts.read'] };
  const query = { resource: world.deps.baseUrl(), scope: result.scopes.join(' ') };
  return { world, oauth, app, tokens: () => oauth.tokensOf(app, { query, result }) };
};

const timedMs = async (work: () => unknown): Promise<number> => {
  const begun = performance.now();
  await work();
  return performance.now() - begun;
};

/** Tokens differ by the instant and id of each; their check starts with the keys in memory, as in a server that runs. */
const checkRow = async ({ world, oauth, app, tokens }: Apps, { tokens: count }: Sizes): Promise<BenchRow> => {
  const issuer = () => world.deps.authUrl();
  const checker = new AccessTokens(world.pool, issuer, world.deps.clock);
  let last = await tokens();
  await checker.verify(last.access_token, world.deps.baseUrl());
  const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const bytes = Buffer.from(last.access_token.slice(0, last.access_token.lastIndexOf('.')));
  const signature = sign('sha256', bytes, { key: privateKey, dsaEncoding: 'ieee-p1363' });
  const [ours, limit]: [number[], number[]] = [[], []];
  for (let at = 0; at < count; at += 1) {
    last = (await oauth.refresh(app, last.refresh_token)).json as unknown as Tokens;
    ours.push(await timedMs(() => checker.verify(last.access_token, world.deps.baseUrl())));
    limit.push(await timedMs(() => verify('sha256', bytes, { key: publicKey, dsaEncoding: 'ieee-p1363' }, signature)));
  }
  const again: number[] = [];
  for (let at = 0; at < count; at += 1) {
    again.push(await timedMs(() => checker.verify(last.access_token, world.deps.baseUrl())));
  }
  const median = percentile(ours, 0.5);
  return {
    name: 'tokens: check of a token never seen',
    unit: 'ms p50',
    ours: median,
    limit: percentile(limit, 0.5),
    goal: `≤ ${goal.checkMs}`,
    ok: median <= goal.checkMs,
    note: `p99 ${percentile(ours, 0.99).toFixed(2)}; of one seen before ${percentile(again, 0.5).toFixed(4)}; ${count} tokens`,
  };
};

const callRow = async ({ world, tokens }: Apps, { turns }: Sizes): Promise<BenchRow> => {
  const { body } = await composer(world, ['x', 'bluesky']);
  const { data: post } = await world.tester.post('/posts', body());
  const scopes = ['clients.read', 'posts.read'];
  const { secret } = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', scopes });
  const { access_token: token } = await tokens();
  await world.settled();
  const { port, host } = new URL(world.origin());
  const connection = await Connection.open(Number(port));
  try {
    const call = async (bearer: string): Promise<number> => {
      const request = `GET /v1/posts/${post.id} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${bearer}\r\n\r\n`;
      const begun = performance.now();
      const { status, body: text } = await connection.send(request);
      if (status !== 200) throw new Error(`answered with ${status}: ${text.toString('utf8').slice(0, 500)}`);
      return performance.now() - begun;
    };
    const [byToken, byKey]: [number[], number[]] = [[], []];
    for (let turn = -100; turn < turns; turn += 1) {
      const one = await call(secret);
      const other = await call(token);
      if (turn < 0) continue;
      byKey.push(one);
      byToken.push(other);
    }
    const total = (values: readonly number[]): number => values.reduce((sum, one) => sum + one, 0);
    const [ours, limit] = [(turns * 1_000) / total(byToken), (turns * 1_000) / total(byKey)];
    return {
      name: 'tokens: GET /posts/{id}, limit: with a key',
      unit: 'calls/s',
      ours,
      limit,
      goal: `≥ ${goal.ofKey} of a key`,
      ok: ours >= goal.ofKey * limit,
      note: `p50 ${percentile(byToken, 0.5).toFixed(2)} ms beside ${percentile(byKey, 0.5).toFixed(2)}; ${turns} turns of one caller`,
    };
  } finally {
    connection.close();
  }
};

/** What remains of a refresh without a protocol: one statement spends, one keeps, one signature. */
const bareRefresh = async (pool: Pool, ms: number): Promise<number> => {
  const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const payload = { iss: 'an issuer', gid: randomUUID(), exp: 0, scope: 'posts.read', aud: 'an audience'.repeat(20) };
  await pool.query(
    'create table if not exists bare_tokens (id bytea primary key, payload jsonb, spent timestamptz, grant_id uuid)',
  );
  const insert = 'insert into bare_tokens values ($1, $2, null, $3)';
  let done = 0;
  const end = performance.now() + ms;
  const caller = async (): Promise<void> => {
    let id = randomBytes(32);
    await pool.query({ name: 'bare-keep', text: insert, values: [id, payload, payload.gid] });
    while (performance.now() < end) {
      const text = 'update bare_tokens set spent = now() where id = $1 and spent is null';
      await pool.query({ name: 'bare-spend', text, values: [id] });
      id = randomBytes(32);
      sign('sha256', Buffer.from(JSON.stringify(payload)), privateKey);
      await pool.query({ name: 'bare-keep', text: insert, values: [id, payload, payload.gid] });
      done += 1;
    }
  };
  await Promise.all(Array.from({ length: callers }, caller));
  return (done * 1_000) / ms;
};

const refreshRow = async ({ world, app, tokens }: Apps, { roundMs, rounds }: Sizes): Promise<BenchRow> => {
  const { port, host } = new URL(world.origin());
  const families: { connection: Connection; token: string }[] = [];
  for (let at = 0; at < callers; at += 1) {
    families.push({ connection: await Connection.open(Number(port)), token: (await tokens()).refresh_token });
  }
  const refresh = async (family: (typeof families)[number]): Promise<void> => {
    const form = new URLSearchParams({
      grant_type: 'refresh_token',
      client_id: app.client_id,
      refresh_token: family.token,
    }).toString();
    const head = `POST /oauth/token HTTP/1.1\r\nHost: ${host}\r\nContent-Type: application/x-www-form-urlencoded\r\n`;
    const { status, body } = await family.connection.send(`${head}Content-Length: ${form.length}\r\n\r\n${form}`);
    if (status !== 200) throw new Error(`answered with ${status}: ${body.toString('utf8').slice(0, 500)}`);
    family.token = JSON.parse(body.toString('utf8')).refresh_token;
  };
  const round = async (): Promise<number> => {
    let done = 0;
    const end = performance.now() + roundMs;
    const caller = async (family: (typeof families)[number]): Promise<void> => {
      while (performance.now() < end) {
        await refresh(family);
        done += 1;
      }
    };
    await Promise.all(families.map(caller));
    return (done * 1_000) / roundMs;
  };
  try {
    const [ours, limit]: [number[], number[]] = [[], []];
    await round();
    for (let at = 0; at < rounds; at += 1) {
      ours.push(await round());
      limit.push(await bareRefresh(world.pool, roundMs));
    }
    const { median, min, max } = spread(ours);
    return {
      name: 'tokens: refreshes',
      unit: '/s',
      ours: median,
      limit: spread(limit).median,
      goal: `≥ ${goal.refreshes}`,
      ok: median >= goal.refreshes,
      note: `${callers} families; ${Math.round(min)}–${Math.round(max)}; server and callers in one process`,
    };
  } finally {
    for (const { connection } of families) connection.close();
  }
};

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const sizes: Sizes = quick
    ? { tokens: 200, turns: 500, roundMs: 1_000, rounds: 2 }
    : { tokens: 2_000, turns: 5_000, roundMs: 5_000, rounds: 5 };
  const server = await sharedServer();
  for (const line of await environment(server.url)) console.log(line);
  const world = await oauthWorld();
  try {
    const apps = await appsOf(world);
    return [await checkRow(apps, sizes), await callRow(apps, sizes), await refreshRow(apps, sizes)];
  } finally {
    await world.close();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
