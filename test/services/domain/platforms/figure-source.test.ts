import { deepEqual, equal, ok, throws } from 'node:assert/strict';
import {
  amount,
  count,
  counted,
  counts,
  derived,
  dig,
  digits,
  element,
  type FigureSource,
  first,
  ImpossibleFigure,
  items,
  mapped,
  minutesOf,
  ofVideo,
  orNull,
  orZero,
  renamed,
  secondsOf,
  sumOf,
  url,
} from '#domain/platforms/figure-source.ts';
import { suite } from '#test/support/suite.ts';

const most = Number.MAX_SAFE_INTEGER;

/** The values that a source takes as they are, and those that it refuses, with what they are not. */
const holds = (
  make: (path: string) => FigureSource<unknown>,
  taken: readonly unknown[],
  refused: readonly unknown[],
  what: string,
) => {
  const source = make('a.b');
  equal(source.name, 'a.b');
  const of = (b: unknown) => source.read({ a: { b } });
  for (const value of taken) deepEqual(of(value), value, JSON.stringify(value));
  for (const value of refused) isImpossible(() => of(value), `a.b is not ${what}`);
  // What the network does not report stays apart from what its answer lacks.
  for (const raw of [{ a: { b: null } }, { a: null }]) equal(source.read(raw), null);
  for (const raw of [{ a: {} }, {}]) equal(source.read(raw), undefined);
};

const isImpossible = (read: () => unknown, message: string) =>
  throws(read, (error) => {
    ok(error instanceof ImpossibleFigure, String(error));
    ok(error.message.startsWith(message), `${error.message} for ${message}`);
    return true;
  });

const many = (length: number) => Object.fromEntries(Array.from({ length }, (_, n) => [`k${n}`, 1]));
const address = (length: number) => 'https://a.example/'.padEnd(length, 'b');

