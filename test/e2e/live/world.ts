/** The processes of one installation, before all networks of its tests: a start of them costs more than what a test asks of them. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { openPool } from '#infra/postgres/pool.ts';
import type { Platform } from '#schemas/common.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { Guest } from '#test/support/guest.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { timesEnv } from '#test/support/times.ts';
import { type UntilOptions, until } from '#test/support/until.ts';

/** A network as the processes find it. */
export interface Joined {
  readonly origin: string;
  /** Origins of its other servers. */
  readonly others?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  close(): void;
}

export type Target = Readonly<Record<string, unknown>>;

/** One of the networks that a post of all of them goes to. */
export interface Place {
  readonly platform: Platform;
  /** Somebody new connects their account through the link. */
  connect(link: string): Promise<void>;
  /** Of the variant; `connect` was called. */
  overrides?(): Readonly<Record<string, unknown>>;
  /** Ids, as our targets have them, of all that the network itself has with these words, deleted ones too. */
  shown(words: string): readonly string[] | Promise<readonly string[]>;
  /** People react to it. Absent: the network counts something of each post. */
  seen?(words: string): void;
}

export const isOut = ({ status }: Target): boolean => status === 'published';

/** The person presses "Allow" on the network's page. @returns where the network sends the browser */
export const allowed = async (page: string, personId: string): Promise<string> => {
  // Appended: to parse the address and write it anew would change how it is escaped.
  const answer = await fetch(`${page}&as=${encodeURIComponent(personId)}`, { redirect: 'manual' });
  assert.equal(answer.status, 302, await answer.text());
  return answer.headers.get('location') ?? '';
};

type Join = (redirectUri: string) => Promise<Joined>;

export class LiveWorld {
  readonly processes: Process[] = [];
  /** With a key of the workspace. */
  http: Caller = callerOf(() => this.api.url('/v1'), null);
  readonly #joins: Join[] = [];
  #networks: readonly Joined[] = [];
  #env: Readonly<Record<string, string>> = {};
  #port = 0;
  #api: Process | undefined;
  #publisher: Process | undefined;
  #outcomes: Process | undefined;

  /** Before the processes start. */
  join(network: Join): void {
    this.#joins.push(network);
  }

