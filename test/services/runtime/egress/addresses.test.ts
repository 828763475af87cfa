import { deepEqual, equal } from 'node:assert/strict';
import { isPublicAddress, sameAddress } from '#runtime/egress/addresses.ts';
import { suite } from '#test/support/suite.ts';

/** Of each range its first and last address, and the neighbours outside it: what they are by their own right. */
const ipv4: Readonly<Record<string, { readonly closed: readonly string[]; readonly open: readonly string[] }>> = {
  'this network 0/8': { closed: ['0.0.0.0', '0.255.255.255'], open: ['1.0.0.0'] },
  'private 10/8': { closed: ['10.0.0.0', '10.255.255.255'], open: ['9.255.255.255', '11.0.0.0'] },
  'shared 100.64/10': { closed: ['100.64.0.0', '100.127.255.255'], open: ['100.63.255.255', '100.128.0.0'] },
  'loopback 127/8': { closed: ['127.0.0.0', '127.255.255.255'], open: ['126.255.255.255', '128.0.0.0'] },
  'link-local 169.254/16': {
    closed: ['169.254.0.0', '169.254.169.254', '169.254.255.255'],
    open: ['169.253.255.255', '169.255.0.0'],
  },
  'private 172.16/12': { closed: ['172.16.0.0', '172.31.255.255'], open: ['172.15.255.255', '172.32.0.0'] },
  'protocol assignments 192.0.0/24': { closed: ['192.0.0.0', '192.0.0.255'], open: ['191.255.255.255', '192.0.1.0'] },
  'TEST-NET-1 192.0.2/24': { closed: ['192.0.2.0', '192.0.2.255'], open: ['192.0.1.255', '192.0.3.0'] },
  '6to4 relays 192.88.99/24': { closed: ['192.88.99.0', '192.88.99.255'], open: ['192.88.98.255', '192.88.100.0'] },
  'private 192.168/16': { closed: ['192.168.0.0', '192.168.255.255'], open: ['192.167.255.255', '192.169.0.0'] },
  'benchmarks 198.18/15': { closed: ['198.18.0.0', '198.19.255.255'], open: ['198.17.255.255', '198.20.0.0'] },
  'TEST-NET-2 198.51.100/24': { closed: ['198.51.100.0', '198.51.100.255'], open: ['198.51.99.255', '198.51.101.0'] },
  'TEST-NET-3 203.0.113/24': { closed: ['203.0.113.0', '203.0.113.255'], open: ['203.0.112.255', '203.0.114.0'] },
  'multicast 224/4': { closed: ['224.0.0.0', '239.255.255.255'], open: ['223.255.255.255'] },
  'reserved 240/4': { closed: ['240.0.0.0', '255.255.255.254'], open: [] },
  broadcast: { closed: ['255.255.255.255'], open: [] },
};

const ipv6: typeof ipv4 = {
  'unspecified and loopback': { closed: ['::', '::1'], open: [] },
  'mapped, whatever it maps': { closed: ['::ffff:127.0.0.1', '::ffff:8.8.8.8', '::ffff:808:808'], open: [] },
  'compatible, whatever it holds': { closed: ['::7f00:1', '::127.0.0.1', '::8.8.8.8', '::808:808'], open: [] },
  'SIIT ::ffff:0:0/96': { closed: ['::ffff:0:7f00:1', '::ffff:0:8.8.8.8'], open: [] },
  ISATAP: { closed: ['::5efe:7f00:1', '::200:5efe:7f00:1'], open: [] },
  'NAT64 64:ff9b::/96 by what it holds': {
    closed: ['64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '64:ff9b::169.254.169.254', '64:ff9b::c0a8:1'],
    open: ['64:ff9b::8.8.8.8', '64:ff9b::808:808'],
  },
  'the rest of 64:ff9b, local NAT64 included': {
    closed: ['64:ff9b:1::808:808', '64:ff9b:1:ffff::1', '64:ff9b:0:1::808:808', '64:ff9c::808:808'],
    open: [],
  },
  'the rest of ::/8': { closed: ['1::1', 'ff:ffff::1', '64::1'], open: [] },
  'discard 100::/64': { closed: ['100::', '100::ffff:ffff:ffff:ffff', '100:0:0:1::'], open: [] },
  'special 2001::/23, Teredo included': {
    closed: [
      '2001::',
      '2001:0:4136:e378:8000:63bf:3fff:fdd2',
      '2001:2::1',
      '2001:10::1',
      '2001:20::1',
      '2001:1ff:ffff::1',
    ],
    open: ['2001:200::', '2000:ffff::1'],
  },
  'documentation 2001:db8::/32': {
    closed: ['2001:db8::', '2001:db8:ffff:ffff:ffff:ffff:ffff:ffff', '2001:DB8::1'],
    open: ['2001:db7:ffff::1', '2001:db9::'],
  },
  '6to4 2002::/16': { closed: ['2002::', '2002:7f00:1::', '2002:808:808::1', '2002:ffff::1'], open: ['2003::'] },
  'documentation 3fff::/20': { closed: ['3fff::', '3fff:fff:ffff::1'], open: ['3ffe:ffff::1', '3fff:1000::'] },
  'not global unicast': {
    closed: ['4000::1', '5f00::1', '8000::1', 'fbff::1'],
    open: ['2606:4700:4700::1111', '2a00::1'],
  },
  'unique local fc00::/7': { closed: ['fc00::', 'fd12:3456::1', 'fdff:ffff::1'], open: [] },
  'link-local fe80::/10': { closed: ['fe80::', 'fe80::1', 'febf:ffff::1'], open: [] },
  'site-local fec0::/10': { closed: ['fec0::', 'feff:ffff::1'], open: [] },
  'multicast ff00::/8': { closed: ['ff00::', 'ff02::1', 'ffff:ffff::1'], open: [] },
};

suite('public addresses', (t) => {
  for (const [name, { closed, open }] of Object.entries({ ...ipv4, ...ipv6 })) {
    t(`${name}: exactly this range is private`, () => {
      deepEqual(closed.filter(isPublicAddress), []);
      deepEqual(
        open.filter((one) => !isPublicAddress(one)),
        [],
      );
    });
  }

  t('zone ids, names, other spellings and ports are not public addresses', () => {
    const texts = [
      '',
      ' 8.8.8.8',
      '8.8.8',
      '8.8.8.8.',
      '08.8.8.8',
      '0x8.8.8.8',
      '134744072',
      '8.8.8.8:80',
      '8.8.8.8/32',
    ];
    const more = ['2606:4700::1%lo', 'fe80::1%eth0', '[2606:4700::1]', '2606:4700::1::', ':::', 'example.com', 'null'];
    deepEqual([...texts, ...more].filter(isPublicAddress), []);
  });

  t('spellings of one address are equal, other addresses are not', () => {
    equal(sameAddress('2001:DB8:0:0::1', '2001:db8::1'), true);
    equal(sameAddress('64:ff9b::8.8.8.8', '64:ff9b::808:808'), true);
    equal(sameAddress('8.8.8.8', '8.8.8.8'), true);
    equal(sameAddress('8.8.8.8', '::ffff:8.8.8.8'), false);
    equal(sameAddress('8.8.8.8', '8.8.4.4'), false);
    equal(sameAddress('none', 'none'), false);
  });
});
