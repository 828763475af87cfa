import type { MediaFailure, RenditionSpec } from '#schemas/media.ts';

/** The way in which one need is met. */
export type RenditionPlan = 'fits' | { readonly spec: RenditionSpec } | { readonly failure: MediaFailure };
