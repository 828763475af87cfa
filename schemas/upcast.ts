/** A pure function from the data of version n of an event to that of version n + 1. */
export type Upcast = (data: Record<string, unknown>) => Record<string, unknown>;

/** For a version that only allows values which older releases do not know: they must stop there, and nothing else changes. */
export const sameData: Upcast = (data) => data;
