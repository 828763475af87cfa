import { deepEqual, equal, match, ok, rejects, throws } from 'node:assert/strict';
import {
  EgressGuard,
  type GuardOptions,
  NotAllowed,
  type Resolve,
  resolveByDns,
  Unresolved,
} from '#runtime/egress/guard.ts';
import { type DnsDouble, dnsDouble } from '#test/support/dns-double.ts';
import { suite } from '#test/support/suite.ts';

const PUBLIC = '93.184.215.14';
const guardWith = (options: Partial<GuardOptions> = {}): EgressGuard =>
  new EgressGuard({ privateTargets: [], ownHosts: () => [], resolve: async () => [PUBLIC], ...options });
const guard = guardWith();

const refused = (url: string, message: RegExp, by = guard): void =>
  throws(
    () => by.checkUrl(url),
    (error) => error instanceof NotAllowed && error.code === 'url_not_allowed' && message.test(error.message),
    `${url} is not refused, or with other words`,
  );

/** Refused with these words, by what the text says alone. */
const table: readonly (readonly [what: string, message: RegExp, urls: readonly string[]])[] = [
  [
    'IPv4 in every spelling a url knows',
    /public address/,
    [
      'https://127.0.0.1/',
      'https://2130706433/',
      'https://0x7f.1/',
      'https://0x7f000001/',
      'https://0177.0.0.1/',
      'https://127.1/',
      'https://127.0.1/',
      'https://①②⑦.0.0.1/',
      'https://１２７．０．０．１/',
      'https://%31%32%37.0.0.1/',
      'https://0/',
      'https://127.0.0.1./',
      'https://10.1.2.3/',
      'https://169.254.169.254/latest/meta-data',
      'https://192.168.0.1/',
      'https://255.255.255.255/',
    ],
  ],
  [
    'IPv6 and the ways to write an IPv4 address in it',
    /public address/,
    [
      'https://[::]/',
      'https://[::1]/',
      'https://[::ffff:127.0.0.1]/',
      'https://[::ffff:8.8.8.8]/',
      'https://[::7f00:1]/',
      'https://[::ffff:0:7f00:1]/',
      'https://[::5efe:7f00:1]/',
      'https://[64:ff9b::7f00:1]/',
      'https://[64:ff9b::10.0.0.1]/',
      'https://[64:ff9b:1::808:808]/',
      'https://[2002:7f00:1::]/',
      'https://[2001::1]/',
      'https://[fc00::1]/',
      'https://[fe80::1]/',
      'https://[fec0::1]/',
      'https://[ff02::1]/',
    ],
  ],
  ['zone ids', /absolute https/, ['https://[::1%25lo]/', 'https://[fe80::1%25eth0]/', 'https://[fe80::1%lo]/']],
  [
    'names of this machine and of its network',
    /public address/,
    [
      'https://localhost/',
      'https://LOCALHOST/',
      'https://localhost./',
      'https://foo.localhost/',
      'https://foo.localhost./',
      'https://ｌｏｃａｌｈｏｓｔ/',
      'https://intranet/',
      'https://metadata/',
      'https://example..com/',
      'https://example.com../',
    ],
  ],
  [
    'other schemes, and texts that are no url as it stands',
    /absolute https/,
    [
      '',
      'example.com',
      '//example.com/',
      '/hook',
      'ftp://example.com/',
      'file:///etc/passwd',
      'data:text/plain,x',
      'https:example.com',
      'https:/example.com',
      'https:\\\\example.com',
      'https://example.com\\@127.0.0.1/',
      ' https://example.com/',
      'https://example.com/ x',
      'https://exa\nmple.com/',
      'https://example.com/\t',
      'https://',
      'https://?x',
      'https://exa<mple.com/',
      'https://[::1/',
      'https://example.com:99999/',
    ],
  ],
  [
    'plain http',
    /https:/,
    ['http://example.com/', 'HTTP://example.com/', 'http://8.8.8.8/', 'http://example.com:443/'],
  ],
  [
    'other ports',
    /port 443/,
    ['https://example.com:8443/', 'https://example.com:80/', 'https://example.com:22/', 'https://8.8.8.8:8443/'],
  ],
  [
    'user information',
    /user name or password/,
    [
      'https://user@example.com/',
      'https://user:pass@example.com/',
      'https://:pass@example.com/',
      'https://a%40b@example.com/',
    ],
  ],
  [
    'more than 2,048 characters, also once they are encoded',
    /longer/,
    [`https://example.com/${'x'.repeat(2029)}`, `https://example.com/${'é'.repeat(700)}`],
  ],
];

