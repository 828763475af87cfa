import { deepEqual, equal } from 'node:assert/strict';
import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { suite } from '#test/support/suite.ts';

suite('a map that forgets the oldest', (t) => {
  t('keeps so many, and forgets those that were set longest ago', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).set('c', 3);
    deepEqual(
      [...map],
      [
        ['b', 2],
        ['c', 3],
      ],
    );
    deepEqual([map.size, map.has('a'), map.get('a')], [2, false, undefined]);
  });

  t('makes a key that is set again the newest, with its new value', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2).set('a', 3).set('c', 4);
    deepEqual(
      [...map],
      [
        ['a', 3],
        ['c', 4],
      ],
    );
  });

  t('does not count a reading as a use', () => {
    const map = new BoundedMap<string, number>(2);
    map.set('a', 1).set('b', 2);
    deepEqual([map.get('a'), map.has('a')], [1, true]);
    map.set('c', 3);
    deepEqual([...map.keys()], ['b', 'c']);
  });

  t('counts entries by their weight, and lets go of as many as it takes', () => {
    const map = new BoundedMap<string, string>(6, { weigh: (text) => text.length });
    map.set('a', 'aa').set('b', 'bb').set('c', 'cc');
    equal(map.weight, 6);
    map.set('d', 'ddd');
    deepEqual([[...map.keys()], map.weight], [['c', 'd'], 5]);
    map.set('c', 'c');
    deepEqual([[...map.keys()], map.weight], [['d', 'c'], 4]);
  });

  t('keeps no entry that alone is over the bound', () => {
    const map = new BoundedMap<string, string>(3, { weigh: (text) => text.length });
    map.set('a', 'a').set('b', 'bbbb');
    deepEqual([map.size, map.weight], [0, 0]);
  });

  t('says what the bound pushed out, and nothing else', () => {
    const forgotten: [string, number][] = [];
    const map = new BoundedMap<string, number>(1, { onForget: (key, value) => void forgotten.push([key, value]) });
    map.set('a', 1).set('a', 2);
    map.delete('a');
    map.set('b', 3).clear();
    deepEqual(forgotten, []);
    map.set('c', 4).set('d', 5);
    deepEqual(forgotten, [['c', 4]]);
  });

  t('weighs what it keeps, whatever was set and deleted', () => {
    const map = new BoundedMap<number, number>(50, { weigh: (value) => value });
    for (let at = 0; at < 1_000; at += 1) {
      const key = (at * 7) % 23;
      if (at % 5 === 0) equal(map.has(key), map.delete(key));
      else map.set(key, (at * 13) % 11);
      equal(
        map.weight,
        map.values().reduce((sum, value) => sum + value, 0),
      );
      equal(map.weight <= 50, true);
    }
    map.clear();
    deepEqual([map.size, map.weight, map.delete(1)], [0, 0, false]);
  });
});
