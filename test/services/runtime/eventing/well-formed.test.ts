import { deepEqual, equal } from 'node:assert/strict';
import { wellFormedInstant, wellFormedJson, wellFormedText } from '#runtime/eventing/well-formed.ts';
import { suite } from '#test/support/suite.ts';

suite('text from outside', (t) => {
  t('has no NUL and no lone surrogate, and is cut between characters', () => {
    equal(wellFormedText('a\0b\ud800c', 10), 'ab\ufffdc');
    equal(wellFormedText('ab😀', 3), 'ab');
    equal(wellFormedText('ab😀', 4), 'ab😀');
  });

  t('in JSON at any depth, names of members too', () => {
    deepEqual(wellFormedJson({ 'k\0': ['\ud800', { a: 'x\0' }], n: 1, z: null, t: true }), {
      k: ['\ufffd', { a: 'x' }],
      n: 1,
      z: null,
      t: true,
    });
  });

  t('an instant is in UTC with milliseconds; an invalid one is null', () => {
    equal(wellFormedInstant('2026-03-10T13:00:00+01:00'), '2026-03-10T12:00:00.000Z');
    for (const text of ['', 'soon', '+012026-01-01T00:00:00Z', '-000001-01-01T00:00:00Z'])
      equal(wellFormedInstant(text), null);
  });
});
