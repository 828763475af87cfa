import type { MediaFailure, RenditionSpec } from '#schemas/media.ts';

/** How one need is met. */
export type Plan = 'fits' | { readonly spec: RenditionSpec } | { readonly failure: MediaFailure };
