import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import db from '@eventstore/db-client';
import { eventStoreSuite, type Harness, type Offer } from '#contracts/ports/event-store.suite.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { fillIndex } from '#infra/eventstoredb/workspace-index.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { WorkspacePositions } from '#infra/postgres/workspace-positions.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import type { Release } from '#test/support/eventstoredb/reads.ts';
import { givenEventStore } from '#test/support/eventstoredb/server-handle.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { suite } from '#test/support/suite.ts';

/** Handles on one server, closed together. */
const handlesOn = (url: string, places?: WorkspacePositions) => {
  const stores: EventStoreDbStore[] = [];
  return {
    async open() {
      const store = new EventStoreDbStore({
        url,
        attemptMs: 1_000,
        ...(places === undefined ? {} : { index: places }),
      });
      stores.push(store);
      return store;
    },
    async close() {
      await Promise.all(stores.map((store) => store.close()));
    },
  };
};

const openPlaces = async () => {
  const database = await preparedDatabase();
  const pool = openPool({ url: database.url });
  const places = new WorkspacePositions(pool);
  const close = async (): Promise<void> => {
    await pool.end();
    await database.drop();
  };
  return { places, close };
};

/** Fills the places up to the newest event. */
const fillUp = async (store: EventStoreDbStore, places: WorkspacePositions): Promise<void> => {
  const stop = new AbortController();
  const logger = { info: () => {}, warn: () => {} };
  const filling = fillIndex(store, places, { signal: stop.signal, logger });
  try {
    for (let after = (await places.reached())?.position ?? null; ; await sleep(10)) {
      if ((await store.readAll({ after, limit: 1 })).length === 0) return;
      after = (await places.reached())?.position ?? null;
    }
  } finally {
    stop.abort();
    await filling;
  }
};

const overDouble = async (batch: boolean, release: Release): Promise<Harness> => {
  const double = await EventStoreDouble.start({ batch, release });
  const placed = batch ? await openPlaces() : null;
  const handles = handlesOn(double.url, placed?.places);
  return {
    open: handles.open,
    async close() {
      await handles.close();
      await double.stop();
      await placed?.close();
    },
    async index() {
      if (placed !== null) await fillUp(await handles.open(), placed.places);
    },
    async dropReplyAfterCommit() {
      double.faults.appends.push('drop_reply');
    },
    async killConnections() {
      double.killConnections();
    },
    async restart() {
      await double.disconnect();
      await double.listen();
    },
    async systemEvent() {
      const bytes = new Uint8Array([123, 125]);
      const name = `$stats-${randomUUID()}`;
      double.log.append(name, 'none', [
        { id: randomUUID(), type: '$statsCollected', data: bytes, metadata: bytes, partitionKey: name },
      ]);
    },
    buffered: () => double.handedOver,
  };
};

const offers: readonly Offer[] = ['dropReplyAfterCommit', 'killConnections', 'restart', 'systemEvent', 'buffered'];

// The two ways of appending, the two releases, with and without an index of workspaces: none depends on another.
const ways = [
  ['batch', '24.10'],
  ['unary', '23.10'],
] as const;
for (const [mode, release] of rowsOfRun('ways of appending', ways, ([mode]) => mode)) {
  suite(`EventStoreDB adapter over the double, ${mode}, ${release}`, (t) => {
    eventStoreSuite(t, () => overDouble(mode === 'batch', release), mode === 'batch' ? [...offers, 'index'] : offers);
  });
}

// The double stands in for the server; where a real one is at hand, it has to pass the same cases.
const real = await givenEventStore();
if (real !== null) {
  const overReal = async (): Promise<Harness> => {
    const handles = handlesOn(real.url);
    const raw = db.EventStoreDBClient.connectionString(real.url);
    return {
      open: handles.open,
      async close() {
        await handles.close();
        await raw.dispose();
        await real.stop();
      },
      async systemEvent() {
        // Metadata of a stream is an event in a stream of the server's own.
        await raw.setStreamMetadata(`post-${randomUUID()}`, { maxCount: 1_000_000 });
      },
    };
  };
  suite(`EventStoreDB adapter over a real server (${real.source})`, (t) => {
    eventStoreSuite(t, overReal, ['systemEvent']);
  });
}
