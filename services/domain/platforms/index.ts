/** The ten networks: rules as data, and the pure functions that read them. */
export { type FailureCode, failureCodes } from './failure-codes.ts';
export { type GateError, type GateInput, gate, publishCheck, youtubeTitle } from './gate.ts';
export type { GateMedia } from './gate-media.ts';
export {
  coverOf,
  isStill,
  type Misfit,
  mediaRules,
  minVideoBytes,
  misfits,
  posterFits,
  takesCover,
  useOf,
  useRules,
} from './media-index.ts';
export { capabilities, normalizePlatform, rules, rulesOf } from './networks.ts';
export { effectiveOverrides, type Overrides, type OverrideValue, overrideRules, replyOverrides } from './overrides.ts';
export { type PermalinkParts, permalinkOf } from './permalink.ts';
export type * from './rules.ts';
export { sentText, type TextLength, telegramText, textLength } from './text-length.ts';