suite('sources of figures', (t) => {
  t('a count is a whole number from 0 to the largest exact one', () => {
    holds(count, [0, 1, most], [-1, 0.5, most + 1, Number.NaN, '1', true, [], {}], 'a count');
    ok(Object.is(count('a').read({ a: -0 }), 0));
  });

  t('a count of digits is written as a decimal, or is a number', () => {
    holds(digits, [0, 7, most], [-1, 0.5, true], 'a count');
    const of = (a: unknown) => digits('a').read({ a });
    deepEqual(['0', '7', '120', String(most)].map(of), [0, 7, 120, most]);
    for (const text of ['', '01', ' 1', '1 ', '1.0', '-1', '1e3', '0x1', '9007199254740992', '99999999999999999']) {
      isImpossible(() => of(text), 'a is not a count');
    }
  });

  t('an amount may have a fraction', () => {
    holds(amount, [0, 0.5, most], [-0.1, Number.POSITIVE_INFINITY, Number.NaN, '1'], 'an amount');
    ok(Object.is(amount('a').read({ a: -0 }), 0));
  });

  t('an address is one of the web, without spaces and signs that are not shown', () => {
    holds(
      url,
      ['http://a.example', address(2_000)],
      [1, 'ftp://a.example', 'see https://a.example', 'https://', 'https://a b', 'https://a\u0007', address(2_001)],
      'an address',
    );
  });

  t('counts by label are as many as a list may have, and their labels are short', () => {
    holds(counts, [{}, { a: 0, ['b'.repeat(100)]: 2 }, many(1_000)], [[], 'a', 1], 'an object');
    const of = (a: unknown) => counts('a').read({ a });
    isImpossible(() => of(many(1_001)), 'a is not an object of at most 1000 members');
    for (const label of ['b'.repeat(101), 'b\u0000', '\ud800', '__proto__']) {
      isImpossible(() => of(JSON.parse(`{${JSON.stringify(label)}:1}`)), 'a is not a label of at most 100 characters');
    }
    isImpossible(() => of({ b: -1 }), 'a.b is not a count');
  });

  t('counts of one label are added up', () => {
    deepEqual(
      counted([
        ['a', 1],
        ['b', 2],
        ['a', 3],
      ]),
      { a: 4, b: 2 },
    );
  });

  t('a path leads through members and places, and to nothing that an object inherits', () => {
    const raw = { list: [{ a: 1 }, { a: 2 }], object: { 0: 'zero' }, none: null };
    equal(dig(raw, 'list.1.a'), 2);
    equal(dig(raw, 'object.0'), 'zero');
    for (const path of ['list.2', 'list.2.a', 'away', 'away.a', 'toString', 'object.constructor']) {
      equal(dig(raw, path), undefined, path);
    }
    equal(dig(raw, 'none.a.b'), null);
    isImpossible(() => dig(raw, 'list.a'), 'list is not an object');
    isImpossible(() => dig(raw, 'object.0.a'), 'object.0 is not an object');
    isImpossible(() => dig('text', 'a'), 'the answer is not an object');
    isImpossible(() => dig([{ a: 1 }], 'a'), 'the answer is not an object');
    const long = (length: number) => ({ a: Array(length).fill(1) });
    equal(dig(long(1_000), 'a.0'), 1);
    isImpossible(() => dig(long(1_001), 'a.0'), 'a is not a list of at most 1000');
  });

  t('items are the objects of a list', () => {
    deepEqual(items({ a: [{ b: 1 }, {}] }, 'a'), [{ b: 1 }, {}]);
    equal(items({}, 'a'), undefined);
    equal(items({ a: null }, 'a'), null);
    isImpossible(() => items({ a: {} }, 'a'), 'a is not a list of at most 1000');
    isImpossible(() => items({ a: [{}, 1] }, 'a'), 'a.1 is not an object');
  });

  t('an element is the item of its metric, whatever else the list holds', () => {
    const source = element('list', 'type', 'VIEWS', 'count');
    equal(source.name, 'VIEWS');
    const of = (...list: readonly unknown[]) => source.read({ list });
    equal(of(1, null, { type: 'OTHER', count: 'x' }, { type: 'VIEWS', count: 4 }, { type: 'VIEWS', count: 5 }), 4);
    equal(of({ type: 'VIEWS', count: null }), null);
    for (const list of [[], [{ type: 'OTHER', count: 1 }], [{ type: 'VIEWS' }]]) equal(of(...list), undefined);
    equal(source.read({}), undefined);
    equal(source.read({ list: null }), null);
    isImpossible(() => of({ type: 'VIEWS', count: -1 }), 'VIEWS is not a count');
    isImpossible(() => source.read({ list: {} }), 'list is not a list');
  });

  t('of several sources the first that has a value counts, and null is more than nothing', () => {
    const source = first(count('a'), count('b'), count('c'));
    deepEqual([source.name, source.derived, source.ofVideo], ['a or b or c', false, false]);
    equal(source.read({ a: 0, b: 1 }), 0);
    equal(source.read({ a: null, c: 2 }), 2);
    equal(source.read({ b: null }), null);
    equal(source.read({ a: null }), null);
    equal(source.read({}), undefined);
    equal(first(count('a'), secondsOf(count('b'))).derived, true);
  });

  t('what a network leaves out is null, or 0 where the rest of its object is there', () => {
    const orNothing = orNull(count('a'));
    deepEqual([{ a: 1 }, { a: null }, {}].map(orNothing.read), [1, null, null]);
    equal(orNothing.name, 'a');
    const shares = orZero(count('post.shares'), 'post');
    deepEqual(
      [{ post: { shares: 2 } }, { post: { shares: null } }, { post: {} }, { post: null }, {}].map(shares.read),
      // The whole post is null: so is each of its figures.
      [2, null, 0, null, undefined],
    );
    equal(shares.name, 'post.shares');
  });

  t('a source says whether it is of videos alone, and whether it is computed', () => {
    const plain = count('a');
    const of = ({ name, derived: computed, ofVideo: video }: FigureSource<unknown>) => [name, computed, video];
    deepEqual(of(plain), ['a', false, false]);
    deepEqual(of(ofVideo(plain)), ['a', false, true]);
    deepEqual(of(secondsOf(plain)), ['a', true, false]);
    deepEqual(of(ofVideo(secondsOf(plain))), ['a', true, true]);
    deepEqual(of(derived('b', () => 1)), ['b', true, false]);
    deepEqual(of(sumOf(plain, count('b'))), ['a + b', true, false]);
  });

  t('a changed figure is null and missing as its source is', () => {
    const doubled = mapped(count('a'), (value) => value * 2);
    deepEqual([{ a: 2 }, { a: 0 }, { a: null }, {}].map(doubled.read), [4, 0, null, undefined]);
  });

  // A running total that was rounded up would fall again.
  t('milliseconds become whole seconds and minutes, rounded down', () => {
    deepEqual(
      [999, 1_000, 59_999, 60_000].map((a) => [secondsOf(count('a')).read({ a }), minutesOf(count('a')).read({ a })]),
      [
        [0, 0],
        [1, 0],
        [59, 0],
        [60, 1],
      ],
    );
  });

  t('a sum is missing as soon as one of its parts is', () => {
    const sum = sumOf(count('a'), count('b'));
    equal(sum.read({ a: 1, b: 2 }), 3);
    equal(sum.read({ a: 1 }), undefined);
    equal(sum.read({ a: null, b: 2 }), null);
    isImpossible(() => sum.read({ a: most, b: 1 }), 'the sum is not a count');
  });

  t('members that have a place of ours are read under our names, and the others are dropped', () => {
    const source = renamed(counts('a'), { likes: 'LIKE', loves: 'LOVE', own: 'toString' });
    equal(source.name, 'a');
    deepEqual(source.read({ a: { LIKE: 3, OTHER: 1, LOVE: 0 } }), { likes: 3, loves: 0 });
    deepEqual(source.read({ a: {} }), {});
    equal(source.read({ a: null }), null);
    equal(source.read({}), undefined);
    const loose = renamed({ ...counts('a'), read: () => ({ LIKE: 'x' }) }, { likes: 'LIKE' });
    isImpossible(() => loose.read({}), 'a.LIKE is not a count');
  });
});
