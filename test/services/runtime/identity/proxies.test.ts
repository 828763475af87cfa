import { deepEqual, equal, match, throws } from 'node:assert/strict';
import {
  callerAddress,
  isProxy,
  networkOf,
  noProxies,
  readCaller,
  readTrustedProxies,
  UnnamedProxies,
} from '#runtime/identity/proxies.ts';
import { suite } from '#test/support/suite.ts';

const stranger = '198.51.100.7';
const proxy = '10.0.0.9';

suite('callers behind proxies', (t) => {
  const table = (
    trust: string | null,
    rows: readonly (readonly [peer: string, forwarded: string, caller: string])[],
  ) => {
    const trusted = trust === null ? noProxies : readTrustedProxies(trust);
    for (const [peer, forwarded, caller] of rows) {
      equal(callerAddress(peer, forwarded, trusted), caller, `${trust}: ${peer} <- ${forwarded}`);
    }
  };

  t('without a trusted proxy forwarded headers are ignored', () =>
    table(null, [
      [stranger, '', stranger],
      [stranger, '203.0.113.1', stranger],
      [proxy, '203.0.113.1', proxy],
    ]),
  );

  t('a proxy that nobody named shows itself: the peer, or a private address that vouches for others', () => {
    const open = 'a public address';
    for (const [trust, peer, forwarded, unnamed] of [
      [null, proxy, '203.0.113.1', proxy],
      [null, proxy, '', null],
      [null, '8.8.8.8', '203.0.113.1', open],
      [null, '::ffff:10.0.0.9', 'anything', proxy],
      [null, 'fd00::1:2', '203.0.113.1', 'fd00:0000:0000:0000:0000:0000:0001:0002'],
      ['10.0.0.9', proxy, '8.8.8.8', null],
      // A second proxy in front of the one that is named, and what its callers may write themselves.
      ['10.0.0.9', proxy, '8.8.4.4, 10.1.1.1', '10.1.1.1'],
      ['10.0.0.9', proxy, '1.1.1.1, 8.8.8.8', null],
      ['1', proxy, '8.8.4.4, 192.168.7.1', '192.168.7.1'],
      ['1', proxy, '1.1.1.1, 8.8.8.8', null],
      ['1', proxy, 'unknown', null],
      ['2', proxy, '8.8.4.4, 192.168.7.1', null],
      ['10.0.0.0/8', '11.0.0.1', '203.0.113.1', open],
    ] as const) {
      const trusted = trust === null ? noProxies : readTrustedProxies(trust);
      equal(readCaller(peer, forwarded, trusted).unnamed, unnamed, `${trust}: ${peer} <- ${forwarded}`);
    }
  });

  t('such a proxy is in the log once, and told of until an hour after its last request; few are remembered', () => {
    const lines: unknown[] = [];
    let now = 0;
    const unnamed = new UnnamedProxies({ warn: (line: unknown) => lines.push(line) }, () => now);
    equal(unnamed.line(), null);
    for (let at = 0; at < 3; at += 1) unnamed.note(proxy);
    deepEqual(lines, [{ proxy }]);
    match(unnamed.line() ?? '', /from 10\.0\.0\.9 \(3 requests\): TRUSTED_PROXIES does not name it/);
    now += 3_600_000;
    match(unnamed.line() ?? '', /10\.0\.0\.9/);
    for (let at = 0; at < 1_000; at += 1) unnamed.note(`10.1.${at % 250}.${at}`);
    equal(lines.length, 8);
    now += 3_600_001;
    equal(unnamed.line(), null);
    unnamed.note(proxy);
    equal(lines.length, 9);
  });

  t('a network is the /16 of an IPv4 address and the /32 of an IPv6 address', () => {
    const of = (address: string) => networkOf(callerAddress(address, '', noProxies));
    deepEqual(['203.0.113.7', '203.0.9.9', '203.1.113.7'].map(of), ['203.0', '203.0', '203.1']);
    deepEqual(['2001:470:1:2::3', '2001:470:ffff::'].map(of), ['20010470/32', '20010470/32']);
    equal(of('nothing'), 'unknown');
  });

  t('hops are counted from the right, so entries that callers add on the left are ignored', () => {
    table('1', [
      [proxy, '203.0.113.1', '203.0.113.1'],
      [proxy, '1.1.1.1, 203.0.113.1', '203.0.113.1'],
      [proxy, '1.1.1.1,2.2.2.2 ,\t203.0.113.1 ', '203.0.113.1'],
      [proxy, '', proxy],
    ]);
    table('2', [
      [proxy, '6.6.6.6, 203.0.113.1, 10.0.0.8', '203.0.113.1'],
      // One proxy was passed by: the entry that there is.
      [proxy, '203.0.113.1', '203.0.113.1'],
    ]);
    table('0', [[proxy, '203.0.113.1', proxy]]);
  });

  t('by address: the first untrusted address from the right is the caller', () =>
    table('10.0.0.0/8, 2001:db8:1::/48', [
      [proxy, '203.0.113.1', '203.0.113.1'],
      [proxy, '6.6.6.6, 203.0.113.1, 10.200.0.8, 2001:db8:1::5', '203.0.113.1'],
      [stranger, '203.0.113.1', stranger],
      ['11.0.0.1', '203.0.113.1', '11.0.0.1'],
      // All of them ours: the one that is farthest from us.
      [proxy, '10.0.0.1, 10.0.0.2', '10.0.0.1'],
      ['::ffff:10.0.0.9', '203.0.113.1', '203.0.113.1'],
    ]),
  );

  t('an entry that is no address makes its writer the caller', () => {
    for (const entry of [
      'unknown',
      '_hidden',
      '',
      '1.2.3',
      '256.1.1.1',
      'fe80::1%eth0',
      '[::1',
      '1.2.3.4:port',
      '"1.2.3.4"',
      '1.2.3.4:5:6',
      `${'1'.repeat(100)}`,
    ]) {
      table('2', [
        [proxy, `203.0.113.1, ${entry}`, proxy],
        [proxy, `203.0.113.1, ${entry}, 203.0.113.9`, '203.0.113.9'],
      ]);
    }
  });

  t('ports and brackets are removed; IPv4 in IPv6 is IPv4; IPv6 counts by its /64', () =>
    table('1', [
      [proxy, '203.0.113.1:4711', '203.0.113.1'],
      [proxy, '::ffff:203.0.113.1', '203.0.113.1'],
      [proxy, '::FFFF:cb00:7101', '203.0.113.1'],
      [proxy, '2001:db8:0:7:1:2:3:4', '20010db800000007/64'],
      [proxy, '[2001:db8:0:7::9]:443', '20010db800000007/64'],
      [proxy, '2001:db8:0:8::9', '20010db800000008/64'],
      ['fe80::1%eth0', '203.0.113.1', '203.0.113.1'],
      ['::1', '', '0000000000000000/64'],
    ]),
  );

  t('a header of maximum length is read quickly, and to a depth of sixteen', () => {
    const begun = performance.now();
    for (let turn = 0; turn < 1_000; turn += 1) {
      for (const forwarded of [','.repeat(16_000), '1'.repeat(16_000), '['.repeat(16_000), ' '.repeat(16_000)]) {
        table('16', [[proxy, forwarded, proxy]]);
      }
    }
    const ours = Array.from({ length: 4_000 }, () => '10.1').join(',');
    equal(callerAddress(proxy, ours, readTrustedProxies('10.0.0.0/8')), proxy);
    const many = Array.from({ length: 1_000 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
    equal(callerAddress(proxy, many.join(','), readTrustedProxies('10.0.0.0/8')), many.at(-16));
    equal(performance.now() - begun < 5_000, true);
  });

  t('a connection without an address counts as unknown', () => {
    equal(callerAddress(undefined, '1.2.3.4', readTrustedProxies('1')), 'unknown');
    equal(isProxy(undefined, readTrustedProxies('1')), false);
    equal(isProxy(proxy, readTrustedProxies('1')), true);
    equal(isProxy(stranger, readTrustedProxies('10.0.0.0/8')), false);
  });

  t('the setting takes hops or addresses, and never all addresses', () => {
    deepEqual(readTrustedProxies('::ffff:10.0.0.0/104'), readTrustedProxies('10.0.0.0/8'));
    for (const wrong of [
      '17',
      '-1',
      '1.5',
      '10.0.0.0/33',
      '10.0.0.0/',
      '10.0.0',
      'proxy.local',
      '10.0.0.1,',
      '1,10.0.0.1',
      '0.0.0.0/0',
      '::/0',
      '::ffff:0.0.0.0/96',
      '2001:db8::/129',
      'fe80::1%eth0',
    ]) {
      throws(() => readTrustedProxies(wrong), /^Error: must /, wrong);
    }
  });
});
