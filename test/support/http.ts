/**
 * A world with the api: a real server over Postgres event store, log and projections. Requests go over HTTP; they and
 * their answers are validated against the contract.
 *
 *     const world = await startWorld();
 *     const { status, data } = await world.owner.post('/clients', { name: 'Acme', type: 'brand' });
 *     await given(world, []).request('POST', '/clients', { body }).then(200, ['ClientCreated', 'NameClaimed']);
 */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import knexFor from 'knex';
import { pino } from 'pino';
import { testTwinIdOf } from '#domain/ids.ts';
import { standardMediaQuota } from '#domain/media-types.ts';
import { workspace } from '#domain/workspace.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { sandboxAccounts, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import { dispatcher, PositionWatch } from '#projections/engine/positions.ts';
import { runProjections } from '#projections/engine/run.ts';
import { projections } from '#projections/index.ts';
import { ReaderStates } from '#projections/queries/reader-states.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore, type Positions, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { ClosedWorkspaces } from '#runtime/work/closed-workspaces.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { scopes as allScopes } from '#schemas/apikey.ts';
import type { Mode, Role } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { questionTurns } from '#services/api/call/call-queue.ts';
import type { Deps, Readers } from '#services/api/call/deps.ts';
import { Lists } from '#services/api/call/lists.ts';
import type { Part, ServerDeps } from '#services/api/parts.ts';
import { startServer } from '#services/api/server.ts';
import { makeApiTables } from '#services/api/start.ts';
import { pagesParts } from '#services/pages/part.ts';
import { AskedAccounts } from '#services/workflows/accounts/asked.ts';
import { contextOf, createApiKey, createWorkspace, type Operator } from '#services/workflows/provision.ts';
import { assertContract } from './contract.ts';
import { contractAudit } from './contract-audit.ts';
import { patience } from './patience.ts';
import { preparedDatabase } from './postgres.ts';
import { TestKeys } from './projecting.ts';

export interface Answered {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The parsed body; undefined where it is not JSON. */
  readonly body: {
    readonly data?: unknown;
    readonly page?: { readonly hasMore: boolean; readonly cursor: string | null; readonly nextCursor: string | null };
    readonly meta?: { readonly correlationId: string; readonly asOf?: { readonly event: string; readonly at: string } };
    readonly code?: string;
    readonly errors?: readonly Issue[];
    readonly correlationId?: string;
    readonly [member: string]: unknown;
  };
  /** `body.data` of a single result. */
  readonly data: Readonly<Record<string, unknown>> & { readonly id: string; readonly revision: number };
  /** `body.data` of a list. */
  readonly rows: readonly (Readonly<Record<string, unknown>> & { readonly id: string })[];
}

export interface Ask {
  readonly body?: unknown;
  /** Sent unchanged, instead of `body`. */
  readonly raw?: string | Buffer;
  readonly headers?: Readonly<Record<string, string>>;
  /** Idempotency-Key; default a new one for every POST; null = none. */
  readonly key?: string | null;
}

export type Caller = ReturnType<typeof callerOf>;

const parsed = (text: string, type: string): unknown =>
  type.includes('json') && text !== '' ? JSON.parse(text) : undefined;

/** Requests under one token; null = none. */
export const callerOf = (base: () => string, token: string | null) => {
  const request = async (method: string, path: string, ask: Ask = {}): Promise<Answered> => {
    const key = ask.key === undefined && method === 'POST' ? randomUUID() : ask.key;
    const sent = ask.raw ?? (ask.body === undefined ? undefined : JSON.stringify(ask.body));
    const response = await fetch(`${base()}${path}`, {
      method,
      redirect: 'manual',
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(sent === undefined ? {} : { 'content-type': 'application/json' }),
        ...(key === undefined || key === null ? {} : { 'idempotency-key': key }),
        ...ask.headers,
      },
      ...(sent === undefined ? {} : { body: sent as string }),
    });
    const text = await response.text();
    const contentType = response.headers.get('content-type') ?? '';
    const body = parsed(text, contentType) as Answered['body'];
    const plain = path.split('?')[0] ?? path;
    if (method !== 'HEAD' && method !== 'OPTIONS') {
      const value = body ?? text;
      const headers = Object.fromEntries(response.headers);
      assertContract({ method, path: plain, sent: ask.body, status: response.status, headers, body: value });
    }
    const data = body?.data as Answered['data'];
    return {
      status: response.status,
      headers: response.headers,
      text,
      body,
      data,
      rows: data as unknown as Answered['rows'],
    };
  };
  return {
    token,
    request,
    get: (path: string, ask?: Ask) => request('GET', path, ask),
    post: (path: string, body?: unknown, ask?: Ask) => request('POST', path, { ...ask, body }),
    patch: (path: string, body: unknown, ask?: Ask) => request('PATCH', path, { ...ask, body }),
    delete: (path: string, ask?: Ask) => request('DELETE', path, ask),
  };
};

