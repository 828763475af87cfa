import { deepEqual } from 'node:assert/strict';
import { connectable } from '#domain/platforms/index.ts';
import { platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

suite('connectable networks', (t) => {
  t('in the test mode all, since the sandbox stands for each', () =>
    deepEqual(connectable('test', ['x', 'bluesky']), ['x', 'bluesky']),
  );
  t('in the live mode those with an adapter of their own, of which there is none yet', () =>
    deepEqual(connectable('live', platforms), []),
  );
});
