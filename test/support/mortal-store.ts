import type { EventStore } from '#contracts/ports/event-store.ts';

export class Died extends Error {}

/** The store of a process that dies before one of its appends, and otherwise lets others run between any two of its steps. */
export const mortal = (inner: EventStore, livesFor: number, pause: () => Promise<void>): EventStore => {
  let left = livesFor;
  return {
    append: async (stream, expected, events) => {
      await pause();
      left -= 1;
      if (left < 0) throw new Died('killed before an append');
      return inner.append(stream, expected, events);
    },
    read: async (stream, options) => {
      await pause();
      return inner.read(stream, options);
    },
    readAll: (options) => inner.readAll(options),
    readWorkspace: (workspaceId, options) => inner.readWorkspace(workspaceId, options),
    head: () => inner.head(),
    subscribe: (options) => inner.subscribe(options),
    ping: () => inner.ping(),
    close: () => inner.close(),
  };
};