suite('egress guard: the text of a url', (t) => {
  for (const [what, message, urls] of table) {
    t(`refuses ${what}`, () => {
      for (const url of urls) refused(url, message);
    });
  }

  t('allows https on public names and addresses, and returns the normalised URL', () => {
    const used = (url: string): string => guard.checkUrl(url).href;
    equal(used('https://example.com/hook?a=1#fragment'), 'https://example.com/hook?a=1');
    equal(used('HTTPS://EXAMPLE.com:443'), 'https://example.com/');
    equal(used('https://example.com./x'), 'https://example.com/x');
    equal(used('https://bücher.example/'), 'https://xn--bcher-kva.example/');
    equal(used('https://8.8.8.8/'), 'https://8.8.8.8/');
    equal(used('https://0x08080808/'), 'https://8.8.8.8/');
    equal(used('https://[2606:4700::1111]/'), 'https://[2606:4700::1111]/');
    equal(used('https://[64:ff9b::808:808]/'), 'https://[64:ff9b::808:808]/');
    equal(used(`https://example.com/${'x'.repeat(2028)}`).length, 2048);
  });

  t('refuses our own hosts in any spelling', () => {
    const ours = guardWith({ ownHosts: () => ['api.example.com', 'Console.Example.com.', 'one.example.com:8443'] });
    for (const url of ['https://api.example.com/v1', 'https://API.example.COM./', 'https://api.example.com:443/'])
      refused(url, /this service/, ours);
    for (const url of ['https://console.example.com/', 'https://one.example.com/', 'https://one.example.com:8443/'])
      refused(url, /this service/, ours);
    equal(ours.checkUrl('https://notapi.example.com/').hostname, 'notapi.example.com');
    equal(ours.checkUrl('https://sub.api.example.com/').hostname, 'sub.api.example.com');
  });

  t('says of another port of its own machine what is wrong with it, not that it points back', () => {
    const local = guardWith({ ownHosts: () => ['127.0.0.1:8080', 'localhost:8080', '[::1]:8080', 'api.example.com'] });
    for (const host of ['127.0.0.1', 'localhost', '[::1]']) {
      refused(`http://${host}:3000/`, /begin with https/, local);
      refused(`https://${host}:3000/`, /port 443/, local);
      refused(`https://${host}/`, /public address/, local);
      refused(`http://${host}:8080/v1`, /point back at this service/, local);
    }
    refused('https://api.example.com:8443/', /port 443/, local);
    refused('https://api.example.com/', /point back at this service/, local);
  });

  t('allows the private targets of the configuration by host and port, plain http too', () => {
    const named = guardWith({ privateTargets: ['LOCALHOST:3000', '10.0.0.5:8080', '[::1]:9000', 'receiver:80'] });
    const allowed = [
      'http://localhost:3000/x',
      'https://localhost:3000/',
      'http://localhost.:3000/',
      'http://10.0.0.5:8080/',
    ];
    for (const url of [...allowed, 'http://[0:0::1]:9000/', 'http://receiver/']) ok(named.checkUrl(url));
    refused('http://localhost:3001/', /https:/, named);
    refused('https://localhost/', /public address/, named);
    refused('http://10.0.0.5/', /https:/, named);
    refused('https://receiver/', /public address/, named);
    refused('http://user@localhost:3000/', /user name/, named);
    refused('http://example.com/', /https:/, named);
  });

  t('with * allows any target except our own host and port', () => {
    const open = guardWith({ privateTargets: ['*'], ownHosts: () => ['127.0.0.1:8080', 'api.localhost'] });
    for (const url of ['http://127.0.0.1:9000/', 'http://localhost/', 'http://[::1]:1/', 'http://example.com:8080/'])
      ok(open.checkUrl(url));
    refused('http://127.0.0.1:8080/v1', /this service/, open);
    refused('http://2130706433:8080/v1', /this service/, open);
    refused('http://api.localhost/', /this service/, open);
    refused('https://user@127.0.0.1:9000/', /user name/, open);
    ok(open.checkUrl('http://api.localhost:9000/'));
  });
});

