import { spawnSync } from 'node:child_process';

/**
 * How many times longer than on a quiet machine of two cores a test waits before it fails. A wait ends as soon as its
 * condition holds, so this costs nothing on a fast machine, and a slow machine is not taken for a fault.
 */
export const patience = 3;

/** Seconds to start and end an idle Node on a quiet machine of two cores. */
const bareStart = 0.05;

/** How much longer the same takes here and now, at least 1: for tests that measure speed. */
export const slowness = (): number => {
  const begun = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  return Math.max(1, (performance.now() - begun) / 1_000 / bareStart);
};
