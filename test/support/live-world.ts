/** A world whose guests connect live accounts: what networks give is kept in its database, as in production. */
import { randomBytes } from 'node:crypto';
import type { Connector } from '#contracts/ports/connector.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import { PostgresConnectAttempts } from '#infra/postgres/connect-attempts.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import type { Platform } from '#schemas/common.ts';
import { Guest } from './guest.ts';
import { startWorld, type WorldOptions } from './http.ts';
import { preparedDatabase } from './postgres.ts';

export interface LiveParts {
  readonly http: NetworkHttp;
  readonly codes: PostgresConnectCodes;
}

/** @param connectorsOf how each network is connected */
export const liveWorld = async (
  connectorsOf: (parts: LiveParts) => Readonly<Partial<Record<Platform, readonly Connector[]>>>,
  { deps, ...options }: Pick<WorldOptions, 'rate' | 'deps'> = {},
) => {
  const { url } = await preparedDatabase();
  const pool = openPool({ url, max: 6, name: 'live' });
  const keys = new PostgresDataKeys({ pool, secrets: new Secrets(`v1:${randomBytes(32).toString('base64')}`) });
  const credentials = new PostgresCredentials({ pool, keys });
  const codes = new PostgresConnectCodes({ pool });
  const attempts = new PostgresConnectAttempts({ pool, keys });
  const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
  const live = { credentials, attempts, connectors: connectorsOf({ http, codes }) };
  const world = await startWorld({ ...options, databaseUrl: url, deps: { ...deps, live } });
  return {
    ...{ world, pool, keys, credentials, attempts, codes, http },
    guest: () => new Guest(world.origin),
    close: async () => {
      await world.close();
      await pool.end();
    },
  };
};
