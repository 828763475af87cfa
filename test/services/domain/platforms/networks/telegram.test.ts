import { deepEqual, equal, ok } from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import {
  capabilities,
  effectiveOverrides,
  permalinkOf,
  readingOf,
  rulesOf,
  textLength,
} from '#domain/platforms/index.ts';
import { shownText } from '#domain/platforms/networks/telegram.ts';
import { postFiguresOf } from '#domain/platforms/read-figures.ts';
import type { MediaUse } from '#schemas/media.ts';
import { suite } from '#test/support/suite.ts';
import { documentProbe, imageProbe, plansOf, videoProbe } from '../../renditions/probes.ts';

const { planOf, fits } = plansOf('telegram');

suite('Telegram', (t) => {
  // Recorded: the packages of TDLib come for some machines only. Texts that it refuses are none of them.
  t('shows of a text with markup what TDLib shows', () => {
    const file = new URL('../../../../fixtures/telegram-texts.json', import.meta.url);
    const { rows } = JSON.parse(readFileSync(file, 'utf8')) as { readonly rows: readonly (readonly string[])[] };
    for (const [mode, text = '', shown = ''] of rows) {
      equal(shownText(text, mode), shown, `${mode} ${JSON.stringify(text)}`);
      equal(textLength('telegram', text, { parseMode: mode }).parts[0]?.used, shown.length);
    }
    equal(rows.length, 750);
  });

  // TDLib's own source, `parse_markdown` and `parse_markdown_v2` of MessageEntity.cpp.
  t('leaves out the language of a block of code, and the one line break behind it', () => {
    const blocks: readonly (readonly [text: string, shown: string])[] = [
      ['```js\ncode```', 'code'],
      ['```\ncode```', 'code'],
      ['```js code```', ' code'],
      ['```code```', 'code'],
      ['```js\r\ncode```', 'code'],
      ['```js\n\rcode```', 'code'],
      ['```js\n\ncode```', '\ncode'],
      ['```js\r\rcode```', '\rcode'],
      // Without an end there is no language either.
      ['```js', 'js'],
    ];
    for (const mode of ['Markdown', 'MarkdownV2'])
      for (const [text, shown] of blocks) equal(shownText(text, mode), shown, `${mode} ${JSON.stringify(text)}`);
  });

  t('shows the signs that begin and end nothing', () => {
    const table: readonly (readonly [mode: string, text: string, shown: string])[] = [
      ['Markdown', '*b*(x)', 'b(x)'],
      ['Markdown', '[](x)', '(x)'],
      ['Markdown', '[a] (x)', 'a (x)'],
      ['Markdown', '_abc', 'abc'],
      ['Markdown', '[a](x', 'a'],
      ['MarkdownV2', '\\\u0000a', '\\\u0000a'],
      ['MarkdownV2', '\\é', '\\é'],
      ['MarkdownV2', '\\~a\\~', '~a~'],
      ['MarkdownV2', '\\*> b', '*> b'],
      ['MarkdownV2', '```a`b`c```', 'abc'],
      ['MarkdownV2', 'a!b', 'a!b'],
      ['MarkdownV2', 'a]b', 'a]b'],
      ['MarkdownV2', '[a] b', 'a b'],
      ['MarkdownV2', '[a](b) c]', 'a c]'],
      ['MarkdownV2', '![a](b) c]', 'a c]'],
    ];
    for (const [mode, text, shown] of table) equal(shownText(text, mode), shown, `${mode} ${JSON.stringify(text)}`);
  });

  // "sendPhoto": 10 MB, width and height together 10,000, ratio 20.
  t('takes pictures as its limits say', () => {
    for (const format of ['jpeg', 'png', 'webp']) ok(fits(imageProbe({}, { format })), format);
    ok(!fits(imageProbe({}, { format: 'tiff' })));
    for (const [bytes, taken] of [
      [10_000_000, true],
      [10_000_001, false],
    ] as const)
      equal(fits(imageProbe({ bytes })), taken, `${bytes} bytes`);
    const sizes: readonly (readonly [width: number, height: number, taken: boolean])[] = [
      [5_000, 5_000, true],
      [5_001, 5_000, false],
      [2_000, 100, true],
      [2_001, 100, false],
      [100, 2_000, true],
      [100, 2_001, false],
    ];
    for (const [width, height, taken] of sizes) equal(fits(imageProbe({ width, height })), taken, `${width}x${height}`);
    const sizeOf = (use: MediaUse) => {
      const plan = planOf(imageProbe({ width: 6_000, height: 6_000 }), use);
      ok(plan?.outcome === 'rendition');
      return plan.spec.width;
    };
    deepEqual([sizeOf('feed'), sizeOf('cover')], [2_048, 1_280]);
  });

  // "sendVideo": MPEG4 of up to 50 MB; "sendDocument": 50 MB.
  t('takes videos that play while they load, and documents', () => {
    const bytes = 50_000_000;
    ok(fits(videoProbe({ bytes })));
    ok(!fits(videoProbe({ bytes: bytes + 1 })));
    for (const [name, value, taken] of [
      ['container', 'mov', false],
      ['indexFirst', false, false],
      ['constantRate', false, true],
      ['editList', true, true],
      ['fps', 1, true],
      ['fps', 60, true],
      ['fps', 0.5, false],
      ['fps', 61, false],
      ['codec', 'hevc', false],
      ['pixelFormat', 'yuv422p', false],
    ] as const)
      equal(fits(videoProbe({}, { [name]: value })), taken, `${name} ${value}`);
    const hours = (n: number) => videoProbe({ durationMs: n * 3_600_000 });
    ok(fits(hours(12)));
    ok(planOf(hours(13))?.outcome === 'failed');
    const plan = planOf(videoProbe({ width: 1920, height: 1080 }, { container: 'avi', codec: 'mpeg4', profile: null }));
    ok(plan?.outcome === 'rendition');
    deepEqual([plan.spec.width, plan.spec.height], [1280, 720]);
    ok(fits(documentProbe({ bytes })));
    ok(!fits(documentProbe({ bytes: bytes + 1 })));
  });

  t('gives a bot no way to read a chat back', () => {
    const { handle, absenceIsProof } = rulesOf('telegram').publish;
    deepEqual([handle, absenceIsProof], ['none', false]);
    equal(rulesOf('telegram').platform, 'telegram');
    const places = { id: '1', code: '5', account: '123' };
    equal(permalinkOf('telegram', { ...places, username: null }), 'https://t.me/c/123/5');
    equal(permalinkOf('telegram', { ...places, username: 'a' }), 'https://t.me/a/5');
    const { readsBack, listsOwnPosts } = readingOf('telegram', '-1001');
    deepEqual([readsBack, listsOwnPosts], ['evidence', false]);
    const { thread, firstComment, native, textOnly, altText, cover, aiLabel } = capabilities('telegram');
    deepEqual(
      [thread, firstComment, native, textOnly, altText, cover, aiLabel],
      [false, true, false, true, false, true, false],
    );
  });

  t('keeps each value that it has for a setting, and no other', () => {
    const sent = (overrides: Readonly<Record<string, unknown>>) => effectiveOverrides('telegram', overrides, false);
    for (const parseMode of ['MarkdownV2', 'HTML', 'Markdown']) equal(sent({ parseMode }).parseMode, parseMode);
    equal(sent({ parseMode: 'BBCode' }).parseMode, undefined);
    for (const key of ['disableNotification', 'protectContent']) {
      equal(sent({})[key], false, key);
      equal(sent({ [key]: true })[key], true, key);
    }
    // The label of AI content is no setting of this network.
    deepEqual(effectiveOverrides('telegram', {}, true), { ...sent({}), aiGenerated: true });
  });

  t('tells of reactions and comments, and null while it has told nothing', () => {
    const read = (raw: object) => postFiguresOf('telegram', 'feed', raw);
    const reactions = (...counts: readonly unknown[]) => ({
      message_reaction_count: { reactions: counts.map((total_count) => ({ total_count })) },
    });
    const figuresOf = (raw: object) => {
      const mapped = read(raw);
      ok(mapped.kind === 'figures');
      return [mapped.figures.likes, mapped.figures.comments];
    };
    deepEqual(figuresOf({}), [null, null]);
    deepEqual(figuresOf(reactions()), [0, null]);
    deepEqual(figuresOf({ ...reactions(8, 3), discussion: { messages: 4 } }), [11, 4]);
    const reasonOf = (...counts: readonly unknown[]) => {
      const mapped = read({ ...reactions(...counts), discussion: { messages: 4 } });
      return mapped.kind === 'figures' ? mapped.odd.map(({ field, reason }) => `${field}: ${reason}`) : [mapped.reason];
    };
    deepEqual(reasonOf('a'), ['likes: total_count is not a count']);
    const most = Number.MAX_SAFE_INTEGER;
    deepEqual(reasonOf(most, most), ['likes: the sum of reactions is not a count']);
  });
});
