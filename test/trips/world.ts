import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { wallClock } from '#runtime/postgres/database-clock.ts';
import { mcpPart } from '#services/mcp/part.ts';
import { startOutcomes } from '#services/outcomes/outcomes.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { type Composer, composer } from '#test/support/composing.ts';
import { ConsoleBrowser, consoleWorld, signedIn } from '#test/support/console.ts';
import type { World } from '#test/support/http.ts';
import { connect, type Mcp } from '#test/support/mcp.ts';
import { quick, quickNetwork } from '#test/support/publishing.ts';
import { until } from '#test/support/until.ts';

/** Api, console, tools and projections in this process, over one database, with a client that has an account at X. */

export interface TripWorld {
  readonly world: World;
  readonly composed: Composer;
  readonly member: Awaited<ReturnType<typeof signedIn>>;
  readonly mcp: Mcp;
  /** Calls an operation as a caller outside does: no code of ours checks the answer. @returns its `data` */
  call(method: string, at: string, body?: unknown): Promise<{ readonly id: string }>;
  /** Resolves when this event was stored after the position. */
  stored(type: string, after: bigint): Promise<void>;
  close(): Promise<void>;
}

export const openTripWorld = async (): Promise<TripWorld> => {
  const world = await consoleWorld({ audited: false, parts: [mcpPart()] });
  const composed = await composer(world, ['x']);
  const member = await signedIn(world);
  const mcp = await connect(world, world.testKey.secret);
  const call: TripWorld['call'] = async (method, at, body) => {
    const response = await fetch(`${world.origin()}/v1${at}`, {
      method,
      headers: {
        authorization: `Bearer ${world.testKey.secret}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(method === 'POST' ? { 'idempotency-key': crypto.randomUUID() } : {}),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    assert.ok(response.ok, text);
    return JSON.parse(text).data;
  };
  const stored = async (type: string, after: bigint): Promise<void> => {
    const sql = 'select 1 from es.events where type = $1 and position > $2 limit 1';
    await until(type, async () => (await world.pool.query(sql, [type, String(after)])).rows.length > 0);
  };
  const close = async (): Promise<void> => {
    await mcp.close();
    await world.close();
  };
  return { world, composed, member, mcp, call, stored, close };
};

/** A publisher and the outcomes over the world; nothing of them runs before. @returns ends them */
export const startPublishing = async ({ world }: TripWorld): Promise<() => Promise<void>> => {
  const { store, pool, log, eventStore, codec, logger } = world;
  const { blobs } = world.deps;
  const sandbox = new SandboxNetwork({ database: { url: world.db.url }, ...quickNetwork });
  const stopping = new AbortController();
  const workDir = mkdtempSync(path.join(tmpdir(), 'postline-trips-'));
  const publisher = { store, pool, blobs, workDir, adapterOf: () => sandbox, config: quick, clock: wallClock, logger };
  const config = { sweepIntervalMs: 60_000, leaseTtlMs: quick.leaseTtlMs };
  const running = Promise.all([
    runPublisher(publisher, stopping.signal),
    startOutcomes({ log, eventStore, store, codec, pool, logger, config }, stopping.signal).done,
  ]);
  return async () => {
    stopping.abort();
    await running;
    await sandbox.close();
    rmSync(workDir, { recursive: true, force: true });
  };
};

/** A browser at the sign-in page, with a form that is not sent yet. */
export const atSignIn = async ({ world }: TripWorld): Promise<ConsoleBrowser> => {
  const browser = new ConsoleBrowser(() => world.deps.consoleUrl());
  await browser.get('/sign-in');
  return browser;
};
