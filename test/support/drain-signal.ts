/**
 * Aborts at SIGTERM, and when the standard input closes: this pipe closes however the parent ends, so that no process
 * is left behind. The program destroys its standard input at its end, because the open pipe keeps it alive.
 */
export const drainSignal = (): AbortSignal => {
  const draining = new AbortController();
  process.on('SIGTERM', () => draining.abort());
  process.stdin.on('end', () => draining.abort()).resume();
  return draining.signal;
};
