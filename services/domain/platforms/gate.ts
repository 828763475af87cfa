/** Checks one target against the rules of its network: before it is scheduled, and again before it is published. */
import type { Platform } from '#schemas/common.ts';
import type { GateCode } from '#schemas/issues.ts';
import type { MediaKind, MediaProbe, MediaUse } from '#schemas/media.ts';
import type { Failure } from '#schemas/target.ts';
import { places } from '../renditions/failures.ts';
import { planRenditions } from '../renditions/index.ts';
import { type AltTexts, altTextCut, altTextRefusal } from './alt-text.ts';
import type { FailureCode } from './failure-codes.ts';
import type { PostShape } from './media-rules.ts';
import { takesCover, useOf, useRules } from './media-use.ts';
import { isStill } from './media-violations.ts';
import { checkGranted, checkOverride, isSet, overrideRules } from './overrides.ts';
import { rulesOf } from './registry.ts';
import type { Overrides } from './rules.ts';
import { measured, sentText, textLength, unitWords, usedWords, withoutMarkup } from './text-length.ts';
import { showsNothing } from './visible-text.ts';

/** A file as the gate sees it. `probe` is null until the file was probed. */
export interface GateMedia {
  readonly id: string;
  readonly kind: MediaKind;
  readonly probe: MediaProbe | null;
  /** Absent: nothing is known of its texts, and none is judged. */
  readonly alt?: AltTexts;
}

interface MediaInput {
  readonly platform: Platform;
  readonly overrides: Overrides;
  readonly media: readonly GateMedia[];
  readonly cover?: GateMedia | null | undefined;
}

/** A file with what the network would show of it. */
interface Shown extends GateMedia {
  readonly shownAs: MediaKind;
  readonly refusal: GateError | null;
  /** Width divided by height; null while it is not known. */
  readonly aspect: number | null;
}

const plural = (kinds: readonly MediaKind[], count: number): readonly string[] =>
  [...new Set(kinds)].map((kind) => (count === 1 ? kind : `${kind}s`));
