import assert from 'node:assert/strict';
import { fileURLToPath } from 'node:url';
import { webhook } from '#domain/webhook.ts';
import { Mortals } from '#test/support/mortals.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { patient } from './short.ts';
import { ok, receiver, SenderWorld, status } from './world.ts';

const script = fileURLToPath(new URL('./sender-process.ts', import.meta.url));

suite('sender deaths', { drawn: true, costs: 3, timeoutMs: 180_000 }, (t) => {
  let world: SenderWorld;
  const mortals = new Mortals(script, () => [world.webhooks.world.url, world.secretKey]);
  const child = mortals.child.bind(mortals);
  const died = mortals.died.bind(mortals);

  t.before(async () => {
    world = await SenderWorld.open();
  });
  t.after.each(async () => {
    await mortals.end();
    await world.stopAll();
  });
  t.after(() => world.close());

  for (const [point, sent] of [
    ['claimed', 0],
    ['answered', 1],
    ['recorded', 1],
  ] as const) {
    t(
      `killed when it has ${point}: the next sender sends unrecorded deliveries again, with the same id and a higher attempt`,
      async () => {
        const server = await receiver();
        const endpoint = await world.endpoint(server.url);
        const dying = await child(`sender:${point}`, 'SIGKILL', { SENDER_TIMES: 'patient' });
        const [id = ''] = await world.queue(endpoint);
        await died(dying);
        assert.equal(server.got.length, sent);
        const recorded = point === 'recorded';
        assert.equal((await world.delivery(id)).status, recorded ? 'delivered' : 'pending');
        await world.lapse(id);
        const next = world.start(patient);
        const { attempts } = await world.settled(id);
        assert.deepEqual(
          attempts.map(({ number }) => number),
          [recorded ? 1 : 2],
        );
        const numbers = server.got.map(({ attempt }) => attempt);
        assert.deepEqual(numbers, { claimed: [2], answered: [1, 2], recorded: [1] }[point]);
        assert.equal(new Set(server.got.map(({ id: name }) => name)).size, 1);
        await next.stop();
      },
    );
  }

  t('killed between the record of a 410 and its event: the sweep of the next sender appends it', async () => {
    const server = await receiver(status(410));
    const endpoint = await world.endpoint(server.url);
    const dying = await child('sender:recorded', 'SIGKILL', { SENDER_TIMES: 'patient' });
    await world.queue(endpoint);
    await died(dying);
    const reason = async () => {
      const { state } = await world.webhooks.store.load(webhook, endpoint);
      return state.status === 'none' ? null : (state.disabled?.reason ?? null);
    };
    assert.equal(await reason(), null);
    const next = world.start(patient);
    await until('it to be off', async () => (await reason()) === 'gone');
    await next.stop();
  });

  t('suspended with an answer until after its lease, it records nothing', async () => {
    const server = await receiver((response, got, count) =>
      (got.attempt === 1 ? status(500) : ok)(response, got, count),
    );
    const endpoint = await world.endpoint(server.url);
    const sleeper = await child('sender:answered', 'SIGSTOP');
    const [id = ''] = await world.queue(endpoint);
    // On a slow machine the time of the exchange may end before the receiver has anything of it.
    await mortals.asleep(sleeper);
    const next = world.start(patient);
    const { attempts, deliveredAt } = await world.settled(id);
    assert.deepEqual(
      attempts.map(({ number, status: code }) => [number, code]),
      [[2, 204]],
    );
    // It works on: what it does next comes after what it had to record.
    await mortals.wakeToEnd(sleeper);
    const after = await world.delivery(id);
    assert.deepEqual([after.status, after.attempts, after.deliveredAt], ['delivered', attempts, deliveredAt]);
    assert.equal(await world.health(endpoint), null);
    await next.stop();
  });

  t('suspended with a claim until after its lease, it sends nothing', async () => {
    const server = await receiver();
    const endpoint = await world.endpoint(server.url);
    const sleeper = await child('sender:claimed', 'SIGSTOP');
    const [id = ''] = await world.queue(endpoint);
    await mortals.asleep(sleeper);
    const next = world.start(patient);
    await world.settled(id);
    assert.deepEqual(
      server.got.map(({ attempt }) => attempt),
      [2],
    );
    await next.stop();
    sleeper.kill('SIGCONT');
    // It works on: it sends this after what it held.
    const [later = ''] = await world.queue(endpoint);
    await world.settled(later);
    await mortals.wakeToEnd(sleeper);
    const { rows } = await world.pool.query('select message_id from ops.webhook_deliveries where id = $1', [id]);
    const sent = server.got.filter((one) => one.id === rows[0].message_id);
    assert.deepEqual(
      sent.map(({ attempt }) => attempt),
      [2],
    );
  });
});
