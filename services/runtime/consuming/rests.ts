/** How long a stopped lane or relay rests before it tries again: after its first stop, its second, and each later one. Milliseconds. */
const defaultRestsMs: readonly number[] = [60_000, 300_000, 900_000];

/** @param stops how often it has stopped without getting on, this time included */
export const restAfter = (stops: number, restsMs: readonly number[] = defaultRestsMs): number =>
  restsMs[Math.min(stops, restsMs.length) - 1] ?? 0;