const listed = (words: readonly string[], last: string): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} ${last} ${words.at(-1)}`;
const error = (code: GateCode, message: string, mediaId: string | null = null, path = '/mediaIds'): GateError => ({
  path,
  code,
  message,
  mediaId,
});

const show = (platform: Platform, use: MediaUse, file: GateMedia): Shown => {
  const { id, kind, probe } = file;
  const gifAs: MediaKind = useRules(platform, use)?.gif ? 'gif' : 'video';
  if (probe === null) return { ...file, shownAs: kind === 'gif' ? gifAs : kind, refusal: null, aspect: null };
  const [plan] = planRenditions(probe, [{ platform, use }]);
  const failed = plan?.outcome === 'failed' ? plan.failure : null;
  const spec = plan?.outcome === 'rendition' ? plan.spec : null;
  const source = isStill(probe) ? 'image' : kind === 'gif' ? gifAs : kind;
  const { width, height } = spec ?? probe;
  return {
    ...file,
    shownAs: spec?.kind === 'video' ? 'video' : source,
    refusal: failed && error(failed.code, failed.message, id),
    aspect: width === null || height === null ? null : width / height,
  };
};

/** Checks number and kinds of the files together, not each file. */
const shapeError = (platform: Platform, use: MediaUse, shown: readonly Shown[]): GateError | null => {
  const { name, media } = rulesOf(platform);
  const rows = media.shapes.filter((row) => row.use === use);
  const strange = shown.find(({ shownAs }) => !rows.some(({ kinds }) => kinds.includes(shownAs)));
  if (strange !== undefined) {
    const message = `${name} takes no ${strange.shownAs}s${places[use]}`;
    return strange.refusal ?? error('media_kind_not_taken', message, strange.id);
  }
  const suiting = rows.filter(({ kinds }) => shown.every(({ shownAs }) => kinds.includes(shownAs)));
  if (suiting.length === 0) {
    const kinds = plural(
      shown.map(({ shownAs }) => shownAs),
      shown.length,
    );
    return error('media_mixed', `${name} takes no ${listed(kinds, 'and')} in one post`);
  }
  const count = shown.length;
  const row = suiting.find(({ min, max }) => count >= min && count <= max);
  if (row === undefined) return countError(name, use, suiting, count);
  return row.sameAspect === true && !sameAspects(shown)
    ? error('media_aspects_differ', `${name} takes several images only of one ratio of width to height`)
    : null;
};

const countError = (name: string, use: MediaUse, rows: readonly PostShape[], count: number): GateError => {
  if (count === 0) return error('too_few_media', `${name} takes no post without media${places[use]}`);
  const few = count < Math.min(...rows.map(({ min }) => min));
  const limit = few ? Math.min(...rows.map(({ min }) => min)) : Math.max(...rows.map(({ max }) => max));
  const kinds = plural(
    rows.flatMap((row) => row.kinds),
    limit,
  );
  const there = `${count === 1 ? 'there is' : 'there are'} ${count}`;
  return error(
    few ? 'too_few_media' : 'too_many_media',
    `${name} takes at ${few ? 'least' : 'most'} ${limit} ${listed(kinds, 'or')}${places[use]}; ${there}`,
  );
};

/** One percent of slack: sizes are rounded to whole pixels. */
const sameAspects = (shown: readonly Shown[]): boolean => {
  const found = shown.flatMap(({ aspect }) => aspect ?? []);
  return found.length === 0 || Math.max(...found) / Math.min(...found) <= 1.01;
};

/** The texts of the post for its files that are too long, each file once. */
const altTextErrors = (platform: Platform, use: MediaUse, shown: readonly Shown[]): readonly GateError[] => {
  const byId = new Map(shown.map((one) => [one.id, one]));
  return [...byId.values()].flatMap(({ id, shownAs, alt }) => {
    const refusal = alt === undefined ? null : altTextRefusal(platform, { use, kind: shownAs }, alt);
    return refusal === null ? [] : [error('alt_text_too_long', refusal, id, `/mediaAltTexts/${id}`)];
  });
};

const mediaErrors = ({ platform, overrides, media, cover }: MediaInput): readonly GateError[] => {
  const kinds = media.map(({ kind }) => kind);
  const use = useOf(platform, overrides, kinds);
  const shown = media.map((file) => show(platform, use, file));
  const covered = cover && takesCover(platform, use, kinds) ? show(platform, 'cover', cover).refusal : null;
  const errors = [shapeError(platform, use, shown), ...shown.map(({ refusal }) => refusal)];
  const found = new Set([...errors, covered && { ...covered, path: '/coverMediaId' }]);
  return [...[...found].filter((one) => one !== null), ...altTextErrors(platform, use, shown)];
};

/** The files whose own text is cut for the network, and what to say of it. */
export const cutAltTexts = ({ platform, overrides, media }: MediaInput): ReadonlyMap<string, string> => {
  const use = useOf(
    platform,
    overrides,
    media.map(({ kind }) => kind),
  );
  const cuts = media.map((file) => {
    const { id, shownAs, alt } = show(platform, use, file);
    return [id, alt === undefined ? null : altTextCut(platform, { use, kind: shownAs }, alt)] as const;
  });
  return new Map(cuts.filter((one): one is readonly [string, string] => one[1] !== null));
};

/** One rule of a network that a target breaks. */
export interface GateError {
  /** The file at fault; null where no single file is. */
  readonly mediaId: string | null;
  /** JSON Pointer from the target or variant: `/content`, `/overrides/privacyLevel`, `/mediaIds`; `/coverMediaId`. */
  readonly path: string;
  readonly message: string;
  readonly code: GateCode;
}

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

export const invalid = (code: string, message: string, mediaId: string | null = null): Failure => ({
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
interface LateError {
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
