import type { PostReplace, ScheduleInput } from '#schemas/http/post.ts';
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

export const bodyOf = (input: PostReplace): PostBody => {
  const { mode, clientId, accountIds, platforms } = input.targets;
  const group = mode === 'group';
  const segments = input.thread?.segments.map(({ content, mediaIds }) => ({ content, mediaIds }));
  const media = new Set([
    ...input.mediaIds,
    ...input.variants.flatMap((one) => one.mediaIdsOverride ?? []),
    ...(segments ?? []).flatMap((one) => one.mediaIds),
  ]);
  // Alt texts of media that the post does not use are ignored.
  const altTexts = Object.entries(input.mediaAltTexts ?? {}).filter(([id]) => media.has(id));
  return {
    content: input.content,
    mediaIds: input.mediaIds,
    targetSelection: {
      mode,
      clientId: group ? (clientId ?? null) : null,
      accountIds: group ? null : (accountIds ?? []),
      // Kept in other modes too, in which they change nothing: `postWarnings` says so.
      platforms: platforms === undefined ? null : [...new Set(platforms)],
    },
    variants: input.variants.map((one) => ({
      platform: one.platform,
      contentOverride: one.contentOverride ?? null,
      mediaIdsOverride: one.mediaIdsOverride ?? null,
      overrides: one.overrides,
    })),
    schedule: scheduleOf(input.schedule),
    scheduleMode: input.scheduleMode,
    timezone: input.timezone,
    aiDisclosure: input.aiDisclosure,
    requestApproval: input.requestApproval,
    campaignId: input.campaignId ?? null,
    thread: segments === undefined ? null : { segments },
    mediaAltTexts: altTexts.length === 0 ? null : Object.fromEntries(altTexts),
    coverMediaId: input.coverMediaId ?? null,
    coverFrameMs: input.coverFrameMs ?? null,
    ...(input.externalRef === undefined ? {} : { externalRef: input.externalRef }),
  };
};

/** Query members as a list's filters: absent ones left out, instants in the form that rows have. */
export const filtersOf = <Q extends { readonly from?: string; readonly to?: string }>(query: Q) => {
  const utc = (text: string | undefined) => (text === undefined ? undefined : new Date(text).toISOString());
  const filters = { ...query, from: utc(query.from), to: utc(query.to) };
  return Object.fromEntries(Object.entries(filters).filter(([, value]) => value !== undefined)) as {
    [K in keyof Q]: Exclude<Q[K], undefined>;
  };
};
