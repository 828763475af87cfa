import { equal } from 'node:assert/strict';
import fc from 'fast-check';
import { interactionParts, interactionsOf } from '#domain/engagement.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

suite('engagement', (t) => {
  t('is the sum of the known parts, whatever total the network reports or stops reporting', () => {
    equal(interactionsOf({ totalInteractions: 700, likes: 100 }), 100);
    equal(interactionsOf({ totalInteractions: null, likes: 100 }), 100);
    equal(interactionsOf({ totalInteractions: null, likes: 3, comments: null, shares: 4 }), 7);
    equal(interactionsOf({ likes: 1, comments: 2, shares: 4, saves: 8, reposts: 16, quotes: 32 }), 63);
    equal(interactionsOf({ likes: 0, comments: null }), 0);
  });

  t('is the network’s own total where no part is known', () => {
    equal(interactionsOf({ totalInteractions: 7 }), 7);
    equal(interactionsOf({ totalInteractions: 0, likes: null }), 0);
  });

  t('is null where neither a part nor the total is known', () => {
    equal(interactionsOf({}), null);
    equal(interactionsOf({ totalInteractions: null, likes: null, saves: null }), null);
  });

  t('stays a safe integer, however large the parts', () => {
    const count = fc.option(fc.nat(Number.MAX_SAFE_INTEGER), { nil: null });
    const figures = fc.record(Object.fromEntries(interactionParts.map((part) => [part, count])), { requiredKeys: [] });
    fc.assert(
      fc.property(figures, (reported) => {
        const sum = interactionsOf(reported);
        return sum === null
          ? Object.values(reported).every((one) => one === null)
          : Number.isSafeInteger(sum) && sum >= 0;
      }),
      { seed: seeded('engagement').seed },
    );
  });
});
