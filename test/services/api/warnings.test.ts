import { deepEqual, equal } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { within } from '#contracts/base/pause.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Warnings } from '#services/api/call/warnings.ts';
import { silentServer } from '#test/support/silent-server.ts';
import { suite } from '#test/support/suite.ts';

suite('warnings beside an answer', (t) => {
  t('a silent database delays no answer, and is not queried again for a while', async () => {
    const silent = await silentServer();
    const url = `postgres://postline@127.0.0.1:${silent.port}/postline`;
    const pool = openPool({ url, connectTimeoutMs: 20_000 });
    try {
      const warnings = new Warnings(pool);
      const asked = () =>
        within<unknown>(
          5_000,
          warnings.of(randomUUID(), () => ({ id: randomUUID() })),
          () => 'no answer within 5 s',
        );
      deepEqual(await Promise.all([asked(), asked()]), [[], []]);
      deepEqual(await asked(), []);
      equal(silent.taken(), 1);
    } finally {
      await silent.close();
      await pool.end();
    }
  });
});
