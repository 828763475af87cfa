import { equal } from 'node:assert/strict';
import { nearestName, sameName } from '#schemas/nearest.ts';
import { suite } from '#test/support/suite.ts';

suite('the name that was probably meant', (t) => {
  const known = ['replySettings', 'quoteTweetId', 'saveDraft', 'privacyLevel', 'title', 'link'];

  t('ignores case and separators, then allows two edits, then a part of a name', () => {
    for (const [name, meant] of [
      ['reply_settings', 'replySettings'],
      ['Reply-Settings', 'replySettings'],
      ['replySetings', 'replySettings'],
      ['saveAsDraft', 'saveDraft'],
      ['privacy', 'privacyLevel'],
      ['titel', null],
      ['titles', 'title'],
      ['lnk', 'link'],
      ['x', null],
      ['mood', null],
    ] as const) {
      equal(nearestName(name, known), meant, name);
    }
    equal(sameName('QUOTE TWEET ID', known), 'quoteTweetId');
    equal(sameName('quoteTweet', known), null);
  });

  t('compares no long name', () => {
    equal(nearestName('reply_settings'.repeat(1_000), known), null);
    equal(sameName(`replySettings${'_'.repeat(100)}`, known), null);
  });
});
