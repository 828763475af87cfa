import { deepEqual, equal } from 'node:assert/strict';
import { parsed } from '#infra/platforms/shared/members.ts';
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

  t('what is no object is nothing', () => {
    for (const text of ['', '[1]', '12345678901234567890', '{', '"text"', 'null', `${'['.repeat(20_000)}`]) {
      equal(read(text), null, text.slice(0, 20));
    }
  });
});
