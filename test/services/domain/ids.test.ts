import { equal, match, notEqual } from 'node:assert/strict';
import fc from 'fast-check';
import {
  accountIdOf,
  approvalIdOf,
  causedIdOf,
  clientNameIdOf,
  keyedIdOf,
  normaliseName,
  recycledPostIdOf,
  targetIdOf,
  tenantIdOf,
  testTwinIdOf,
  uuidv5,
} from '#domain/ids.ts';
import { uuidPattern } from '#schemas/common.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const one = '6ba7b810-9dad-11d1-80b4-00c04fd430c8';
const two = '886313e1-3b8a-5372-9b90-0c9aee199e5d';
const { seed } = seeded('ids');

suite('ids', (t) => {
  t('derives the ids of the examples in RFC 9562 and of the ITU', () => {
    equal(uuidv5(one, 'www.example.com'), '2ed6657d-e927-568b-95e1-2665a8aea6a2');
    equal(uuidv5(one, 'python.org'), '886313e1-3b8a-5372-9b90-0c9aee199e5d');
  });

  t('the same parts give the same id, other parts another id', () => {
    equal(targetIdOf(one, two, 1), targetIdOf(one, two, 1));
    const names = [
      targetIdOf(one, two, 1),
      targetIdOf(one, two, 2),
      targetIdOf(two, one, 1),
      approvalIdOf(one, 1),
      approvalIdOf(one, 2),
      uuidv5(one, '\n1'),
      recycledPostIdOf(one, 1),
      recycledPostIdOf(one, 1, '2026-01-01T00:00:00.000Z'),
      recycledPostIdOf(one, 1, '2026-01-02T00:00:00.000Z'),
      accountIdOf(one, 'x', '42'),
      accountIdOf(one, 'threads', '42'),
      accountIdOf(two, 'x', '42'),
      keyedIdOf(one, 'createPost', 'k'),
      keyedIdOf(one, 'createClient', 'k'),
      keyedIdOf(two, 'createPost', 'k'),
      clientNameIdOf(one, 'Acme'),
      clientNameIdOf(two, 'Acme'),
      testTwinIdOf(one),
      causedIdOf(one, `target-${two}`),
      causedIdOf(one, `target-${two}#1`),
    ];
    equal(new Set(names).size, names.length);
    for (const name of names) match(name, new RegExp(uuidPattern));
  });

  t('the tenant is the live workspace, or its twin', () => {
    equal(tenantIdOf(one, 'live'), one);
    equal(tenantIdOf(one, 'test'), testTwinIdOf(one));
  });

  t('parts that are split elsewhere give another id', () => {
    notEqual(accountIdOf(one, 'x', '12'), accountIdOf(one, 'x1', '2'));
    notEqual(keyedIdOf(one, 'create', 'Post'), keyedIdOf(one, 'createP', 'ost'));
  });

  t('spellings of one name give one id', () => {
    for (const spelling of ['acme ltd', ' ACME Ltd ', 'Ａcme Ltd', 'Acme\u00a0Ltd']) {
      equal(clientNameIdOf(one, spelling), clientNameIdOf(one, 'Acme Ltd'), JSON.stringify(spelling));
    }
    equal(normaliseName('e\u0301'), normaliseName('\u00c9'));
    notEqual(normaliseName('Acme Ltd'), normaliseName('Acme  Ltd'));
  });

  t('normalising a normalised name changes nothing', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 20 }), (name) => {
        equal(normaliseName(normaliseName(name)), normaliseName(name));
      }),
      { seed, numRuns: 3_000 },
    );
  });
});
