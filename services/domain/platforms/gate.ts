/** Checks one target against the rules of its network: before it is scheduled, and again before it is published. */
import type { Platform } from '#schemas/common.ts';
import type { GateCode } from '#schemas/issues.ts';
import type { Failure } from '#schemas/target.ts';
import type { FailureCode } from './failure-codes.ts';
import { type GateError, type GateMedia, mediaErrors } from './gate-media.ts';
import { checkGranted, checkOverride, isSet, overrideRules } from './overrides.ts';
import { rulesOf } from './registry.ts';
import type { Overrides } from './rules.ts';
import { measured, sentText, textLength, unitWords, usedWords, withoutMarkup } from './text-length.ts';
import { showsNothing } from './visible-text.ts';

export interface GateInput {
  readonly platform: Platform;
  /** The text of this target: the variant's contentOverride, else the post's content. */
  readonly content: string;
  readonly overrides: Overrides;
  /** The rights that the account's owner granted; default: none are known, and no value is held to them. */
  readonly scopes?: readonly string[];
  /** In the order of the post. */
  readonly media: readonly GateMedia[];
  /** The post's own cover, where it has one. */
  readonly cover?: GateMedia | null;
}

function textErrors({ platform, content, overrides }: GateInput): GateError[] {
  const { name, text: rules } = rulesOf(platform);
  const { text, path } = sentText(rules, content, overrides);
  // `overrideErrors` checks the length of a text that an override replaces.
  if (path !== '/content') return [];
  return textLength(platform, text, overrides)
    .parts.filter(({ used, limit }) => used > limit)
    .map(({ used, limit, unit }) => ({
      path,
      mediaId: null,
      code: 'text_too_long',
      message: `${name} takes at most ${limit} ${unitWords[unit]}; the text has ${usedWords({ used, limit })}`,
    }));
}

const about = (key: string, code: GateCode, message: string): GateError => ({
  path: `/overrides/${key}`,
  code,
  message,
  mediaId: null,
});

function overrideErrors({ platform, overrides, scopes = [] }: GateInput): GateError[] {
  const errors: GateError[] = [];
  for (const [key, rule] of Object.entries(overrideRules(platform))) {
    if (!isSet(overrides, key)) continue;
    const problem = checkOverride(platform, rule, overrides[key]);
    if (problem !== null) {
      errors.push(about(key, problem.code, `${key} ${problem.message}`));
      continue;
    }
    const refused = checkGranted(rule, overrides[key], scopes);
    if (refused !== null) errors.push(about(key, 'override_not_granted', `${key} ${refused}`));
  }
  for (const { when, path, code, message } of rulesOf(platform).banned) {
    if (Object.entries(when).every(([key, value]) => overrides[key] === value)) {
      errors.push(about(path, code, message));
    }
  }
  return errors;
}

/**
 * Why a target cannot be scheduled: text over a limit, media that the network does not take or that no rendition can make
 * fit, a known override of wrong type, value or length. A missing required override is no such reason: that target fails
 * when it is published (spec 7.2).
 */
export function gate(input: GateInput): GateError[] {
  return [...textErrors(input), ...overrideErrors(input), ...mediaErrors(input)];
}

const isFilled = (overrides: Overrides, key: string): boolean => isSet(overrides, key) && overrides[key] !== '';

const invalid = (code: string, message: string, mediaId: string | null = null): Failure => ({
  category: 'invalid_content',
  code,
  message,
  platformCode: null,
  platformMessage: null,
  retryable: false,
  actor: 'user',
  mediaId,
});

/** One rule that the gate leaves to the publish. */
export interface LateError {
  /** JSON Pointer from the target or variant, as in `GateError`. */
  readonly path: string;
  readonly code: FailureCode;
  readonly message: string;
}

/** Why a target that the gate lets pass fails at publish: a missing required override, a text that is never taken. */
export function lateErrors({ platform, content, overrides }: GateInput): readonly LateError[] {
  const { text: rules, overrides: known } = rulesOf(platform);
  const errors: LateError[] = [];
  for (const [key, { required }] of Object.entries(known)) {
    if (required === undefined) continue;
    const { code, message, fallback, usable = () => isFilled(overrides, key) } = required;
    if (usable(content, overrides)) continue;
    const isFromContent = fallback === true && !isFilled(overrides, key) && !showsNothing(content);
    errors.push({ path: isFromContent ? '/content' : `/overrides/${key}`, code, message });
  }
  const { text, path } = sentText(rules, content, overrides);
  if (rules.refused?.pattern.test(text))
    errors.push({ path, code: rules.refused.code, message: rules.refused.message });
  return errors;
}

/** What the network may refuse, though its documents allow it. */
export function doubts({ platform, content, overrides }: GateInput): readonly Pick<LateError, 'path' | 'message'>[] {
  const { text: rules, overrides: known } = rulesOf(platform);
  const { doubted } = rules;
  if (doubted === undefined) return [];
  const comment = known.firstComment?.type === 'comment' && known.firstComment.asPost ? overrides.firstComment : null;
  const texts = [sentText(rules, content, overrides), { text: comment, path: '/overrides/firstComment' }];
  return texts.flatMap(({ text, path }) => {
    if (typeof text !== 'string' || textLength(platform, text).parts.some((one) => one.used > one.limit)) return [];
    const [found] = measured(text, [doubted]);
    if (found === undefined || found.used <= found.limit) return [];
    return [{ path, message: `${doubted.why}; this one has ${usedWords(found)}` }];
  });
}

/** Why a target fails at publish, though it may have been scheduled; null: it can go out. */
export function publishCheck(input: GateInput): Failure | null {
  const [late] = lateErrors(input);
  if (late !== undefined) return invalid(late.code, late.message);
  const [error] = gate(input);
  if (error !== undefined) return invalid(error.code, error.message, error.mediaId);
  const { platform, content, overrides, media } = input;
  return media.length === 0 && showsNothing(withoutMarkup(platform, content, overrides))
    ? invalid('text_empty', 'a reader would see nothing of the text, and there is no file')
    : null;
}
