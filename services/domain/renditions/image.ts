import type { ImageRules } from '#domain/platforms/media-rules.ts';
import type { MediaNeed, MediaProbe } from '#schemas/media.ts';
import { type Canvas, canvasOf } from './canvas.ts';
import { tooSmall, unknownFacts } from './failures.ts';
import { imageShapes } from './ladder.ts';
import type { RenditionPlan, Unfitting } from './plan.ts';

/** A still as an image: JPEG, since every network takes it; transparent parts become white. */
export const planImage = (need: MediaNeed, rules: ImageRules, probe: MediaProbe): RenditionPlan => {
  const made = jpegOf(need, rules, probe);
  return 'failure' in made ? made : { spec: { kind: 'image', ...made.jpeg } };
};

/** A still of a moving picture: the frame of the poster. */
export const planFrame = (need: MediaNeed, rules: ImageRules, probe: MediaProbe): RenditionPlan => {
  const made = jpegOf(need, rules, probe);
  return 'failure' in made ? made : { spec: { kind: 'frame', ...made.jpeg, atMs: frameAt(probe) } };
};

/** One second in, when most videos have faded in from black, or the middle of a shorter video. */
export const frameAt = ({ durationMs }: MediaProbe): number => Math.min(1000, Math.floor((durationMs ?? 0) / 2));

interface Jpeg extends Canvas {
  readonly format: 'jpeg';
  readonly quality: number;
  readonly maxBytes: number;
}

const jpegOf = (
  need: MediaNeed,
  rules: ImageRules,
  probe: MediaProbe,
): { readonly jpeg: Jpeg } | { readonly failure: Unfitting } => {
  const { kind, width, height } = probe;
  if (width === null || height === null) return { failure: unknownFacts(need, kind) };
  const { box, quality, maxBytes } = imageShapes[rules.target];
  const canvas = canvasOf(rules, { width, height }, box, 1);
  if (canvas === null) return { failure: tooSmall(need, width, height) };
  return { jpeg: { format: 'jpeg', ...canvas, quality, maxBytes: Math.min(maxBytes, rules.bytes.max) } };
};
