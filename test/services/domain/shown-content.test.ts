import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { overrideRules, rulesOf, sentText, titleFor } from '#domain/platforms/index.ts';
import { contentFor, mediaIdsOf } from '#domain/post/content.ts';
import { type Decided, shownContent } from '#domain/shown-content.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { someValue } from '#test/support/override-values.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const media: readonly string[] = Array.from({ length: 6 }, () => randomUUID());
const kinds = ['video', 'image', 'image', 'gif', 'document', 'image'] as const;

const text = fc.string({ maxLength: 30, unit: 'grapheme' });
const ids = fc.uniqueArray(fc.constantFrom(...media), { maxLength: 3 });
const someOverrides = (platform: Platform): fc.Arbitrary<Record<string, unknown>> =>
  fc
    .record(Object.fromEntries(Object.entries(overrideRules(platform)).map(([key, rule]) => [key, someValue(rule)])), {
      requiredKeys: [],
    })
    .chain((known) => fc.dictionary(text, text, { maxKeys: 2 }).map((unknown) => ({ ...unknown, ...known })));

const decided: fc.Arbitrary<Decided> = fc
  .record({
    content: text,
    mediaIds: ids,
    variants: fc
      .uniqueArray(fc.constantFrom(...platforms), { maxLength: 5 })
      .chain((some) => fc.tuple(...some.map(variantOn))),
    thread: fc.option(
      fc.record({ segments: fc.array(fc.record({ content: text, mediaIds: ids }), { minLength: 2, maxLength: 4 }) }),
    ),
    mediaAltTexts: fc.option(fc.dictionary(fc.constantFrom(...media), fc.string({ minLength: 1, maxLength: 9 }))),
    coverMediaId: fc.option(fc.constantFrom(...media)),
    coverFrameMs: fc.option(fc.nat(9_999)),
    aiDisclosure: fc.boolean(),
  })
  .chain((body) =>
    fc
      .tuple(fc.array(fc.constantFrom(...platforms), { minLength: 1, maxLength: 6 }), fc.nat(3))
      .map(([on, others]) => ({
        body: body as Decided['body'],
        targets: on.map((platform) => ({ accountId: randomUUID(), platform })),
        others: on.slice(0, others).map((platform) => ({ accountId: randomUUID(), platform })),
        fileOf: (id: string) => {
          const at = media.indexOf(id);
          const kind = kinds[at] ?? null;
          return { name: `file ${at}`, kind, contentType: 'a/b', bytes: at, sha256: `${at}`.repeat(64), altText: null };
        },
        nameOf: (id: string) => `name of ${id}`,
      })),
  );

const variantOn = (platform: Platform) =>
  fc.record({
    platform: fc.constant(platform),
    contentOverride: fc.option(text),
    mediaIdsOverride: fc.option(ids),
    overrides: someOverrides(platform),
  });

/** What is shown of a content for these networks: kind, part and place, key, value, networks, and why it does not go out. */
const said = (
  body: Partial<Decided['body']>,
  on: readonly Platform[],
  more: Partial<Decided> = {},
): readonly string[] =>
  shownContent({
    body: {
      ...{ content: 'Hello', mediaIds: [], variants: [], thread: null, mediaAltTexts: null },
      ...{ coverMediaId: null, coverFrameMs: null, aiDisclosure: false, ...body },
    } as Decided['body'],
    targets: on.map((platform) => ({ accountId: `on ${platform}`, platform })),
    others: [],
    fileOf: (id) => files[id] ?? null,
    nameOf: (id) => id,
    ...more,
  }).map(({ kind, part, position, key, value, platforms: sent, id, unsent }) => {
    const where = [part, position].map((one) => (one === null ? '' : ` ${one}`)).join('');
    const what = key === null ? value : `${key}=${value}`;
    return `${kind}${where}: ${what}${id === null || id === value ? '' : ` (${id})`} → ${sent.join(' ')}${unsent === null ? '' : `; ${unsent}`}`;
  });
/** Without accounts and labels, which every content has. */
const rest = (...all: Parameters<typeof said>): readonly string[] =>
  said(...all).filter((one) => !/^(account|ai_label):/.test(one));
const fileNamed = (name: string, kind: 'image' | 'gif' | 'video', more = {}) => ({
  ...{ name, kind, contentType: `${kind}/x`, bytes: 7, sha256: 'ab', altText: null },
  ...more,
});
const files: Readonly<Record<string, ReturnType<Decided['fileOf']>>> = {
  p: fileNamed('photo', 'image', { altText: 'A photo' }),
  g: fileNamed('loop', 'gif'),
  v: fileNamed('clip', 'video'),
  bare: fileNamed('bare', 'image', { contentType: null, bytes: null, sha256: null }),
};
const variant = (platform: Platform, more: Partial<Decided['body']['variants'][number]>) => ({
  ...{ platform, contentOverride: null, mediaIdsOverride: null, overrides: {} },
  ...more,
});

