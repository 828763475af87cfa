import { randomBytes, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { FindOutcome, FindRequest } from '#contracts/ports/platform.ts';
import { account } from '#domain/account.ts';
import { accountIdOf, testTwinIdOf } from '#domain/ids.ts';
import { cadenceReached } from '#domain/publish-failures.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { SandboxNetwork, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { createStatements } from '#projections/analytics/tables.ts';
import { view } from '#projections/shapes.ts';
import { type DecodedEvent, EventCodec } from '#runtime/eventing/codec.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { everyWorkspace, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { newestRestore, restored } from '#runtime/work/restores.ts';
import { scopes } from '#schemas/apikey.ts';
import type { Platform } from '#schemas/common.ts';
import { type OutcomesDeps, outcomesGroup, startOutcomes } from '#services/outcomes/outcomes.ts';
import { runPublisher } from '#services/publisher/publisher.ts';
import { contextOf, createApiKey, createWorkspace } from '#services/workflows/provision.ts';
import { type TestClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { readyClip } from '#test/support/clip.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { quick, quickLooks, quickNetwork, quickProcessing } from '#test/support/publishing.ts';
import { afterFile } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { streamsOf } from './check.ts';
import { checkTargets, createdIn, type Lost, type Streams } from './check-targets.ts';
import { minuteMs, type Pair, type Scene } from './pairs.ts';

/**
 * The api, two publishers and the outcomes over one database and one clock, which the test moves: the posts of all pairs
 * live through the same days.
 */

const platforms: readonly Platform[] = ['x', 'facebook'];
/** From the start of the world to the time of the posts. Inside the window of the network's own scheduler. */
const leadMs = 70 * minuteMs;
/** Nobody dies here, and no call is slow: a busy machine must not take work from those who are at it, nor end their calls. */
const leaseTtlMs = 20_000;
const boundaryDeadlineMs = 20_000;
export const weekMs = 7 * 24 * 60 * minuteMs;
/** Of 1970, in milliseconds. */
const firstMonday = 4 * 24 * 60 * minuteMs;

/** What outlives a world: a restore puts an older copy of the database in its place, and nothing else. */
interface Outside {
  readonly networkUrl: string;
  readonly house: TestClickHouse;
  readonly secrets: Secrets;
  readonly codec: EventCodec;
  readonly blobs: DiskBlobs;
  /** `moves`: since when, in milliseconds of this machine, it has been so far ahead. */
  readonly clock: { aheadMs: number; readonly moves: { readonly at: number; readonly aheadMs: number }[] };
  readonly dueAt: number;
  scenes: readonly Scene[];
}

export class PairsWorld {
  readonly world: World;
  readonly sandbox: SandboxNetwork;
  readonly #outside: Outside;
  readonly #stop = new AbortController();
  readonly #running: Promise<unknown>;
  readonly #leave: () => Promise<void>;
  #isRestored = false;
  /** Workspaces that wait for something that the test gives them later. */
  waiting: readonly string[] = [];

  /** @param startMs since the start of a Monday: which slot of the best times a post gets depends on it */
  static async open(startMs: number): Promise<PairsWorld> {
    const house = await testClickHouse();
    for (const query of createStatements(1)) await house.client.command({ query });
    const clock = { aheadMs: 0, moves: [] };
    const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
    const root = mkdtempSync(path.join(tmpdir(), 'postline-pairs-'));
    afterFile(async () => rmSync(root, { recursive: true, force: true }));
    const now = () => Date.now() + clock.aheadMs;
    const untilStartMs = weekMs - ((Date.now() - firstMonday - startMs) % weekMs);
    const world = await PairsWorld.#on((await preparedDatabase()).url, {
      ...{ networkUrl: (await preparedDatabase()).url, house, secrets, clock, scenes: [] },
      codec: new EventCodec(new TestKeys()),
      blobs: new DiskBlobs({ root, secrets, origin: () => 'http://blobs.invalid', clock: now }),
      dueAt: Math.ceil((Date.now() + untilStartMs + leadMs) / minuteMs) * minuteMs,
    });
    await world.pass(untilStartMs);
    return world;
  }

  static async #on(databaseUrl: string, outside: Outside): Promise<PairsWorld> {
    const { house, blobs, secrets, codec, networkUrl } = outside;
    // What it knows of the analytics it keeps by this client.
    const analytics = openAnalytics({ url: house.url });
    const world = await startWorld({ databaseUrl, secrets, codec, deps: { analytics, blobs } });
    world.clock.shiftMs = outside.clock.aheadMs;
    const sandbox = new SandboxNetwork({ database: { url: networkUrl }, ...quickNetwork, boundaryDeadlineMs });
    for (const scene of outside.scenes) {
      scene.by = world.callerWith(scene.by.token ?? '');
      scene.operator = world.operator;
    }
    return new PairsWorld(world, sandbox, outside, () => analytics.close());
  }

  private constructor(world: World, sandbox: SandboxNetwork, outside: Outside, leave: () => Promise<void>) {
    this.#leave = leave;
    this.world = world;
    this.sandbox = sandbox;
    this.#outside = outside;
    const { store, pool, log, eventStore, codec, logger, deps } = world;
    const clock = { now: () => this.now(), fault: () => null };
    const { signal } = this.#stop;
    const network = this.#network();
    const publisher = {
      ...{
        store,
        pool,
        blobs: deps.blobs,
        workDir: path.join(tmpdir(), `postline-pairs-${randomUUID()}`),
        adapterOf: () => network,
      },
      ...{
        config: { ...quick, leaseTtlMs },
        processingRest: quickProcessing,
        absencePolicy: quickLooks,
        clock,
        logger,
        pollMs: 50,
        mediaLimitMs: 100 * 24 * 60 * minuteMs,
      },
    };
    const outcomes: OutcomesDeps = {
      ...{ log, eventStore, store, codec, pool, logger, now: () => this.now() },
      config: { sweepIntervalMs: 250, leaseTtlMs },
    };
    this.#running = Promise.all([
      runPublisher(publisher, signal),
      runPublisher(publisher, signal),
      startOutcomes(outcomes, signal).done,
    ]);
    this.#running.catch(() => undefined);
  }

  /**
   * Loses what happens in `meanwhile`, but at the network: the world ends, a copy of its database is made, `meanwhile` is
   * done with the original, and then the copy is in its place, as an operator declares.
   */
  async restored(
    meanwhile: (world: PairsWorld) => Promise<void>,
  ): Promise<{ readonly world: PairsWorld; readonly lost: Lost }> {
    const { waiting } = this;
    const { url } = this.world.db;
    await this.stop();
    const copy = (await testDatabase(new URL(url).pathname.slice(1))).url;
    const asOf = new Date(this.now()).toISOString();
    const original = await PairsWorld.#on(url, this.#outside);
    original.waiting = waiting;
    await meanwhile(original);
    const streams = await streamsOf({ store: original.world.eventStore, codec: original.world.codec });
    const ledger = await original.sandbox.ledger({ after: 0, limit: 100_000 });
    await original.stop();
    const pool = openPool({ url: copy, max: 1, name: 'operator' });
    await restored(pool, asOf, 'ann');
    // By the clock of this world.
    const now = new Date(this.now()).toISOString();
    await pool.query(`update ops.restores set restored_at = date_trunc('milliseconds', $1::timestamptz)`, [now]);
    await pool.end();
    const world = await PairsWorld.#on(copy, this.#outside);
    world.#isRestored = true;
    world.waiting = waiting;
    await until('what was due is recorded', async () => (await newestRestore(world.world.pool))?.completedAt !== null, {
      withinMs: 20_000,
    });
    await resumePublishing(world.world.pool, everyWorkspace);
    await world.quiet();
    return { world, lost: { streams, untilSeq: ledger.at(-1)?.seq ?? 0 } };
  }

  /** The sandbox, which publishes by the clock of its database, as a network that publishes by the clock of this world. */
  #network(): SandboxNetwork {
    const { sandbox } = this;
    const { clock } = this.#outside;
    const ahead = (instant: string, ms = clock.aheadMs): string => new Date(Date.parse(instant) + ms).toISOString();
    const later = <T extends { readonly publishedAt?: string }>(outcome: T): T =>
      outcome.publishedAt === undefined ? outcome : { ...outcome, publishedAt: ahead(outcome.publishedAt) };
    // Its posts keep the instants of its database: those of the whole world are asked for, and were at the time of then.
    const asThen = <T extends { readonly publishedAt: string }>(post: T): T => {
      const made = Date.parse(post.publishedAt);
      // Its own scheduler has the instants of this world.
      if (made > Date.now()) return post;
      const then = clock.moves.findLast(({ at }) => at <= made)?.aheadMs ?? 0;
      return { ...post, publishedAt: ahead(post.publishedAt, then) };
    };
    const find = async (asked: FindRequest): Promise<FindOutcome> => {
      const from = ahead(asked.from, -30 * 24 * 60 * minuteMs);
      const found = await sandbox.findPosts({ ...asked, from });
      if (found.kind !== 'listed') return found;
      const posts = found.posts.map(asThen);
      return {
        ...found,
        posts: posts.filter(({ publishedAt }) => publishedAt >= asked.from && publishedAt <= asked.until),
      };
    };
    return new Proxy(sandbox, {
      get: (_, name) => {
        const member: unknown = Reflect.get(sandbox, name, sandbox);
        if (name === 'findPosts') return find;
        if (typeof member !== 'function') return member;
        if (name !== 'publish' && name !== 'reconcile') return member.bind(sandbox);
        return async (...asked: unknown[]) => later(await member.apply(sandbox, asked));
      },
    });
  }

  readonly now = (): number => Date.now() + this.#outside.clock.aheadMs;

  /** A workspace with a client, accounts and a key for each pair. */
  async scenes(pairs: readonly Pair[]): Promise<readonly Scene[]> {
    const made: (Scene | null)[] = pairs.map(() => null);
    const { world } = this;
    const next = pairs.entries();
    const work = async (): Promise<void> => {
      for (const [at, pair] of next) made[at] = await this.#scene(`${pair.first} then ${pair.second}`);
    };
    await Promise.all(Array.from({ length: 8 }, work));
    await world.settled();
    this.#outside.scenes = made.flatMap((one) => one ?? []);
    return this.#outside.scenes;
  }

  async #scene(name: string): Promise<Scene> {
    const { world } = this;
    const { operator } = world;
    const made = await createWorkspace(operator, { name, timezone: 'Europe/Berlin', ownerName: 'Olga' });
    const expiresAt = new Date(Date.now() + 300 * 86_400_000).toISOString();
    const key = await createApiKey(operator, { ...made, name, scopes: [...scopes], mode: 'test', expiresAt });
    const workspaceId = testTwinIdOf(made.workspaceId);
    const context = () => contextOf(operator, workspaceId);
    const clientId = randomUUID();
    await world.store.append(
      `client-${clientId}`,
      -1,
      [{ type: 'ClientCreated', data: clientOf(name) }],
      context(),
      `client-${clientId}`,
    );
    const accounts: Partial<Record<Platform, string>> = {};
    for (const platform of platforms) {
      const profile = sandboxProfile(platform, name);
      const id = accountIdOf(clientId, platform, clientId);
      const { displayName, scopes: granted } = profile;
      const granting = { scopes: granted, expiresAt: null, timezone: null, inviteId: null };
      const profileOf = { username: clientId, displayName, avatarUrl: null, network: 'sandbox' } as const;
      const command = { type: 'Connect', clientId, platform, externalId: clientId, ...profileOf, ...granting } as const;
      await execute(world.store, account, id, command, context());
      accounts[platform] = id;
    }
    let asset: Promise<string> | null = null;
    const { blobs } = world.deps;
    const scene: Scene = {
      ...{ name, by: world.callerWith(key.secret), operator, workspaceId, clientId, accounts },
      rawAsset: () => {
        asset ??= readyClip(scene.operator.store, workspaceId, blobs, { needs: [] }).then(({ id }) => id);
        return asset;
      },
      ...{ dueAt: this.#outside.dueAt, postId: '', said: [], violations: [] },
      body: {
        clientId,
        content: name,
        targets: { mode: 'group', clientId },
        schedule: { type: 'at', scheduledAt: new Date(this.#outside.dueAt).toISOString() },
      },
    };
    return scene;
  }

  /** Moves the clock of all processes and of the network, and waits until nothing is left to do at that time. */
  async pass(ms: number): Promise<void> {
    const { clock } = this.#outside;
    clock.aheadMs += ms;
    clock.moves.push({ at: Date.now(), aheadMs: clock.aheadMs });
    this.world.clock.shiftMs = clock.aheadMs;
    if (ms > 0) await this.sandbox.advance(ms);
    await this.quiet();
  }

  async passTo(at: number): Promise<void> {
    await this.pass(Math.max(0, at - this.now()));
  }

  /** Waits until nothing is left to do, for as long as something happens: a busy machine takes longer for the same events. */
  async quiet(): Promise<void> {
    let head = -1n;
    let busy: string | null = null;
    const look = async (): Promise<'quiet' | 'moved' | null> => {
      const before = await this.world.head();
      await this.world.settled();
      busy = await this.#busy();
      const isSame = before === head && (await this.world.head()) === before;
      head = before;
      if (!isSame) return 'moved';
      return busy === null ? 'quiet' : null;
    };
    for (let seen = 'moved'; seen === 'moved'; ) {
      seen = await until('nothing is left to do', look, { withinMs: 20_000, everyMs: 200 }).catch(
        async (error: unknown) => {
          throw new Error(`${error}: ${busy === null ? 'nothing is due' : await this.#story(busy)}`);
        },
      );
      if (seen === 'moved') await delay(200);
    }
  }

  /** What is due now; null: nothing. */
  async #busy(): Promise<string | null> {
    const { pool } = this.world;
    const now = new Date(this.now());
    // The database's clock, which the test does not move, says of which targets a network is asked: of one whose lease was
    // lost it would be days later.
    await pool.query(
      `update ${view('post_targets')} set next_action_at = now() where status in ('outcome_unknown', 'processing') and next_action_at > now()`,
    );
    const { rows } = await pool.query(
      `select 'target ' || id || ' ' || status as what from ${view('post_targets')}
        where (not workspace_id = any($3::uuid[]) and (status in ('publishing', 'processing') or (status <> 'outcome_unknown' and next_action_at <= $1)))
          or (status = 'outcome_unknown' and not id = any($4::uuid[])) or (status = 'handed_to_platform' and undo = 'pending')
       union all select 'post ' || id from ${view('posts')} where fan_out_behind or recycle_at <= $1
       union all select 'outcomes are behind' where exists (
         select from es.events e where e.topic = 'posts' and e.position >
           coalesce((select min(position) from ops.consumer_positions c where c.consumer_group = $2), 0)
           and e.position > coalesce((select max(position) from ops.consumer_positions c where c.consumer_group = $2), 0))
       limit 1`,
      [now, outcomesGroup, this.waiting, await this.#unsettleable()],
    );
    return rows[0]?.what ?? null;
  }

  /** After a restore: targets whose outcome no question to the network settles. A person does. */
  async #unsettleable(): Promise<readonly string[]> {
    if (!this.#isRestored) return [];
    const { rows } = await this.world.pool.query<{ id: string }>(
      `select id from ${view('post_targets')} where status = 'outcome_unknown' limit 1000`,
    );
    const ids = rows.map(({ id }) => id);
    const made = Map.groupBy(
      createdIn(await this.sandbox.ledger({ targetIds: ids, limit: 10_000 })),
      (row) => row.targetId,
    );
    // Only one post can be looked for by its content.
    return ids.filter((id) => made.get(id)?.length !== 1);
  }

  /** A violation with the pair, the calls and the events of the targets or posts that it names. */
  #of(what: string, streams: Streams): string {
    const named = [...what.matchAll(/\b[0-9a-f]{8}-[0-9a-f-]{27}\b/g)].flatMap(([id]) => {
      const events = streams.get(`target-${id}`) ?? streams.get(`post-${id}`);
      return events === undefined ? [] : [{ id, events }];
    });
    const scene = this.#outside.scenes.find((one) => one.workspaceId === named[0]?.events[0]?.metadata.workspaceId);
    const stories = named.map(({ id, events }) => `${id}: ${events.map(said).join(', ')}`);
    return [`${scene?.name}: ${what}`, scene?.said.join('; ') ?? '', ...stories].join('\n    ');
  }

  /** The events of the stream that is named. */
  async #story(what: string): Promise<string> {
    const [kind, id] = what.split(' ');
    const events = await this.world.store.readStream(`${kind}-${id}`);
    const postId = events[0]?.data.postId ?? id;
    const scene = this.#outside.scenes.find((one) => one.postId === postId);
    const types = events.map(({ type, data }) => `${type} ${data.retryAt ?? data.dueAt ?? ''}`.trim());
    const lines = this.world.lines.filter((line) => /"level":(40|50|60)/.test(line)).slice(-3);
    return `${lines.join('')}${what} at ${new Date(this.now()).toISOString()} of ${scene?.name} (${scene?.said}): ${types.join(', ')}`;
  }

  /** Violations of the invariants at rest. */
  async check(lost: Lost | null = null): Promise<readonly string[]> {
    const { eventStore: store, codec } = this.world;
    const streams = await streamsOf({ store, codec });
    const { violations } = await checkTargets(streams, this.sandbox, null, { clock: this, lost });
    return [...violations, ...oftenDeferred(streams)].map((what) => this.#of(what, streams));
  }

  /** Leaves its database and its network as they are. */
  async stop(): Promise<void> {
    if (this.#stop.signal.aborted) return;
    this.#stop.abort();
    await this.#running;
    await this.sandbox.close();
    await this.world.close();
    await this.#leave();
  }
}

const said = ({ type, data, metadata }: DecodedEvent): string =>
  `${metadata.occurredAt.slice(5, 16)} ${type} ${data.step ?? data.retryAt ?? data.dueAt ?? ''}`.trim();

const clientOf = (name: string) => ({
  ...{ name, type: 'brand', defaultPostMode: 'schedule', timezone: null, approvalRequired: false },
  ...{ rules: {}, brandVoice: {} },
});

/** A target that waits for its slot is told so once, and once more where the slot moves. */
const maxDefers = 2;

const oftenDeferred = (streams: Streams): readonly string[] =>
  [...streams].flatMap(([stream, events]) => {
    const defers = events.filter(({ type, data }) => {
      const failure = data.failure as { readonly code: string } | null | undefined;
      return type === 'TargetPublishDeferred' && failure?.code === cadenceReached.code;
    });
    return defers.length > maxDefers ? [`${stream} was deferred ${defers.length} times for its cadence`] : [];
  });
