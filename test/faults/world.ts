import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { testTwinIdOf } from '#domain/ids.ts';
import { type Adapters, openAdapters } from '#infra/adapters.ts';
import { noteOf } from '#infra/clickhouse/embedded.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { mintSession } from '#runtime/identity/sessions.ts';
import { readConfig } from '#runtime/process/config.ts';
import type { Times } from '#runtime/process/settings/times.ts';
import { scopes } from '#schemas/apikey.ts';
import { createApiKey, createWorkspace, type Operator } from '#services/workflows/provision.ts';
import type { Before } from '#test/support/before.ts';
import { embeddedClickHouse } from '#test/support/clickhouse.ts';
import { readyClip } from '#test/support/clip.ts';
import { patience } from '#test/support/patience.ts';
import { Process, run } from '#test/support/processes.ts';
import type { Random } from '#test/support/seed.ts';
import { timesEnv } from '#test/support/times.ts';
import { until } from '#test/support/until.ts';
import { type Checked, openTargets } from './check.ts';
import { restingAccounts } from './check-insights.ts';
import { Desk } from './desk.ts';
import { keepEnds } from './ends.ts';
import { Hooks } from './hooks.ts';
import { patienceMs } from './insist.ts';
import { LiveAccounts } from './live.ts';
import type { Moment } from './live-moments.ts';
import { LiveNetworks } from './live-networks.ts';
import { Load, type LoadOptions } from './load.ts';
import { Past } from './past.ts';
import type { Point, RoleName } from './points.ts';

/**
 * Our processes, each on its own, over one Postgres and one analytics store; any of them may be killed at any time and
 * is restarted at once. A process that ends without being killed is a violation.
 */

/** Milliseconds. Short, in the proportions of the real ones. */
export const leaseTtlMs = 1_200;
const shortTimes = {
  boundaryDeadlineMs: 1_500,
  settleWindowMs: 1_500,
  // Reconciles for a whole minute: every knowable outcome is known at rest, unless a network was silent all the while.
  reconcileDelaysMs: [0, ...Array.from({ length: 120 }, () => 500)],
  deferDelaysMs: [200, 300, 500, 800, 1_200, 2_000],
  sweepIntervalMs: 400,
  insightsYoungDelaysMs: [400, 1_500],
  webhookRetryDelaysMs: [0, 50, 100, 200, ...Array.from({ length: 40 }, () => 300)],
  webhookExchangeMs: 1_000,
  webhookLeaseMs: 2_500,
  webhookBreakerMs: 100,
} as const satisfies Partial<Times>;

const settings = {
  LEASE_TTL_MS: String(leaseTtlMs),
  // Reports here cover days that are not over: each waits this long, and is made.
  REPORT_WAIT_MS: '2500',
  WEBHOOKS_PER_WORKSPACE: '10000',
  WEBHOOK_HOST_FAILURES: '10000',
};

/** Actions in a row that may miss the fault point that they lead to. */
const leastActions = 10;

const follow = `--import=${new URL('../support/follow-parent.ts', import.meta.url).href}`;

export const environment = (
  databaseUrl: string,
  secretKey: string,
  times: Partial<Times> = {},
): Record<string, string> => ({
  ...settings,
  ...timesEnv({ ...shortTimes, ...times }),
  DATABASE_URL: databaseUrl,
  SECRET_KEY: secretKey,
  DATABASE_POOL: '5',
  OUTDATED_FFMPEG: 'take',
  PORT: '0',
  RATE_LIMIT_PER_MINUTE: '1000000',
  RATE_LIMIT_BURST: '1000000',
  // The port changes with every start; answers must not.
  BASE_URL: 'http://api.invalid/v1',
  CONSOLE_URL: 'http://console.invalid',
  NODE_OPTIONS: follow,
  // Half of a start is stripping and compiling, and processes start all the time. One that is killed writes no cache:
  // test/run.ts fills it first.
  NODE_COMPILE_CACHE: fileURLToPath(new URL('../../node_modules/.cache/node', import.meta.url)),
});

