import type { ClickHouseClient } from '@clickhouse/client';
import type { Knex } from 'knex';
import type { Pool } from 'pg';
import type { Logger } from 'pino';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { ConnectAttempts } from '#contracts/ports/connect-attempts.ts';
import type { Connector } from '#contracts/ports/connector.ts';
import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { NetworkInbox } from '#contracts/ports/network-inbox.ts';
import type { Freshness } from '#projections/queries/freshness.ts';
import type { ReaderStates } from '#projections/queries/reader-states.ts';
import type { EgressGuard } from '#runtime/egress/guard.ts';
import type { DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import type { TrustedProxies, UnnamedProxies } from '#runtime/identity/proxies.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { ClosedWorkspaces } from '#runtime/work/closed-workspaces.ts';
import type { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Restores } from '#runtime/work/restores.ts';
import type { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import type { Mailer } from '#services/auth/people/mail.ts';
import type { AskedAccounts } from '#services/workflows/accounts/asked.ts';
import type { BodyBudget, HeavyBodies } from './bodies.ts';
import type { Lists } from './lists.ts';

/**
 * The account that the sandbox network has for a username. The connect page of a test workspace connects this account.
 */
export type SandboxProfileOf = (
  platform: Platform,
  username: string,
) => {
  readonly externalId: string;
  readonly username: string;
  readonly displayName: string | null;
  readonly avatarUrl: string | null;
  readonly scopes: readonly string[];
};

/**
 * The readers that a read may wait for: all read models, or the dispatcher, which mints webhook deliveries. Only reads
 * of deliveries and replays wait for the dispatcher.
 */
export type Readers = 'read models' | 'dispatcher';

/** Milliseconds that a call waits for the stores. */
export interface CallPatience {
  /** For the query that finds the owner of its token. */
  readonly tokenMs: number;
  /** For the appends of its command, repeats included. */
  readonly appendMs: number;
  /** For all of its work. After that the api answers `unavailable`. */
  readonly callMs: number;
}

/** Everything that the api uses. A main.ts or a test makes it; nothing here is global. */
export interface Deps {
  readonly store: DomainStore;
  /** Hot lookups. */
  readonly pool: Pool;
  /** Queries for rows that commands and single answers need. */
  readonly knex: Knex;
  readonly lists: Lists;
  readonly secrets: Secrets;
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** REST root as callers see it, with `/v1`, without a slash at the end. Known once the server listens. */
  readonly baseUrl: () => string;
  /** Host of the console and of the pages behind links, without a slash at the end. */
  readonly consoleUrl: () => string;
  /** Host of the OAuth endpoints, without a slash at the end: the issuer of access tokens. */
  readonly authUrl: () => string;
  /** Address of the MCP server, with its path: the audience of the tokens that work there. */
  readonly mcpUrl: () => string;
  /** Proxies whose X-Forwarded-For the api trusts. Default: none. */
  readonly trustedProxies?: TrustedProxies;
  /** Takes note of other proxies; absent: only the log tells of them. */
  readonly unnamedProxies?: UnnamedProxies;
  /**
   * Requests per minute, and requests at once, for each credential in each process; and how many credentials' worth of
   * them all credentials of a workspace have together (default 5).
   */
  readonly rate: { readonly perMinute: number; readonly burst: number; readonly workspaceKeys?: number };
  /** True when the readers have applied these positions, false when the time ran out first. Default: read models. */
  readonly caughtUp: (positions: Positions, timeoutMs: number, readers?: Readers) => Promise<boolean>;
  /** Of the projection of workspaces, keys and grants; absent: it counts as never behind. */
  readonly freshness?: Pick<Freshness, 'isBehind'>;
  /** How far the readers of the events are. */
  readonly readerStates: Pick<ReaderStates, 'of'>;
  /** Addresses that webhook endpoints and imports may name. */
  readonly egress: Pick<EgressGuard, 'checkUrl' | 'vet'>;
  readonly blobs: BlobStore;
  /** Bytes of media of a workspace without a quota of its own. */
  readonly mediaQuota: number;
  /** Null without ClickHouse. */
  readonly analytics: ClickHouseClient | null;
  readonly sandboxProfile: SandboxProfileOf;
  /** Milliseconds by which the sandbox network's clock is ahead of that of a test workspace; absent: it is not. */
  readonly sandboxAhead?: (workspaceId: string) => Promise<number>;
  /** How far the clocks of sandbox workspaces are ahead; absent: none is. */
  readonly sandboxClocks?: Pick<SandboxClocks, 'aheadOf' | 'known'>;
  /** Asks networks about accounts. */
  readonly asked: AskedAccounts;
  /** How live accounts are connected; absent: none are. */
  readonly live?: {
    readonly credentials: CredentialStore;
    readonly attempts: ConnectAttempts;
    readonly connectors: Readonly<Partial<Record<Platform, readonly Connector[]>>>;
  };
  /** Calls that networks make by themselves; absent: none is taken. */
  readonly inboxes?: Readonly<Record<'live' | 'sandbox', Readonly<Partial<Record<Platform, NetworkInbox>>>>>;
  /** Files by which networks see that this host is the operator's; absent: there are none. */
  readonly siteProofs?: readonly { readonly name: string; readonly text: string }[];
  /** Sends mails to persons; absent or null: an operator delivers their links. */
  readonly mailer?: Mailer | null;
  /** Default 50. */
  readonly webhooksPerWorkspace?: number;
  /** This and the next two: default as in production. */
  readonly heavyBodies?: HeavyBodies;
  readonly bodyBudget?: BodyBudget;
  readonly patience?: CallPatience;
  /** Whether an operator holds publishing; absent: nothing tells of it. */
  readonly hold?: PublishingHold;
  /** Workspaces that answer no call; absent: all do. */
  readonly closed?: ClosedWorkspaces;
  /** Restores that were declared; absent: none is known. */
  readonly restores?: Restores;
  /** Aborts when the process drains: calls that wait for something to happen are answered. Absent: it never does. */
  readonly draining?: AbortSignal;
}

/** Networks on which this installation connects live accounts. */
export const liveNetworksOf = ({ live }: Pick<Deps, 'live'>): readonly Platform[] =>
  live === undefined ? [] : platforms.filter((platform) => live.connectors[platform] !== undefined);
