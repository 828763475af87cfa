import type { Mode, Platform } from '#schemas/common.ts';

/** Networks whose own adapter exists. */
const liveNetworks: readonly Platform[] = [];

/** Those of these networks on which a person can connect an account: in the test mode the sandbox stands for each. */
export const connectable = (mode: Mode, platforms: readonly Platform[]): readonly Platform[] =>
  mode === 'test' ? platforms : platforms.filter((platform) => liveNetworks.includes(platform));
