/** A network ends the version of its API that an installation asks for, and the operator sets a newer one. */
import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { TargetIn } from '#domain/post-target/target.ts';
import { SandboxNetwork } from '#infra/platforms/sandbox/index.ts';
import { view } from '#projections/shapes.ts';
import { NetworkRests } from '#runtime/work/network-rests.ts';
import type { Platform } from '#schemas/common.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, MovedClock, PublishingWorld, quickNetwork } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));
const minuteMs = 60_000;
const old = '202511';
const newer = '202608';

suite('a version of an API that ends', { timeoutMs: 240_000 }, (t) => {
  let world: PublishingWorld;
  let clientId: string;
  const opened: SandboxNetwork[] = [];
  const mortals = new Mortals(script, () => [world.url]);

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    clientId = await world.client();
  });
  t.after(async () => {
    await mortals.end();
    for (const one of opened) await one.close();
    await world?.close();
  });

  /** The networks as a process sees them that asks LinkedIn and Instagram for this version. */
  const asking = (version: string): SandboxNetwork => {
    const versions = { linkedin: version, instagram: version, facebook: version };
    const network = new SandboxNetwork({ database: { url: world.url }, ...quickNetwork, versions });
    opened.push(network);
    return network;
  };
  /** The adapter, with a word after each call that shows something. */
  const after = (network: SandboxNetwork, tell: (name: string) => Promise<void> | void): PlatformAdapter =>
    new Proxy(network, {
      get: (its, name) => {
        const member: unknown = Reflect.get(its, name, its);
        if (typeof member !== 'function') return member;
        if (name !== 'publish' && name !== 'comment') return member.bind(its) as unknown;
        return async (...given: unknown[]) => {
          const answer: unknown = await member.apply(its, given);
          await tell(name);
          return answer;
        };
      },
    });
  const counting = (network: SandboxNetwork) => {
    const seen = { calls: 0 };
    const adapter = after(network, () => {
      seen.calls += 1;
    });
    return { seen, adapter };
  };
  const restsOf = (version: string) =>
    new NetworkRests({ pool: world.pool, now: Date.now, versionOf: () => version, logger: world.logger });
  const rested = (platform: Platform) =>
    until('the network rests', async () => (await restsOf(old).of(`sandbox/${platform}`)) !== null);
  const waiting = async (ids: readonly string[]) => {
    for (const { common } of (await world.all(ids, 'pending')) as readonly TargetIn<'pending'>[]) {
      assert.deepEqual([common.defers, common.rateLimits], [0, 0], 'no try is used up');
    }
  };
  const accounts = (platform: Platform, count: number): Promise<Account[]> =>
    Promise.all(Array.from({ length: count }, () => world.connect(clientId, platform)));

  t(
    'failure 24: every target of the network waits, other networks go on, and all go out once with a newer version',
    async () => {
      await world.sandbox.endVersion('linkedin', old);
      const { seen, adapter } = counting(asking(old));
      const publisher = world.publisher({ publishConcurrency: 4 }, { adapterOf: () => adapter });
      const due = await world.schedule(await accounts('linkedin', 12), { dueAt: Date.now() - minuteMs });
      const others = await world.schedule(await accounts('x', 3));
      await rested('linkedin');
      await world.all(others.targetIds, 'published');
      const later = await world.schedule(await accounts('linkedin', 3));
      await until('the later ones are due', async () => {
        const sql = `select count(*)::int as n from ${view('post_targets')} t where id = any($1) and next_action_at <= now()`;
        return (await world.pool.query<{ n: number }>(sql, [later.targetIds])).rows[0]?.n === 3;
      });
      const all = [...due.targetIds, ...later.targetIds];
      const before = seen.calls;
      await world.all((await world.schedule(await accounts('x', 1))).targetIds, 'published');
      assert.equal(seen.calls, before + 1, 'the network is left alone');
      assert.ok(seen.calls <= 4 + 4, `${seen.calls} calls of 15 targets`);
      await waiting(all);
      assert.match((await restsOf(old).line()) ?? '', /sandbox\/linkedin no longer answers version 202511/);
      assert.equal(await restsOf(newer).line(), null);
      await publisher.stop();

      const next = world.publisher({}, { adapterOf: () => asking(newer) });
      await world.all(all, 'published');
      for (const id of all) assert.equal(await world.created(id), 1);
      await next.stop();
    },
  );

  t('a second process learns it within a second, and one with the newer version goes on beside it', async () => {
    await world.sandbox.endVersion('linkedin', 'two');
    const version = 'two';
    const [one, other] = [counting(asking(version)), counting(asking(version))];
    const first = world.publisher({}, { adapterOf: () => one.adapter });
    const found = await world.schedule(await accounts('linkedin', 1));
    await until('the network rests', async () => (await restsOf(version).of('sandbox/linkedin')) !== null);
    await first.stop();
    const second = world.publisher({}, { adapterOf: () => other.adapter });
    const { targetIds } = await world.schedule(await accounts('linkedin', 2));
    await world.all((await world.schedule(await accounts('x', 2))).targetIds, 'published');
    await waiting(targetIds);
    assert.equal(other.seen.calls, 2, 'it calls the other network alone');
    const third = world.publisher({}, { adapterOf: () => asking(newer) });
    const all = [...found.targetIds, ...targetIds];
    await world.all(all, 'published');
    for (const id of all) assert.equal(await world.created(id), 1);
    await Promise.all([second.stop(), third.stop()]);
  });

  t('a version that ends between a post and its comment, or before a hand-over, keeps both', async () => {
    const version = 'three';
    const overrides = { firstComment: 'hi' };
    const variants = [{ platform: 'linkedin' as const, contentOverride: null, mediaIdsOverride: null, overrides }];
    const adapter = after(asking(version), async (name) => {
      if (name === 'publish') await world.sandbox.endVersion('linkedin', version);
    });
    await world.sandbox.endVersion('facebook', version);
    const publisher = world.publisher({}, { adapterOf: () => adapter });
    const commented = await world.schedule(await accounts('linkedin', 1), { variants });
    const native = await world.schedule(await accounts('facebook', 1), {
      dueAt: Date.now() + 120 * minuteMs,
      scheduleMode: 'native',
    });
    await world.all(commented.targetIds, 'published');
    for (const platform of ['linkedin', 'facebook']) {
      await until('it rests', async () => (await restsOf(version).of(`sandbox/${platform}`)) !== null);
    }
    await waiting(native.targetIds);
    const [id = ''] = commented.targetIds;
    assert.ok(!(await world.story(`target-${id}`)).includes('TargetFirstCommentFailed'));
    await publisher.stop();
    const next = world.publisher({}, { adapterOf: () => asking(newer) });
    await world.all(native.targetIds, 'handed_to_platform');
    await until('the comment is there', async () =>
      (await world.sandbox.comments([id])).some(({ commentId }) => commentId),
    );
    assert.equal((await world.sandbox.comments([id])).filter(({ commentId }) => commentId !== null).length, 1);
    await next.stop();
  });

  t(
    'killed between the network’s word and its record: it rests, and the post goes out once with a newer version',
    async () => {
      for (const platform of ['instagram', 'linkedin'] as const) {
        await world.sandbox.endVersion(platform, 'four');
        const dying = await mortals.child('publisher:after-call', 'SIGKILL', {
          VERSIONS: JSON.stringify({ [platform]: 'four' }),
        });
        const { targetIds } = await world.schedule(await accounts(platform, 1));
        const [id = ''] = targetIds;
        await mortals.died(dying);
        assert.notEqual(await restsOf('four').of(`sandbox/${platform}`), null);
        const next = world.publisher({}, { adapterOf: () => asking(newer) });
        // LinkedIn was called, and the answer died with the process: its own list says that there is no post.
        await until('its end', async () => ['published', 'outcome_unknown'].includes((await world.target(id)).status));
        const isUnknown = (await world.target(id)).status === 'outcome_unknown';
        assert.equal(isUnknown, platform === 'linkedin');
        assert.equal(await world.created(id), isUnknown ? 0 : 1);
        await next.stop();
      }
    },
  );

  t('a network that was wrong is asked again after a quarter of an hour, then ever less often', async () => {
    const clock = new MovedClock();
    const rests = new NetworkRests({
      ...{ pool: world.pool, now: clock.now, versionOf: () => 'five', logger: world.logger },
    });
    const minutes: number[] = [];
    for (let n = 0; n < 8; n += 1) {
      await rests.rest('live/x', 'gone');
      const rest = await rests.of('live/x');
      assert.ok(rest !== null);
      minutes.push(Math.round((rest.until - clock.now()) / minuteMs));
      clock.pass(rest.until - clock.now() + 1);
      assert.equal(await rests.of('live/x'), null);
    }
    assert.deepEqual(minutes, [15, 15, 30, 60, 120, 240, 360, 360]);
    clock.pass(24 * 60 * minuteMs);
    await rests.rest('live/x', 'gone');
    assert.equal(Math.round((((await rests.of('live/x'))?.until ?? 0) - clock.now()) / minuteMs), 15, 'a new rest');
  });

  t('a rest that cannot be stored holds for the process that found it', async () => {
    const broken = { query: () => Promise.reject(new Error('no database')) } as never;
    const silent = { error: () => undefined, warn: () => undefined };
    const rests = new NetworkRests({ pool: broken, now: Date.now, versionOf: () => 'six', logger: silent });
    await rests.rest('live/x', 'gone');
    await assert.rejects(rests.of('live/x'), /no database/, 'and what is not known lets nothing out');
  });
});
