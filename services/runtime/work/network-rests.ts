import type { Pool } from 'pg';
import type { Logger } from '../process/telemetry.ts';
import { Reading } from './reading.ts';

/**
 * Networks that no longer answer the version of their API that this installation asks for. No target of such a network is
 * worked on: they wait, and go out once an operator has set a newer version. A network may have been wrong, so it is asked
 * again after a while, ever less often.
 */

export interface NetworkRest {
  /** `live/linkedin`. */
  readonly network: string;
  /** '' where no call names one. */
  readonly version: string;
  /** Milliseconds since the epoch. */
  readonly since: number;
  readonly until: number;
  /** In the network's words. */
  readonly said: string;
}

type Queries = Pick<Pool, 'query'>;

export interface NetworkRestsOptions {
  readonly pool: Queries;
  /** Milliseconds since the epoch by the clock that all processes share. */
  readonly now: () => number;
  /** What this process asks the network for; null: no call names a version. */
  readonly versionOf: (network: string) => string | null;
  readonly logger: Pick<Logger, 'error' | 'warn'>;
}

/** Milliseconds until a network is asked again: as long as it has rested so far, within these. */
const shortestMs = 15 * 60_000;
const longestMs = 6 * 3_600_000;
/** Characters of a network's words that are kept. */
const maxSaid = 500;

export const readNetworkRests = async (pool: Queries): Promise<readonly NetworkRest[]> => {
  const { rows } = await pool.query<Omit<NetworkRest, 'since' | 'until'> & { since: Date; until: Date }>(
    'select network, version, since, until, said from ops.network_rests order by network, version',
  );
  return rows.map(({ since, until, ...rest }) => ({ ...rest, since: since.getTime(), until: until.getTime() }));
};

/** A rest that ended long ago is over: the next one begins anew. One that another process has just stored stays as it is. */
const storeRest = `
with spans as (select $5::float8 * interval '1 millisecond' as shortest, $6::float8 * interval '1 millisecond' as longest)
insert into ops.network_rests as known (network, version, since, until, said)
  select $1, $2, $3::timestamptz, $3::timestamptz + shortest, $4 from spans
on conflict (network, version) do update set said = excluded.said,
  since = case when known.until < excluded.since - (select longest from spans) then excluded.since else known.since end,
  until = case when known.until < excluded.since - (select longest from spans) then excluded.until
    else excluded.since + least((select longest from spans),
      greatest(excluded.since - known.since, (select shortest from spans))) end
where known.until <= excluded.since
returning known.since = $3::timestamptz as begins`;

/** What this process knows of the rests: at most a second old while the database answers. */
export class NetworkRests {
  readonly #options: NetworkRestsOptions;
  readonly #rests: Reading<readonly NetworkRest[]>;
  /** Found by this process, until the database shows it. */
  readonly #own = new Map<string, NetworkRest>();

  constructor(options: NetworkRestsOptions) {
    this.#options = options;
    this.#rests = new Reading('the networks that rest', () => readNetworkRests(options.pool));
  }

  /** The networks that rest for the versions of this process. @throws where the database has not answered for long */
  async all(): Promise<readonly NetworkRest[]> {
    const now = this.#options.now();
    const known = [...(await this.#rests.get()), ...this.#own.values()];
    const resting = known.filter(({ network, version, until }) => until > now && version === this.#versionOf(network));
    return [...new Map(resting.map((rest) => [rest.network, rest])).values()];
  }

  /** Null: targets of the network are worked on. */
  async of(network: string): Promise<NetworkRest | null> {
    return (await this.all()).find((rest) => rest.network === network) ?? null;
  }

  /**
   * The network has said that it no longer answers the version. Tells the operator at the beginning of a rest. Never throws:
   * what cannot be stored holds for this process, and the next answer of the network stores it.
   */
  async rest(network: string, said: string): Promise<void> {
    const { pool, now, logger } = this.#options;
    const [version, at] = [this.#versionOf(network), now()];
    const words = said.slice(0, maxSaid);
    this.#own.set(network, { network, version, since: at, until: at + shortestMs, said: words });
    try {
      const { rows } = await pool.query<{ begins: boolean }>(storeRest, [
        ...[network, version, new Date(at), words, shortestMs, longestMs],
      ]);
      this.#own.delete(network);
      if (rows[0]?.begins === true) {
        logger.error(
          { network, version, said: words },
          'the network no longer answers this version of its API; its targets wait until a newer one is set',
        );
      }
    } catch (error) {
      logger.warn({ err: error, network, version }, 'that a network rests could not be stored; this process knows it');
    }
    this.#rests.forget();
  }

  /** The line for /readyz; null: none rests. */
  async line(): Promise<string | null> {
    const rests = await this.all();
    const lines = rests.map(({ network, version, since, said }) => {
      const what = version === '' ? 'its API as this release speaks it' : `version ${version} of its API`;
      return `${network} no longer answers ${what} since ${new Date(since).toISOString()}: ${said}`;
    });
    return lines.length === 0 ? null : lines.join('; ');
  }

  #versionOf(network: string): string {
    return this.#options.versionOf(network) ?? '';
  }
}
