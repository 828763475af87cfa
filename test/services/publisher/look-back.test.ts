import assert from 'node:assert/strict';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { view } from '#projections/shapes.ts';
import { readHolds } from '#runtime/work/publishing-hold.ts';
import { newestRestore } from '#runtime/work/restores.ts';
import type { PublisherDeps } from '#services/publisher/publisher.ts';
import { preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { type Account, MovedClock, PublishingWorld, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const minuteMs = 60_000;

suite('what a start finds out of a restore that nobody declared', { timeoutMs: 120_000 }, (t) => {
  let networks: SandboxNetwork;
  t.before(async () => {
    networks = new SandboxNetwork({ database: { url: (await preparedDatabase()).url }, ...quickNetwork });
  });
  t.after(() => networks?.close());

  const adapterOf: PublisherDeps['adapterOf'] = () => networks;
  const copyOf = async (url: string): Promise<string> => (await testDatabase(new URL(url).pathname.slice(1))).url;
  const posts = async (ids: readonly string[]): Promise<number> =>
    (await networks.ledger({ targetIds: ids, limit: 1_000 })).filter(({ outcome }) => outcome === 'created').length;
  /** A process that starts two minutes later. */
  const later = (world: PublishingWorld, clock = new MovedClock()) => {
    clock.pass(2 * minuteMs);
    return world.publisher({}, { adapterOf, clock });
  };
  const accountsOf = async (world: PublishingWorld): Promise<readonly Account[]> => {
    const clientId = await world.client();
    return Promise.all((['facebook', 'threads', 'telegram'] as const).map((one) => world.connect(clientId, one)));
  };
  const hasRows = (world: PublishingWorld, ids: readonly string[]) =>
    until('the rows are there', async () => {
      const sql = `select count(*)::int as n from ${view('post_targets')} where id = any($1)`;
      return (await world.pool.query<{ n: number }>(sql, [ids])).rows[0]?.n === ids.length;
    });

  t('a network that has posts of targets which were never tried here declares it: none goes out twice', async () => {
    const { url } = await preparedDatabase();
    let world = await PublishingWorld.open(url);
    const { targetIds } = await world.schedule(await accountsOf(world), { text: 'Lost', dueAt: Date.now() + 1_000 });
    await hasRows(world, targetIds);
    await world.close();
    const copy = await copyOf(url);
    world = await PublishingWorld.open(url);
    const before = world.publisher({}, { adapterOf });
    await world.all(targetIds, 'published');
    await before.stop();
    await world.close();
    assert.equal(await posts(targetIds), 3);

    world = await PublishingWorld.open(copy);
    const outcomes = world.outcomes(100);
    const publisher = later(world);
    await world.all(targetIds.slice(0, 2), 'published');
    await world.all(targetIds.slice(2), 'outcome_unknown');
    const restore = await newestRestore(world.pool);
    assert.match(restore?.by ?? '', /^the start: (facebook|threads) has the post of target /);
    assert.deepEqual(
      [...(await readHolds(world.pool)).values()].map(({ by }) => by),
      [restore?.by],
    );
    assert.equal(await posts(targetIds), 3);
    await publisher.stop();
    await outcomes.stop();
    await world.close();
  });

  t('a service that was down is no restore: what was due meanwhile goes out, once, and nothing is held', async () => {
    const world = await PublishingWorld.open((await preparedDatabase()).url);
    const { targetIds } = await world.schedule(await accountsOf(world), { text: 'Late', dueAt: Date.now() });
    const clock = new MovedClock();
    const publisher = later(world, clock);
    await world.all(targetIds.slice(0, 2), 'published');
    // What cannot be asked waits for the answers of what can.
    clock.pass(10_000);
    await world.all(targetIds, 'published');
    assert.equal(await posts(targetIds), 3);
    assert.equal(await newestRestore(world.pool), null);
    assert.equal((await readHolds(world.pool)).size, 0);
    await publisher.stop();
    await world.close();
  });

  t('a post that a person made by hand meanwhile is not made again, and holds nothing', async () => {
    const { url } = await preparedDatabase();
    let world = await PublishingWorld.open(url);
    const [facebook] = await accountsOf(world);
    assert.ok(facebook !== undefined);
    await world.close();
    const copy = await copyOf(url);
    // Nobody tells the service of the copy about this post.
    world = await PublishingWorld.open(url);
    const byHand = await world.schedule([facebook], { text: 'By hand' });
    const hand = world.publisher({}, { adapterOf });
    await world.all(byHand.targetIds, 'published');
    await hand.stop();
    await world.close();
    world = await PublishingWorld.open(copy);
    const { targetIds } = await world.schedule([facebook], { text: 'By hand', dueAt: Date.now() - 5 * minuteMs });
    const publisher = later(world);
    await world.all(targetIds, 'published');
    assert.equal(await posts(targetIds), 0);
    assert.equal(await newestRestore(world.pool), null);
    await publisher.stop();
    await world.close();
  });

  t(
    'what goes out after the start is no sign of an older copy, even with the text of a target that waits',
    async () => {
      const world = await PublishingWorld.open((await preparedDatabase()).url);
      const [facebook] = await accountsOf(world);
      assert.ok(facebook !== undefined);
      const late = { text: 'Twice', dueAt: Date.now() - 5 * minuteMs };
      const both = [await world.schedule([facebook], late), await world.schedule([facebook], late)];
      const ids = both.flatMap(({ targetIds }) => targetIds);
      await hasRows(world, ids);
      // One is asked for while the post of the other is there and its outcome is not recorded.
      let first: string | undefined;
      const raced = new Proxy(networks, {
        get: (of, name) => {
          if (name === 'findPosts')
            return async (request: Parameters<SandboxNetwork['findPosts']>[0]) => {
              first ??= request.targetId;
              const other = first;
              if (request.targetId !== other)
                await until('the other one is out', async () => (await posts([other])) === 1);
              return of.findPosts(request);
            };
          if (name === 'publish')
            return async (...args: Parameters<SandboxNetwork['publish']>) => {
              const outcome = await of.publish(...args);
              if (args[0].targetId === first)
                await until('the other one is asked for', async () => {
                  const states = await Promise.all(ids.filter((id) => id !== first).map((id) => world.target(id)));
                  return states.every(({ status }) => status !== 'pending');
                });
              return outcome;
            };
          const value: unknown = Reflect.get(of, name, of);
          return typeof value === 'function' ? value.bind(of) : value;
        },
      });
      const publisher = world.publisher({ leaseTtlMs: 5_000 }, { adapterOf: () => raced });
      await world.all(ids, 'published');
      assert.equal(await posts(ids), 2);
      assert.equal(await newestRestore(world.pool), null);
      await publisher.stop();
      await world.close();
    },
  );
});
