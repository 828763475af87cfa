import { deepEqual } from 'node:assert/strict';
import { clientname } from '#domain/clientname.ts';
import type { ClientNameEvent } from '#schemas/client.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(clientname);

const early = '2026-01-01T00:00:00.000Z';
const late = '2026-01-01T00:00:11.000Z';
const claimedBy = (clientId: string, claimedAt = early): ClientNameEvent => ({
  type: 'NameClaimed',
  data: { clientId, name: 'Acme', claimedAt },
});
const claim = (clientId: string, now = early, evicts: string | null = null) =>
  ({ type: 'Claim', clientId, name: 'Acme', now, evicts }) as const;
const releasedBy = (clientId: string): ClientNameEvent => ({ type: 'NameReleased', data: { clientId } });

suite('clientname', (t) => {
  t('is claimed by the first caller', () =>
    given([])
      .when(claim('a'))
      .then([claimedBy('a')]),
  );

  t('is refused to a second client', () =>
    given([claimedBy('a')])
      .when(claim('b'))
      .refused('name_claimed'),
  );

  t('passes on when the caller has shown that the owner does not hold it', () =>
    given([claimedBy('a')])
      .when(claim('b', late, 'a'))
      .then([claimedBy('b', late)]),
  );

  t('does not pass on when another client than the evicted owner holds it by now', () =>
    given([claimedBy('a'), claimedBy('c', late)])
      .when(claim('b', late, 'a'))
      .refused('name_claimed'),
  );

  t('refuses the evicted owner in turn', () =>
    given([claimedBy('a'), claimedBy('b', late)])
      .when(claim('a', late))
      .refused('name_claimed'),
  );

  t('counts a later claim of the same client as a new one, so that a caller that acts on the older claim loses', () =>
    given([claimedBy('a')])
      .when(claim('a', late))
      .then([claimedBy('a', late)]),
  );

  t('is given back by its owner alone', () => {
    given([claimedBy('a')])
      .when({ type: 'Release', clientId: 'a' })
      .then([releasedBy('a')]);
    given([claimedBy('b')])
      .when({ type: 'Release', clientId: 'a' })
      .then([]);
    given([]).when({ type: 'Release', clientId: 'a' }).then([]);
  });

  t('is free again once given back', () =>
    given([claimedBy('a'), releasedBy('a')])
      .when(claim('b'))
      .then([claimedBy('b')]),
  );

  t('folds to the last claim', () => {
    deepEqual(state([claimedBy('a'), claimedBy('b', late)]), { status: 'claimed', clientId: 'b', claimedAt: late });
    deepEqual(state([claimedBy('a'), releasedBy('a')]), clientname.initial);
  });
});
