/**
 * The result of `work`, or what `late` returns or throws after `ms` milliseconds; `work` itself is not stopped. Each append
 * waits here, and aborting a timer makes an error with a stack: 19 µs, clearing one 1 µs.
 */
export const within = async <T>(ms: number, work: Promise<T>, late: () => T): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, ms);
  });
  // What it still throws later is nobody's any more.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, over.then(late)]);
  } finally {
    clearTimeout(timer);
  }
};
