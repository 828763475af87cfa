import type { Mode, Platform } from '#schemas/common.ts';

/**
 * Those of these networks on which a person can connect an account: in the test mode the sandbox stands for each.
 * @param live networks that this installation connects to
 */
export const connectable = (
  mode: Mode,
  platforms: readonly Platform[],
  live: readonly Platform[],
): readonly Platform[] => (mode === 'test' ? platforms : platforms.filter((platform) => live.includes(platform)));
