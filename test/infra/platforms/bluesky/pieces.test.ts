import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { byteSpan, found } from '#infra/platforms/bluesky/facets.ts';
import { windowsOf } from '#infra/platforms/bluesky/limits.ts';
import { isDid, serviceOf } from '#infra/platforms/bluesky/people.ts';
import { publishedAs } from '#infra/platforms/bluesky/posts.ts';
import { recordOf } from '#infra/platforms/bluesky/record.ts';
import { isTid, tidOf } from '#infra/platforms/bluesky/tid.ts';
import type { Members } from '#infra/platforms/shared/members.ts';
import { pageFacts } from '#infra/platforms/shared/page.ts';
import { suite } from '#test/support/suite.ts';

const blob = { $type: 'blob', ref: { $link: 'bafkreib2' }, mimeType: 'image/jpeg', size: 9 } as const;
const image = (altText: string | null, size: number | null = 100) => ({
  blob,
  media: { kind: 'image', width: size, height: size, altText } as const,
});
const parts = {
  ...{ text: 'Hi', createdAt: '2026-11-26T10:00:00.000Z', found: [], dids: new Map<string, string>() },
  ...{ media: [], card: null, labels: [], replyTo: null },
};

suite('bluesky: pieces of a post', (t) => {
  t('limits are told in records, and only those of an account', () => {
    const headers = (policy: string, left = '4998') => ({
      ...{ 'ratelimit-limit': '5000', 'ratelimit-remaining': left, 'ratelimit-reset': '1795600800' },
      'ratelimit-policy': policy,
    });
    const window = { name: '1 hour', seconds: 3_600, limit: 2_500, used: 1, resetsAt: '2026-11-25T10:00:00.000Z' };
    assert.deepEqual(windowsOf(headers('5000;w=3600')), [window]);
    assert.deepEqual(windowsOf(headers('5000;w=3600', '1')), [{ ...window, used: 2_500 }], 'too little for a record');
    assert.equal(windowsOf(headers('35000;w=86400'))[0]?.name, '24 hours');
    for (const odd of ['3000;w=300', '5000', '', '5000;w=3600;burst=1', '-1;w=3600'])
      assert.deepEqual(windowsOf(headers(odd)), []);
    assert.deepEqual(windowsOf(headers('5000;w=3600', 'many')), []);
    assert.deepEqual(windowsOf({}), []);
  });

  t('a key tells posts apart, and sorts by time', () => {
    const seed = (text: string) => createHash('sha256').update(text).digest();
    const at = Date.parse('2026-11-26T10:00:00.000Z');
    const keys = [tidOf(at, seed('a')), tidOf(at + 1, seed('b')), tidOf(at + 1_000, seed('c'))];
    assert.deepEqual(keys, keys.toSorted());
    assert.ok(keys.every(isTid), keys.join());
    assert.notEqual(tidOf(at, seed('a')), tidOf(at, seed('d')));
    assert.equal(tidOf(at, seed('a')), tidOf(at, seed('a')));
    assert.equal(tidOf(0, new Uint8Array(3)), '2222222222222');
  });

  const shown = (text: string) =>
    found(text).map((one) => [
      one.kind,
      text.slice(one.start, one.end),
      'uri' in one ? one.uri : 'tag' in one ? one.tag : one.handle,
    ]);

  t('links, tags and mentions are found where the official client finds them', () => {
    assert.deepEqual(shown('See https://example.com/a?b=1. And example.com, too'), [
      ['link', 'https://example.com/a?b=1', 'https://example.com/a?b=1'],
      ['link', 'example.com', 'https://example.com'],
    ]);
    assert.deepEqual(shown('#coffee and ＃kaffee #2026 #a1! x#no # #\u200b'), [
      ['tag', '#coffee', 'coffee'],
      ['tag', '＃kaffee', 'kaffee'],
      ['tag', '#a1', 'a1'],
    ]);
    // Upper case in the record, as it was written in the text.
    assert.deepEqual(shown('$TSLA and ($aapl), $brk.b! $5 $TOOLONG a$b $1x $'), [
      ['tag', '$TSLA', '$TSLA'],
      ['tag', '$aapl', '$AAPL'],
      ['tag', '$brk', '$BRK'],
    ]);
    assert.deepEqual(shown('Hi @ann.bsky.social, (@bob.test) mail@x.com @nobody @A.B. @Ann.Blog.de.'), [
      ['mention', '@ann.bsky.social', 'ann.bsky.social'],
      ['mention', '@bob.test', 'bob.test'],
      ['mention', '@Ann.Blog.de', 'ann.blog.de'],
    ]);
    assert.deepEqual(shown('https://example.com/#tag'), [
      ['link', 'https://example.com/#tag', 'https://example.com/#tag'],
    ]);
    assert.deepEqual(shown(''), []);
    assert.deepEqual(shown(`#${'x'.repeat(65)}`), []);
  });

  t('offsets are bytes of UTF-8', () => {
    const text = '☕ é 👩‍👩‍👧 #größe';
    const [tag] = found(text);
    assert.ok(tag);
    const { byteStart, byteEnd } = byteSpan(text, tag);
    assert.equal(Buffer.from(text).subarray(byteStart, byteEnd).toString(), '#größe');
  });

  t('a record has the embed of its files, up to four as images, more as a gallery', () => {
    assert.deepEqual(recordOf(parts), { $type: 'app.bsky.feed.post', text: 'Hi', createdAt: parts.createdAt });
    const four = recordOf({ ...parts, media: [image('A cup'), image(null, null), image('c'), image('d')] });
    assert.deepEqual(four.embed, {
      $type: 'app.bsky.embed.images',
      images: [
        { image: blob, alt: 'A cup', aspectRatio: { width: 100, height: 100 } },
        { image: blob, alt: '' },
        { image: blob, alt: 'c', aspectRatio: { width: 100, height: 100 } },
        { image: blob, alt: 'd', aspectRatio: { width: 100, height: 100 } },
      ],
    });
    const five = recordOf({ ...parts, media: Array.from({ length: 5 }, () => image('x')) }).embed as {
      readonly $type: string;
      readonly items: readonly { readonly $type: string }[];
    };
    assert.deepEqual([five.$type, five.items.length], ['app.bsky.embed.gallery', 5]);
    assert.equal(five.items[0]?.$type, 'app.bsky.embed.gallery#image');
    const video = { blob, media: { kind: 'video', width: 16, height: 9, altText: 'Steam' } as const };
    assert.deepEqual(recordOf({ ...parts, media: [video] }).embed, {
      ...{ $type: 'app.bsky.embed.video', video: blob, alt: 'Steam', aspectRatio: { width: 16, height: 9 } },
    });
  });

  t('labels, a card, a reply and mentions that somebody has', () => {
    const text = 'Hi @ann.test @gone.test';
    const ref = { uri: 'at://did:plc:a/app.bsky.feed.post/3k', cid: 'bafy' };
    const record = recordOf({
      ...parts,
      ...{
        text,
        found: found(text),
        dids: new Map([['ann.test', 'did:plc:ann']]),
        labels: ['sexual', 'graphic-media'],
      },
      card: { uri: 'https://example.com/', title: 'T', description: 'D', thumb: null },
      replyTo: { root: ref, parent: ref },
    });
    assert.deepEqual(record.facets, [
      {
        index: { byteStart: 3, byteEnd: 12 },
        features: [{ $type: 'app.bsky.richtext.facet#mention', did: 'did:plc:ann' }],
      },
    ]);
    assert.deepEqual(record.embed, {
      $type: 'app.bsky.embed.external',
      external: { uri: 'https://example.com/', title: 'T', description: 'D' },
    });
    assert.deepEqual(record.labels, {
      $type: 'com.atproto.label.defs#selfLabels',
      values: [{ val: 'sexual' }, { val: 'graphic-media' }],
    });
    assert.deepEqual(record.reply, { root: ref, parent: ref });
  });

  t('a page tells its own title, description and picture, and nothing that it has not', () => {
    assert.deepEqual(
      pageFacts(`<title>Plain</title><meta property="og:title" content="Caf&eacute; &amp; &#39;more&#39;">
        <meta content='The "best" one' name=description><meta property="og:image" content="/a.jpg">`),
      { title: `Caf&eacute; & 'more'`, description: 'The "best" one', image: '/a.jpg' },
    );
    assert.deepEqual(pageFacts('<title>\n Only  a title </title>'), {
      title: 'Only a title',
      description: '',
      image: '',
    });
    assert.deepEqual(pageFacts('<p>'), { title: '', description: '', image: '' });
    const long = pageFacts(`<meta property="og:title" content="${'x'.repeat(2_000)}">`).title;
    assert.deepEqual([long.length, long.at(-1)], [300, '…']);
    const begun = performance.now();
    for (const part of ['<meta ', '<meta property=og:title content="', '<title', `<meta ${' name'.repeat(100)}`]) {
      pageFacts(part.repeat(20_000));
    }
    assert.ok(performance.now() - begun < 2_000, 'a hostile page is read in linear time');
  });

  t('identities: dids, and the server that holds a repository', () => {
    assert.ok(isDid('did:plc:ewvi7nxzyoun6zhxrhs64oiz') && isDid('did:web:example.com'));
    for (const wrong of ['did:plc:x', 'did:key:z6Mk', 'did:web:a/b', 'did:web:a:8080', ''])
      assert.ok(!isDid(wrong), wrong);
    const service = (id: string, serviceEndpoint: string): Members => ({ service: [{ id, serviceEndpoint }] });
    assert.equal(serviceOf(service('#atproto_pds', 'https://pds.example.com/x')), 'https://pds.example.com');
    assert.equal(serviceOf(service('did:plc:a#atproto_pds', 'https://pds.example.com')), 'https://pds.example.com');
    for (const one of [null, {}, { service: 1 }, service('#other', 'https://a.b'), service('#atproto_pds', 'x')]) {
      assert.equal(serviceOf(one), null);
    }
    assert.deepEqual(publishedAs('at://did:plc:ab/app.bsky.feed.post/3kabc', 'did:plc:ab', 'now'), {
      externalId: 'at://did:plc:ab/app.bsky.feed.post/3kabc',
      permalink: 'https://bsky.app/profile/did:plc:ab/post/3kabc',
      publishedAt: 'now',
    });
  });
});
