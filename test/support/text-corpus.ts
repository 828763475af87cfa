import fc from 'fast-check';

/** Texts to count and to look into: pieces that official libraries treat apart, in every order and in all scripts. */

const scripts = ['a', 'é', 'ж', '日', 'ア', '한', 'ไ', 'ع', 'ש', 'भा', '“', '”', '’', '…', '、', '。', '１'];
const blanks = [' ', '\n', '\t', '\u3000', '\u00a0', '\u200b', '\u202e', '\u2066', '\u00ad', '\u2060'];
const signs = [...'.,;:!?()[]-_/@#$&+~*"\'|%=<>', '＃', '＠', '/', '//'];
const marks = ['e\u0301', '\u0301', '\u05e9\u05bc', 'ch\u0361'];
const hosts = [
  ...['example.com', 'Example.com', 'EXAMPLE.COM', 'foo.co.uk', 'sub.ex-ample.co.jp', 'a_b.com', 'a-.com', '-a.com'],
  ...[
    '例え.jp',
    '例え.テスト',
    'münchen.de',
    'foo.рф',
    '한국.kr',
    'xn--r8jz45g.jp',
    'foo.xn--p1ai',
    't.co',
    'localhost',
  ],
  ...[
    '1.2.3.4',
    'node.js',
    'file.txt',
    '3.14',
    'httpbin.org',
    'a.invalidtld',
    'foo.spa',
    'foo.bl',
    'example.com日b.com',
  ],
];
const schemes = ['', '', 'http://', 'https://', 'HTTP://', 'ftp://'];
const paths = [
  '',
  '',
  '/',
  '/a_(b)',
  '/a(b',
  '/a((b))c',
  '/a!(b)',
  '/é',
  '/Ж',
  '/日',
  '?q=1',
  '/?q=a&b=c#d.',
  ':8080/a-',
  '/@u/',
];
const addresses = hosts.flatMap((host) => paths.map((path) => `${host}${path}`));
const names = [
  '@alice.bsky.social',
  '@Bob.Example.com',
  '@x.test',
  '@a.b_c',
  'user@example.com',
  '#tag',
  '#1',
  '#1a',
  '#日本',
];
const tags = ['#a.', '#\ufe0fx', '#!x!', '$AAPL', '$a1234.', '$abcdef', `#${'x'.repeat(64)}`, `#${'x'.repeat(65)}`];
const emoji = [
  '😀',
  '❤️',
  '❤',
  '☺',
  '©',
  '©️',
  '1️⃣',
  '1⃣',
  '#️⃣',
  '🇩🇪',
  '🇩',
  '👍🏽',
  '👩🏽‍💻',
  '👨‍👩‍👧‍👦',
  '🏳️‍🌈',
  '👁‍🗨',
  '🏴󠁧󠁢󠁥󠁮󠁧󠁿',
];

const piece = fc.oneof(
  ...[scripts, blanks, blanks, signs, signs, marks, emoji, names, tags].map((some) => fc.constantFrom(...some)),
  fc.tuple(fc.constantFrom(...schemes), fc.constantFrom(...addresses)).map((both) => both.join('')),
  fc.tuple(fc.constantFrom(...schemes), fc.constantFrom(...addresses)).map((both) => both.join('')),
);

export const corpusText = fc
  .tuple(fc.array(piece, { minLength: 1, maxLength: 6 }), fc.constantFrom('', '', ' '))
  .map(([pieces, between]) => pieces.join(between));
