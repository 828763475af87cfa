/** Texts whose length the networks themselves publish. */
import { deepEqual, equal } from 'node:assert/strict';
import { textLength } from '#domain/platforms/index.ts';
import { shownText } from '#domain/platforms/networks/telegram.ts';
import { weightedLength } from '#domain/platforms/text-length.ts';
import { suite } from '#test/support/suite.ts';

const joiner = '\u200d';
const family = ['👨', '👩', '👧', '👦'].join(joiner);
const daughters = ['👨', '👩', '👧', '👧'].join(joiner);
const kana = 'あいうえおかきくけこ';
const spaces = String.fromCodePoint(...Array.from({ length: 14 }, (_, n) => 0x2000 + n));

suite('published lengths', (t) => {
  // https://github.com/twitter/twitter-text/blob/master/conformance/validate.yml: the three lists of weighted texts, config v3.
  t('X: the weighted texts of twitter-text', () => {
    const table: readonly [string, number][] = [
      ['Hi http://test.co', 26],
      ['http://test.co', 23],
      ['https://www.twitter.com/aloha '.repeat(10), 240],
      ['故'.repeat(160), 320],
      ['😷'.repeat(160), 320],
      ['A\u0301B', 2],
      ['A\u05e9\u05bc\u05c1', 4],
      [`H🐱☺${family}`, 7],
      ['😷👾😡🔥💩', 10],
      [`🙋🏽👨${joiner}🎤`, 4],
      [
        `This is a tweet with general punctuation characters: ${spaces} ‐ ‑ ‒ – — ― ‖  ‗ ‘ ’ ‚ ‛ “ ” „ ‟ ′ ″ ‴ ‵ ‶ ‷`,
        112,
      ],
      // A label of 64 characters is no domain.
      [`${'randomurl'.repeat(7)}s.com`, 68],
      // A label of more than 63 characters as Punycode writes it is none either.
      [`${kana.repeat(12)} http://${kana.repeat(5)}あいう.com`, 358],
      [`${kana.repeat(12)} http://${kana.repeat(5)}あい.com`, 264],
      [family.repeat(140), 280],
      ['Unicode 10.0 emoji: 🤪; 🧕; 🧕🏾; 🏴\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}', 34],
      ['Unicode 9.0 emoji: 🤠; 💃; 💃🏾', 29],
      ['ABC\u202a\uffffABC\ufffe', 12],
      ['\u2066\u202ahttp://foobar.پاکستان/\u202c\u2069', 31],
    ];
    for (const [text, weight] of table) equal(weightedLength(text), weight, JSON.stringify(text));
  });

  // https://github.com/bluesky-social/atproto/blob/main/packages/api/tests/rich-text.test.ts, "uses utf8 indices": words
  // with a family each, at bytes 0–28, 29–57 and 58–88; the lexicon app.bsky.feed.post holds 300 graphemes, 3,000 bytes.
  t('Bluesky: graphemes, and the bytes at which facets lie', () => {
    const words = ['one', 'two', 'three'].map((word) => `${word}${daughters}`);
    const places = words.map((_, index) => {
      const byteStart = textLength(
        'bluesky',
        words
          .slice(0, index)
          .map((word) => `${word} `)
          .join(''),
      ).parts[1]?.used;
      const byteEnd = textLength('bluesky', words.slice(0, index + 1).join(' ')).parts[1]?.used;
      return [byteStart, byteEnd];
    });
    deepEqual(places, [
      [0, 28],
      [29, 57],
      [58, 88],
    ]);
    deepEqual(
      textLength('bluesky', words.join(' ')).parts.map(({ used, limit, unit }) => [used, limit, unit]),
      [
        [16, 300, 'graphemes'],
        [88, 3000, 'utf8_bytes'],
      ],
    );
  });

  // https://core.telegram.org/bots/api#formatting-options: the example of each parse mode, and what is left of it once
  // the entities are parsed; https://core.telegram.org/api/entities: a length is one of UTF-16 units.
  t('Telegram: the examples of the parse modes, without their entities', () => {
    const bold =
      'bold italic bold italic bold strikethrough italic bold strikethrough spoiler underline italic bold bold';
    const table: readonly [mode: string, text: string, shown: string][] = [
      ['MarkdownV2', String.raw`*bold \*text*`, 'bold *text'],
      ['MarkdownV2', String.raw`_italic \*text_`, 'italic *text'],
      ['MarkdownV2', '__underline__ ~strikethrough~ ||spoiler||', 'underline strikethrough spoiler'],
      [
        'MarkdownV2',
        '*bold _italic bold ~italic bold strikethrough ||italic bold strikethrough spoiler||~ __underline italic bold___ bold*',
        bold,
      ],
      ['MarkdownV2', '[inline URL](http://www.example.com/)', 'inline URL'],
      ['MarkdownV2', '[inline mention of a user](tg://user?id=123456789)', 'inline mention of a user'],
      ['MarkdownV2', '![👍](tg://emoji?id=5368324170671202286)', '👍'],
      ['MarkdownV2', '`inline fixed-width code`', 'inline fixed-width code'],
      ['MarkdownV2', '>Block quotation started\n>The last line', 'Block quotation started\nThe last line'],
      [
        'MarkdownV2',
        '**>The expandable block quotation\n>The last line||',
        'The expandable block quotation\nThe last line',
      ],
      ['HTML', '<b>bold</b>, <strong>bold</strong>', 'bold, bold'],
      ['HTML', '<span class="tg-spoiler">spoiler</span>, <tg-spoiler>spoiler</tg-spoiler>', 'spoiler, spoiler'],
      [
        'HTML',
        '<b>bold <i>italic bold <s>italic bold strikethrough <span class="tg-spoiler">italic bold strikethrough spoiler</span></s> <u>underline italic bold</u></i> bold</b>',
        bold,
      ],
      ['HTML', '<a href="http://www.example.com/">inline URL</a>', 'inline URL'],
      ['HTML', '<tg-emoji emoji-id="5368324170671202286">👍</tg-emoji>', '👍'],
      ['HTML', '<pre><code class="language-python">code block</code></pre>', 'code block'],
      ['HTML', '<blockquote expandable>Expandable block quotation</blockquote>', 'Expandable block quotation'],
      [
        'Markdown',
        '*bold text* _italic text_ `inline fixed-width code`',
        'bold text italic text inline fixed-width code',
      ],
      ['Markdown', '[inline URL](http://www.example.com/)', 'inline URL'],
    ];
    for (const [parseMode, text, shown] of table) {
      equal(shownText(text, parseMode), shown);
      equal(textLength('telegram', text, { parseMode }).parts[0]?.used, shown.length, text);
    }
    equal(textLength('telegram', '![👍](tg://emoji?id=5368324170671202286)', { parseMode: 'MarkdownV2' }).used, 2);
  });
});
