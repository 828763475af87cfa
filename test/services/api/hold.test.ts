import assert from 'node:assert/strict';
import { testTwinIdOf } from '#domain/ids.ts';
import { everyWorkspace, holdPublishing, PublishingHold, resumePublishing } from '#runtime/work/publishing-hold.ts';
import { composer } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { connect, mcpWorld } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

suite('held publishing, as callers and guests see it', (t) => {
  let world: World;
  let link = '';
  t.before(async () => {
    const query = ((...given: Parameters<World['pool']['query']>) =>
      world.pool.query(...given)) as World['pool']['query'];
    world = await mcpWorld({ deps: { hold: new PublishingHold({ query }, 'on') } });
    const { clientId, body } = await composer(world, ['x']);
    await world.tester.patch(`/clients/${clientId}`, { approvalRequired: true });
    const { data } = await world.tester.post('/posts', body());
    const made = await world.tester.post(`/approvals/${data.approvalId}/links`, {});
    link = String(made.data.url);
  });
  t.after(() => world?.close());

  const page = async (path: string): Promise<string> =>
    (await fetch(new URL(path, world.origin()), { headers: { accept: 'text/html' } })).text();
  const reported = async () => {
    const mcp = await connect(world, world.testKey.secret);
    const { text } = await mcp.call('find_clients');
    await mcp.close();
    const { data } = await world.tester.get('/agency');
    return {
      rest: (data.publishing as { status: string }).status,
      guest: (await page(link)).includes('Publishing is held'),
      root: (await page('/')).includes('Publishing is held'),
      mcp: text.includes('Publishing is held'),
    };
  };
  const becomes = (wanted: Awaited<ReturnType<typeof reported>>) =>
    until(`it is told: ${JSON.stringify(wanted)}`, async () => {
      try {
        assert.deepEqual(await reported(), wanted);
        return true;
      } catch (error) {
        if (error instanceof assert.AssertionError) return false;
        throw error;
      }
    });
  const on = { rest: 'on', guest: false, root: false, mcp: false };

  t('REST, tools and every page say so, of all workspaces or of the one that they are about', async () => {
    await becomes(on);
    await holdPublishing(world.pool, everyWorkspace, 'ann');
    await becomes({ rest: 'hold', guest: true, root: true, mcp: true });
    await resumePublishing(world.pool, everyWorkspace);
    await becomes(on);
    const twin = testTwinIdOf(world.workspaceId);
    await holdPublishing(world.pool, twin, 'ann');
    await becomes({ rest: 'hold', guest: true, root: false, mcp: true });
    assert.equal((await world.owner.get('/agency')).data.publishing !== undefined, true);
    assert.deepEqual((await world.owner.get('/agency')).data.publishing, { status: 'on', since: null });
    await resumePublishing(world.pool, twin);
    await becomes(on);
  });
});
