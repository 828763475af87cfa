/** Ends everything that the webhook bench starts, in order, also after a failed part or Ctrl-C. */

const open = new Set<AsyncDisposableStack>();
let reported = false;

/** Set once the process is told to end: later failures are expected. */
export const isEnding = (): boolean => reported;

/** For `await using`: what is deferred to it ends with the block, or when the process is told to end. */
export const cleanup = (): AsyncDisposableStack => {
  const stack = new AsyncDisposableStack();
  open.add(stack);
  stack.defer(() => void open.delete(stack));
  return stack;
};

/** Milliseconds for the clean-up; what still runs then is left to its watchers, and children follow their parent. */
const patienceMs = 15_000;

export const endOnSignals = (): void => {
  const end = async (): Promise<void> => {
    reported = true;
    setTimeout(() => process.exit(130), patienceMs);
    for (const stack of [...open].reverse()) await stack.disposeAsync().catch(() => undefined);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(130)));
  }
};
