import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { suite } from '#test/support/suite.ts';
import { Connection, openLoop, wire } from './load.ts';

const request = wire({ method: 'GET', path: '/', key: 'none' });

suite('load generator', (t) => {
  let server: Server;
  let port: number;
  /** Connections that have sent something, by the port they come from. */
  const used = new Set<number>();
  t.before(async () => {
    server = createServer((asked, answer) => {
      if (asked.socket.remotePort !== undefined) used.add(asked.socket.remotePort);
      answer.end('ok');
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    ({ port } = server.address() as AddressInfo);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });

  t('sending on a connection that the server closed fails at once and does not wait for ever', async () => {
    const connection = await Connection.open(port);
    assert.equal((await connection.send(request)).status, 200);
    server.closeAllConnections();
    await assert.rejects(async () => {
      for (;;) await connection.send(request);
    }, /closed|ECONNRESET|EPIPE/);
    await assert.rejects(() => connection.send(request), /closed/);
  });

  t('an open loop uses every connection, because a server closes those that never send', async () => {
    used.clear();
    const { latencies } = await openLoop(port, { rate: 2_000, ms: 500, next: () => request });
    assert.equal(latencies.length, 1_000);
    assert.equal(used.size, 256);
  });
});