  async open(): Promise<void> {
    this.#port = await freePort();
    this.#networks = await Promise.all(this.#joins.map((join) => join(`${this.base}/connect/callback`)));
    const [{ url }, { url: analyticsUrl }] = await Promise.all([preparedDatabase(), testClickHouse()]);
    this.#env = {
      ...{
        DATABASE_URL: url,
        CLICKHOUSE_URL: analyticsUrl,
        SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`,
        PORT: '0',
      },
      ...{ DATA_DIR: dataFolder().dataDir, DATABASE_POOL: '4', LEASE_TTL_MS: '2000' },
      ...timesEnv({
        ...{ sweepIntervalMs: 300, deferDelaysMs: [300, 300, 300], reconcileDelaysMs: [0, 500, 1_000] },
        // Several, so that a machine that is behind misses not all of them.
        insightsYoungDelaysMs: [1_000, 10_000, 30_000, 90_000],
      }),
      ...{ CONSOLE_URL: this.base, BASE_URL: `${this.base}/v1` },
      // The tests poll, all with one key.
      ...{ RATE_LIMIT_PER_MINUTE: '6000', RATE_LIMIT_BURST: '1000' },
      PRIVATE_TARGETS: this.#networks
        .flatMap(({ origin, others = [] }) => [origin, ...others])
        .map((one) => new URL(one).host)
        .join(),
      ...Object.assign({}, ...this.#networks.map(({ env }) => env)),
    };
    await this.startApi('');
    await Promise.all([
      ...['projections/main.ts', 'services/media/main.ts'].map((main) => this.launch(main)),
      this.startPublisher(),
      this.launch('services/outcomes/main.ts').then((one) => {
        this.#outcomes = one;
      }),
    ]);
    await this.admin('workspace', 'create', '--name', 'Café');
    const { secret = '' } = await this.admin('key', 'create', '--mode', 'live');
    this.http = callerOf(() => this.api.url('/v1'), secret);
  }

  async close(): Promise<void> {
    await Promise.all(this.processes.map((one) => one.kill()));
    for (const network of this.#networks) network.close();
  }

  get base(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  get databaseUrl(): string {
    return this.#env.DATABASE_URL ?? '';
  }

  get api(): Process {
    return this.#running(this.#api);
  }

  get publisher(): Process {
    return this.#running(this.#publisher);
  }

  get outcomes(): Process {
    return this.#running(this.#outcomes);
  }

  async launch(main: string, more: Readonly<Record<string, string>> = {}): Promise<Process> {
    const one = await start(main, { env: { ...this.#env, ...more } });
    this.processes.push(one);
    return one;
  }

  /** The api, at the same address, which dies at the point once it comes there. */
  async startApi(point: string): Promise<void> {
    this.#api = await this.launch('services/api/main.ts', { PORT: String(this.#port), POSTLINE_FAULT: point });
  }

  /** In the place of one that has ended. @param more settings that stay, also for those that start later */
  async startPublisher(more: Readonly<Record<string, string>> = {}): Promise<void> {
    this.#env = { ...this.#env, ...more };
    this.#publisher = await this.launch('services/publisher/main.ts');
  }

  /** The api was killed by what is asked. */
  async died(asked: Promise<unknown>): Promise<void> {
    await assert.rejects(asked, TypeError);
    assert.equal((await this.api.exited()).signal, 'SIGKILL');
  }

  async admin(...args: string[]): Promise<Readonly<Record<string, string>>> {
    const { code, output } = await run('services/admin/main.ts', { env: this.#env, args: [...args, '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').at(-1) ?? '');
  }

  /** Its name is nobody else's: two of one name are one. */
  async client(name: string): Promise<string> {
    return (await this.http.post('/clients', { name, type: 'brand' })).data.id;
  }

  /** Somebody with a browser of their own. */
  guest(): Guest {
    return new Guest(() => this.api.url(''));
  }

  /** The path of a connect link. */
  async link(clientId: string, platforms: readonly string[], more: object = {}): Promise<string> {
    const made = await this.http.post(`/clients/${clientId}/connect-invites`, { platforms, ...more });
    assert.equal(made.status, 200, made.text);
    return new URL(String(made.data.url)).pathname;
  }

  /** The accounts of a client, once there are so many. */
  async accounts(clientId: string, count = 1) {
    return until('the accounts', async () => {
      const { rows } = await this.http.get(`/accounts?clientId=${clientId}`);
      return rows.length === count && rows;
    });
  }

  /** A post to all accounts of a client, now. @returns its id */
  async compose(clientId: string, body: Readonly<Record<string, unknown>>): Promise<string> {
    const made = await this.http.post('/posts', {
      ...{ clientId, targets: { mode: 'group', clientId }, schedule: { type: 'now' }, ...body },
    });
    assert.equal(made.status, 200, made.text);
    return String(made.data.id);
  }

  async targets(postId: string): Promise<readonly Target[]> {
    return (await this.http.get(`/posts/${postId}`)).data.targets as readonly Target[];
  }

  /** The target of a post to one account, once it is as wanted. */
  async target(postId: string, isDone: (target: Target) => boolean, options: UntilOptions = {}): Promise<Target> {
    return until(
      'the target',
      async () => {
        const [one] = await this.targets(postId);
        return one !== undefined && isDone(one) ? one : null;
      },
      options,
    );
  }

  /** Somebody new allows it on the page of the network, and takes the first account where there is a choice. */
  async consent(link: string, platform: Platform, personId: string): Promise<void> {
    const guest = this.guest();
    const page = await guest.sent(link, { platform, way: 'consent', timezone: '' });
    const { next, html } = await guest.get(await allowed(page, personId));
    if (next === link) return;
    assert.ok(next !== null, html);
    assert.equal(await guest.sent(next, { account: '0' }), link);
  }

  async nothingIsKept(): Promise<void> {
    const pool = openPool({ url: this.databaseUrl });
    await until('its credentials are destroyed', async () => {
      const { rowCount } = await pool.query('select 1 from ops.network_credentials');
      return rowCount === 0;
    });
    await pool.end();
  }

  #running(one: Process | undefined): Process {
    if (one === undefined) throw new Error('the processes have not started');
    return one;
  }
}
