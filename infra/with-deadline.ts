/** @throws Error when `work` takes longer than `ms`; `work` itself goes on until its own deadline */
export const withDeadline = async <T>(ms: number, work: Promise<T>, late = `no answer within ${ms} ms`): Promise<T> => {
  let timer: NodeJS.Timeout | undefined;
  const tooLate = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(late)), ms);
  });
  try {
    return await Promise.race([work, tooLate]);
  } finally {
    clearTimeout(timer);
  }
};
