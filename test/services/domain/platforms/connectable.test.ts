import { deepEqual } from 'node:assert/strict';
import { connectable } from '#domain/platforms/index.ts';
import { platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

suite('connectable networks', (t) => {
  t('in the test mode all, since the sandbox stands for each', () =>
    deepEqual(connectable('test', ['x', 'bluesky'], []), ['x', 'bluesky']),
  );
  t('in the live mode those to which this installation connects, in the order of the link', () => {
    deepEqual(connectable('live', platforms, []), []);
    deepEqual(connectable('live', ['x', 'threads', 'bluesky'], ['bluesky', 'x', 'telegram']), ['x', 'bluesky']);
  });
});
