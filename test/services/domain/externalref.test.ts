import { deepEqual } from 'node:assert/strict';
import { externalref } from '#domain/externalref.ts';
import type { ExternalRefEvent } from '#schemas/externalref.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const { given, state } = deciding(externalref);

const early = '2026-01-01T00:00:00.000Z';
const late = '2026-01-01T00:00:11.000Z';
const claimedBy = (postId: string, claimedAt = early): ExternalRefEvent => ({
  type: 'ExternalRefClaimed',
  data: { clientId: 'acme', externalRef: 'CMS-1', postId, claimedAt },
});
const claim = (postId: string, now = early, evicts: string | null = null) =>
  ({ type: 'Claim', clientId: 'acme', externalRef: 'CMS-1', postId, now, evicts }) as const;
const releasedBy = (postId: string): ExternalRefEvent => ({ type: 'ExternalRefReleased', data: { postId } });

suite('externalref', (t) => {
  t('is claimed by the first post, and refused to a second one', () => {
    given([])
      .when(claim('a'))
      .then([claimedBy('a')]);
    given([claimedBy('a')])
      .when(claim('b'))
      .refused('already_exists', 'Another post of the client has this reference.');
  });

  t('passes on when the caller has shown that the owner does not hold it, and to nobody else', () => {
    given([claimedBy('a')])
      .when(claim('b', late, 'a'))
      .then([claimedBy('b', late)]);
    given([claimedBy('a'), claimedBy('c', late)])
      .when(claim('b', late, 'a'))
      .refused('already_exists');
    given([claimedBy('a'), claimedBy('b', late)])
      .when(claim('a', late))
      .refused('already_exists');
  });

  t('counts a later claim of the same post as a new one, so that a caller that acts on the older claim loses', () =>
    given([claimedBy('a')])
      .when(claim('a', late))
      .then([claimedBy('a', late)]),
  );

  t('is given back by its owner alone, and is free again', () => {
    given([claimedBy('a')])
      .when({ type: 'Release', postId: 'a' })
      .then([releasedBy('a')]);
    given([claimedBy('b')])
      .when({ type: 'Release', postId: 'a' })
      .then([]);
    given([]).when({ type: 'Release', postId: 'a' }).then([]);
    given([claimedBy('a'), releasedBy('a')])
      .when(claim('b'))
      .then([claimedBy('b')]);
  });

  t('folds to the last claim', () => {
    deepEqual(state([claimedBy('a'), claimedBy('b', late)]), { status: 'claimed', postId: 'b', claimedAt: late });
    deepEqual(state([claimedBy('a'), releasedBy('a')]), externalref.initial);
  });
});
