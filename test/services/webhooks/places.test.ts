import assert from 'node:assert/strict';
import { Places, type Waiting } from '#services/webhooks/places.ts';
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
const limits = { endpoint: 4, tenant: 6, total: 10 };

/** Lets go what may, and says what went. */
const started = (places: Places<Item>): readonly Item[] => {
  const went: Item[] = [];
  places.start((one) => went.push(one) > 0);
  return went;
};
const add = (places: Places<Item>, count: number, ...of: Parameters<typeof item>): void => {
  for (let at = 0; at < count; at += 1) places.add(item(...of));
};

suite('places', (t) => {
  t('no endpoint, no tenant and not all together go over their limits', () => {
    const places = new Places<Item>(limits);
    add(places, 9, 'a', 'a1');
    assert.equal(started(places).length, 4);
    add(places, 9, 'a', 'a2');
    assert.equal(started(places).length, 2);
    add(places, 9, 'b', 'b1');
    assert.equal(started(places).length, 4);
    add(places, 9, 'c', 'c1');
    assert.equal(started(places).length, 0);
    assert.deepEqual([places.underWay, places.waiting], [10, 26]);
  });

  t('tenants take turns, and the endpoints of one', () => {
    const places = new Places<Item>({ endpoint: 100, tenant: 100, total: 1 });
    add(places, 50, 'a', 'a1');
    add(places, 1, 'a', 'a2');
    add(places, 2, 'b', 'b1');
    const order: string[] = [];
    for (let next = started(places)[0]; next !== undefined && order.length < 6; next = started(places)[0]) {
      order.push(next.endpointId);
      places.ended(next, 1);
    }
    assert.deepEqual(order, ['a1', 'b1', 'a2', 'b1', 'a1', 'a1']);
  });

  t('retries have half of every limit at most, and one place of an endpoint as soon as they wait', () => {
    const places = new Places<Item>(limits);
    add(places, 9, 'a', 'a1', 1);
    add(places, 9, 'a', 'a2', 2);
    const later = started(places);
    // Half of the tenant's six.
    assert.equal(later.length, 3);
    add(places, 9, 'a', 'a1');
    assert.deepEqual(
      started(places).map(({ queueLane }) => queueLane),
      [0, 0],
    );
    const other = new Places<Item>(limits);
    add(other, 9, 'a', 'a1');
    const firsts = started(other);
    assert.equal(firsts.length, 4);
    add(other, 1, 'a', 'a1', 1, 'retry');
    other.ended(firsts[0] ?? item('', ''), 1);
    assert.deepEqual(
      started(other).map(({ name }) => name),
      ['retry'],
    );
  });

  t('what does not begin takes no place', () => {
    const places = new Places<Item>(limits);
    add(places, 3, 'a', 'a1');
    places.start(() => false);
    assert.deepEqual([places.underWay, places.waiting], [0, 0]);
  });

  t('a fast endpoint may have a line, a slow one none', () => {
    const places = new Places<Item>(limits);
    assert.deepEqual(places.room('a1', 'a'), { all: 4, later: 2 });
    add(places, 1, 'a', 'a1');
    const [one] = started(places);
    assert.ok(one);
    places.ended(one, 5);
    assert.equal(places.room('a1', 'a').all, 4 + 16);
    add(places, 1, 'b', 'b1');
    const [slow] = started(places);
    assert.ok(slow);
    places.ended(slow, 10_000);
    assert.equal(places.room('b1', 'b').all, 4);
  });

  t('what is reserved is kept free', () => {
    const places = new Places<Item>(limits);
    assert.equal(places.reserve('a1', 'a', 3), 3);
    assert.equal(places.room('a1', 'a').all, 1);
    assert.equal(places.reserve('a1', 'a', 3), 1);
    assert.equal(places.reserve('a1', 'a', 3), 0);
    places.unreserve('a1', 'a', 4);
    assert.equal(places.room('a1', 'a').all, 4);
  });

  t('what waits can be withdrawn, what is under way cannot', () => {
    const places = new Places<Item>(limits);
    add(places, 6, 'a', 'a1');
    add(places, 2, 'a', 'a2');
    started(places);
    const out = places.withdraw(({ endpointId }) => endpointId !== 'a1');
    assert.deepEqual([...new Set(out.map(({ endpointId }) => endpointId))], ['a1']);
    assert.equal(places.underWay + places.waiting + out.length, 8);
    assert.equal(places.underWay, 6);
    assert.deepEqual([out.length, places.withdraw(() => false).length, places.waiting], [2, 0, 0]);
  });
});
