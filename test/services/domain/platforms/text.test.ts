import { equal, ok } from 'node:assert/strict';
import { normalizePlatform, rules, textLength } from '#domain/platforms/index.ts';
import { shownText } from '#domain/platforms/networks/telegram.ts';
import { links } from '#domain/platforms/networks/x.ts';
import { usedWords, weightedLength, withoutMarkup } from '#domain/platforms/text-length.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { suite } from '#test/support/suite.ts';

const family = '👨‍👩‍👧‍👦';

/** What fills a text of each network: a character, what it weighs there, and the unit that is counted. */
const fill: Readonly<Record<Platform, readonly [string, number, string]>> = {
  x: ['日', 2, 'weighted'],
  instagram: ['😀', 1, 'code_points'],
  tiktok: ['😀', 2, 'utf16_units'],
  youtube: ['é', 2, 'utf8_bytes'],
  facebook: ['e', 1, 'code_points'],
  linkedin: ['語', 1, 'code_points'],
  threads: ['😀', 4, 'emoji_bytes'],
  pinterest: ['a', 1, 'code_points'],
  bluesky: ['e\u0301', 1, 'graphemes'],
  telegram: ['😀', 2, 'parsed_utf16_units'],
};

suite('text of a network', (t) => {
  t('X weighs characters as twitter-text v3 does', () => {
    // Figures made with twitter-text 3.1.0.
    const table: readonly [string, number][] = [
      ['', 0],
      ['hello', 5],
      ['日本語', 6],
      ['한국어 text', 11],
      ['Ω ж ש', 5],
      [family, 2],
      ['🇩🇪👍🏽❤️1️⃣', 8],
      ['e\u0301', 1],
      ['“quote”—…', 10],
      ['https://example.com', 23],
      ['https://example.com/a/very/long/path?with=query&and=more#fragment-that-goes-on-and-on', 23],
      ['see example.com and foo.de', 55],
      ['www.example.shop!', 24],
      ['(https://en.wikipedia.org/wiki/Foo_(bar))', 25],
      ['node.js file.txt e.g. 3.14', 26],
      ['user@example.com', 16],
      ['https://例え.jp/', 23],
      ['https://localhost:3000', 22],
      ['\u{1D573}', 2],
      // The ends of the ranges that weigh one.
      ['\u10ff', 1],
      ['\u1100', 2],
      ['\u1fff', 2],
      ['\u2001\u200d', 2],
      ['\u200e', 2],
      ['\u200f', 2],
      ['\u2010\u201f', 2],
      ['\u2031', 2],
      ['\u2032\u2037', 2],
      ['\u2038', 2],
    ];
    for (const [text, weight] of table) equal(weightedLength(text), weight, JSON.stringify(text));
  });

  t('X finds the links that it shortens', () => {
    const text = 'a https://a.com/b_(c), b.org/x. no@c.com';
    equal([...links(text)].map(({ start, end }) => text.slice(start, end)).join(' '), 'https://a.com/b_(c) b.org/x');
  });

  t('counting stays linear on hostile text', () => {
    const started = performance.now();
    for (const unit of ['日', 'a.', '日.', '(http://a.com/(', 'http://', '[](', '#1', '<a', '@a.', '\\', '👨‍']) {
      const text = unit.repeat(Math.floor(50_000 / unit.length));
      for (const platform of platforms) {
        textLength(platform, text, { parseMode: 'MarkdownV2' });
        textLength(platform, text, { parseMode: 'HTML' });
      }
    }
    ok(performance.now() - started < 20_000, 'no pattern explodes');
  });

  t('each network takes a text at its limit and refuses one more character', () => {
    for (const platform of platforms) {
      const [unit, weight, name] = fill[platform];
      const { limit } = rules[platform].text.limits[0];
      const full = unit.repeat(limit / weight);
      const at = textLength(platform, full);
      equal(at.used, limit, platform);
      equal(at.unit, name, platform);
      const over = textLength(platform, `${full}.`);
      equal(over.used, limit + 1, platform);
      equal(over.limit, limit, platform);
    }
  });

  // A caller reads how much is too much; the whole of a text of some megabytes is not counted for it.
  t('a text is counted exactly up to four times the limit, and told as more beyond it', () => {
    for (const platform of platforms) {
      const [unit, weight] = fill[platform];
      const { limit } = rules[platform].text.limits[0];
      const most = unit.repeat((4 * limit) / weight);
      const [at] = textLength(platform, most).parts;
      equal(at?.used, 4 * limit, platform);
      equal(usedWords({ used: 4 * limit, limit }), String(4 * limit));
      const used = textLength(platform, `${most}${unit}`).parts[0]?.used ?? 0;
      equal(usedWords({ used, limit }), `more than ${4 * limit}`, platform);
    }
    const links = (count: number) => Array.from({ length: count }, (_, n) => `https://a.com/${n}`).join(' ');
    equal(textLength('threads', links(20)).parts[1]?.used, 20);
    equal((textLength('threads', links(21)).parts[1]?.used ?? 0) > 20, true);
  });

  t('counting stops soon after the most that is told, and not at it', () => {
    const smiles = '😀'.repeat(1_000);
    const link = 'https://a.com ';
    const weights: readonly [text: string, most: number, weight: number][] = [
      ['😀😀😀', 4, 6],
      [smiles, 4, 6],
      // What stands before a part counts as well: the first link has 23 of the 30.
      [`${link}${smiles}`, 30, 32],
      [`${link}${smiles} ${link}`, 30, 55],
      [link.repeat(100), 30, 47],
      [`${link}b`, 23, 25],
    ];
    for (const [text, most, weight] of weights) equal(weightedLength(text, most), weight, text.slice(0, 40));
    const partsOf = (platform: Platform, text: string) => textLength(platform, text).parts.map(({ used }) => used);
    equal(partsOf('threads', '日'.repeat(100_000))[0], 4 * rules.threads.text.limits[0].limit + 1);
    equal(partsOf('bluesky', 'é'.repeat(100_000))[0], 4 * rules.bluesky.text.limits[0].limit + 1);
    equal(partsOf('threads', Array.from({ length: 100 }, (_, n) => `https://a.com/${n}`).join(' '))[1], 21);
  });

  t('only the network that reads markup shows a text without it', () => {
    equal(withoutMarkup('telegram', '<b>a</b>', { parseMode: 'HTML' }), 'a');
    equal(withoutMarkup('x', '<b>a</b>', { parseMode: 'HTML' }), '<b>a</b>');
  });

  t('the tightest limit is one that is passed, and the first where none is', () => {
    const full = textLength('bluesky', family.repeat(120));
    equal(full.parts[1]?.used, full.parts[1]?.limit);
    equal(`${full.unit} ${full.used}`, 'graphemes 120');
    // Both are passed, the bytes by more.
    equal(textLength('bluesky', family.repeat(301)).unit, 'utf8_bytes');
    equal(textLength('bluesky', 'a'.repeat(3_001)).unit, 'graphemes');
  });

  t('bluesky counts graphemes and bytes', () => {
    equal(textLength('bluesky', family.repeat(100)).used, 100);
    const heavy = textLength('bluesky', family.repeat(150));
    equal(heavy.unit, 'utf8_bytes');
    equal(heavy.used, 150 * 25);
    equal(heavy.parts[0]?.used, 150);
  });

  t('threads counts an emoji as its bytes, other letters as one, and links once', () => {
    equal(textLength('threads', '日本').used, 2);
    equal(textLength('threads', family).used, 25);
    equal(textLength('threads', 'a 😀').used, 6);
    equal(textLength('threads', '1 2 # *').used, 7);
    // A digit with a mark is a letter of two characters.
    equal(textLength('threads', '1\u0301').used, 2);
    // The two signs are letters until a selector makes them emoji.
    equal(textLength('threads', '©®').used, 2);
    equal(textLength('threads', '©\ufe0f').used, 5);
    const many = Array.from({ length: 6 }, (_, i) => `https://e${i}.com`).join(' ');
    equal(textLength('threads', many).unit, 'links');
    equal(textLength('threads', 'https://a.com '.repeat(9)).parts[1]?.used, 1);
  });

  t('instagram counts hashtags and mentions', () => {
    const tags = Array.from({ length: 31 }, (_, i) => `#t${i}`).join(' ');
    const over = textLength('instagram', tags);
    equal(`${over.unit} ${over.used}/${over.limit}`, 'hashtags 31/30');
    equal(textLength('instagram', 'mail a@b.com, @one @two').parts[2]?.used, 2);
    equal(textLength('instagram', 'number #1 and c#d').parts[1]?.used, 0);
  });

  t('telegram counts the text without its markup', () => {
    const table: readonly [string, string | undefined, string][] = [
      ['<b>bold</b> &lt;x&gt; &#65;&#x42;', 'HTML', 'bold <x> AB'],
      ['<a href="https://e.com">here</a> 1 < 2', 'HTML', 'here 1 < 2'],
      ['*b* _i_ __u__ ~s~ ||h|| `c` \\* [t](https://e.com)', 'MarkdownV2', 'b i u s h c * t'],
      ['*b* [t](https://e.com) \\_', 'Markdown', 'b t _'],
      ['*b* <b>', undefined, '*b* <b>'],
    ];
    for (const [text, mode, shown] of table) equal(shownText(text, mode), shown);
    // What Telegram does not read as markup is shown, and counts.
    const address = (length: number) => `[a](${'x'.repeat(length)})`;
    const left: readonly [string, string, string][] = [
      ['&amp;&quot;&nbsp;', 'HTML', '&"&nbsp;'],
      ['&#0;&#x10ffff;&#x110000;', 'HTML', '&#0;&#x10ffff;&#x110000;'],
      ['a > b\n> c', 'MarkdownV2', 'a > b\n c'],
      ['a\\ b\\\nc', 'MarkdownV2', 'a b\nc'],
      ['[a](b c) ![d]() [e](f', 'MarkdownV2', 'a d e'],
      ['[a](b c) [d](e\\)) [f](g)', 'MarkdownV2', 'a d f'],
      [address(2_100), 'MarkdownV2', 'a'],
      [address(2_101), 'MarkdownV2', 'a'],
    ];
    for (const [text, mode, shown] of left) equal(shownText(text, mode), shown);
    equal(textLength('telegram', `<b>${'a'.repeat(4096)}</b>`, { parseMode: 'HTML' }).used, 4096);
    equal(textLength('telegram', '<i></i>'.repeat(5000), { parseMode: 'HTML' }).unit, 'utf8_bytes');
  });

  t('platform names', () => {
    equal(normalizePlatform('twitter'), 'x');
    for (const platform of platforms) equal(normalizePlatform(platform), platform);
    equal(normalizePlatform('X'), null);
    equal(normalizePlatform('myspace'), null);
    equal(normalizePlatform('__proto__'), null);
  });
});
