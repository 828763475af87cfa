import { childrenOf } from './process-facts.ts';

/** `cannot_connect_now`: it starts, recovers or ends. */
const notNow = '57P03';

/**
 * Whether a server that refused a connection does nothing to accept one soon: it is not started, and it does not recover. So
 * ends up a Postgres (seen with 18.4) whose recovery finds the disk full: the process that recovers ends, the server
 * lives on, and refuses everybody for as long as nobody ends it, also when there is room again.
 */
export const isStalled = (pid: number, refusal: unknown): boolean => {
  if ((refusal as { code?: string } | null | undefined)?.code !== notNow) return false;
  const children = childrenOf(pid);
  return children !== null && !children.some(({ command }) => /^postgres: (?:.*: )?startup\b/.test(command));
};
