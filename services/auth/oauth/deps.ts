import type { Pool } from 'pg';
import type { Freshness } from '#projections/queries/freshness.ts';
import type { DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import type { TrustedProxies } from '#runtime/identity/proxies.ts';
import type { Secrets } from '#runtime/identity/secrets.ts';
import type { Logger } from '#runtime/process/telemetry.ts';

/** Everything that the authorization server uses; the api's dependencies have all of it. */
export interface OAuthDeps {
  readonly store: DomainStore;
  readonly pool: Pool;
  readonly secrets: Secrets;
  readonly logger: Logger;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  /** True when the read models have applied these positions, false when the time ran out first. */
  readonly caughtUp: (positions: Positions, timeoutMs: number) => Promise<boolean>;
  /** Of the projection of workspaces, keys and grants; absent: it counts as never behind. */
  readonly freshness?: Pick<Freshness, 'isBehind'>;
  /** The issuer, without a slash at the end. */
  readonly authUrl: () => string;
  readonly baseUrl: () => string;
  readonly mcpUrl: () => string;
  readonly consoleUrl: () => string;
  readonly trustedProxies?: TrustedProxies;
  /** Requests of one address. */
  readonly rate: { readonly perMinute: number; readonly burst: number };
}