suite('egress guard: what a name resolves to', (t) => {
  let dns: DnsDouble;
  let byDns: Resolve;
  t.before(async () => {
    dns = await dnsDouble();
    byDns = resolveByDns([dns.server]);
  });
  t.after(() => dns.close());
  const url = new URL('https://hooks.example.com/');

  t('answers with all addresses of both families when all are public', async () => {
    dns.answer((_name, type) => (type === 'A' ? [PUBLIC, '8.8.8.8'] : ['2606:4700::1111']));
    deepEqual(await guardWith({ resolve: byDns }).addresses(url), [PUBLIC, '8.8.8.8', '2606:4700::1111']);
    equal(await guardWith({ resolve: byDns }).vet(url), 'resolved');
  });

  t('refuses a name with any private address, and does not say which', async () => {
    const mixed: readonly (readonly [a: readonly string[], aaaa: readonly string[]])[] = [
      [['127.0.0.1'], []],
      [[PUBLIC, '10.0.0.1'], []],
      [['10.0.0.1', PUBLIC], []],
      [[PUBLIC], ['::1']],
      [[PUBLIC], ['2606:4700::1111', 'fd00::1']],
      [[], ['64:ff9b::a00:1']],
      [[PUBLIC], ['::ffff:808:808']],
    ];
    for (const [a, aaaa] of mixed) {
      dns.answer((_name, type) => (type === 'A' ? a : aaaa));
      for (const ask of ['vet', 'addresses'] as const) {
        await rejects(guardWith({ resolve: byDns })[ask](url), (error: Error) => {
          ok(error instanceof NotAllowed, `${a} ${aaaa}: ${error}`);
          equal(error.message, 'The url must point at a public address.');
          return true;
        });
      }
    }
  });

  t('resolves a name once a connection', async () => {
    dns.answer((_name, type, nth) => (type === 'AAAA' ? [] : nth === 0 ? [PUBLIC] : ['127.0.0.1']));
    const rebinding = new URL('https://rebinding.example.com/');
    const before = dns.questions.length;
    deepEqual(await guardWith({ resolve: byDns }).addresses(rebinding), [PUBLIC]);
    deepEqual(dns.questions.slice(before).sort(), ['A rebinding.example.com', 'AAAA rebinding.example.com']);
    await rejects(guardWith({ resolve: byDns }).addresses(rebinding), NotAllowed);
  });

  t('allows an unresolved name at registration, and fails a connection to it', async () => {
    for (const answer of ['no such name', []] as const) {
      dns.answer(() => answer);
      equal(await guardWith({ resolve: byDns }).vet(url), 'unresolved');
      await rejects(guardWith({ resolve: byDns }).addresses(url), Unresolved);
    }
  });

  t('waits for name servers no longer than its limit', async () => {
    dns.answer(() => 'silence');
    for (const resolve of [byDns, () => new Promise<never>(() => {})]) {
      const started = performance.now();
      equal(await guardWith({ resolve, dnsMs: 200 }).vet(url), 'unresolved');
      const took = performance.now() - started;
      ok(took >= 199 && took < 1_200, `${took} ms`);
    }
  });

  t('knows a host whose name server answers for one family only, within the 2 s', async () => {
    dns.answer((_name, type) => (type === 'A' ? [PUBLIC] : 'silence'));
    deepEqual(await guardWith({ resolve: byDns }).addresses(url), [PUBLIC]);
  });

  t('hides the error of the resolver', async () => {
    const failing = guardWith({
      resolve: async () => {
        throw new Error('queryA ESERVFAIL 10.1.2.3');
      },
    });
    await rejects(failing.addresses(url), (error: Error) => {
      match(error.message, /^the name does not resolve$/);
      equal(error.cause, undefined);
      return error instanceof Unresolved;
    });
  });

  t('literal addresses and private targets ask no name server', async () => {
    const before = dns.questions.length;
    deepEqual(await guardWith({ resolve: byDns }).addresses(new URL('https://[2606:4700::1111]/')), [
      '2606:4700::1111',
    ]);
    await rejects(guardWith({ resolve: byDns }).addresses(new URL('https://10.0.0.1/')), NotAllowed);
    const local = guardWith({ resolve: byDns, privateTargets: ['localhost:3000'] });
    ok((await local.addresses(new URL('http://localhost:3000/'))).some((one) => one === '127.0.0.1' || one === '::1'));
    equal(dns.questions.length, before);
  });
});
