import { childrenOf } from './process-facts.ts';

/** `cannot_connect_now`: it starts, recovers or ends. */
const notNow = '57P03';

/**
 * Whether a server that refused a connection does nothing to take one soon: it neither starts nor recovers. Postgres 18.4 was
 * seen so: its recovery found the disk full, the recovering process ended, and the server lived on and refused every
 * connection, also after there was room again.
 */
export const isStalled = (pid: number, refusal: unknown): boolean => {
  if ((refusal as { code?: string } | null | undefined)?.code !== notNow) return false;
  const children = childrenOf(pid);
  return children !== null && !children.some(({ command }) => /^postgres: (?:.*: )?startup\b/.test(command));
};
