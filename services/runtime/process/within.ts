/**
 * The result of `work`, or the result of `late` after `ms` milliseconds; `work` itself is not stopped. Every append
 * waits here, and aborting a timer makes an error with a stack: 19 µs, clearing one 1 µs.
 */
export const within = async <T>(ms: number, work: Promise<T>, late: () => T): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  // A later rejection of the work must not count as unhandled.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
};
