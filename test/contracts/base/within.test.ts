import { equal, rejects } from 'node:assert/strict';
import { within } from '#contracts/base/pause.ts';
import { suite } from '#test/support/suite.ts';

suite('the deadline of a promise', (t) => {
  const never = new Promise<string>(() => undefined);

  t('gives the result or the error of work that ends in time', async () => {
    equal(await within(60_000, Promise.resolve('done')), 'done');
    await rejects(within(60_000, Promise.reject(new Error('broken'))), /^Error: broken$/);
  });

  t('gives what the caller chose once the time is over', async () => {
    equal(await within(1, never, () => 'late'), 'late');
    const late = (): never => {
      throw new TypeError('the caller’s own');
    };
    await rejects(within(1, never, late), TypeError);
  });

  t('names the time where the caller chose nothing', async () => {
    await rejects(within(1, never), /^Error: no answer within 1 ms$/);
  });

  t('leaves no timer behind, and no rejection of late work unhandled', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown): void => void unhandled.push(error);
    process.on('unhandledRejection', note);
    try {
      const work = Promise.withResolvers<string>();
      equal(await within(1, work.promise, () => 'late'), 'late');
      work.reject(new Error('broken later'));
      await within(60_000, Promise.resolve());
      await new Promise((resolve) => setImmediate(resolve));
      equal(unhandled.length, 0);
      equal(process.getActiveResourcesInfo().filter((one) => one === 'Timeout').length, 0);
    } finally {
      process.off('unhandledRejection', note);
    }
  });
});
