import type { Bounds, SizeRules } from '#domain/platforms/media-rules.ts';

export interface Canvas {
  readonly width: number;
  readonly height: number;
  readonly fit: 'scale' | 'pad';
}

/** A size that the rendition stays inside of where the rules allow it. */
export interface Box {
  readonly long: number;
  readonly short: number;
  readonly width: number;
}

/** A picture that is enlarged more than this is blurred. */
const maxEnlargement = 4;

const limits = (rules: SizeRules) => {
  const open = { min: 1, max: Number.MAX_SAFE_INTEGER };
  const { width, height, long, short } = rules;
  return { width: width ?? open, height: height ?? open, long: long ?? open, short: short ?? open };
};

/** Ratios that the rules for ratio and for sides both allow. */
const ratios = (rules: SizeRules, aspect: Bounds | null): Bounds => {
  const { width, height, long, short } = limits(rules);
  return {
    min: Math.max(aspect?.min ?? 0, width.min / height.max, short.min / long.max),
    max: Math.min(aspect?.max ?? Number.MAX_SAFE_INTEGER, width.max / height.min, long.max / short.min),
  };
};

const allowed = (rules: SizeRules, width: number, height: number): boolean => {
  const within = (value: number, range: Bounds): boolean => value >= range.min && value <= range.max;
  const sides = limits(rules);
  return (
    within(width, sides.width) &&
    within(height, sides.height) &&
    within(Math.max(width, height), sides.long) &&
    within(Math.min(width, height), sides.short) &&
    (rules.aspect === null || within(width / height, rules.aspect)) &&
    width * height <= (rules.maxPixels ?? Number.MAX_SAFE_INTEGER) &&
    width + height <= (rules.maxSum ?? Number.MAX_SAFE_INTEGER)
  );
};

/** Whole numbers of pixels near the ideal ones that the rules allow and that bend the picture least. */
const rounded = (
  rules: SizeRules,
  ideal: { readonly width: number; readonly height: number },
  step: 1 | 2,
): { readonly width: number; readonly height: number } | null => {
  const near = (value: number): readonly number[] => {
    const from = Math.floor(value / step) * step;
    return [from - step, from, from + step, from + 2 * step].filter((one) => one >= step);
  };
  const ratio = ideal.width / ideal.height;
  const cost = (width: number, height: number): number =>
    Math.abs(width / height / ratio - 1) +
    (Math.abs(width - ideal.width) + Math.abs(height - ideal.height)) / (ideal.width + ideal.height);
  return near(ideal.width)
    .flatMap((width) => near(ideal.height).map((height) => ({ width, height, cost: cost(width, height) })))
    .filter(({ width, height }) => allowed(rules, width, height))
    .reduce<{ width: number; height: number; cost: number } | null>(
      (best, one) => (best === null || one.cost < best.cost ? one : best),
      null,
    );
};

/**
 * The size of a rendition: the whole picture, never cropped, with bars where the network does not take its ratio, and
 * enlarged only to reach a minimum. Null when that would take more than four times its size. `step` 2: sides are even.
 */
export const canvasOf = (
  rules: SizeRules,
  source: { readonly width: number; readonly height: number },
  box: Box,
  step: 1 | 2,
): Canvas | null => {
  const own = source.width / source.height;
  const taken = ratios(rules, rules.aspect);
  const fit = own >= taken.min && own <= taken.max ? 'scale' : 'pad';
  const bars = ratios(rules, rules.aspect?.nominal ?? null);
  const ratio = fit === 'scale' ? own : Math.min(bars.max, Math.max(bars.min, own));
  const full = {
    width: own < ratio ? source.height * ratio : source.width,
    height: own > ratio ? source.width / ratio : source.height,
  };
  const long = Math.max(full.width, full.height);
  const short = Math.min(full.width, full.height);
  const sides = limits(rules);
  const most = Math.min(
    sides.width.max / full.width,
    sides.height.max / full.height,
    sides.long.max / long,
    sides.short.max / short,
    Math.sqrt((rules.maxPixels ?? Number.MAX_SAFE_INTEGER) / (full.width * full.height)),
    (rules.maxSum ?? Number.MAX_SAFE_INTEGER) / (full.width + full.height),
  );
  const least = Math.max(
    sides.width.min / full.width,
    sides.height.min / full.height,
    sides.long.min / long,
    sides.short.min / short,
  );
  const preferred = Math.min(1, most, box.long / long, box.short / short, box.width / full.width);
  const scale = Math.min(most, Math.max(preferred, least));
  if (scale > maxEnlargement) return null;
  const made = rounded(rules, { width: full.width * scale, height: full.height * scale }, step);
  return made === null ? null : { width: made.width, height: made.height, fit };
};
