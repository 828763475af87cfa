import { hash } from 'node:crypto';
import { canonicalJson } from '#domain/canonical.ts';
import type { PlannedNeed } from '#domain/media.ts';
import type { UseRules } from '#domain/platforms/media-rules.ts';
import { useOf, useRules } from '#domain/platforms/media-use.ts';
import { isStill, type Violation, violations } from '#domain/platforms/media-violations.ts';
import type { Platform } from '#schemas/common.ts';
import type { MediaNeed, MediaProbe, RenditionSpec } from '#schemas/media.ts';
import { canvasOf } from './canvas.ts';
import { fileTooHeavy, notTaken } from './failures.ts';
import { frameAt, planFrame, planImage } from './image.ts';
import { imageShapes } from './ladder.ts';
import type { RenditionPlan, Unfitting } from './plan.ts';
import { planVideo } from './video.ts';

/** Plans renditions from the probe of a file and the networks' rules alone. */

export const renditionIdOf = (spec: RenditionSpec): string => hash('sha256', canonicalJson(spec), 'hex').slice(0, 32);

const planDocument = (
  need: MediaNeed,
  { document }: UseRules,
  probe: MediaProbe,
  found: readonly Violation[],
): RenditionPlan =>
  document !== null && found.includes('bytes')
    ? { failure: fileTooHeavy(need, probe.kind, document.bytes.max, probe.bytes) }
    : { failure: notTaken(need, probe.kind) };

const planOf = (need: MediaNeed, probe: MediaProbe): RenditionPlan => {
  const uses = useRules(need.platform, need.use);
  if (uses === null) return { failure: notTaken(need, probe.kind) };
  const found = violations(uses, probe);
  if (found.length === 0) return 'fits';
  if (probe.kind === 'document') return planDocument(need, uses, probe, found);
  const { image, video } = uses;
  if (isStill(probe)) return image === null ? { failure: notTaken(need, 'image') } : planImage(need, image, probe);
  if (video !== null) return planVideo(need, video, probe, found);
  // A still of a moving picture is only ever a cover.
  return image !== null && need.use === 'cover'
    ? planFrame(need, image, probe)
    : { failure: notTaken(need, probe.kind) };
};

type PlannedRendition =
  | Exclude<PlannedNeed, { readonly outcome: 'failed' }>
  | (MediaNeed & { readonly outcome: 'failed'; readonly failure: Unfitting });

export const planRenditions = (probe: MediaProbe, needs: readonly MediaNeed[]): readonly PlannedRendition[] =>
  needs.map(({ platform, use }) => {
    const need = { platform, use };
    const plan = planOf(need, probe);
    if (plan === 'fits') return { ...need, outcome: 'fits' };
    if ('failure' in plan) return { ...need, outcome: 'failed', failure: plan.failure };
    return { ...need, outcome: 'rendition', id: renditionIdOf(plan.spec), spec: plan.spec };
  });

/**
 * Renditions to make at upload: for the use of a post without overrides. A network that takes no files of the kind gets
 * none: the gate refuses such a post. Covers are made on demand.
 */
export const initialNeeds = (probe: MediaProbe, platforms: readonly Platform[]): readonly MediaNeed[] =>
  [...new Set(platforms)]
    .map((platform) => ({ platform, use: useOf(platform, {}, [probe.kind]) }))
    .filter((need) => isTaken(planOf(need, probe)));

const isTaken = (plan: RenditionPlan): boolean =>
  plan === 'fits' || !('failure' in plan) || plan.failure.code !== 'media_kind_not_taken';

/** A still to show the file by: the frame of a video, a small picture of an image; null for what has no sides. */
export const posterSpec = (probe: MediaProbe): RenditionSpec | null => {
  const { kind, width, height } = probe;
  if (width === null || height === null) return null;
  const { box, quality, maxBytes } = imageShapes.thumbnail;
  const canvas = canvasOf(noRules, { width, height }, box, 1);
  if (canvas === null) return null;
  const file = { format: 'jpeg' as const, ...canvas, quality, maxBytes };
  return kind === 'video' ? { kind: 'frame', ...file, atMs: frameAt(probe) } : { kind: 'image', ...file };
};

const noRules = { aspect: null, width: null, height: null, long: null, short: null, maxPixels: null, maxSum: null };