suite('what is shown of a content', (t) => {
  t('the accounts of the decision, then the others of the post, and whether AI made it', () => {
    assert.deepEqual(said({ aiDisclosure: true }, ['x', 'facebook'], { others: [{ accountId: 'o', platform: 'x' }] }), [
      'account: on x → x',
      'account: on facebook → facebook',
      'text: Hello → x facebook',
      'ai_label: yes → x facebook',
      'account: o → x; The decision is not about it.',
    ]);
    assert.ok(said({}, ['x', 'tiktok']).includes('ai_label: no → x tiktok'));
    assert.deepEqual(rest({ content: '' }, ['x']), ['text:  → x']);
  });

  t('files in their order, with their bytes as far as they are known, and those that were deleted', () => {
    assert.deepEqual(rest({ mediaIds: ['p', 'g', 'gone', 'bare'] }, ['x', 'facebook']), [
      'text: Hello → x facebook',
      'file 1: photo (p) → x facebook',
      'file 2: loop (g) → x facebook',
      'file 3: a file that was deleted (gone) → x facebook',
      'file 4: bare → x facebook',
      'alt_text: A photo (p) → x facebook',
      'bytes: image/x, 7 bytes, SHA-256 ab (p) → x facebook',
      'bytes: gif/x, 7 bytes, SHA-256 ab (g) → x facebook',
      'bytes: its bytes are not known (gone) → x facebook',
      'bytes: its bytes are not known (bare) → x facebook',
    ]);
  });

  t(
    'a text and files of one network in place of those of all, and those of a network that is not decided about',
    () => {
      const mine = variant('x', { contentOverride: 'Mine', mediaIdsOverride: ['g'] });
      assert.deepEqual(rest({ mediaIds: ['p'], variants: [mine] }, ['x']), [
        'text: Mine → x',
        'file 1: loop (g) → x',
        'bytes: gif/x, 7 bytes, SHA-256 ab (g) → x',
        'text: Hello → ; Each network has a text of its own.',
        'file 1: photo (p) → ; Each network has files of its own.',
        'alt_text: A photo (p) → ; No network of this decision gets it.',
        'bytes: image/x, 7 bytes, SHA-256 ab (p) → ; No network of this decision gets it.',
      ]);
      const variants = [
        variant('x', { contentOverride: 'Mine', mediaIdsOverride: [] }),
        variant('facebook', { contentOverride: 'Other', overrides: { firstComment: 'Hi', n: 1 } }),
      ];
      assert.deepEqual(rest({ content: '', variants }, ['x']), [
        'text: Mine → x',
        'file: no files → x',
        'text: Other → facebook; The decision is about no account on this network.',
        'setting: firstComment=Hi → facebook; The decision is about no account on this network.',
        'setting: n=1 → facebook; The decision is about no account on this network.',
      ]);
    },
  );

  t('a thread part by part where it goes out, and in place of what else was set there', () => {
    const thread = {
      segments: [
        { content: 'One', mediaIds: ['p'] },
        { content: 'Two', mediaIds: ['v', 'gone'] },
      ],
    } as never;
    const variants = [variant('x', { contentOverride: 'Mine', mediaIdsOverride: ['p'] })];
    assert.deepEqual(rest({ thread, variants }, ['x', 'facebook']), [
      'text: Hello → facebook',
      'text 1: One → x',
      'text 2: Two → x',
      'file 1 1: photo (p) → x',
      'file 2 1: clip (v) → x',
      'file 2 2: a file that was deleted (gone) → x',
      'alt_text: A photo (p) → x',
      'bytes: image/x, 7 bytes, SHA-256 ab (p) → x',
      'bytes: video/x, 7 bytes, SHA-256 ab (v) → x',
      'bytes: its bytes are not known (gone) → x',
      'text: Mine → x; The thread stands in its place.',
      'file 1: photo (p) → x; The thread stands in its place.',
    ]);
    assert.deepEqual(rest({ thread }, ['facebook']).slice(0, 4), [
      'text: Hello → facebook',
      'text 1: One → ; No network of this decision takes threads.',
      'text 2: Two → ; No network of this decision takes threads.',
      'file 1 1: photo (p) → ; No network of this decision takes threads.',
    ]);
  });

  t('each setting of a network as it goes out, or why it does not', () => {
    const overrides = { boardId: '1', title: 'T', link: 'nope', aiGenerated: null, nonsense: 3, toString: 'x' };
    const variants = [
      variant('pinterest', { overrides }),
      variant('facebook', { overrides: { firstComment: ' ' } }),
      variant('x', { overrides: { firstComment: 'Hi' } }),
      variant('instagram', { overrides: { shareToFeed: false } }),
    ];
    const ignored = 'setting: shareToFeed=false → instagram; Instagram ignores it on a post of this form.';
    assert.deepEqual(rest({ variants }, ['x', 'facebook', 'pinterest', 'instagram']), [
      'text: Hello → x instagram facebook pinterest',
      'title: title=T → pinterest',
      'first_comment: firstComment=Hi → x',
      'setting: boardId=1 → pinterest',
      'first_comment: firstComment=  → facebook; It is empty.',
      'setting: link=nope → pinterest; It must be an absolute http or https URL.',
      'setting: aiGenerated=null → pinterest; It is not set.',
      'setting: nonsense=3 → pinterest; Pinterest has no such setting.',
      'setting: toString=x → pinterest; Pinterest has no such setting.',
      ignored,
    ]);
    const onInstagram = (id: string) => rest({ mediaIds: [id], variants: variants.slice(3) }, ['instagram']);
    assert.ok(onInstagram('p').includes(ignored));
    assert.ok(onInstagram('v').includes('setting: shareToFeed=false → instagram'));
  });

  t('a title that was set or that the network makes of the text, and a setting that stands for the text', () => {
    assert.deepEqual(rest({}, ['youtube']), ['text: Hello → youtube', 'title: Hello → youtube']);
    const overrides = { title: 'Mine', description: 'Instead' };
    const variants = [variant('youtube', { contentOverride: 'Own', overrides })];
    assert.deepEqual(rest({ variants }, ['youtube', 'tiktok']), [
      'text: Hello → tiktok',
      'text: description=Instead → youtube',
      'title: title=Mine → youtube',
      'text: Own → youtube; The setting description stands in its place.',
    ]);
    const blank = [variant('youtube', { overrides: { title: '\u200b' } })];
    assert.deepEqual(rest({ variants: blank }, ['youtube']).slice(1), [
      'title: Hello → youtube',
      'title: title=\u200b → youtube; YouTube takes no such title.',
    ]);
  });

  t('a cover and a frame as cover, on the networks that take them for these files', () => {
    assert.deepEqual(rest({ mediaIds: ['g'], coverMediaId: 'p', coverFrameMs: 5 }, ['tiktok', 'instagram']), [
      'text: Hello → instagram tiktok',
      'file 1: loop (g) → instagram tiktok',
      'cover: photo (p) → instagram',
      'cover_frame: 5 ms → instagram tiktok',
      'bytes: gif/x, 7 bytes, SHA-256 ab (g) → instagram tiktok',
      'bytes: image/x, 7 bytes, SHA-256 ab (p) → instagram',
      'alt_text: A photo (p) → ; No network of this decision gets it.',
    ]);
    assert.deepEqual(rest({ mediaIds: ['p', 'v'], coverFrameMs: 5 }, ['tiktok']).slice(3, 4), [
      'cover_frame: 5 ms → tiktok',
    ]);
    assert.deepEqual(rest({ mediaIds: ['p'], coverMediaId: 'gone', coverFrameMs: 5 }, ['x', 'tiktok']).slice(-3), [
      'cover: a file that was deleted (gone) → ; No network of this decision takes a cover.',
      'cover_frame: 5 ms → ; No network of this decision takes a frame as cover.',
      'bytes: its bytes are not known (gone) → ; No network of this decision gets it.',
    ]);
  });

  t('texts for files: those of the post before those of the library, where a network takes them', () => {
    const mediaAltTexts = { v: 'Moves', bare: '\u200b', other: 'Elsewhere', g: '' };
    const texts = rest({ mediaIds: ['p', 'v', 'bare', 'g'], mediaAltTexts }, ['x', 'youtube']);
    assert.deepEqual(
      texts.filter((one) => one.startsWith('alt_text')),
      [
        'alt_text: A photo (p) → x',
        'alt_text: Moves (v) → ; No network of this decision gets it.',
        'alt_text: \u200b (bare) → ; It shows nothing.',
        'alt_text: Elsewhere (other) → ; No network of this decision gets it.',
      ],
    );
    assert.ok(rest({ mediaIds: ['p'], mediaAltTexts: { p: 'Ours' } }, ['x']).includes('alt_text: Ours (p) → x'));
  });

  const { seed } = seeded('shown-content');
  const always = (law: (given: Decided) => void) => fc.assert(fc.property(decided, law), { seed, numRuns: 400 });

  t('has every value that the hash covers', () => {
    always((given) => {
      const { body, targets, others } = given;
      const items = shownContent(given);
      const has = (what: string, wanted: (one: (typeof items)[number]) => boolean) =>
        assert.ok(items.some(wanted), `${what} is not shown: ${JSON.stringify(items)}`);
      const texts = [body.content, ...(body.thread?.segments ?? []).map(({ content }) => content)];
      for (const one of texts)
        if (one !== '') has(`the text ${one}`, ({ kind, value }) => kind === 'text' && value === one);
      for (const { platform, contentOverride, mediaIdsOverride, overrides } of body.variants) {
        const on = (one: (typeof items)[number]): boolean => one.platforms.includes(platform);
        if (contentOverride !== null)
          has(contentOverride, (one) => one.kind === 'text' && one.value === contentOverride && on(one));
        if (mediaIdsOverride?.length === 0) has('no files', (one) => one.kind === 'file' && one.id === null && on(one));
        for (const id of mediaIdsOverride ?? []) has(id, (one) => one.kind === 'file' && one.id === id && on(one));
        for (const [key, value] of Object.entries(overrides)) {
          const written = typeof value === 'string' ? value : JSON.stringify(value);
          has(`${platform} ${key}`, (one) => one.key === key && one.value === written && on(one));
        }
      }
      for (const id of mediaIdsOf(body))
        has(`bytes of ${id}`, (one) => one.kind === 'bytes' && one.id === id && /SHA-256 \d{64}/.test(one.value));
      for (const id of [...body.mediaIds, ...(body.thread?.segments ?? []).flatMap(({ mediaIds }) => mediaIds)]) {
        has(`the file ${id}`, (one) => one.kind === 'file' && one.id === id);
      }
      for (const [id, alt] of Object.entries(body.mediaAltTexts ?? {}))
        has(alt, (one) => one.kind === 'alt_text' && one.id === id && one.value === alt);
      if (body.coverMediaId !== null) has('the cover', (one) => one.kind === 'cover' && one.id === body.coverMediaId);
      if (body.coverFrameMs !== null)
        has('the frame', (one) => one.kind === 'cover_frame' && one.value === `${body.coverFrameMs} ms`);
      for (const { accountId } of [...targets, ...others])
        has(accountId, (one) => one.kind === 'account' && one.id === accountId);
    });
  });

  t('says of each network what it gets, and of nothing else that it goes out', () => {
    always((given) => {
      const items = shownContent(given);
      for (const platform of new Set(given.targets.map((one) => one.platform))) {
        const sent = items.filter((one) => one.unsent === null && one.platforms.includes(platform));
        const { segments, overrides } = contentFor(given.body, platform);
        const isThread = segments.length > 1;
        const texts = segments.map(({ content }, at) =>
          at === 0 ? sentText(rulesOf(platform).text, content, overrides).text : content,
        );
        const of = (kind: string, part: number | null) =>
          sent
            .filter((one) => one.kind === kind && one.part === part)
            .map(({ value, id }) => (kind === 'text' ? value : id));
        for (const [at, one] of texts.entries()) {
          const part = isThread ? at + 1 : null;
          // A text that its own rule refuses stops the post before anybody decides about it.
          if (!(at === 0 && typeof overrides.description === 'string'))
            assert.deepEqual(of('text', part), [one], platform);
          assert.deepEqual(
            of('file', part).filter((id) => id !== null),
            segments[at]?.mediaIds,
            platform,
          );
        }
        const title = titleFor(platform, segments[0].content, overrides);
        const titles = sent.filter(({ kind }) => kind === 'title').map(({ value }) => value.trim());
        assert.deepEqual(titles, title === null ? [] : [title.trim()], platform);
      }
    });
  });

  t('a title with spaces around it goes out, and is shown so', () => {
    const overrides = { boardId: '1', title: ' Spring ' };
    const variants = [{ platform: 'pinterest', contentOverride: null, mediaIdsOverride: null, overrides }] as const;
    const rest = { mediaIds: [], thread: null, mediaAltTexts: null, coverMediaId: null, coverFrameMs: null };
    const body = { content: 'Flowers.', variants: [...variants], ...rest, aiDisclosure: false };
    const about = { targets: [{ accountId: 'a', platform: 'pinterest' }], others: [] } as const;
    const items = shownContent({ ...about, body, fileOf: () => null, nameOf: () => '' });
    const titles = items.filter(({ kind }) => kind === 'title').map(({ value, unsent }) => [value, unsent]);
    assert.deepEqual(titles, [[' Spring ', null]]);
  });

  t('is one item for what several networks get alike', () => {
    always((given) => {
      const keys = shownContent(given).map(({ platforms: _on, ...one }) => JSON.stringify(one));
      assert.equal(new Set(keys).size, keys.length);
    });
  });
});
