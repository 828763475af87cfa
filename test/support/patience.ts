import { spawnSync } from 'node:child_process';

/**
 * How many times longer than on a quiet machine of two cores a test waits before it says that something will not come.
 * Waiting ends as soon as it comes, so this costs nothing where all is well, and a slow machine is not taken for a fault.
 */
export const patience = 3;

/** Seconds that a Node takes which does nothing, on a quiet machine of two cores. */
const bareStart = 0.05;

/** How many times longer than there the same takes here and now, at least 1: for what must be fast, and is measured. */
export const slowness = (): number => {
  const begun = performance.now();
  spawnSync(process.execPath, ['-e', '0']);
  return Math.max(1, (performance.now() - begun) / 1_000 / bareStart);
};
