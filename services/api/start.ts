import type { ClickHouseClient } from '@clickhouse/client';
import type { Context, Middleware } from 'koa';
import type { Pool } from 'pg';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { ConnectAttempts } from '#contracts/ports/connect-attempts.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import type { NetworkInbox } from '#contracts/ports/network-inbox.ts';
import type { AccountSource } from '#contracts/ports/platform-account.ts';
import { siteProofOfTikTok } from '#domain/platforms/index.ts';
import { dispatcher, PositionWatch } from '#projections/engine/positions.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { projections } from '#projections/index.ts';
import { inviteKeyVersions } from '#projections/models/invites.ts';
import { teamInviteKeyVersions } from '#projections/models/team-invites.ts';
import { webhookKeyVersions } from '#projections/models/webhook-endpoints.ts';
import { Freshness } from '#projections/queries/freshness.ts';
import { ReaderStates } from '#projections/queries/reader-states.ts';
import { ensureWeeks } from '#projections/webhooks/tables.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { guardOf } from '#runtime/egress/own-hosts.ts';
import { type DataKeys, EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { UnnamedProxies } from '#runtime/identity/proxies.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { dropWithdrawals } from '#runtime/identity/withdrawals.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import type { Config, ConfigOf } from '#runtime/process/config.ts';
import { callsOut, networks, stores } from '#runtime/process/settings/reads.ts';
import {
  type Logger,
  publishingCheck,
  type Readiness,
  readyAnswer,
  restoreCheck,
  type SelfReport,
} from '#runtime/process/telemetry.ts';
import { ClosedWorkspaces } from '#runtime/work/closed-workspaces.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { Restores } from '#runtime/work/restores.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import type { Platform } from '#schemas/common.ts';
import { OAuthSweep } from '#services/auth/oauth/sweep.ts';
import { openMailer } from '#services/auth/people/mail.ts';
import { signInKeyUses, startUpkeep } from '#services/auth/upkeep.ts';
import { AskedAccounts } from '#services/workflows/accounts/asked.ts';
import { questionTurns } from './call/call-queue.ts';
import type { CallPatience, Deps, SandboxProfileOf } from './call/deps.ts';
import { Lists, openReadPool, silenceMs } from './call/lists.ts';
import type { Part, ServerDeps } from './parts.ts';
import type { Door } from './server.ts';

/** How long the api repeats its public answer before it checks the dependencies again, milliseconds. */
const readyStandsMs = 1_000;

type Answer = Partial<ReturnType<typeof readyAnswer>>;

/**
 * Whether the process is ready and publishes, without reasons. The api checks the dependencies at most once a second however many
 * callers ask, so that strangers cannot load the database.
 */
const readyOrNot = (report: SelfReport): (() => Promise<Answer>) => {
  let asking: Promise<Answer> | null = null;
  let until = Number.NEGATIVE_INFINITY;
  const ask = async (): Promise<Answer> => {
    try {
      return readyAnswer(await report.checks());
    } catch {
      return { status: 'not_ready' };
    } finally {
      until = performance.now() + readyStandsMs;
    }
  };
  return () => {
    if (performance.now() >= until) {
      until = Number.POSITIVE_INFINITY;
      asking = ask();
    }
    return asking ?? Promise.resolve({ status: 'not_ready' });
  };
};

/** Answers strangers and load balancers with yes or no, and whether publishing is held. The reasons and the figures are on OPS_PORT. */
export const health = (report: SelfReport): Middleware => {
  const ready = readyOrNot(report);
  const answer = async (ctx: Context): Promise<void> => {
    const alive = ctx.path === '/livez';
    const said = alive ? { status: 'alive' } : await ready();
    ctx.status = said.status === 'not_ready' ? 503 : 200;
    ctx.type = 'application/json';
    ctx.set('Cache-Control', 'no-store');
    ctx.body = JSON.stringify(said);
  };
  return (ctx, next) => {
    const known = ctx.path === '/livez' || ctx.path === '/readyz';
    return known && (ctx.method === 'GET' || ctx.method === 'HEAD') ? answer(ctx) : next();
  };
};

interface ApiAdapters {
  readonly databaseUrl: string;
  readonly pool: Pool;
  /** Opens another pool, whose statements may take this many milliseconds. */
  openPool(answerMs: number): Pool;
  readonly store: EventStore;
  readonly log: Log;
  readonly dataKeys: DataKeys;
  readonly credentials: CredentialStore;
  readonly attempts: ConnectAttempts;
  readonly blobs: BlobStore;
  readonly analytics: ClickHouseClient | null;
}

/** The settings of the api, of its door and of all that it serves. */
export const apiReads = [
  ...stores,
  ...callsOut,
  ...networks,
  ...(['trustedProxies', 'maxConnections', 'maxConnectionsPerAddress'] as const),
  ...(['ratePerMinute', 'rateBurst', 'rateWorkspaceKeys'] as const),
  ...(['smtpUrl', 'mailFrom', 'publishing', 'mediaQuota', 'webhooksPerWorkspace', 'tiktokSiteProof'] as const),
] as const;

type ApiConfig = ConfigOf<(typeof apiReads)[number]>;

interface ApiOptions {
  readonly adapters: ApiAdapters;
  /** The server that callers reach. */
  readonly door: Door;
  readonly config: ApiConfig;
  readonly secrets: Secrets;
  readonly logger: Logger;
  readonly readiness: Readiness;
  /** The report that /readyz shows: of this process, or of all threads of standalone. */
  readonly report: SelfReport;
  readonly sandboxProfile: SandboxProfileOf;
  /** Milliseconds by which the sandbox network's clock is ahead of that of a workspace. */
  readonly sandboxAhead: (pool: Pool, workspaceId: string) => Promise<number>;
  /** What the sandbox tells of its accounts. */
  readonly sandboxAccounts: (pool: Pool) => AccountSource;
  /** How the sandbox calls us, signed with that secret. */
  readonly sandboxInboxes: (secret: string) => Readonly<Partial<Record<Platform, NetworkInbox>>>;
  /** How accounts of real networks are connected, and what networks tell of them. */
  readonly liveOf: (options: {
    readonly http: NetworkHttp;
    readonly clock: () => number;
    readonly config: ApiConfig;
  }) => {
    readonly connectors: NonNullable<Deps['live']>['connectors'];
    readonly accounts: Readonly<Partial<Record<Platform, AccountSource>>>;
    readonly inboxes: Readonly<Partial<Record<Platform, NetworkInbox>>>;
  };
  /** What the server serves beside the api. */
  readonly parts: readonly Part[];
  /** Default: that of production. */
  readonly patience?: CallPatience;
}

interface Api {
  readonly port: number;
  /** REST root, with `/v1`. */
  readonly baseUrl: string;
  /** Host of the pages for people, without a slash at the end. */
  readonly consoleUrl: string;
  readonly mcpUrl: string;
  readonly store: DomainStore;
  /** Answers the requests in flight, then closes. */
  stop(): Promise<void>;
}

/** REST root as callers see it, with `/v1`. */
export const baseUrlOf = ({ baseUrl }: Pick<Config, 'baseUrl'>, { origin }: Door): string => baseUrl ?? `${origin}/v1`;

/**
 * Links and signing secrets in use must go on working, so the api refuses to start without a key version from which one
 * of them is derived.
 */
const demandKeys = async (pool: Pool, secrets: Secrets, time: DatabaseClock): Promise<void> => {
  const now = new Date(time.now()).toISOString();
  secrets.demand((await inviteKeyVersions(pool, now)).keys());
  secrets.demand((await webhookKeyVersions(pool, now)).keys());
  secrets.demand((await teamInviteKeyVersions(pool, now)).keys());
  secrets.demand((await signInKeyUses(pool)).keys());
};

interface Checked {
  readonly hold: PublishingHold;
  readonly restores: Restores;
  readonly unnamedProxies: UnnamedProxies;
  readonly store: ApiAdapters['store'];
  readonly pool: Pool;
}

const addChecks = (readiness: Readiness, { hold, restores, unnamedProxies, store, pool }: Checked): void => {
  readiness.add(publishingCheck, () => hold.line());
  readiness.add(restoreCheck, () => restores.line());
  readiness.add('proxies', async () => unnamedProxies.line());
  readiness.add('store', async () => store.ping().then(() => null));
  readiness.add('database', async () => pool.query('select 1').then(() => null));
};

/** How accounts are connected, and asked about. */
const networksOf = (
  { adapters, config, logger, secrets, sandboxAccounts, sandboxInboxes, liveOf }: ApiOptions,
  { http, pool, clock }: { readonly http: NetworkHttp; readonly pool: Pool; readonly clock: () => number },
): Pick<ServerDeps, 'live' | 'asked' | 'inboxes'> => {
  const { credentials, attempts } = adapters;
  const { connectors, accounts, inboxes } = liveOf({ http, clock, config });
  const sandbox = sandboxAccounts(pool);
  const asked = new AskedAccounts({
    turn: questionTurns(),
    sourceOf: (network, platform) => (network === 'sandbox' ? sandbox : (accounts[platform] ?? null)),
    ...{ clock, logger },
  });
  const signedBy = secrets.subKey('sandbox-calls').toString('hex');
  return {
    live: { credentials, attempts, connectors },
    asked,
    inboxes: { live: inboxes, sandbox: sandboxInboxes(signedBy) },
  };
};

const readModels = projections.map((one) => one.name);

/** Rows of operators that this process reads again and again. */
const believedOf = (pool: Pool, { publishing }: Pick<ApiConfig, 'publishing'>) => ({
  hold: new PublishingHold(pool, publishing),
  restores: new Restores(pool),
  closed: new ClosedWorkspaces(pool),
  sandboxClocks: new SandboxClocks(pool),
});

/** The api over adapters that its own main, or standalone, has opened. */
export const startApi = async (options: ApiOptions): Promise<Api> => {
  const { adapters, door, config, secrets, logger, readiness, report, parts, patience, ...own } = options;
  const { databaseUrl, pool: patient, log } = adapters;
  const time = await DatabaseClock.open({ pool: patient, logger, readiness, claims: false });
  await demandKeys(patient, secrets, time);
  const reading = { url: databaseUrl, connections: config.poolSize, logger };
  // The pool for queries of calls replaces a silent connection long before callers give up.
  const pool = adapters.openPool(silenceMs);
  const knex = openReadPool(reading);
  const lists = new Lists(reading);
  const watch = new PositionWatch(pool, log);
  const freshness = new Freshness({ pool, store: adapters.store, log }, 'workspaces');
  const { hold, restores, closed, sandboxClocks } = believedOf(pool, config);
  const unnamedProxies = new UnnamedProxies(logger);
  const mailer = config.smtpUrl === null ? null : openMailer(config.smtpUrl, config.mailFrom, logger);
  const egress = guardOf(config, () => [deps.baseUrl(), deps.consoleUrl(), deps.authUrl(), deps.mcpUrl()]);
  const draining = new AbortController();
  const deps: ServerDeps = {
    ...networksOf(options, { http: new GuardedNetworkHttp(egress), pool, clock: time.now }),
    mailer,
    store: new DomainStore(adapters.store, new EventCodec(adapters.dataKeys), config.partitions, {
      ...{ aheadOf: sandboxClocks.known, closed },
    }),
    pool,
    knex,
    lists,
    secrets,
    logger,
    clock: time.now,
    baseUrl: () => baseUrlOf(config, door),
    consoleUrl: () => config.consoleUrl ?? new URL(baseUrlOf(config, door)).origin,
    authUrl: () => config.authUrl ?? new URL(baseUrlOf(config, door)).origin,
    mcpUrl: () => config.mcpUrl ?? `${new URL(baseUrlOf(config, door)).origin}/mcp`,
    siteProofs: config.tiktokSiteProof.map(siteProofOfTikTok),
    trustedProxies: config.trustedProxies,
    unnamedProxies,
    rate: { perMinute: config.ratePerMinute, burst: config.rateBurst, workspaceKeys: config.rateWorkspaceKeys },
    caughtUp: (positions, timeoutMs, readers) =>
      watch.waitFor(readers === 'dispatcher' ? [dispatcher] : readModels, positions, { timeoutMs }),
    freshness,
    readerStates: new ReaderStates({ pool, store: adapters.store, log, analytics: adapters.analytics !== null }),
    egress,
    blobs: adapters.blobs,
    mediaQuota: config.mediaQuota,
    analytics: adapters.analytics,
    sandboxProfile: own.sandboxProfile,
    sandboxAhead: (workspaceId) => own.sandboxAhead(pool, workspaceId),
    webhooksPerWorkspace: config.webhooksPerWorkspace,
    ...{ hold, closed, restores, sandboxClocks, first: [health(report)] },
    draining: draining.signal,
    ...(patience === undefined ? {} : { patience }),
  };
  addChecks(readiness, { hold, restores, unnamedProxies, store: adapters.store, pool });
  const sweep = new OAuthSweep(deps);
  const dropOld = async (): Promise<unknown> => !(await freshness.isBehind()) && dropWithdrawals(pool);
  const upkeep = startUpkeep(deps, { also: [() => sweep.run(), () => adapters.attempts.sweep(), dropOld] });
  const server = door.open(deps, parts);
  return {
    port: server.port,
    baseUrl: deps.baseUrl(),
    consoleUrl: deps.consoleUrl(),
    mcpUrl: deps.mcpUrl(),
    store: deps.store,
    stop: async () => {
      draining.abort();
      await server.stop();
      await upkeep.stop();
      mailer?.close();
      await time.close();
      await lists.close();
      await knex.destroy();
      await pool.end();
    },
  };
};

/** Tables that are generated: of the read models, and the weeks of webhooks. */
export const makeApiTables = async (pool: Pool): Promise<void> => {
  await migrateReadModels(pool);
  await ensureWeeks(pool);
};
