/** How long this thread's event loop is held in one piece, in processor time: the same on a machine that others load. */

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** The longest turn of the event loop while the work is under way, milliseconds of processor. */
export const longestTurn = async <T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly result: T }> => {
  let watching = true;
  let ms = 0;
  let last = cpuMs();
  const turn = (): void => {
    const now = cpuMs();
    ms = Math.max(ms, now - last);
    last = now;
    if (watching) setImmediate(turn);
  };
  setImmediate(turn);
  try {
    const result = await work();
    // The turn that ended the work is counted too.
    await new Promise((resolve) => setImmediate(resolve));
    return { ms, result };
  } finally {
    watching = false;
  }
};