export interface WorldOptions {
  /** A database of the caller, empty or of another world; it is not dropped. */
  readonly databaseUrl?: string;
  /** Of the other world. */
  readonly secrets?: Secrets;
  readonly codec?: EventCodec;
  readonly rate?: Deps['rate'];
  /** Replaces dependencies of the api. */
  readonly deps?: Partial<ServerDeps>;
  /** What the server serves beside the api. */
  readonly parts?: readonly Part[];
  /** False: answers are not held against the contract, where a test counts what runs for a call. Default true. */
  readonly audited?: boolean;
}

export const startWorld = async (options: WorldOptions = {}) => {
  const own = options.databaseUrl;
  const db = own === undefined ? await preparedDatabase() : { url: own, drop: async () => {} };
  const closers: (() => Promise<unknown>)[] = [];
  const stopping = new AbortController();
  const eventStore = await PostgresEventStore.open({ url: db.url, pollMs: 200 });
  closers.push(() => eventStore.close());
  const log = await openPostgresLog({ url: db.url, store: eventStore });
  closers.push(() => log.close());
  const pool = openPool({ url: db.url, max: 8, name: 'world' });
  closers.push(() => pool.end());
  const quiet = () => undefined;
  const silent = { warn: quiet, error: quiet, debug: quiet, deprecate: quiet };
  const knex = knexFor({ client: 'pg', connection: db.url, pool: { min: 0, max: 6 }, log: silent });
  closers.push(() => knex.destroy());
  const lists = new Lists({ url: db.url, connections: 6, logger: { debug: quiet } });
  closers.push(() => lists.close());
  await migrateSchema(pool);
  await makeApiTables(pool);
  const { secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`) } = options;
  const { codec = new EventCodec(new TestKeys()) } = options;
  const [sandboxClocks, closed] = [new SandboxClocks(pool), new ClosedWorkspaces(pool)];
  const store = new DomainStore(eventStore, codec, defaultPartitions, { aheadOf: sandboxClocks.known, closed });
  const lines: string[] = [];
  const logger = pino(
    { level: 'debug' },
    new Writable({
      write: (chunk, _encoding, done) => {
        lines.push(String(chunk));
        done();
      },
    }),
  );
  const running = runProjections({ log, store: eventStore, pool, codec, names: [], signal: stopping.signal, logger });
  const stopProjections = async (): Promise<void> => {
    stopping.abort();
    await running.done;
  };
  closers.push(stopProjections);
  const watch = new PositionWatch(pool, log);
  const names = projections.map(({ name }) => name);
  const clock = { shiftMs: 0 };
  const audit = contractAudit();
  const now = () => Date.now() + clock.shiftMs;
  let origin = '';
  const root = await mkdtemp(join(tmpdir(), 'postline-blobs-'));
  closers.push(() => rm(root, { recursive: true, force: true }));
  const blobs = new DiskBlobs({ root, secrets, origin: () => origin, clock: now });
  closers.push(() => blobs.close());
  const sandbox = sandboxAccounts(pool);
  const sourceOf = (network: 'live' | 'sandbox') => (network === 'sandbox' ? sandbox : null);
  const deps: ServerDeps = {
    store,
    pool,
    knex,
    lists,
    secrets,
    logger,
    clock: now,
    baseUrl: () => `${origin}/v1`,
    consoleUrl: () => origin,
    authUrl: () => origin,
    mcpUrl: () => `${origin}/mcp`,
    rate: options.rate ?? { perMinute: 1_000_000, burst: 1_000_000 },
    caughtUp: (positions, timeoutMs, readers) =>
      watch.waitFor(readers === 'dispatcher' ? [dispatcher] : names, positions, { timeoutMs }),
    readerStates: new ReaderStates({ pool, store: eventStore, log, analytics: false }),
    egress: new EgressGuard({
      privateTargets: [],
      ownHosts: () => [new URL(origin).host],
      // One public address for every name: the guard's own tests cover refusals.
      resolve: async () => ['93.184.215.14'],
    }),
    blobs,
    mediaQuota: standardMediaQuota,
    analytics: null,
    sandboxProfile,
    sandboxClocks,
    closed,
    asked: new AskedAccounts({ sourceOf, clock: now, logger, turn: questionTurns() }),
    ...options.deps,
    first: [...(options.audited === false ? [] : [audit.middleware]), ...(options.deps?.first ?? [])],
  };
  const server = await startServer(deps, { host: '127.0.0.1', port: 0 }, [...(options.parts ?? []), ...pagesParts]);
  closers.push(() => server.stop(500));
  origin = `http://127.0.0.1:${server.port}`;

  const written: Positions = new Map();
  const operator: Operator = { store, pool, actor: { type: 'admin', id: 'test' }, clock: now, positions: written };

  /** Waits until the read models, or other readers, have applied everything stored so far. */
  const settled = async (readers: Readers = 'read models'): Promise<void> => {
    const { rows } = await pool.query(
      'select topic, partition, max(position)::text as position from es.events where topic is not null group by 1, 2',
    );
    const all: Positions = new Map(rows.map((row) => [`${row.topic}-${row.partition}`, BigInt(row.position)]));
    const waiting = readers === 'dispatcher' ? [dispatcher] : names;
    if (!(await watch.waitFor(waiting, all, { timeoutMs: 20_000 * patience })))
      throw new Error(`the ${readers} do not catch up`);
  };

  const keyOf = async (
    workspaceId: string,
    memberId: string,
    more: {
      readonly mode?: Mode;
      readonly scopes?: readonly string[];
      readonly expiresInMs?: number;
      readonly clientIds?: readonly string[];
    } = {},
  ) => {
    const { mode = 'live', scopes = allScopes, expiresInMs = 86_400_000, clientIds = null } = more;
    const expiresAt = new Date(now() + expiresInMs).toISOString();
    const made = await createApiKey(operator, {
      workspaceId,
      memberId,
      name: 'test',
      scopes,
      mode,
      expiresAt,
      clientIds,
    });
    await settled();
    return { ...made, caller: callerOf(() => `${origin}/v1`, made.secret) };
  };

  const memberOf = async (workspaceId: string, role: Role): Promise<string> => {
    const memberId = uuidv7();
    const command = { type: 'AddMember', memberId, name: `A ${role}`, role } as const;
    await execute(store, workspace, workspaceId, command, contextOf(operator, workspaceId), { positions: written });
    return memberId;
  };

  /** An agency with an Owner, and a live and a test key of theirs. */
  const agency = async (name = 'North Star') => {
    const made = await createWorkspace(operator, { name, timezone: 'Europe/Berlin', ownerName: 'Olga' });
    const live = await keyOf(made.workspaceId, made.memberId);
    const test = await keyOf(made.workspaceId, made.memberId, { mode: 'test' });
    return { ...made, owner: live.caller, tester: test.caller, liveKey: live, testKey: test };
  };

  /** `stream-kind/EventType` of every event stored after a position, in order. */
  const eventsAfter = async (position: bigint): Promise<readonly { stream: string; type: string }[]> =>
    (await pool.query('select stream, type from es.events where position > $1 order by position', [String(position)]))
      .rows;
  const head = async (): Promise<bigint> =>
    BigInt((await pool.query('select coalesce(max(position), 0)::text as head from es.events')).rows[0].head);

  const first = await agency();
  return {
    ...first,
    db,
    deps,
    pool,
    store,
    log,
    eventStore,
    codec,
    logger,
    secrets,
    operator,
    /** The log, a JSON line each. */
    lines,
    clock,
    origin: () => origin,
    anonymous: callerOf(() => `${origin}/v1`, null),
    callerWith: (token: string) => callerOf(() => `${origin}/v1`, token),
    agency,
    keyOf,
    memberOf,
    settled,
    /** From then on read models stay as they are: they share this thread with the api. */
    stopProjections,
    head,
    eventsAfter,
    close: async () => {
      for (const end of closers.splice(0).reverse()) await end();
      await db.drop();
      audit.assertClean();
    },
  };
};

export type World = Awaited<ReturnType<typeof startWorld>>;

export interface GivenEvent {
  readonly stream: string;
  readonly events: readonly { readonly type: string; readonly data: unknown }[];
}

/** Events of the caller's tenant that are stored and projected before the request is made. */
export const given = (world: World, history: readonly GivenEvent[], by: Caller = world.owner) => ({
  request: (method: string, path: string, ask?: Ask) => ({
    /** The status, and the types of the events that the request stored, in order. */
    then: async (status: number, types: readonly string[]): Promise<Answered> => {
      const workspaceId = by === world.tester ? testTwinIdOf(world.workspaceId) : world.workspaceId;
      for (const { stream, events } of history) {
        await world.store.append(stream, -1, events, contextOf(world.operator, workspaceId), stream);
      }
      await world.settled();
      const before = await world.head();
      const answered = await by.request(method, path, ask);
      assert.equal(answered.status, status, answered.text);
      const stored = await world.eventsAfter(before);
      assert.deepEqual(
        stored.map(({ type }) => type),
        types,
      );
      return answered;
    },
  }),
});
