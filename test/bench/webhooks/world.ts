/**
 * The bench's own installation: a database, the event store in this process, and `services/webhooks/main.ts` as an
 * operator starts it, with production defaults except for the targets, which are on this machine.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { type WebhookCommand, webhook } from '#domain/webhook.ts';
import { type Adapters, openAdapters } from '#infra/adapters.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { type Process, start } from '#test/support/processes.ts';
import { sparing, until } from '#test/support/until.ts';
import { cpuSeconds, environment, familyOf, parentOf } from '../environment.ts';
import { Feed } from './feed.ts';

const follow = `--import=${fileURLToPath(new URL('../../support/follow-parent.ts', import.meta.url))}`;

/** @throws when Postgres may confirm a commit before it is on the disk */
const durable = async (pool: pg.Pool): Promise<void> => {
  const { rows } = await pool.query(
    `select 1 from pg_db_role_setting, unnest(setconfig) s where s ~ '^(fsync|synchronous_commit|full_page_writes)='`,
  );
  if (rows.length > 0) throw new Error('a role or database has settings of its own for what waits for the disk');
};

/** Resolves when the dispatcher knows so many endpoints, and no catch-up of them is running. */
export const settled = async (pool: pg.Pool, endpoints: number): Promise<void> => {
  await until(
    'the endpoints are settled',
    async () => {
      const { rows } = await pool.query<{ known: number; catching: number }>(
        `select (select count(*)::int from ops.webhook_endpoints) as known,
         (select count(*)::int from ops.webhook_jobs where status = 'running') as catching`,
      );
      return rows[0]?.known === endpoints && rows[0].catching === 0;
    },
    sparing,
  );
};

/** A database that is dropped with the stack; Postgres waits for its disk, and the lines describe the machine. */
export const benchDatabase = async (
  stack: AsyncDisposableStack,
): Promise<{ readonly url: string; readonly environment: readonly string[] }> => {
  const server = await sharedServer();
  stack.defer(server.stop);
  const admin = new pg.Pool({ connectionString: server.url, max: 1 });
  admin.on('error', () => undefined);
  stack.defer(() => admin.end());
  await durable(admin);
  const name = `bench_${randomBytes(6).toString('hex')}`;
  await admin.query(`create database ${name}`);
  stack.defer(async () => void (await admin.query(`drop database ${name} with (force)`)));
  const { href } = Object.assign(new URL(server.url), { pathname: `/${name}` });
  return { url: href, environment: await environment(href) };
};

export interface Appending {
  readonly adapters: Adapters;
  readonly codec: EventCodec;
  readonly store: DomainStore;
}

/** The event store and what encodes for it, in this process. */
export const openAppending = async (
  stack: AsyncDisposableStack,
  databaseUrl: string,
  secretKey: string,
): Promise<Appending> => {
  const config = readConfig({ DATABASE_URL: databaseUrl, SECRET_KEY: secretKey, DATABASE_POOL: '2' });
  const adapters = await openAdapters({ name: 'bench', config, secrets: new Secrets(secretKey) });
  stack.defer(adapters.close);
  adapters.pool.on('error', () => undefined);
  const codec = new EventCodec(adapters.dataKeys);
  return { adapters, codec, store: new DomainStore(adapters.store, codec, config.partitions) };
};

/** Of one process: milliseconds of processor for each delivery. */
export type CpuOf = Readonly<Record<string, number>>;

export class BenchWorld {
  readonly databaseUrl: string;
  readonly webhooks: Process;
  readonly #appending: Appending;
  readonly #postgres: number;

  /** @param env for the webhooks process, and for those in `besides`, which start first */
  static async open(
    stack: AsyncDisposableStack,
    {
      env = {},
      besides = [],
    }: { readonly env?: Readonly<Record<string, string>>; readonly besides?: readonly string[] } = {},
  ): Promise<BenchWorld> {
    const database = await benchDatabase(stack);
    const secretKey = `v1:${randomBytes(32).toString('base64')}`;
    const appending = await openAppending(stack, database.url, secretKey);
    const profile = process.env.BENCH_PROFILE;
    const profiling = profile === undefined ? '' : ` --cpu-prof --cpu-prof-dir=${profile}`;
    const all = {
      DATABASE_URL: database.url,
      SECRET_KEY: secretKey,
      PRIVATE_TARGETS: '*',
      LOG_LEVEL: 'info',
      NODE_OPTIONS: `${follow}${profiling}`,
      ...env,
    };
    const processes: Process[] = [];
    for (const main of [...besides, 'services/webhooks/main.ts']) {
      const one = await start(main, { env: all });
      stack.defer(async () => void (await one.stop(3_000)));
      processes.push(one);
    }
    const webhooks = processes.at(-1) as Process;
    const { rows } = await appending.adapters.pool.query<{ pid: number }>('select pg_backend_pid() as pid');
    return new BenchWorld(database.url, appending, webhooks, parentOf(rows[0]?.pid ?? Number.NaN));
  }

  private constructor(databaseUrl: string, appending: Appending, webhooks: Process, postgres: number) {
    this.databaseUrl = databaseUrl;
    this.#appending = appending;
    this.webhooks = webhooks;
    this.#postgres = postgres;
  }

  get pool(): pg.Pool {
    return this.#appending.adapters.pool;
  }

  feed(workspaceId: string): Promise<Feed> {
    return Feed.open(this.#appending.adapters.store, this.#appending.codec, { workspaceId });
  }

  /** An endpoint for everything about posts. */
  async register(workspaceId: string, url: string): Promise<string> {
    const id = randomUUID();
    await this.#act(workspaceId, id, {
      type: 'Register',
      url,
      events: ['post.*'],
      description: null,
      clientIds: null,
      keyVersion: 'v1',
    });
    return id;
  }

  /** Moves the endpoint to another address. */
  async move(workspaceId: string, id: string, url: string): Promise<void> {
    await this.#act(workspaceId, id, { type: 'Update', changes: { url } });
  }

  async #act(workspaceId: string, id: string, command: WebhookCommand): Promise<void> {
    const commandId = uuidv7();
    await execute(this.#appending.store, webhook, id, command, {
      workspaceId,
      actor: { type: 'service', id: 'bench' },
      correlationId: commandId,
      causationId: commandId,
      commandId,
      now: new Date().toISOString(),
    });
  }

  /**
   * Processor time from here on; the returned function divides it by the deliveries. NaN where Postgres runs elsewhere.
   */
  cpu(receiverPid: number): (deliveries: number) => CpuOf {
    const used = (): CpuOf => ({
      webhooks: cpuSeconds(this.webhooks.pid),
      Postgres: familyOf(this.#postgres).reduce((sum, pid) => sum + cpuSeconds(pid), 0),
      load: cpuSeconds(process.pid),
      receiver: cpuSeconds(receiverPid),
    });
    const before = used();
    return (deliveries) => {
      const after = used();
      return Object.fromEntries(
        Object.entries(before).map(([name, at]) => [name, (((after[name] ?? Number.NaN) - at) * 1_000) / deliveries]),
      );
    };
  }

  /** Warnings and errors of its log. */
  complaints(): readonly string[] {
    return this.webhooks
      .log()
      .filter(({ level }) => level === 'warn' || level === 'error' || level === 'fatal')
      .map(({ msg }) => String(msg));
  }
}
