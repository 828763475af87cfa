import { deepEqual } from 'node:assert/strict';
import { choicesOf, readingOf } from '#domain/platforms/index.ts';
import { platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

suite('what a network is asked for', (t) => {
  const reads = (...asked: Parameters<typeof readingOf>) => {
    const { readsBack, listsOwnPosts } = readingOf(...asked);
    return [readsBack, listsOwnPosts];
  };

  t('posts of an account, as far as its network gives them', () => {
    deepEqual(reads('x', '1'), ['own_posts', true]);
    deepEqual(reads('telegram', '-100'), ['evidence', false]);
  });

  t('posts of a page of LinkedIn, and none of a member, whose posts its programme keeps closed', () => {
    deepEqual(reads('linkedin', 'urn:li:organization:1'), ['own_posts', true]);
    deepEqual(reads('linkedin', 'urn:li:person:a'), ['nothing', false]);
    const { absenceIsProof, settleWindowMs } = readingOf('linkedin', 'urn:li:organization:1');
    const member = readingOf('linkedin', 'urn:li:person:a');
    deepEqual([member.absenceIsProof, member.settleWindowMs], [absenceIsProof, settleWindowMs]);
  });

  t('what an account may choose, where its network tells of anything', () => {
    const keys = platforms.flatMap((platform) => Object.keys(choicesOf(platform)).map((key) => `${platform} ${key}`));
    deepEqual(keys.toSorted(), [
      'linkedin organization',
      'pinterest boardId',
      'tiktok privacyLevel',
      'youtube categoryId',
    ]);
    deepEqual(choicesOf('x'), {});
    deepEqual(choicesOf('pinterest'), { boardId: 'The boards of the account.' });
  });
});
