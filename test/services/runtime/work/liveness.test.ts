import { match, throws } from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { Liveness } from '#runtime/work/liveness.ts';
import { suite } from '#test/support/suite.ts';

suite('liveness', (t) => {
  t('a worker that just looked is well, and says what else it does', () => {
    const liveness = new Liveness(60_000);
    match(liveness.check(), /^looked \d+ ms ago$/);
    match(liveness.check('works on 3'), /^looked \d+ ms ago, works on 3$/);
  });

  t('a worker that has not looked for too long is not well until it looks again', async () => {
    const liveness = new Liveness(50);
    // Monotonic time is what is tested here, so the test lets it pass.
    while (performance.now() - liveness.searchedAt <= 50) await delay(10);
    throws(() => liveness.check('works on 3'), /^Error: has not looked for work for \d+ ms$/);
    liveness.searched();
    match(liveness.check(), /^looked/);
  });
});
