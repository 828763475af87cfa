import { isDeepStrictEqual } from 'node:util';
import { mediaIdsOf } from '#domain/post/content.ts';
import type { PostReplace } from '#schemas/http/post.ts';
import type { ScheduleInput } from '#schemas/http/post-input.ts';
import type { PostRevise } from '#schemas/http/post-revise.ts';
import type { PostBody, Schedule } from '#schemas/post.ts';

/**
 * From the body that a caller sent to the body that is stored: absent members are null, instants are UTC with
 * milliseconds.
 */

const instant = (text: string | undefined): string | null => (text === undefined ? null : new Date(text).toISOString());

/** Members of another type than the chosen one are ignored. */
export const scheduleOf = (input: ScheduleInput): Schedule => {
  const at = input.type === 'at';
  const range = input.type === 'range';
  return {
    type: input.type,
    scheduledAt: at ? instant(input.scheduledAt) : null,
    scheduledLocal: at ? (input.scheduledLocal ?? null) : null,
    from: range ? instant(input.from) : null,
    to: range ? instant(input.to) : null,
    spreadMinutes: input.spreadMinutes ?? null,
  };
};

const variantsOf = (variants: PostReplace['variants']): PostBody['variants'] =>
  variants.map((one) => ({
    platform: one.platform,
    contentOverride: one.contentOverride ?? null,
    mediaIdsOverride: one.mediaIdsOverride ?? null,
    overrides: one.overrides,
  }));

const threadOf = (thread: PostReplace['thread'] | null): PostBody['thread'] => {
  const segments = thread?.segments.map(({ content, mediaIds }) => ({ content, mediaIds }));
  return segments === undefined ? null : { segments };
};

/** Alt texts of media that the post does not use are ignored. */
const withUsedAltTexts = (body: PostBody): PostBody => {
  const used = new Set(mediaIdsOf({ ...body, coverMediaId: null }));
  const altTexts = Object.entries(body.mediaAltTexts ?? {}).filter(([id]) => used.has(id));
  return { ...body, mediaAltTexts: altTexts.length === 0 ? null : Object.fromEntries(altTexts) };
};

export const bodyOf = (input: PostReplace): PostBody => {
  const { mode, clientId, accountIds, platforms } = input.targets;
  const group = mode === 'group';
  return withUsedAltTexts({
    content: input.content,
    mediaIds: input.mediaIds,
    targetSelection: {
      mode,
      clientId: group ? (clientId ?? null) : null,
      accountIds: group ? null : (accountIds ?? []),
      // Kept in other modes too, in which they change nothing: `postWarnings` says so.
      platforms: platforms === undefined ? null : [...new Set(platforms)],
    },
    variants: variantsOf(input.variants),
    schedule: scheduleOf(input.schedule),
    scheduleMode: input.scheduleMode,
    timezone: input.timezone,
    aiDisclosure: input.aiDisclosure,
    requestApproval: input.requestApproval,
    campaignId: input.campaignId ?? null,
    thread: threadOf(input.thread ?? null),
    mediaAltTexts: input.mediaAltTexts ?? null,
    coverMediaId: input.coverMediaId ?? null,
    coverFrameMs: input.coverFrameMs ?? null,
    ...(input.externalRef === undefined ? {} : { externalRef: input.externalRef }),
  });
};

/** The body with the members that the caller sent: each replaces that of the post as a whole. */
export const revisedBody = (body: PostBody, input: PostRevise): PostBody => {
  const { variants, schedule, thread, ...same } = input;
  const sent = Object.fromEntries(Object.entries(same).filter(([, value]) => value !== undefined));
  return withUsedAltTexts({
    ...body,
    ...sent,
    ...(variants === undefined ? {} : { variants: variantsOf(variants) }),
    ...(schedule === undefined ? {} : { schedule: scheduleOf(schedule) }),
    ...(thread === undefined ? {} : { thread: threadOf(thread) }),
  });
};

/** Names of the members in which two bodies differ. */
export const changedMembers = (before: PostBody, after: PostBody): string[] =>
  (Object.keys(after) as (keyof PostBody)[]).filter((name) => !isDeepStrictEqual(before[name], after[name]));

/** Query members as a list's filters: absent ones left out, instants in the form that rows have. */
export const filtersOf = <Q extends { readonly from?: string; readonly to?: string }>(query: Q) => {
  const utc = (text: string | undefined) => (text === undefined ? undefined : new Date(text).toISOString());
  const filters = { ...query, from: utc(query.from), to: utc(query.to) };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined)) as {
    [K in keyof Q]: Exclude<Q[K], undefined>;
  };
};
