/** The relay, from the Postgres event store into a table in place of the log: it keeps the acknowledged records. */
import { randomUUID } from 'node:crypto';
import type { LogWriter } from '#contracts/ports/log.ts';
import { openAdapters } from '#infra/adapters.ts';
import { PostgresRelayCheckpoint } from '#infra/postgres/relay-checkpoint.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { stores } from '#runtime/process/settings/reads.ts';
import { startRelay } from '#services/relay/loop.ts';

await runProcess({
  name: 'relay',
  summary: 'copies the event store into a table',
  ops: false,
  reads: [...stores, 'leaseTtlMs'],
  async main({ config, logger, signal, ready, onClose }) {
    const adapters = await openAdapters({ name: 'relay', config, secrets: new Secrets(config.secretKey ?? '') });
    onClose(adapters.close);
    const { pool, store } = adapters;
    const checkpoint = new PostgresRelayCheckpoint({ pool });
    await pool.query(`create schema if not exists relayed;
      create table if not exists relayed.records
      (place bigint generated always as identity, key text not null, position bigint not null)`);
    const writer: Pick<LogWriter, 'send' | 'lastRecords'> = {
      send: async (records) => {
        await pool.query(
          `insert into relayed.records (key, position)
           select key, position from unnest($1::text[], $2::int8[]) with ordinality as r (key, position, place) order by place`,
          [records.map((one) => one.key), records.map((one) => one.position)],
        );
      },
      lastRecords: async () => {
        const { rows } = await pool.query('select max(position)::text as newest from relayed.records');
        return rows[0].newest === null ? [] : [{ position: BigInt(rows[0].newest), id: '', time: '' }];
      },
    };
    const relay = startRelay({
      store,
      writer,
      checkpoint,
      holder: `relay-${randomUUID()}`,
      partitions: config.partitions,
      signal,
      logger,
      leaseMs: config.leaseTtlMs,
    });
    ready();
    await relay.done;
  },
});
