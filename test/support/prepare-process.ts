/**
 * Makes the database that `preparedDatabase` copies. Then it takes an api and a publisher through their work: it ends by
 * itself, so Node's compile cache keeps what they run, where that of a process that is killed is lost.
 */

import { startWorld } from './http.ts';
import { administer, preparedDatabase } from './postgres.ts';
import { PublishingWorld } from './publishing.ts';
import { openTables } from './tables.ts';

const { TEST_DATABASE_URL: server, TEST_PREPARED_DATABASE: name } = process.env;
if (server !== undefined && name !== undefined) {
  await administer(server, (client) => client.query(`CREATE DATABASE ${name}`));
  const url = new URL(server);
  url.pathname = `/${name}`;
  const { pool, close } = await openTables(url.href);
  // Of the keys of whoever comes first.
  await pool.query('TRUNCATE ops.secret_keys');
  await close();
  // What has connections cannot be copied.
  await administer(server, (client) => client.query(`ALTER DATABASE ${name} ALLOW_CONNECTIONS false`));
}

const api = await startWorld();
await api.owner.get('/clients');
await api.close();

const world = await PublishingWorld.open((await preparedDatabase()).url);
const account = await world.connect(await world.client(), 'x');
const publisher = world.publisher();
const { targetIds } = await world.schedule([account], { dueAt: Date.now() });
await world.all(targetIds, 'published');
await publisher.stop();
await world.close();
