import { deepEqual, equal } from 'node:assert/strict';
import { instantOf, parsed } from '#infra/platforms/shared/members.ts';
import { publishedAs } from '#infra/platforms/telegram/answers.ts';
import { suite } from '#test/support/suite.ts';

suite('answers of networks', (t) => {
  const read = (text: string) => parsed(Buffer.from(text));

  t('16: an id beyond 2^53 is the id that was written, wherever it stands', () => {
    const text =
      '{"id":7678907398077074696,"in":[{"deep":[-9223372036854775808,9007199254740993]}],"text":"7678907398077074696"}';
    deepEqual(read(text), {
      id: '7678907398077074696',
      in: [{ deep: ['-9223372036854775808', '9007199254740993'] }],
      text: '7678907398077074696',
    });
  });

  t('what a number holds stays a number, beside such an id too', () => {
    const text =
      '{"id":7678907398077074696,"most":9007199254740991,"half":0.12345678901234567,"large":1e300,"none":-0}';
    deepEqual(read(text), {
      ...{ id: '7678907398077074696', most: Number.MAX_SAFE_INTEGER },
      ...{ half: Number('0.12345678901234567'), large: 1e300, none: -0 },
    });
    deepEqual(read('{"most":9007199254740991,"views":12}'), { most: Number.MAX_SAFE_INTEGER, views: 12 });
  });

  t('an instant that a network names is one of 1970 to 9999, or none', () => {
    for (const [at, text] of [
      [0, '1970-01-01T00:00:00.000Z'],
      [1_788_260_400_000.7, '2026-09-01T11:00:00.000Z'],
      [Date.UTC(9999, 11, 31, 23, 59, 59, 999), '9999-12-31T23:59:59.999Z'],
    ] as const) {
      equal(instantOf(at), text);
    }
    for (const at of [null, -1, -1e300, 1e300, 8.64e15, Number.NaN, Number.POSITIVE_INFINITY])
      equal(instantOf(at), null);
  });

  t('a message of Telegram whose time is none is out all the same', () => {
    for (const date of [Number.MAX_SAFE_INTEGER, -1, 1e300]) {
      const made = publishedAs({ message_id: 7, date }, '-100', null, Date.UTC(2026, 0));
      deepEqual([made?.externalId, made?.publishedAt], ['-100:7', '2026-01-01T00:00:00.000Z']);
    }
  });

  t('what is no object is nothing', () => {
    for (const text of ['', '[1]', '12345678901234567890', '{', '"text"', 'null', `${'['.repeat(20_000)}`]) {
      equal(read(text), null, text.slice(0, 20));
    }
  });
});
