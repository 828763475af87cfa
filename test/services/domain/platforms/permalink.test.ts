import { equal } from 'node:assert/strict';
import { permalinkOf } from '#domain/platforms/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

suite('permalinks', (t) => {
  t('of each network', () => {
    const parts = { id: '12', code: 'abc', username: 'acme', account: 'did:plc:a' };
    const table: Readonly<Record<Platform, string>> = {
      x: 'https://x.com/acme/status/12',
      instagram: 'https://www.instagram.com/p/abc/',
      tiktok: 'https://www.tiktok.com/@acme/video/12',
      youtube: 'https://www.youtube.com/watch?v=12',
      facebook: 'https://www.facebook.com/12',
      linkedin: 'https://www.linkedin.com/feed/update/12/',
      threads: 'https://www.threads.com/@acme/post/abc',
      pinterest: 'https://www.pinterest.com/pin/12/',
      bluesky: 'https://bsky.app/profile/did:plc:a/post/abc',
      telegram: 'https://t.me/acme/abc',
    };
    for (const platform of platforms) equal(permalinkOf(platform, parts), table[platform]);
    equal(permalinkOf('x', { ...parts, username: null }), 'https://x.com/i/web/status/12');
    equal(permalinkOf('tiktok', { ...parts, username: null }), null);
    // An empty member would give the address of another page.
    equal(permalinkOf('x', { ...parts, username: '' }), 'https://x.com/i/web/status/12');
    equal(permalinkOf('threads', { id: '12', username: 'acme', account: 'a' }), null);
  });
});