export const newSecretKey = (): string => `v1:${randomBytes(32).toString('base64')}`;

/** Fault points at each of which one process of the roles that share this must die once; a file there proves that it did. */
export class Due {
  readonly names: readonly string[];
  readonly folder: string;
  readonly signal: 'SIGKILL' | 'SIGSTOP';

  constructor(names: readonly string[], folder: string, signal: Due['signal'] = 'SIGKILL') {
    this.names = names;
    this.folder = folder;
    this.signal = signal;
  }

  /** None is due before `arm`: a process that runs already can then be armed, where a start would arm it only once. */
  static later(names: readonly string[], folder: string): Due {
    const due = new Due(names, folder);
    for (const name of names) writeFileSync(due.#proof(name), '');
    return due;
  }

  /** The next process that comes to this point dies. */
  arm(name: string): void {
    rmSync(this.#proof(name));
  }

  get open(): readonly string[] {
    return this.names.filter((name) => !existsSync(this.#proof(name)));
  }

  #proof(name: string): string {
    return path.join(this.folder, encodeURIComponent(name));
  }
}

interface RoleOptions {
  readonly main: string;
  readonly args?: readonly string[];
  readonly readyAt?: RegExp;
  /** How many of our processes it holds, each of which reports ready. Default 1. */
  readonly processes?: number;
  readonly env: Readonly<Record<string, string>>;
  /** Folder of its build. Default: this tree. */
  readonly root?: string;
  readonly sources?: boolean;
  /** Ends by itself, after which it is not restarted. */
  readonly ends?: boolean;
}

/** One of our processes, kept alive. */
export class Role {
  readonly name: string;
  /** Deaths by SIGKILL, those at fault points included. */
  kills = 0;
  readonly #options: RoleOptions;
  readonly #wrong: (what: string) => void;
  #due: Due | null = null;
  #process: Process | null = null;
  #up: Process | null = null;
  #ending = false;
  #finished = false;
  #kept: Promise<void> = Promise.resolve();

  constructor(name: string, options: RoleOptions, wrong: (what: string) => void) {
    this.name = name;
    this.#options = options;
    this.#wrong = wrong;
  }

  /** The working process; null while it is down or starts. */
  get up(): Process | null {
    return this.#up;
  }

  get isBegun(): boolean {
    return this.#process !== null;
  }

  /** Whether it ended by itself. */
  get finished(): boolean {
    return this.#finished;
  }

  /** The next start dies at the first of these that it meets and where no process has died yet. */
  dieAt(due: Due | null): void {
    this.#due = due;
  }

  /** Keeps it running until `end`. Resolves when it first runs. */
  async begin(): Promise<void> {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#finished = false;
    this.#ending = false;
    this.#kept = this.#keep(resolve);
    this.#kept.catch(reject);
    await promise;
  }

  /** Resolves when its successor has been started. */
  async kill(): Promise<void> {
    const killed = this.#process;
    await killed?.kill();
    while (this.#process === killed && !this.#ending && !this.#finished) await delay(5);
  }

  async end(): Promise<void> {
    this.#ending = true;
    const last = this.#process;
    if (last?.running) {
      // A stopped process receives no other signal.
      last.signal('SIGCONT');
      const ended = await last.stop();
      if (ended.signal !== null || ended.code !== 0)
        this.#wrong(`${this.name} was asked to drain and ended with ${ended.code ?? ended.signal}:\n${tail(last)}`);
    }
    await this.#kept;
  }

  async #keep(first: () => void): Promise<void> {
    let failures = 0;
    while (!this.#ending) {
      const due = this.#due;
      const { main, args = [], env, readyAt, processes = 1, ends = false } = this.#options;
      const faults: Record<string, string> =
        due === null
          ? {}
          : {
              POSTLINE_FAULT: due.names.join(),
              POSTLINE_FAULT_ONCE: due.folder,
              POSTLINE_FAULT_SIGNAL: due.signal,
            };
      const process = new Process(main, { ...this.#options, args, env: { ...env, ...faults } });
      this.#process = process;
      const ready = process.saying(readyAt ?? 'ready', 60_000, processes).then(
        () => {
          this.#up = process;
          first();
        },
        async () => {
          if (!process.running || this.#ending) return;
          // Several of ours in one process: one that ended leaves the others, and only the log shows it.
          const fatal = process.log().filter(({ level }) => Number(level) >= 50);
          // The previous build does not retry when its tables' locks ended in a deadlock: its operator restarts it.
          if (this.#options.root === undefined || !JSON.stringify(fatal).includes('40P01'))
            this.#wrong(`${this.name} does not come up: ${JSON.stringify(fatal)}\n${tail(process)}`);
          await process.kill();
        },
      );
      const { code, signal } = await process.exited();
      await ready;
      this.#up = null;
      if (signal === 'SIGKILL') this.kills += 1;
      else if (ends && code === 0) {
        this.#finished = true;
        return;
      } else if (!this.#ending) {
        failures += 1;
        this.#wrong(`${this.name} ended by itself with ${code ?? signal}:\n${tail(process)}`);
        if (failures > 3) throw new Error(`${this.name} does not stay up:\n${tail(process)}`);
      }
    }
  }
}

const tail = (process: Process): string => process.output().split('\n').slice(-25).join('\n');

const mains: Readonly<Record<RoleName, string>> = {
  api: 'services/api/main.ts',
  projections: 'projections/main.ts',
  outcomes: 'services/outcomes/main.ts',
  'publisher-1': 'services/publisher/main.ts',
  'publisher-2': 'services/publisher/main.ts',
  'webhooks-1': 'services/webhooks/main.ts',
  'webhooks-2': 'services/webhooks/main.ts',
  media: 'services/media/main.ts',
  insights: 'services/insights/main.ts',
  reports: 'services/reports/main.ts',
  relay: 'test/faults/relay-process.ts',
  rebuild: 'test/faults/rebuild-process.ts',
};

const second: RoleName = 'webhooks-2';

export interface WorldOptions {
  readonly databaseUrl: string;
  readonly random: Random;
  /** Default: one process for each role. */
  readonly standalone?: { readonly dataDir: string };
  /** Address of a shared analytics store. Default: an own engine, that can be killed. */
  readonly analyticsUrl?: string;
  /**
   * An older build, whose processes are the roles `before api` and `before workers`, beside `workers`; with Kafka
   * `before relay`, beside `relay`. Its tables exist before this build opens anything.
   */
  readonly before?: Before;
  /**
   * With live accounts, on networks that are simulated in this process; `all`: on all ten, of which Bluesky is the real
   * server. Default: the sandbox alone.
   */
  readonly live?: true | 'all';
  /** For every process, over the times of a world. */
  readonly times?: Partial<Times>;
  /** For every process, over the default environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** Main of the processes that a broken build breaks; by default all are of that build. */
  readonly brokenMain?: string;
  /** Of an earlier world, whose database or a copy of it this one has: its key and its folder of files. */
  readonly installed?: { readonly secretKey: string; readonly dataDir: string };
  /** Called for each death at a fault point. */
  readonly onProgress?: (what: string) => void;
}

type Engine = Awaited<ReturnType<typeof embeddedClickHouse>>;

type Made = Pick<FaultWorld, 'adapters' | 'codec' | 'sandbox' | 'hooks' | 'random' | 'token'> & {
  readonly live: ((load: Load, tag: string) => LiveAccounts) | null;
  readonly session: () => Promise<string>;
  readonly report: Desk['make'];
  readonly recycled: Past['recycled'];
  readonly paced: LoadOptions['paced'];
  /** Null: it uses a given store, or each start of the one process has its own engine. */
  readonly engine: Engine | null;
  readonly analyticsUrl: string | undefined;
  readonly ends: Checked['ends'];
  readonly onProgress: (what: string) => void;
  /** An asset that can be published everywhere. */
  readonly clipId: string;
  readonly dir: string;
  readonly dataDir: string;
};

export class FaultWorld {
  readonly adapters: Adapters;
  readonly codec: EventCodec;
  readonly sandbox: SandboxNetwork;
  readonly load: Load;
  readonly hooks: Hooks;
  /** Null: there are no live accounts here. */
  readonly live: LiveAccounts | null;
  readonly roles = new Map<string, Role>();
  readonly random: Random;
  /** Token of the load. */
  readonly token: string;
  readonly #dir: string;
  readonly #dataDir: string;
  readonly #engine: Engine | null;
  readonly #analyticsUrl: string | undefined;
  readonly #ends: Checked['ends'];
  readonly #onProgress: (what: string) => void;
  readonly #violations: string[] = [];
  #engineKills = 0;
  /** Of all processes: a change holds from their next start. */
  #env: Record<string, string> = {};
  #isClosed = false;
  #turn = 0;

  static async open(options: WorldOptions): Promise<FaultWorld> {
    const { databaseUrl, random, standalone, before, brokenMain, env: more, onProgress = () => undefined } = options;
    const secretKey = options.installed?.secretKey ?? newSecretKey();
    const hooks = await Hooks.open(random);
    const networks = options.live === undefined ? null : await LiveNetworks.open({ all: options.live === 'all' });
    const dir = mkdtempSync(path.join(tmpdir(), 'postline-faults-'));
    const dataDir = options.installed?.dataDir ?? standalone?.dataDir ?? path.join(dir, 'data');
    const own = standalone === undefined && options.analyticsUrl === undefined;
    const engine = own ? await embeddedClickHouse() : null;
    const analyticsUrl = engine?.embedded.url ?? options.analyticsUrl;
    const env: Record<string, string> = {
      ...environment(databaseUrl, secretKey, options.times),
      PRIVATE_TARGETS: [hooks.host, ...(networks?.hosts ?? [])].join(),
      ...networks?.env,
      DATA_DIR: dataDir,
      ...(analyticsUrl === undefined ? {} : { CLICKHOUSE_URL: analyticsUrl }),
      ...more,
    };
    if (before !== undefined) {
      const { code, output } = await run(before.makeTables, { env, root: before.root });
      if (code !== 0) throw new Error(`the tables of ${before.commit} could not be made:\n${output}`);
    }
    const secrets = new Secrets(secretKey);
    const adapters = await openAdapters({ name: 'faults', config: readConfig(env), secrets });
    const sandbox = new SandboxNetwork({ database: { pool: adapters.pool } });
    await migrateReadModels(adapters.pool);
    const codec = new EventCodec(adapters.dataKeys);
    const operator: Operator = {
      store: new DomainStore(adapters.store, codec, adapters.log.partitions),
      pool: adapters.pool,
      actor: { type: 'admin', id: 'faults' },
      clock: Date.now,
      positions: new Map(),
    };
    const owner = await createWorkspace(operator, { name: 'Faults', timezone: 'Europe/Berlin', ownerName: 'Olga' });
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    // The build before stops at a key with a scope that it does not know.
    const known = scopes.filter((scope) => before === undefined || scope !== 'reports.manage');
    const key = { ...owner, name: 'faults', scopes: known, mode: 'test', expiresAt } as const;
    const { secret, id: keyId } = await createApiKey(operator, key);
    // In the key's own workspace: data of a test key lies beside that of other keys.
    const { id: clipId } = await readyClip(operator.store, testTwinIdOf(owner.workspaceId), adapters.blobs);
    const console = { store: operator.store, secrets, clock: operator.clock };
    const liveKey = networks === null ? null : await createApiKey(operator, { ...key, mode: 'live' });
    const world = new FaultWorld({
      live:
        networks === null || liveKey === null
          ? null
          : (load, tag) =>
              new LiveAccounts({
                ...{ networks, operator, load, random, tag, adapters, token: liveKey.secret },
                workspaceId: owner.workspaceId,
              }),
      session: async () => (await mintSession(console, { ...owner, mode: 'test' })).token,
      report: new Desk(operator, testTwinIdOf(owner.workspaceId), random).make,
      recycled: new Past(operator, testTwinIdOf(owner.workspaceId), keyId, random).recycled,
      paced: async () => {
        const other = await createWorkspace(operator, { name: 'Paced', timezone: 'UTC', ownerName: 'Petra' });
        const { secret: token } = await createApiKey(operator, { ...key, ...other });
        return { token, pace: () => Past.pace(operator, testTwinIdOf(other.workspaceId)) };
      },
      engine,
      analyticsUrl,
      adapters,
      codec,
      sandbox,
      hooks,
      random,
      token: secret,
      ends: adapters.changes === null ? await keepEnds(adapters.pool, adapters.store) : async () => undefined,
      onProgress,
      clipId,
      dir,
      dataDir,
    });
    if (networks !== null) networks.api = () => world.origin();
    world.#env = env;
    const add = (name: string, options: RoleOptions): void =>
      void world.roles.set(name, new Role(name, options, (what) => world.wrong(what)));
    if (standalone === undefined) {
      for (const [name, main] of Object.entries(mains)) {
        const sources = brokenMain === undefined ? {} : { sources: main === brokenMain };
        add(name, { main, env, ends: name === 'rebuild', ...sources });
      }
      if (before !== undefined) {
        add('workers', { main: 'test/faults/workers.ts', env, processes: 7 });
        add('before workers', { main: before.workers, env, processes: 7, root: before.root });
        add('before api', { main: mains.api, env, root: before.root });
        const relay = { main: 'services/relay/main.ts', env };
        if (env.KAFKA_BROKERS !== undefined) add('relay', relay);
        if (env.KAFKA_BROKERS !== undefined) add('before relay', { ...relay, root: before.root });
      }
    } else {
      const args = ['--data', standalone.dataDir, '--port', '0'];
      // Its public address is its port, unless the environment sets one.
      const { BASE_URL: _shown, ...own } = env;
      add('standalone', { main: 'services/standalone/main.ts', args, env: own, readyAt: /Serving \S+/ });
    }
    return world;
  }

  private constructor(made: Made) {
    this.#ends = made.ends;
    this.#onProgress = made.onProgress;
    this.token = made.token;
    this.adapters = made.adapters;
    this.codec = made.codec;
    this.sandbox = made.sandbox;
    this.hooks = made.hooks;
    this.random = made.random;
    this.#dir = made.dir;
    this.#dataDir = made.dataDir;
    this.#engine = made.engine;
    this.#analyticsUrl = made.analyticsUrl;
    const tag = made.random.int(0, 2 ** 31).toString(36);
    const { token, random, clipId, session, report, recycled, paced } = made;
    const passHours = () => this.sandbox.advance(2 * 3_600_000);
    this.load = new Load({
      origin: () => this.origin(),
      token,
      session,
      passHours,
      networkNow: async () => (await this.sandbox.now()).getTime(),
      ...{ report, recycled, paced },
      random,
      tag,
      clipId,
      mixed: () => this.#isMixed(),
    });
    this.live = made.live?.(this.load, tag) ?? null;
  }

  role(name: string): Role {
    const found = this.roles.get(name);
    if (found === undefined) throw new Error(`there is no ${name} here`);
    return found;
  }

  /**
   * Starts these, and waits until the api knows its key. Default: all except `rebuild`, which ends by itself, and the
   * second sender, which would take the lane on which the first has to die.
   */
  async begin(
    names: readonly string[] = [...this.roles.keys()].filter((name) => name !== 'rebuild' && name !== second),
  ): Promise<void> {
    await Promise.all(names.map((name) => this.role(name).begin()));
    await until('the key works', async () => (await this.load.get('/agency')).status === 200, { withinMs: 60_000 });
    await this.load.prepare();
    if (names.some((name) => name === 'standalone' || /webhooks|workers/.test(name)))
      await this.hooks.prepare(this.load);
    await this.live?.prepare();
  }

  /** Origin of the api, null while it is down. */
  origin(): string | null {
    const standalone = this.roles.get('standalone');
    if (standalone === undefined) return this.#apis().at(0)?.url('') ?? null;
    return /Serving (http:\S+)\/v1/.exec(standalone.up?.output() ?? '')?.[1] ?? null;
  }

  /** The running apis, each first in its turn. */
  #apis(): readonly Process[] {
    const up = ['api', 'before api'].flatMap((name) => this.roles.get(name)?.up ?? []);
    this.#turn += 1;
    return up.length > 1 && this.#turn % 2 === 0 ? up.toReversed() : up;
  }

  wrong(what: string): void {
    this.#violations.push(what);
  }

  get violations(): readonly string[] {
    return [...this.#violations, ...this.load.violations, ...(this.live?.violations ?? [])];
  }

  #isMixed(): boolean {
    return this.roles.has('before api');
  }

  /** The input of `check`. */
  get checked(): Checked {
    return {
      ...this.adapters,
      mixed: this.#isMixed(),
      live: this.live?.checked ?? null,
      codec: this.codec,
      sandbox: this.sandbox,
      hooks: this.hooks,
      ends: this.#ends,
      blobRoot: path.join(this.#dataDir, 'blobs'),
      analyticsUrl: () => this.#analyticsUrl ?? readFileSync(noteOf(path.join(this.#dataDir, 'analytics')), 'utf8'),
    };
  }

  get kills(): number {
    return [...this.roles.values()].reduce((sum, role) => sum + role.kills, this.#engineKills);
  }

  /** Kills the child of the analytics store: the next connection starts another one. */
  async killEngine(): Promise<void> {
    const { embedded } = this.#engine ?? {};
    if (embedded === undefined) throw new Error('there is no engine of ours here');
    const pid = await until('the engine runs', async () => embedded.pid(), { withinMs: 60_000 });
    process.kill(pid, 'SIGKILL');
    this.#engineKills += 1;
    await until('the engine is gone', async () => embedded.pid() !== pid);
  }

  /**
   * Has a process die once at each of these, of one role or of several that share their work, while the actions that
   * lead there go on. A role without a fault point to die at is killed from outside first. On a busy machine, where the
   * api dies as well, one action may take minutes: it fails only once so many actions have ended without a death.
   */
  async dieAtEach(roles: readonly Role[], points: readonly Point[], limitMs = 60_000): Promise<void> {
    if (points.length === 0) return;
    const names = roles.map(({ name }) => name).join(' or ');
    const due = new Due(
      points.map(({ name }) => name),
      this.#folder(),
    );
    await Promise.all(
      roles.map((role) => {
        role.dieAt(due);
        return role.up === null ? role.begin() : role.kill();
      }),
    );
    let limit = performance.now() + limitMs * patience;
    for (let [open, turn] = [due.open, 0]; open.length > 0; turn += 1) {
      const [next = ''] = open;
      if (turn >= leastActions && performance.now() > limit) {
        const missed = `no process died at ${next} within ${limitMs * patience} ms and ${turn} actions`;
        throw new Error([missed, ...this.violations].join('; '));
      }
      const by = points.find(({ name }) => name === next)?.by ?? [];
      const acting = this.load.run(by[turn % by.length] ?? 'now');
      // A call that its own process died over ends by its repeats; they report its failure.
      acting.catch((error: unknown) => this.wrong(`${next}: ${error instanceof Error ? error.message : error}`));
      const before = open.length;
      let ended = false;
      const died = until('a process died', () => ended || due.open.length < before, {
        ...{ everyMs: 25, withinMs: patienceMs },
      }).catch(() => undefined);
      await Promise.race([acting, died]).catch(() => undefined);
      // An action may miss: another process did the work. The next one comes later each time, or a busy machine gets busier.
      if (due.open.length === before) await Promise.race([died, delay(Math.min(200 * 2 ** turn, 1_600))]);
      ended = true;
      open = due.open;
      if (open.length === before) continue;
      turn = -1;
      limit = performance.now() + limitMs * patience;
      this.#onProgress(`${names} died, ${points.length - open.length} of ${points.length}`);
      await until(`${names} is up again`, () => roles.some((role) => role.up !== null || role.finished), {
        withinMs: 60_000,
      });
    }
    for (const role of roles) role.dieAt(null);
  }

  /** Has the publishers die at these calls to live networks, each once, while the actions that lead there go on. */
  async dieAtMoments(moments: readonly Moment[], limitMs = 60_000): Promise<void> {
    const { live } = this;
    if (live === null) throw new Error('there are no live accounts here');
    const publishers = [...this.roles.values()].filter(({ name }) => name.startsWith('publisher'));
    for (const { name, by, on, arm } of moments) {
      const dead: Promise<void>[] = [];
      const limit = performance.now() + limitMs * patience;
      const strike = (): void => void (dead.length === 0 && dead.push(...publishers.map((role) => role.kill())));
      for (let tries = 0; dead.length === 0; tries += 1) {
        if (performance.now() > limit) {
          const missed = `no publisher came to ${name} within ${limitMs * patience} ms and ${tries} actions`;
          throw new Error([missed, ...(await openTargets(this.checked)), ...this.violations].join('; '));
        }
        // A call of something else may have spent it.
        if (tries % 4 === 0) arm(live.networks, strike);
        await live.load.run(by, on);
        await until(name, () => dead.length > 0, { everyMs: 25, withinMs: 2_000 }).catch(() => undefined);
      }
      await Promise.all(dead);
      this.#onProgress(`publishers died at ${name}`);
    }
    live.networks.calm();
  }

  /**
   * LinkedIn ends the version that our processes ask for, while they post; then the operator sets a newer one, with which
   * they start.
   */
  async endVersion(): Promise<void> {
    const { live } = this;
    if (live === null) throw new Error('there are no live accounts here');
    const { linkedin } = live.networks.others;
    const newer = String(Number(this.#env.LINKEDIN_VERSION ?? '202608') + 1);
    // The figures of a post that has just gone out come due while nobody answers the version.
    const out = linkedin.posts().length;
    await until('a post is out on LinkedIn', async () => {
      await live.load.run('text', 'linkedin');
      return until('it is out', () => linkedin.posts().length > out, { withinMs: 1_500 }).catch(() => false);
    });
    linkedin.onlyVersion(newer);
    await until('LinkedIn refuses the version', async () => {
      await live.load.run('text', 'linkedin');
      return linkedin.refusedVersion();
    });
    // On a busy machine all may have been read before.
    const rests = async () => (await restingAccounts(this.adapters.pool, 'linkedin')) > 0;
    await until('its figures rest', rests, { withinMs: 1_500 }).catch(() => undefined);
    this.#env.LINKEDIN_VERSION = newer;
    const asking = [...this.roles.values()].filter(
      ({ name, isBegun }) => isBegun && /^(publisher|insights|api|outcomes)/.test(name),
    );
    await Promise.all(asking.map((role) => role.kill()));
    this.#onProgress(`LinkedIn has version ${newer} alone`);
  }

  /** Stops a role at its first arrival at this fault point. Starts it. @returns whether it stands there */
  async sleepAt(role: Role, name: string): Promise<() => boolean> {
    const due = new Due([name], this.#folder(), 'SIGSTOP');
    role.dieAt(due);
    if (role.up === null) await role.begin();
    else await role.kill();
    await until(`${role.name} is up`, async () => role.up !== null, { withinMs: 60_000 });
    return () => due.open.length === 0;
  }

  #folder(): string {
    return mkdtempSync(path.join(this.#dir, 'due-'));
  }

  /** Stops a process for longer than its leases last, then lets it continue. */
  async freeze(role: Role, ms = leaseTtlMs * 2): Promise<void> {
    const process = role.up;
    if (process === null) return;
    process.signal('SIGSTOP');
    try {
      await delay(ms);
    } finally {
      if (process.running) process.signal('SIGCONT');
    }
  }

  /** A second call does nothing. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.all([...this.roles.values()].map((role) => role.end()));
    await this.hooks.close();
    this.live?.close();
    await this.adapters.close();
    await this.#engine?.remove();
    rmSync(this.#dir, { recursive: true, force: true });
  }
}
