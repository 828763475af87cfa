import { deepEqual, equal, ok } from 'node:assert/strict';
import { breachesOf, isSilent, readRules, rulesIssues, type SentTexts, textRules } from '#domain/client-rules.ts';
import { suite } from '#test/support/suite.ts';

const sent = (text: string, more: Partial<SentTexts> = {}): SentTexts => ({
  ...{ segments: [text], others: [], links: [] },
  ...more,
});
const codes = (rules: Record<string, unknown>, text: string | SentTexts): readonly string[] =>
  breachesOf(readRules(rules), typeof text === 'string' ? sent(text) : text).map(({ code }) => code);

/** Processor time in microseconds: others on the machine do not count. */
const costOf = (work: () => void): number => {
  const before = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(before);
  return user + system;
};

suite('rules of a client', (t) => {
  t('banned words: whole words, whatever their case, width or composition', () => {
    const bans = (word: string, text: string) => codes({ bannedWords: [word] }, text).includes('banned_word');
    for (const [word, text] of [
      ['cheap', 'A CHEAP trick'],
      ['Straße', 'in der STRASSE'],
      ['Straße', 'in der STRAẞE'],
      ['ΟΔΟΣ', 'οδός, οδος’Α'],
      ['café', 'our cafe\u0301!'],
      ['cheap', 'ｃｈｅａｐ'],
      ['buy now', 'Buy,  NOW!'],
      ['sale', 'big #Sale'],
      ['#sale', 'big #SALE'],
      ['日本', '「日本」'],
      ['🔥', 'hot 🔥 deal'],
      [' 🔥 ', 'hot🔥deal'],
    ] as const) {
      ok(bans(word, text), `${word} in ${text}`);
    }
    for (const [word, text] of [
      ['cheap', 'a cheapskate, uncheap'],
      ['#sale', 'big sale'],
      ['buy now', 'buy it now'],
      ['ass', 'first class'],
      ['🔥', 'nothing'],
      [' ', 'nothing'],
    ] as const) {
      ok(!bans(word, text), `${word} in ${text}`);
    }
  });

  t('a longer phrase and a shorter word with one beginning are both found', () => {
    const rules = readRules({ bannedWords: ['buy now today', 'buy'] });
    deepEqual(
      breachesOf(rules, sent('buy now today')).map(({ message }) => message),
      ['the client bans “buy”'],
    );
    deepEqual(codes({ bannedWords: ['buy now today', 'now or'] }, 'buy now or never'), ['banned_word']);
    deepEqual(codes({ bannedWords: ['#sale now', 'sale today'] }, 'a #sale today'), ['banned_word']);
  });

  t('the place of a breach is its segment', () => {
    const found = breachesOf(readRules({ bannedWords: ['bad'] }), sent('', { segments: ['good', 'a bad one'] }));
    deepEqual(
      found.map(({ part, code }) => [part, code]),
      [[1, 'banned_word']],
    );
    deepEqual(codes({ bannedWords: ['bad'] }, sent('good', { others: ['bad comment'] })), ['banned_word']);
  });

  t('required hashtags and the disclaimer: in a segment or a comment; refused, or warned of', () => {
    const rules = { requiredHashtags: ['Ad', '#Acme'], disclaimer: 'Terms apply.' };
    deepEqual(codes(rules, 'Nice #AD #acme\nterms   APPLY.'), []);
    deepEqual(codes(rules, sent('Nice #ad', { others: ['#acme Terms apply.'] })), []);
    deepEqual(codes(rules, 'Nice ad acme #adverts'), ['hashtag_missing', 'hashtag_missing', 'disclaimer_missing']);
    deepEqual(codes(rules, sent('', { segments: ['#acme Terms apply. #ad', 'more'] })), []);
    deepEqual(codes({ disclaimer: ' Terms  apply. ' }, 'Nice.\nTerms apply.'), []);
    deepEqual(breachesOf(readRules(rules), sent('Nice #ad')), [
      { code: 'hashtag_missing', part: 0, message: 'the client wants #Acme in every post', isWarning: false },
      {
        ...{ code: 'disclaimer_missing', part: 0, isWarning: false },
        message: 'the client wants its disclaimer in every post',
      },
    ]);
    const warned = breachesOf(readRules({ ...rules, enforce: 'warn', bannedWords: ['nice'] }), sent('Nice'));
    deepEqual(
      warned.map(({ code, isWarning }) => [code, isWarning]),
      [
        ['banned_word', false],
        ['hashtag_missing', true],
        ['hashtag_missing', true],
        ['disclaimer_missing', true],
      ],
    );
  });

  t('links: any, none, or those of allowed hosts and of hosts below them', () => {
    const text = 'see https://shop.acme.com/a?b and acme.com';
    deepEqual(codes({ linkPolicy: 'any' }, sent(text, { links: ['https://evil.com'] })), []);
    const long = `https://evil.com/${'x'.repeat(300)}`;
    deepEqual(breachesOf(readRules({ linkPolicy: 'none', enforce: 'warn' }), sent(long)), [
      {
        ...{ code: 'link_not_allowed', part: 0, isWarning: false },
        message: `the client’s link policy does not allow ${long.slice(0, 200)}`,
      },
    ]);
    const below = { linkPolicy: { allowedHosts: ['*.acme.com', '.shop.org', 'https://'] } };
    deepEqual(codes(below, 'see https://www.acme.com and https://a.shop.org'), []);
    deepEqual(codes(below, sent('', { links: ['https://'] })), ['link_not_allowed']);
    deepEqual(codes({ linkPolicy: 'none' }, text), ['link_not_allowed']);
    deepEqual(codes({ linkPolicy: 'none' }, 'no link. At all'), []);
    const acme = { linkPolicy: { allowedHosts: ['ACME.com'] } };
    deepEqual(codes(acme, text), []);
    for (const stranger of [
      'https://evil.com',
      'https://notacme.com',
      'acme.com.evil.com',
      'https://evil.com/acme.com',
    ]) {
      deepEqual(codes(acme, `see ${stranger}`), ['link_not_allowed'], stranger);
    }
    deepEqual(codes(acme, sent('', { links: ['https://acme.com@evil.com/'] })), ['link_not_allowed']);
    deepEqual(codes(acme, sent('', { links: ['https://www.acme.com:8080/x'] })), []);
    deepEqual(codes({ linkPolicy: { allowedHosts: [] } }, text), ['link_not_allowed']);
    for (const marked of ['<a href="https://intranet/x">a</a>', '[a](HTTP://10.0.0.1:80/x)', 'https://evil.example']) {
      deepEqual(codes(acme, marked), ['link_not_allowed'], marked);
    }
  });

  t('a link names the host that a browser opens, in whatever form', () => {
    const rules = {
      linkPolicy: {
        allowedHosts: ['acme.com', 'müller.de', 'xn--bcher-kva.example', 'https://Shop.org/x', 'port.io:8443'],
      },
    };
    const inOverride = (link: string) => codes(rules, sent('', { links: [link] }));
    for (const link of [
      'https://evil.com\\@acme.com/',
      'https://evil.c℀.acme.com/',
      'https://evil.com\\.acme.com',
      'evil.http://acme.com',
      'https://',
    ]) {
      deepEqual(inOverride(link), ['link_not_allowed'], link);
    }
    deepEqual(codes(rules, 'see https://intranet\\@acme.com/'), ['link_not_allowed']);
    for (const link of [
      'https://user:word@ACME.com.:8080/',
      'https://xn--mller-kva.de/',
      'https://www.MÜLLER.de',
      'https://bücher.example/x',
      'https://shop.org/y',
      'HTTPS://port.io',
      'acme。com/x',
    ]) {
      deepEqual(inOverride(link), [], link);
    }
    deepEqual(codes(rules, 'see https://bücher.example and https://xn--mller-kva.de.'), []);
  });

  t('every word, hashtag and host counts, however many there are and however long they are', () => {
    const many = (name: (n: number) => string) => Array.from({ length: 6_000 }, (_, n) => name(n));
    deepEqual(codes({ bannedWords: [...many((n) => `w${n}`), 'last'] }, 'the last word'), ['banned_word']);
    const phrase = 'very '.repeat(60).trim();
    deepEqual(codes({ bannedWords: [phrase] }, phrase), ['banned_word']);
    equal(codes({ requiredHashtags: many((n) => `t${n}`) }, 'none').length, 6_000);
    const linkPolicy = { allowedHosts: [...many((n) => `h${n}.com`), 'acme.com'] };
    const links = (count: number) =>
      costOf(() => deepEqual(codes({ linkPolicy }, 'https://www.acme.com '.repeat(count)), []));
    links(300);
    ok(links(2_400) < 40 * links(300), 'a link costs no look at every host');
    deepEqual(codes({ disclaimer: 'x'.repeat(6_000) }, 'none'), ['disclaimer_missing']);
    const long = 'x'.repeat(201);
    const sentRules = {
      ...{ bannedWords: ['x', 7, long], requiredHashtags: many(String), disclaimer: 'x'.repeat(5_001) },
      linkPolicy: { allowedHosts: [long] },
    };
    deepEqual(
      rulesIssues(sentRules).map(({ path, code: fault }) => [path, fault]),
      [
        ['/bannedWords/2', 'too_long'],
        ['/requiredHashtags', 'too_many'],
        ['/linkPolicy/allowedHosts/0', 'too_long'],
        ['/disclaimer', 'too_long'],
      ],
    );
    deepEqual(
      rulesIssues(sentRules).map(({ message }) => message),
      [
        'must have at most 200 characters',
        'must have at most 100 entries',
        'must have at most 200 characters',
        'must have at most 5000 characters',
      ],
    );
    deepEqual(rulesIssues({ bannedWords: 'x', linkPolicy: null, disclaimer: 7 }), []);
    deepEqual(rulesIssues({ linkPolicy: 'none', bannedWords: [null] }), []);
    const most = { bannedWords: Array.from({ length: 5_000 }, () => 'x'.repeat(200)), disclaimer: 'x'.repeat(5_000) };
    deepEqual(rulesIssues(most), []);
  });

  t('a required hashtag is found in each way to write it, and one of signs too', () => {
    for (const [tag, text] of [
      ['＃ad', 'x #ad'],
      ['#ad', 'x ＃AD'],
      ['##ad', 'x #ad'],
      ['#ad-free', 'x #Ad-Free'],
      ['#❤️', 'x #❤️'],
      ['C#', 'x #c#'],
    ] as const) {
      deepEqual(codes({ requiredHashtags: [tag] }, text), [], `${tag} in ${text}`);
      deepEqual(codes({ requiredHashtags: [tag] }, 'x ad'), ['hashtag_missing'], tag);
    }
    deepEqual(codes({ requiredHashtags: ['C#'] }, 'x #c'), ['hashtag_missing']);
    ok(isSilent(readRules({ requiredHashtags: ['#', ' ＃ '] })));
  });

  t('members of another type count as absent', () => {
    const odd = { bannedWords: 'bad', requiredHashtags: [7, null, ''], disclaimer: {}, linkPolicy: 'some', enforce: 1 };
    ok(isSilent(readRules(odd)));
    for (const rules of [{}, { disclaimer: ' ' }, { linkPolicy: null }]) {
      ok(isSilent(readRules(rules)));
      equal(textRules(rules), null);
    }
    for (const rules of [
      { requiredHashtags: ['x'] },
      { bannedWords: ['x'] },
      { bannedWords: ['🔥'] },
      { linkPolicy: 'none' },
      { disclaimer: 'x' },
    ]) {
      ok(!isSilent(readRules(rules)));
      deepEqual(textRules(rules), readRules(rules));
    }
  });

  t('a thousand words that begin alike cost what one does', () => {
    const bannedWords = Array.from({ length: 1_000 }, (_, n) => `a ${'a '.repeat(n % 90)}b${n}`);
    const text = sent('a '.repeat(2_000));
    const cost = (words: readonly string[]) => {
      const rules = readRules({ bannedWords: words });
      return costOf(() => equal(breachesOf(rules, text).length, 0));
    };
    const one = cost(bannedWords.slice(89, 90));
    ok(cost(bannedWords) < 10 * one);
  });
});
