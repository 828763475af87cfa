import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { Mortals } from '#test/support/mortals.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const script = fileURLToPath(new URL('../../support/publisher-process.ts', import.meta.url));
const wrongClock = new URL('../../support/wrong-clock.ts', import.meta.url).href;

suite('the clock of a publisher', (t) => {
  let world: PublishingWorld;
  let account: Account;
  const mortals = new Mortals(script, () => [world.url]);
  const dueIn = async (ms: number) => {
    const dueAt = Date.now() + ms;
    const { targetIds } = await world.schedule([account], { dueAt });
    return { id: targetIds[0] ?? '', dueAt };
  };
  /** How late the network received the post, in milliseconds by the network's own clock. */
  const lateness = async ({ id, dueAt }: { id: string; dueAt: number }): Promise<number> => {
    await world.all([id], 'published');
    const [create] = await world.sandbox.creates(id);
    return (create?.seenAt.getTime() ?? Number.NaN) - dueAt;
  };

  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
    account = await world.connect(await world.client(), 'x');
  });
  t.after.each(() => mortals.end());
  t.after(() => world.close());

  for (const seconds of [40, -40]) {
    t(`a machine whose clock is ${seconds} s off publishes neither early nor late`, async () => {
      const env = { NODE_OPTIONS: `--import=${wrongClock}`, WRONG_CLOCK_MS: String(seconds * 1_000) };
      await mortals.child('', 'SIGKILL', env);
      const late = await lateness(await dueIn(2_000));
      assert.ok(late >= 0, `it went out ${-late} ms early`);
      assert.ok(late < 5_000, `it went out ${late} ms late`);
    });
  }

  t(
    'a publisher more than a minute off publishes nothing and gives up its leases until its clock is right',
    async () => {
      const off = { ms: 0 };
      const wall = () => Date.now() + off.ms;
      const clock = await DatabaseClock.open({ pool: world.pool, logger: world.logger, wall });
      const publisher = world.publisher({}, { clock });
      const held = await dueIn(1_000);
      const isHeld = async () =>
        (await world.pool.query('select from ops.work_leases where id = $1 and until > now()', [held.id])).rowCount ===
        1;
      await until('the target is leased for its due time', isHeld);
      off.ms = -61_000;
      const next = await dueIn(500);
      await until('both are late', () => Date.now() > held.dueAt + 300);
      assert.equal(await isHeld(), false, 'the lease keeps the target from other publishers');
      for (const { id } of [held, next]) assert.deepEqual(await world.story(`target-${id}`), ['TargetScheduled']);
      off.ms = 0;
      for (const one of [held, next]) await lateness(one);
      await publisher.stop();
      await clock.close();
    },
  );
});
