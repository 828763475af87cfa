import assert from 'node:assert/strict';
import { hostKey } from '#runtime/egress/host-key.ts';
import { ConcurrencyLimiter, type Waiting } from '#services/webhooks/concurrency-limiter.ts';
import { PendingCounts } from '#services/webhooks/counts.ts';
import { suite } from '#test/support/suite.ts';

interface Item extends Waiting {
  readonly name: string;
}
const item = (workspaceId: string, endpointId: string, queueLane = 0, name = ''): Item => ({
  workspaceId,
  endpointId,
  queueLane,
  name,
  body: { length: 10 },
});
const limits = { endpoint: 4, host: 100, tenant: 6, total: 10, failuresPerSecond: 1e-6 };

/** Each endpoint has a host of its own, unless it is named `…@host`. */
const limiterOf = (over: Partial<typeof limits> = {}, hosts: Readonly<Record<string, string>> = {}) =>
  new ConcurrencyLimiter<Item>({ ...limits, ...over }, (id) => hosts[id] ?? id.split('@')[1] ?? id);

/** How many of which endpoint. */
const count = (items: readonly Item[]): Readonly<Record<string, number>> => {
  const counts: Record<string, number> = {};
  for (const { endpointId } of items) counts[endpointId] = (counts[endpointId] ?? 0) + 1;
  return counts;
};

/** Lets go what may, and says what went. */
const started = (limiter: ConcurrencyLimiter<Item>): readonly Item[] => {
  const went: Item[] = [];
  limiter.start((one) => went.push(one) > 0);
  return went;
};
const add = (limiter: ConcurrencyLimiter<Item>, count: number, ...of: Parameters<typeof item>): void => {
  for (let at = 0; at < count; at += 1) limiter.add(item(...of));
};

