/**
 * How long one turn of this thread's event loop takes, in processor time: other load on the machine does not change it.
 */

const cpuMs = (): number => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
};

/** The longest turn of the event loop during the work, milliseconds of processor time. */
export const longestTurn = async <T>(work: () => Promise<T>): Promise<{ readonly ms: number; readonly result: T }> => {
  let watching = true;
  let ms = 0;
  let last = cpuMs();
  // By a timer: one look a turn would itself keep the thread busy all the time. A turn that takes longer ends at a look.
  const turn = (): void => {
    const now = cpuMs();
    ms = Math.max(ms, now - last);
    last = now;
    if (watching) setTimeout(turn, 1);
  };
  setTimeout(turn, 1);
  try {
    const result = await work();
    // The turn that ended the work counts too.
    await new Promise((resolve) => setTimeout(resolve, 2));
    return { ms, result };
  } finally {
    watching = false;
  }
};
