/** Milliseconds that a stopped lane or relay rests: after its first stop, its second, and each later one. */
const defaultRestsMs: readonly number[] = [60_000, 300_000, 900_000];

/** @param stops number of stops in a row without progress, including this one */
export const restAfter = (stops: number, restsMs: readonly number[] = defaultRestsMs): number =>
  restsMs[Math.min(stops, restsMs.length) - 1] ?? 0;
