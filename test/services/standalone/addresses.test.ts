import assert from 'node:assert/strict';
import { freePort } from '#test/support/port.ts';
import { dataFolder, testDatabase } from '#test/support/postgres.ts';
import { start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';

suite('addresses that standalone prints', (t) => {
  t('behind a proxy the Owner and agents come in by the host that callers know', async () => {
    const [db, port, data] = [await testDatabase(), await freePort(), dataFolder()];
    const host = `localhost:${port}`;
    const service = await start('services/standalone/main.ts', {
      args: ['--data', data.dataDir, '--port', String(port), '--no-tour'],
      env: { DATABASE_URL: db.url, BASE_URL: `http://${host}/v1` },
      readyAt: /^Data: /m,
    });
    const output = service.output();
    const link = /^ {2}(http\S+\/join\/\S+)$/m.exec(output)?.[1] ?? assert.fail(output);
    assert.equal(new URL(link).host, host);
    assert.match(output, new RegExp(`^Agents connect over MCP, with OAuth or a key: http://${host}/mcp$`, 'm'));
    const page = await fetch(link);
    assert.match(await page.text(), /Create your account and join/);
    assert.equal((await service.stop()).code, 0);
  });
});
