import assert from 'node:assert/strict';
import { Batches, batchesOf } from '#contracts/base/batches.ts';
import { suite } from '#test/support/suite.ts';

suite('batches', (t) => {
  t('callers of one turn share one query with each key once', async () => {
    const asked: (readonly string[])[] = [];
    const batches = new Batches(async (keys) => {
      asked.push(keys);
      return new Map(keys.map((key) => [key, key.toUpperCase()]));
    });
    assert.deepEqual(await Promise.all(['a', 'b', 'a'].map((key) => batches.get(key))), ['A', 'B', 'A']);
    assert.deepEqual(asked, [['a', 'b']]);
  });

  t('a missing key is null', async () => {
    assert.equal(await new Batches(async () => new Map()).get('a'), null);
  });

  t('never answers from a query that began before the question', async () => {
    let stored = 'old';
    const gates: (() => void)[] = [];
    const batches = new Batches(async (keys) => {
      const seen = stored;
      await new Promise<void>((resolve) => gates.push(resolve));
      return new Map(keys.map((key) => [key, seen]));
    });
    const open = async (count: number) => {
      while (gates.length < count) await new Promise((resolve) => setImmediate(resolve));
    };
    const first = batches.get('a');
    await open(1);
    stored = 'new';
    const second = batches.get('a');
    await open(2);
    for (const gate of gates) gate();
    assert.deepEqual(await Promise.all([first, second]), ['old', 'new']);
  });

  t('runs at most two queries at once, and answers every caller', async () => {
    let out = 0;
    let most = 0;
    const batches = new Batches(async (keys) => {
      out += 1;
      most = Math.max(most, out);
      await new Promise((resolve) => setImmediate(resolve));
      out -= 1;
      return new Map(keys.map((key) => [key, key]));
    });
    const keys = Array.from({ length: 500 }, (_, n) => String(n));
    const answers: Promise<string | null>[] = [];
    for (const key of keys) {
      answers.push(batches.get(key));
      if (Number(key) % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(await Promise.all(answers), keys);
    assert.ok(most <= 2, `${most} at once`);
  });

  t('a query has at most the given number of keys', async () => {
    const sizes: number[] = [];
    const batches = new Batches(async (keys) => {
      sizes.push(keys.length);
      return new Map(keys.map((key) => [key, key]));
    }, 3);
    const keys = Array.from({ length: 8 }, (_, n) => String(n));
    assert.deepEqual(await Promise.all(keys.map((key) => batches.get(key))), keys);
    assert.deepEqual(sizes.sort(), [2, 3, 3]);
  });

  t('a query that fails fails its own callers, and no later ones', async () => {
    let fails = true;
    const batches = new Batches(async (keys) => {
      if (fails) throw new Error('away');
      return new Map(keys.map((key) => [key, 1]));
    });
    await assert.rejects(batches.get('a'), /away/);
    fails = false;
    assert.equal(await batches.get('a'), 1);
  });

  t('sources do not share queries', async () => {
    const of = batchesOf(async (source: { name: string }, keys) => new Map(keys.map((key) => [key, source.name])));
    assert.deepEqual(await Promise.all([of({ name: 'x' }, 'a'), of({ name: 'y' }, 'a')]), ['x', 'y']);
  });
});
