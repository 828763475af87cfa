import { BlockList, isIP } from 'node:net';
import type { Config } from '#runtime/process/config.ts';

const loopback = new BlockList();
loopback.addSubnet('127.0.0.0', 8, 'ipv4');
loopback.addAddress('::1', 'ipv6');

/** On loopback the person who tries this out uploads their own videos; at any other address strangers do. */
export const outdatedFfmpegAt = (host: string): Config['outdatedFfmpeg'] => {
  const family = isIP(host);
  const local = family === 0 ? host === 'localhost' : loopback.check(host, family === 6 ? 'ipv6' : 'ipv4');
  return local ? 'take' : 'refuse';
};
