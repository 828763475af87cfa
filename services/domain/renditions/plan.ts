import type { MediaFailure, RenditionSpec } from '#schemas/media.ts';

/** How one need is met. */
export type RenditionPlan = 'fits' | { readonly spec: RenditionSpec } | { readonly failure: MediaFailure };
