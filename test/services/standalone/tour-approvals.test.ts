import { deepEqual, equal } from 'node:assert/strict';
import { shown } from '#services/standalone/tour-approvals.ts';
import { suite } from '#test/support/suite.ts';

suite('the tour reads what others wrote', (t) => {
  t('again, until it shows', async () => {
    const read = ['pending', 'pending', 'approved', 'never read'];
    const last = await shown(
      async () => read.shift(),
      (status) => status !== 'pending',
      new AbortController().signal,
    );
    equal(last, 'approved');
    deepEqual(read, ['never read']);
  });
});
