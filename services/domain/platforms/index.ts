/** What each network allows and reports, as data, and the pure functions that read it. */
export {
  factsErrors,
  factsFailure,
  mayNotPost,
  postsLater,
  refusesAccount,
  saidNothing,
} from './account-facts.ts';
export { addresses } from './addresses.ts';
export { type AltTexts, sentAltText, takesAltText } from './alt-text.ts';
export { type AppBudgetRule, type CalendarWindow, nextDayIn, windowAt } from './app-budgets.ts';
export { type FailureCode, failureCodes } from './failure-codes.ts';
export type { GateError } from './gate.ts';
export { cutAltTexts, doubts, type GateInput, type GateMedia, gate, lateErrors, publishCheck } from './gate.ts';
export { minVideoBytes } from './media-blocks.ts';
export type * from './media-rules.ts';
export {
  coverFollows,
  coverOf,
  platformsWithUses,
  posterFits,
  takesCover,
  takesCoverFrame,
  useOf,
  useRules,
} from './media-use.ts';
export { isStill, type Violation, violations, wrapping } from './media-violations.ts';
export { siteProofOfTikTok } from './networks/tiktok.ts';
export { links as linksOfX } from './networks/x.ts';
export {
  checkOverride,
  effectiveOverrides,
  grantsOf,
  isSentAs,
  type OverrideValue,
  overrideRules,
  replyOverrides,
  unusedOverrides,
} from './overrides.ts';
export {
  capabilities,
  choicesOf,
  connectable,
  normalizePlatform,
  type PermalinkParts,
  permalinkOf,
  readingOf,
  rules,
  rulesOf,
  titleFor,
} from './registry.ts';
export type * from './rules.ts';
export {
  graphemes,
  sentText,
  type TextLength,
  textLength,
  withoutMarkup,
} from './text-length.ts';
export { topLevelDomains } from './top-level-domains.ts';
export { showsNothing, showsSomethingSql } from './visible-text.ts';
