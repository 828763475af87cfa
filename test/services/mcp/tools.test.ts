import assert from 'node:assert/strict';
import { type Composer, composer, tomorrow } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { connect, lines, type Mcp, mcpWorld, worked } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** Each tool called once by a client that validates the answer, and what every tool promises. */

suite('mcp tools', (t) => {
  let world: World;
  let composed: Composer;
  let mcp: Mcp;
  t.before(async () => {
    world = await mcpWorld();
    composed = await composer(world, ['x', 'bluesky'], { name: 'Acme' });
    mcp = await connect(world, world.testKey.secret);
    await mcp.list();
  });
  t.after(async () => {
    await mcp?.close();
    await world?.close();
  });

  t('are listed alike by clients of both protocol lines', async () => {
    const listed = [];
    for (const line of lines) {
      const client = await connect(world, world.testKey.secret, line);
      listed.push(await client.list());
      const found = worked(await client.call('find_clients', { search: 'acme' }));
      assert.equal((found.clients as { clientId: string }[])[0]?.clientId, composed.clientId, line);
      await client.close();
    }
    const names = listed.map((tools) => tools.map(({ name }) => name));
    assert.deepEqual(names[1], names[0]);
    assert.deepEqual(names[2], names[0]);
    assert.equal(names[0]?.length, 20);
  });

  t('find clients and accounts', async () => {
    const { clients } = worked(await mcp.call('find_clients', { search: 'acme' })) as { clients: object[] };
    assert.equal(clients.length, 1);
    const { accounts, mode } = worked(await mcp.call('find_accounts', { clientId: composed.clientId })) as {
      accounts: { accountId: string }[];
      mode: string;
    };
    assert.deepEqual(accounts.map((one) => one.accountId).sort(), Object.values(composed.accounts).sort());
    assert.equal(mode, 'sandbox');
  });

  t('compose', async () => {
    const answer = await mcp.call('compose_post', {
      clientId: composed.clientId,
      content: 'Hello',
      action: 'schedule',
      scheduledAt: tomorrow(),
    });
    console.log(answer.text);
    worked(answer);
  });
});
