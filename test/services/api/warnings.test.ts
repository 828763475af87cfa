import { deepEqual, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { openPool } from '#infra/postgres/pool.ts';
import { within } from '#runtime/within.ts';
import { Warnings } from '#services/api/warnings.ts';
import { suite } from '#test/support/suite.ts';

suite('warnings beside an answer', (t) => {
  t(
    'a database that says nothing holds no answer: the second GET goes by what is known, and asks nothing',
    async () => {
      const sockets = new Set<Socket>();
      const silent = createServer((socket) => {
        sockets.add(socket);
        socket.on('error', () => undefined);
      });
      await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
      const { port } = silent.address() as AddressInfo;
      const pool = openPool({ url: `postgres://postline@127.0.0.1:${port}/postline`, connectTimeoutMs: 20_000 });
      try {
        const warnings = new Warnings(pool);
        const asked = () =>
          within<unknown>(5_000, warnings.of(randomUUID(), { id: randomUUID() }), () => 'no answer within 5 s');
        deepEqual(await Promise.all([asked(), asked()]), [[], []]);
        const begun = sockets.size;
        deepEqual(await asked(), []);
        ok(begun === sockets.size, 'another connection for what was just asked');
      } finally {
        for (const socket of sockets) socket.destroy();
        await pool.end().catch(() => undefined);
        await new Promise((resolve) => silent.close(resolve));
      }
    },
  );
});
