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

suite('what is shown of a content', (t) => {
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
