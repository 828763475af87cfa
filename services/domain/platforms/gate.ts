/** The network's own rules held against one target, before it is scheduled and again when it is published. */
import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import { type GateMedia, mediaErrors } from './gate-media.ts';
import { rulesOf } from './networks.ts';
import { checkOverride, isSet, type Overrides, overrideRules } from './overrides.ts';
import type { TextUnit } from './rules.ts';
import { sentText, textLength, usedWords } from './text-length.ts';

export interface GateInput {
  readonly platform: Platform;
  /** The text of this target: the variant's contentOverride, else the post's content. */
  readonly content: string;
  readonly overrides: Overrides;
  /** In the order of the post. */
  readonly media: readonly GateMedia[];
  /** The post's own cover, where it has one. */
  readonly cover?: GateMedia | null;
}

export interface GateError {
  /** Of the file that is wrong; null where it is no single one. */
  readonly mediaId: string | null;
  /** JSON Pointer from the target or variant: `/content`, `/overrides/privacyLevel`, `/mediaIds`; `/coverMediaId`. */
  readonly path: string;
  readonly message: string;
  readonly code: string;
}

const words: Readonly<Record<TextUnit, string>> = {
  weighted: 'weighted characters',
  code_points: 'characters',
  utf16_units: 'characters',
  parsed_utf16_units: 'characters after its markup is read',
  graphemes: 'characters',
  utf8_bytes: 'bytes',
  emoji_bytes: 'characters, an emoji counting as its bytes',
  links: 'different links',
  hashtags: 'hashtags',
  mentions: 'mentions',
};

function textErrors({ platform, content, overrides }: GateInput): GateError[] {
  const { name, text: rules } = rulesOf(platform);
  const { text, path } = sentText(rules, content, overrides);
  // A text that comes from a known key is held to its length there.
  if (path !== '/content') return [];
  return textLength(platform, text, { parseMode: overrides.parseMode })
    .parts.filter(({ used, limit }) => used > limit)
    .map(({ used, limit, unit }) => ({
      path,
      mediaId: null,
      code: 'text_too_long',
      message: `${name} takes at most ${limit} ${words[unit]}; the text has ${usedWords({ used, limit })}`,
    }));
}

const about = (key: string, code: string, message: string): GateError => ({
  path: `/overrides/${key}`,
  code,
  message,
  mediaId: null,
});

function overrideErrors({ platform, overrides }: GateInput): GateError[] {
  const errors: GateError[] = [];
  for (const [key, rule] of Object.entries(overrideRules(platform))) {
    if (!isSet(overrides, key)) continue;
    const problem = checkOverride(platform, rule, overrides[key], overrides);
    if (problem !== null) errors.push(about(key, problem.code, `${key} ${problem.message}`));
  }
  for (const { when, path, code, message } of rulesOf(platform).banned) {
    if (Object.entries(when).every(([key, value]) => overrides[key] === value)) {
      errors.push(about(path, code, message));
    }
  }
  return errors;
}

/**
 * What refuses a target before it is scheduled: text over the network's limit, media that it does not take or
 * that cannot be made to fit, a known override of wrong type, enum or length. A missing required override is never refused here: that
 * target fails when it is published (spec 7.2).
 */
export function gate(input: GateInput): GateError[] {
  return [...textErrors(input), ...overrideErrors(input), ...mediaErrors(input)];
}

/** The title as it is sent: the override, else the first line of the content that has text; null when it is unusable. */
export function youtubeTitle(content: string, overrides: Overrides): string | null {
  const own = overrides.title;
  const set = typeof own === 'string' && own.trim() !== '';
  const title = set
    ? own.trim()
    : (content.split(/\r\n|[\n\r\u2028\u2029]/u).find((line) => line.trim() !== '') ?? '').trim();
  // A line that is too long is not cut: a target without a usable title fails, it is not degraded in silence.
  return title === '' || [...title].length > 100 || /[<>]/.test(title) ? null : title;
}

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

const missing: Readonly<Record<string, string>> = {
  tiktok_privacy_level_required: 'TikTok needs the override privacyLevel',
  youtube_title_required:
    'YouTube needs a title: the override title, or a first line of content, of 1 to 100 characters without < and >',
  pinterest_board_required: 'Pinterest needs the override boardId',
};

/** What makes a target fail when it is published, though it may have been scheduled; null when it can go out. */
export function publishCheck(input: GateInput): Failure | null {
  const { platform, content, overrides } = input;
  for (const [key, rule] of Object.entries(rulesOf(platform).overrides)) {
    if (rule.required === undefined) continue;
    const value = overrides[key];
    const usable =
      platform === 'youtube' && key === 'title'
        ? youtubeTitle(content, overrides) !== null
        : value !== undefined && value !== null && value !== '';
    if (!usable) return invalid(rule.required, missing[rule.required] ?? `the override ${key} is required`);
  }
  const { text } = sentText(rulesOf(platform).text, content, overrides);
  if (platform === 'youtube' && /[<>]/.test(text)) {
    return invalid('youtube_description_invalid', 'YouTube takes no < or > in a description');
  }
  const [error] = gate(input);
  return error === undefined ? null : invalid(error.code, error.message, error.mediaId);
}