suite('concurrency limiter', (t) => {
  t('endpoints, workspaces and the whole stay within their limits', () => {
    const limiter = limiterOf();
    add(limiter, 9, 'a', 'a1');
    assert.equal(started(limiter).length, 4);
    add(limiter, 9, 'a', 'a2');
    assert.equal(started(limiter).length, 2);
    add(limiter, 9, 'b', 'b1');
    assert.equal(started(limiter).length, 4);
    add(limiter, 9, 'c', 'c1');
    assert.equal(started(limiter).length, 0);
    assert.deepEqual([limiter.underWay, limiter.waiting], [10, 26]);
  });

  t('workspaces take turns, and so do the endpoints of one', () => {
    const limiter = limiterOf({ endpoint: 100, tenant: 100, total: 1 });
    add(limiter, 50, 'a', 'a1');
    add(limiter, 1, 'a', 'a2');
    add(limiter, 2, 'b', 'b1');
    const order: string[] = [];
    for (let next = started(limiter)[0]; next !== undefined && order.length < 6; next = started(limiter)[0]) {
      order.push(next.endpointId);
      limiter.ended(next, 1, true);
    }
    assert.deepEqual(order, ['a1', 'b1', 'a2', 'b1', 'a1', 'a1']);
  });

  t('retries get at most half of every limit, and at least one slot of an endpoint', () => {
    const limiter = limiterOf();
    add(limiter, 9, 'a', 'a1', 1);
    add(limiter, 9, 'a', 'a2', 2);
    const later = started(limiter);
    // Half of the tenant's six.
    assert.equal(later.length, 3);
    add(limiter, 9, 'a', 'a1');
    assert.deepEqual(
      started(limiter).map(({ queueLane }) => queueLane),
      [0, 0],
    );
    const other = limiterOf();
    add(other, 9, 'a', 'a1');
    const firsts = started(other);
    assert.equal(firsts.length, 4);
    add(other, 1, 'a', 'a1', 1, 'retry');
    other.ended(firsts[0] ?? item('', ''), 1, true);
    assert.deepEqual(
      started(other).map(({ name }) => name),
      ['retry'],
    );
  });

  t('a delivery that does not start takes no slot', () => {
    const limiter = limiterOf();
    add(limiter, 3, 'a', 'a1');
    limiter.start(() => false);
    assert.deepEqual([limiter.underWay, limiter.waiting], [0, 0]);
  });

  t('a fast endpoint may have a queue, a slow one may not', () => {
    const limiter = limiterOf();
    assert.deepEqual(limiter.room('a1', 'a'), { all: 4, later: 2, proven: false });
    add(limiter, 1, 'a', 'a1');
    const [one] = started(limiter);
    assert.ok(one);
    limiter.ended(one, 5, true);
    assert.equal(limiter.room('a1', 'a').all, 4 + 16);
    add(limiter, 1, 'b', 'b1');
    const [slow] = started(limiter);
    assert.ok(slow);
    limiter.ended(slow, 10_000, true);
    assert.equal(limiter.room('b1', 'b').all, 4);
  });

  t('reserved slots stay free', () => {
    const limiter = limiterOf();
    assert.equal(limiter.reserve('a1', 'a', 3), 3);
    assert.equal(limiter.room('a1', 'a').all, 1);
    assert.equal(limiter.reserve('a1', 'a', 3), 1);
    assert.equal(limiter.reserve('a1', 'a', 3), 0);
    limiter.unreserve('a1', 'a', 4);
    assert.equal(limiter.room('a1', 'a').all, 4);
  });

  t('waiting deliveries can be withdrawn, running ones cannot', () => {
    const limiter = limiterOf();
    add(limiter, 6, 'a', 'a1');
    add(limiter, 2, 'a', 'a2');
    started(limiter);
    const out = limiter.withdraw(({ endpointId }) => endpointId !== 'a1');
    assert.deepEqual([...new Set(out.map(({ endpointId }) => endpointId))], ['a1']);
    assert.equal(limiter.underWay + limiter.waiting + out.length, 8);
    assert.equal(limiter.underWay, 6);
    assert.deepEqual([out.length, limiter.withdraw(() => false).length, limiter.waiting], [2, 0, 0]);
  });

  t('the endpoints of a workspace share the limit of a host; another workspace has its own', () => {
    const limiter = limiterOf({ host: 6, tenant: 9, total: 100 });
    for (const id of ['1@saas', '2@saas', '3@saas']) add(limiter, 9, 'a', id);
    assert.deepEqual(count(started(limiter)), { '1@saas': 2, '2@saas': 2, '3@saas': 2 });
    assert.equal(limiter.room('4@saas', 'a').all, 0);
    add(limiter, 9, 'a', '5@elsewhere');
    add(limiter, 9, 'b', '6@saas');
    assert.deepEqual(count(started(limiter)), { '5@elsewhere': 3, '6@saas': 4 });
  });

  t('retries and replays of all endpoints of a host get at most half of its limit', () => {
    const limiter = limiterOf({ host: 6, tenant: 90, total: 100 });
    for (const id of ['1@saas', '2@saas', '3@saas']) add(limiter, 9, 'a', id, 2);
    assert.equal(started(limiter).length, 3);
    assert.equal(limiter.room('4@saas', 'a').later, 0);
    add(limiter, 9, 'a', '4@saas');
    assert.equal(started(limiter).length, 3);
  });

  t('endpoints without a success share the credit of their host, however many they are', () => {
    const limiter = limiterOf({ host: 8, tenant: 1_000, total: 1_000 });
    const ids = Array.from({ length: 20 }, (_, at) => `${at}@stranger`);
    for (const id of ids) add(limiter, 50, 'a', id);
    const sent = started(limiter);
    assert.equal(sent.length, 8);
    for (const one of sent) limiter.ended(one, 1, false);
    assert.deepEqual([started(limiter).length, limiter.room('new@stranger', 'a').all], [0, 0]);
    // Another tenant's host of that name, and another host of this one, have credit of their own.
    add(limiter, 1, 'b', '1@stranger');
    add(limiter, 1, 'a', '1@other');
    assert.equal(started(limiter).length, 2);
    // What has no credit is not kept.
    assert.equal(limiter.withdraw(() => true).length, 20 * 50 - 8);
    assert.equal(limiter.waiting, 0);
  });

  t('an endpoint with successes needs no credit, and its successes give credit to the others', () => {
    const limiter = limiterOf({ host: 8, tenant: 1_000, total: 1_000 });
    add(limiter, 1, 'a', 'good@host');
    for (const one of started(limiter)) limiter.ended(one, 1, true);
    add(limiter, 50, 'a', 'dead@host');
    for (let went = started(limiter); went.length > 0; went = started(limiter)) {
      for (const one of went) limiter.ended(one, 1, false);
    }
    add(limiter, 2, 'a', 'good@host');
    const went = started(limiter);
    assert.deepEqual(count(went), { 'good@host': 2 });
    for (const one of went) limiter.ended(one, 1, true);
    assert.deepEqual(count(started(limiter)), { 'dead@host': 2 });
  });

  t('a delivery that does not start costs no credit', () => {
    const limiter = limiterOf({ host: 8 });
    add(limiter, 20, 'a', '1@host');
    limiter.start(() => false);
    add(limiter, 20, 'a', '1@host');
    assert.equal(started(limiter).length, 4);
  });

  t('the running deliveries of an endpoint that moves count on its new host, where it has no credit', () => {
    const hosts: Record<string, string> = { mover: 'one' };
    const limiter = limiterOf({ host: 4, tenant: 100, total: 100 }, hosts);
    add(limiter, 9, 'a', 'mover');
    const [first, ...others] = started(limiter);
    assert.ok(first !== undefined && others.length === 3);
    limiter.ended(first, 1, true);
    assert.equal(started(limiter).length, 1);
    hosts.mover = 'victim';
    assert.equal(limiter.room('mover', 'a').all, 0);
    add(limiter, 9, 'a', '2@victim');
    assert.equal(started(limiter).length, 0);
    // Where it was there is room again, and the credit that its first answer gave.
    add(limiter, 9, 'a', '3@one');
    assert.deepEqual(count(started(limiter)), { '3@one': 1 });
    for (const one of others) limiter.ended(one, 1, true);
    assert.deepEqual(count(started(limiter)), { '2@victim': 1, mover: 2 });
  });

  t('a pending claim of one endpoint reduces the room of others on its host', () => {
    const limiter = limiterOf({ host: 6, tenant: 100, total: 100 });
    const held = new PendingCounts();
    assert.equal(limiter.room('1@host', 'a', held).all, 4);
    limiter.hold(held, '1@host', 'a', 4);
    assert.deepEqual([limiter.room('2@host', 'a', held).all, limiter.room('1@other', 'a', held).all], [2, 4]);
    assert.equal(limiter.room('2@host', 'a').all, 4);
    // Nor where no credit is needed.
    for (const id of ['1@host', '2@host']) add(limiter, 1, 'a', id);
    for (const one of started(limiter)) limiter.ended(one, 1_000, true);
    assert.equal(limiter.room('2@host', 'a').all, 4);
    assert.equal(limiter.room('2@host', 'a', held).all, 2);
  });

  t('credit reserved for one endpoint is not available to another', () => {
    const limiter = limiterOf({ host: 8, tenant: 100, total: 100 });
    add(limiter, 4, 'a', '1@host');
    for (const one of started(limiter)) limiter.ended(one, 1_000, false);
    assert.equal(limiter.room('2@host', 'a').all, 4);
    add(limiter, 2, 'a', '1@host');
    assert.equal(limiter.room('2@host', 'a').all, 2);
  });
});

suite('the host of an endpoint', (t) => {
  t('is its name and port in any spelling', () => {
    const same = [
      ['https://Hooks.Example.COM/a', 'https://hooks.example.com./b', 'https://hooks.example.com:443/?c'],
      [
        'https://93.184.215.14/',
        'https://0x5db8d70e/x',
        'https://[::ffff:93.184.215.14]/',
        'https://[64:ff9b::5db8:d70e]/',
      ],
      ['https://[2606:2800:220:1:248:1893:25c8:1946]/', 'https://[2606:2800:0220:0001::1]:443/'],
      ['https://xn--bcher-kva.example/', 'https://bücher.example/'],
    ];
    const keys = same.map((urls) => new Set(urls.map(hostKey)));
    assert.deepEqual(
      keys.map(({ size }) => size),
      [1, 1, 1, 1],
    );
    assert.equal(new Set(keys.flatMap((one) => [...one])).size, 4);
    const others = ['http://h.example/', 'https://h.example/', 'https://h.example:444/', 'https://h.example.com/'];
    assert.equal(new Set(others.map(hostKey)).size, 4);
  });
});
