import type { FileRule } from '#schemas/issues.ts';
import type { MediaFailure, RenditionSpec } from '#schemas/media.ts';

/** Why no rendition of a file suits a need. The gate refuses a post with the same code. */
export interface Unfitting extends MediaFailure {
  readonly code: FileRule;
}

/** The way in which one need is met. */
export type RenditionPlan = 'fits' | { readonly spec: RenditionSpec } | { readonly failure: Unfitting };
