/**
 * A world in which posts are published: Postgres event store and log, the publisher's projections, the sandbox network.
 * The test starts publishers and outcomes, as many as it wants.
 */
import { createHash, randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { BackOff } from '#contracts/base/back-off.ts';
import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import { accountIdOf, targetIdOf } from '#domain/ids.ts';
import { capabilities } from '#domain/platforms/index.ts';
import { post } from '#domain/post/post.ts';
import { type AbsencePolicy, type TargetState, target } from '#domain/post-target/target.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { SandboxNetwork, type SandboxOptions, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { migrateSchema } from '#infra/postgres/schema.ts';
import { Projector } from '#projections/engine/apply.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { groupOf, projections } from '#projections/index.ts';
import { type Consumer, consume } from '#runtime/consuming/consume.ts';
import { type DataKeys, EventCodec } from '#runtime/eventing/codec.ts';
import { type CommandContext, DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { type Clock, wallClock } from '#runtime/postgres/database-clock.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import type { Actor, Platform } from '#schemas/common.ts';
import type { PostBody, Variant } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { type Outcomes, type OutcomesDeps, startOutcomes } from '#services/outcomes/outcomes.ts';
import type { PublisherConfig } from '#services/publisher/deps.ts';
import { type PublisherDeps, runPublisher } from '#services/publisher/publisher.ts';
import type { ProcessingRest } from '#services/publisher/reconcile-schedule.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { tendApprovals } from '#services/workflows/posts/approvals.ts';
import type { ReadyAsset } from './assets.ts';
import { readyClip } from './clip.ts';
import { planned, postBody } from './samples.ts';
import { until } from './until.ts';

/** Short times for a test, in the proportions of the real ones. */
export const quick: PublisherConfig = {
  leaseTtlMs: 900,
  boundaryDeadlineMs: null,
  settleWindowMs: null,
  reconcileDelaysMs: [0, 200, 400, 800],
  deferDelaysMs: [150, 200, 250],
  maxRateLimits: 2,
  publishConcurrency: 64,
};
/** Looks of a client's rules, close to each other. */
export const quickLooks: AbsencePolicy = { looks: 3, gapMs: 400 };
/** Shortest waits after rate limits. */
export const quickBackOff: BackOff = { firstMs: 50, maxMs: 400 };
/** Bounds of the time between two questions about a post that its network accepted. */
export const quickProcessing: ProcessingRest = { minMs: 50, maxMs: 1_000 };
export const quickNetwork = { boundaryDeadlineMs: 600, settleWindowMs: 800, pollMs: 20, askMs: 100 };

/** A clock that a test moves ahead. */
export class MovedClock implements Clock {
  #aheadMs = 0;
  readonly now = (): number => Date.now() + this.#aheadMs;
  readonly fault = (): null => null;

  pass(ms: number): void {
    this.#aheadMs += ms;
  }
}

/** Keys that several processes of one test derive without a table. */
export class DerivedKeys implements DataKeys {
  async forWriting(clientId: string): Promise<Buffer> {
    return createHash('sha256').update(clientId).digest();
  }
  forReading = (clientId: string): Promise<Buffer> => this.forWriting(clientId);
}

export interface Account {
  readonly id: string;
  readonly clientId: string;
  readonly platform: Platform;
}

export interface Running {
  /** Drains and waits for the end. */
  stop(): Promise<void>;
}

/** What a held post asks for. */
const contentHash = 'a'.repeat(64);

const logger = createLogger('test', process.env.LOG_LEVEL ?? 'silent');

/** Event store, its codec and the network over one database: what a publisher in any process needs. */
export const openPublishing = async (url: string, network: Partial<SandboxOptions> = {}) => {
  const eventStore = await PostgresEventStore.open({ url, pollMs: 200 });
  const codec = new EventCodec(new DerivedKeys());
  const store = new DomainStore(eventStore, codec, defaultPartitions);
  const pool = new pg.Pool({ connectionString: url, max: 8, application_name: 'publisher' });
  pool.on('error', () => undefined);
  const sandbox = new SandboxNetwork({ database: { url }, ...quickNetwork, ...network });
  // One folder for all processes of a database.
  const folder = path.join(tmpdir(), `postline-publishing-${new URL(url).pathname.slice(1)}`);
  const secrets = new Secrets(`v1:${Buffer.alloc(32, 7).toString('base64')}`);
  const blobs = new DiskBlobs({ root: path.join(folder, 'blobs'), secrets, origin: () => 'http://media.invalid' });
  const workDir = path.join(folder, 'work');
  const close = async () => {
    await sandbox.close();
    await blobs.close();
    await pool.end();
    await eventStore.close();
  };
  return { eventStore, codec, store, pool, sandbox, blobs, folder, workDir, close };
};

export class PublishingWorld {
  readonly workspaceId: string = randomUUID();
  readonly url: string;
  readonly eventStore: PostgresEventStore;
  readonly store: DomainStore;
  readonly pool: pg.Pool;
  readonly sandbox: SandboxNetwork;
  readonly blobs: DiskBlobs;
  readonly codec: EventCodec;
  readonly logger = logger;
  /** For this database only: blobs, and work files. */
  readonly folder: string;
  readonly #parts: Awaited<ReturnType<typeof openPublishing>>;
  readonly #running = new Set<Running>();
  readonly #projecting = new AbortController();
  readonly log: Awaited<ReturnType<typeof openPostgresLog>>;
  readonly #consumers: readonly Consumer[];
  /** Not `#`: a bench derives its tenants from a world, each with a clip of its own. */
  private madeClip: Promise<ReadyAsset> | null = null;

  static async open(url: string, network: Partial<SandboxOptions> = {}): Promise<PublishingWorld> {
    const parts = await openPublishing(url, network);
    await migrateSchema(parts.pool);
    await migrateReadModels(parts.pool);
    return new PublishingWorld(url, parts, await openPostgresLog({ url, store: parts.eventStore }));
  }

  private constructor(
    url: string,
    parts: Awaited<ReturnType<typeof openPublishing>>,
    log: Awaited<ReturnType<typeof openPostgresLog>>,
  ) {
    this.url = url;
    this.#parts = parts;
    this.eventStore = parts.eventStore;
    this.store = parts.store;
    this.pool = parts.pool;
    this.sandbox = parts.sandbox;
    this.blobs = parts.blobs;
    this.codec = parts.codec;
    this.folder = parts.folder;
    this.log = log;
    this.#consumers = projections
      .filter(({ name }) => name !== 'workspaces')
      .map((projection) => {
        const projector = new Projector(projection, 1);
        return consume({
          log: this.log,
          pool: this.pool,
          group: groupOf(projection.name, 1),
          topics: projection.topics,
          kinds: projector.kinds,
          codec: parts.codec,
          apply: (tx, events) => projector.apply(tx, events),
          signal: this.#projecting.signal,
          logger,
        });
      });
  }

  /** Ends what was started here and has not been stopped. */
  async stopAll(except: readonly Running[] = []): Promise<void> {
    for (const one of [...this.#running]) if (!except.includes(one)) await one.stop();
  }

  async close(): Promise<void> {
    await this.stopAll();
    this.#projecting.abort();
    await Promise.all(this.#consumers.map(({ done }) => done));
    await this.log.close();
    await this.#parts.close();
    rmSync(this.#parts.folder, { recursive: true, force: true });
  }

  publisher(config: Partial<PublisherConfig> = {}, deps: Partial<PublisherDeps> = {}): Running {
    const given = {
      store: this.store,
      pool: this.pool,
      blobs: this.blobs,
      workDir: this.#parts.workDir,
      adapterOf: () => this.sandbox,
      accountsOf: () => this.sandbox,
      config: { ...quick, ...config },
      clock: wallClock,
      logger,
      pollMs: 100,
      absencePolicy: quickLooks,
      rateLimitBackOff: quickBackOff,
      processingRest: quickProcessing,
      ...deps,
    };
    return this.run((signal) => runPublisher(given, signal));
  }

  outcomes(sweepIntervalMs = 300, deps: Partial<OutcomesDeps> = {}): Running & { readonly outcomes: Outcomes } {
    const controller = new AbortController();
    const outcomes = startOutcomes(
      {
        log: this.log,
        eventStore: this.eventStore,
        store: this.store,
        codec: this.#parts.codec,
        pool: this.pool,
        config: { sweepIntervalMs, leaseTtlMs: quick.leaseTtlMs },
        logger,
        ...deps,
      },
      controller.signal,
    );
    return { ...this.run((signal) => this.#untilStopped(signal, controller, outcomes)), outcomes };
  }

  async #untilStopped(signal: AbortSignal, controller: AbortController, outcomes: Outcomes): Promise<void> {
    signal.addEventListener('abort', () => controller.abort());
    await outcomes.done;
  }

  /** Ends with the world at the latest. */
  run(main: (signal: AbortSignal) => Promise<void>): Running {
    const controller = new AbortController();
    const done = main(controller.signal);
    done.catch(() => undefined);
    const running: Running = {
      stop: async () => {
        this.#running.delete(running);
        controller.abort();
        await done;
      },
    };
    this.#running.add(running);
    return running;
  }

  context(): CommandContext & { readonly actor: Actor } {
    const id = uuidv7();
    const now = new Date().toISOString();
    const actor = { type: 'apikey', id: 'test' } as const;
    return { workspaceId: this.workspaceId, actor, correlationId: id, causationId: id, commandId: id, now };
  }

  async client(rules: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const id = randomUUID();
    await execute(
      this.store,
      client,
      id,
      {
        type: 'Create',
        fields: {
          name: `client ${id}`,
          type: 'brand',
          defaultPostMode: 'now',
          timezone: null,
          approvalRequired: false,
          rules,
          brandVoice: {},
        },
      },
      this.context(),
    );
    return id;
  }

  async archive(clientId: string): Promise<void> {
    await execute(this.store, client, clientId, { type: 'Archive' }, this.context());
  }

  /** Connects it, or connects it again. A name like `rate-limit-once-acme` scripts the network. */
  async connect(
    clientId: string,
    platform: Platform,
    name: string = randomUUID(),
    network: 'live' | 'sandbox' = 'sandbox',
  ): Promise<Account> {
    const id = accountIdOf(clientId, platform, name);
    await execute(
      this.store,
      account,
      id,
      {
        type: 'Connect',
        clientId,
        platform,
        externalId: network === 'live' ? name : sandboxProfile(platform, name).externalId,
        network,
        username: name,
        displayName: sandboxProfile(platform, name).displayName,
        avatarUrl: null,
        scopes: sandboxProfile(platform, name).scopes,
        expiresAt: null,
        timezone: null,
        inviteId: null,
      },
      this.context(),
    );
    return { id, clientId, platform };
  }

  /** A post to these accounts, all due at once. Returns the ids of its targets in the accounts' order. */
  async schedule(
    accounts: readonly Account[],
    options: {
      readonly text?: string;
      /** Milliseconds; or by the account's place. */
      readonly dueAt?: number | ((at: number) => number);
      readonly variants?: readonly Variant[];
      /** Members of the body that differ. */
      readonly body?: Partial<PostBody>;
      readonly scheduleMode?: 'native';
      readonly fan?: boolean;
      /** The post waits for an approval, and fails where that comes late. */
      readonly held?: PlannedTarget['approvalLate'] | 'publish';
    } = {},
  ): Promise<{ readonly postId: string; readonly targetIds: readonly string[] }> {
    const { text = 'hello', dueAt = Date.now(), variants = [], scheduleMode = 'managed', fan = true, held } = options;
    // A network without text-only posts gets the clip.
    const bare = accounts.some(({ platform }) => !capabilities(platform).textOnly);
    const mediaIds = bare ? [(await this.clip()).id] : [];
    const postId = randomUUID();
    const clientId = accounts[0]?.clientId ?? randomUUID();
    const targets = accounts.map(({ id: accountId, ...one }, at) =>
      planned({
        ...one,
        scheduleMode,
        ...(held === 'fail' ? { approvalLate: held } : {}),
        accountId,
        targetId: targetIdOf(postId, accountId, 1),
        dueAt: new Date(typeof dueAt === 'number' ? dueAt : dueAt(at)).toISOString(),
      }),
    );
    const body = postBody({
      content: text,
      targetSelection: { mode: 'accounts', clientId, accountIds: accounts.map(({ id }) => id), platforms: null },
      variants: [...variants],
      mediaIds,
      ...options.body,
    });
    const context = this.context();
    const loaded = await execute(
      this.store,
      post,
      postId,
      {
        type: 'Schedule',
        commandId: context.commandId,
        clientId,
        createdBy: context.actor,
        body,
        plan: { number: 1, targets },
        ...(held === undefined ? {} : { submission: { postId, hash: contentHash, submittedBy: context.actor } }),
      },
      context,
    );
    if (fan) await fanOut(this.store, postId, context, { loaded });
    if (held !== undefined && fan) await tendApprovals(this.store, postId);
    return { postId, targetIds: targets.map(({ targetId }) => targetId) };
  }

  /** A clip that can be published everywhere; the same one each time. */
  clip(): Promise<ReadyAsset> {
    this.madeClip ??= readyClip(this.store, this.workspaceId, this.blobs);
    return this.madeClip;
  }

  async target(id: string): Promise<TargetState> {
    return (await this.store.load(target, id)).state;
  }

  /** Types of a stream's events, in order. */
  async story(stream: string): Promise<readonly string[]> {
    return (await this.store.readStream(stream)).map(({ type }) => type);
  }

  /** Waits until each stream has this status; then returns the folds. */
  async all(ids: readonly string[], status: TargetState['status'], withinMs = 30_000): Promise<readonly TargetState[]> {
    let states: readonly TargetState[] = [];
    let left = [...ids];
    try {
      await until(
        `${ids.length} targets are ${status}`,
        async () => {
          states = await Promise.all(left.map((id) => this.target(id)));
          left = left.filter((_, at) => states[at]?.status !== status);
          return left.length === 0;
        },
        { withinMs },
      );
    } catch {
      const [id] = left;
      throw new Error(
        `${left.length} targets never were ${status}; ${id}: ${id === undefined ? '' : (await this.story(`target-${id}`)).join(' ')}`,
      );
    }
    return Promise.all(ids.map((id) => this.target(id)));
  }

  /** Posts the network has for a target. */
  async created(targetId: string): Promise<number> {
    return (await this.sandbox.creates(targetId)).filter(({ outcome }) => outcome === 'created').length;
  }
}
