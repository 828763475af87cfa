/** What the webhook bench starts, and how all of it ends: in order, also when a part fails or somebody presses Ctrl-C. */

const open = new Set<AsyncDisposableStack>();

/** For `await using`: what is deferred to it ends with the block, or when the process is told to end. */
export const cleanup = (): AsyncDisposableStack => {
  const stack = new AsyncDisposableStack();
  open.add(stack);
  stack.defer(() => void open.delete(stack));
  return stack;
};

/** What of it cannot be ended is left to its watchers: children follow their parent. */
export const endOnSignals = (): void => {
  const end = async (): Promise<void> => {
    for (const stack of [...open].reverse()) await stack.disposeAsync().catch(() => undefined);
  };
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void end().finally(() => process.exit(130)));
  }
};
