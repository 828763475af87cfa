/** Event store, embedded log and read models in one database: everything that a projection test needs. */
import { randomUUID } from 'node:crypto';
import { Pool } from 'pg';
import type { Log } from '#contracts/ports/log.ts';
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPostgresLog } from '#infra/postgres/log.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { preparedDatabase } from './postgres.ts';
import { type Given, stored, TestKeys } from './projecting.ts';

export interface ProjectionWorld {
  readonly url: string;
  readonly pool: Pool;
  readonly store: PostgresEventStore;
  readonly log: Log;
  readonly keys: TestKeys;
  readonly codec: EventCodec;
  readonly logger: ReturnType<typeof createLogger>;
  /** Appends the events in order, one append each; returns the last position. */
  append(events: readonly Given[], workspaceId?: string): Promise<bigint>;
  close(): Promise<void>;
}

export const projectionWorld = async (): Promise<ProjectionWorld> => {
  const { url } = await preparedDatabase();
  const pool = new Pool({ connectionString: url, max: 12 });
  // A connection that a test kills is replaced at the next query.
  pool.on('error', () => undefined);
  const store = await PostgresEventStore.open({ url });
  const log = await openPostgresLog({ url, store });
  await migrateReadModels(pool);
  const keys = new TestKeys();
  const codec = new EventCodec(keys);
  const heads = new Map<string, bigint>();
  return {
    url,
    pool,
    store,
    log,
    keys,
    codec,
    logger: createLogger('test', 'silent'),
    append: async (events, workspaceId = randomUUID()) => {
      let last = 0n;
      for (const event of events) {
        const head = heads.get(event.stream);
        const at = { revision: Number(head ?? -1n) + 1, position: 0n, workspaceId };
        const { id, type, data, metadata } = await stored(codec, event, at);
        const toAppend = { id, type, data, metadata, partitionKey: event.stream };
        const { revision, position } = await store.append(event.stream, head ?? 'none', [toAppend]);
        heads.set(event.stream, revision);
        last = position ?? last;
      }
      return last;
    },
    close: async () => {
      await log.close();
      await store.close();
      await pool.end();
    },
  };
};
