import type { Platform } from '#schemas/common.ts';
import { nearestName, sameName } from '#schemas/nearest.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import {
  capabilities,
  coverOf,
  rules as networkRules,
  overrideRules,
  rulesOf,
  takesCoverFrame,
} from '../platforms/index.ts';
import { clockChangeAt, instantOf } from '../zones.ts';
import { goesOutAsThread } from './content.ts';
import { idle, type PreviewWarning, warning } from './preview.ts';

/**
 * What of a body changes nothing, or means something else than its author may think. It follows from the body and its
 * targets alone, so that a repeat of a call says the same.
 */

export type ComposedTarget = Pick<
  PlannedTarget,
  'accountId' | 'platform' | 'scheduledLocal' | 'timezone' | 'scheduleMode' | 'scheduleModeReason'
>;

export interface ComposedFor {
  /** Where the body goes; null: not known, as for a draft. */
  readonly targets: readonly ComposedTarget[] | null;
  /** Whether a person has to approve it; null: not known. */
  readonly isHeld: boolean | null;
  /** `sent`: the caller named the zone in this call; `stored`: it is that of the post. */
  readonly zone: 'sent' | 'stored';
}

/** Both null: it is about the whole post; only the account null: about a network. */
export interface ComposedWarning extends PreviewWarning {
  readonly platform: Platform | null;
  readonly accountId: string | null;
}

const ofPost = (one: PreviewWarning): ComposedWarning => ({ ...one, platform: null, accountId: null });

/** The zone of a body whose author named none. */
const presetZone = 'UTC';

/** Unknown keys for which the nearest one is searched: a body may hold thousands. */
const maxSearched = 50;

export const composedWarnings = (body: PostBody, goes: ComposedFor): readonly ComposedWarning[] => [
  ...selectionWarnings(body).map(ofPost),
  ...(body.requestApproval && goes.isHeld === false
    ? [ofPost(warning('approval_not_required', '/requestApproval', 'no approval is required, so it changes nothing'))]
    : []),
  ...unknownOverrides(body.variants),
  ...idleTimes(body, goes).map(ofPost),
  ...lostZones(body, goes),
  ...changedClocks(body, goes),
  ...(goes.targets === null || goes.targets.length === 0 ? [] : unusedContent(body, goes.targets)).map(ofPost),
];

/** Alt texts of files that the post does not use: what is stored has none of them. */
export const unusedAltTexts = (
  sent: Readonly<Record<string, unknown>> | null | undefined,
  { mediaAltTexts }: Pick<PostBody, 'mediaAltTexts'>,
): readonly ComposedWarning[] =>
  Object.keys(sent ?? {})
    .filter((id) => !Object.hasOwn(mediaAltTexts ?? {}, id))
    .map((id) => ofPost(idle(`/mediaAltTexts/${id}`, 'the post does not use this asset')));

const selectionWarnings = ({ targetSelection: { mode, platforms } }: PostBody): readonly PreviewWarning[] =>
  mode === 'group' || platforms === null
    ? []
    : [idle('/targets/platforms', `narrows only a group: with mode ${mode} the post goes to every listed account`)];

/** Which network a key is of, where it is not of this one. */
const ownerOf = (key: string): string | null =>
  Object.values(networkRules).find(({ platform }) => sameName(key, Object.keys(overrideRules(platform))) !== null)
    ?.name ?? null;

const overrideWords = (platform: Platform, key: string): string => {
  const { name } = rulesOf(platform);
  const near = nearestName(key, Object.keys(overrideRules(platform)));
  const unknown = `${name} has no setting of this name and does not get it`;
  if (near !== null) return `${unknown}; did you mean \`${near}\`?`;
  const owner = ownerOf(key);
  return owner === null ? unknown : `${unknown}: it is one of ${owner}`;
};

const escaped = (key: string): string => key.replaceAll('~', '~0').replaceAll('/', '~1');
const maxKey = 100;

const unknownOverrides = (variants: PostBody['variants']): readonly ComposedWarning[] => {
  const found: ComposedWarning[] = [];
  for (const [index, { platform, overrides }] of variants.entries()) {
    const known = overrideRules(platform);
    for (const [key, value] of Object.entries(overrides)) {
      if (Object.hasOwn(known, key) || value === null) continue;
      const above = `/variants/${index}/overrides`;
      const path = key.length > maxKey ? above : `${above}/${escaped(key)}`;
      const words = found.length < maxSearched ? overrideWords(platform, key) : 'the network does not get it';
      found.push({ ...warning('unknown_override', path, words), platform, accountId: null });
    }
  }
  return found;
};

const idleTimes = ({ schedule }: PostBody, { zone }: ComposedFor): readonly PreviewWarning[] => [
  ...(schedule.scheduledAt !== null && schedule.scheduledLocal !== null
    ? [idle('/schedule/scheduledAt', 'scheduledLocal beside it wins')]
    : []),
  ...(schedule.scheduledLocal === null && zone === 'sent'
    ? [idle('/timezone', 'only scheduledLocal is read in this zone, and the schedule has none')]
    : []),
];

/** Wall-clock times that are read in another zone than the one that the author named. */
const lostZones = (
  { schedule: { scheduledLocal }, timezone }: PostBody,
  { targets, zone }: ComposedFor,
): readonly ComposedWarning[] => {
  // A zone that nobody named is not lost.
  if (scheduledLocal === null || targets === null || (zone === 'stored' && timezone === presetZone)) return [];
  // A target keeps the wall-clock time only where it and the zone of the post exist.
  const elsewhere = targets.filter((one) => one.scheduledLocal === scheduledLocal && one.timezone !== timezone);
  if (elsewhere.length === 0) return [];
  const wanted = instantOf(scheduledLocal, timezone);
  return elsewhere.flatMap(({ platform, accountId, timezone: own }) => {
    const instant = instantOf(scheduledLocal, own);
    if (instant === wanted) return [];
    const message = `${scheduledLocal} is read in ${own}, the zone of the account or of its client: ${instant}. In ${timezone} it would be ${wanted}; if that is meant, send it as scheduledAt.`;
    return [{ ...warning('timezone_not_used', '/timezone', message), platform, accountId }];
  });
};

/** Wall-clock times that the zone of a target skips or has twice. */
const changedClocks = (
  { schedule: { scheduledLocal } }: PostBody,
  { targets }: ComposedFor,
): readonly ComposedWarning[] => {
  if (scheduledLocal === null || targets === null) return [];
  const timed = targets.filter(({ scheduledLocal: local }) => local === scheduledLocal);
  return [...Map.groupBy(timed, ({ timezone }) => timezone)].flatMap(([timezone, its]) => {
    const change = clockChangeAt(scheduledLocal, timezone);
    if (change === null) return [];
    const one = warning(change.code, '/schedule/scheduledLocal', change.message);
    return its.map(({ platform, accountId }) => ({ ...one, platform, accountId }));
  });
};

/** The warnings that are about the times of targets. */
export const timeWarnings: readonly string[] = ['timezone_not_used', 'local_time_skipped', 'local_time_repeated'];

/** Members that no target of the post reads. */
const unusedContent = (body: PostBody, targets: readonly ComposedTarget[]): readonly PreviewWarning[] => {
  const networks = [...new Set(targets.map(({ platform }) => platform))];
  const allThread = networks.every((one) => goesOutAsThread(body, one));
  const [native] = targets;
  return [
    ...body.variants.flatMap((variant, index) => unusedVariant(body, variant, `/variants/${index}`, networks)),
    ...(body.thread !== null && !networks.some((one) => capabilities(one).thread)
      ? [idle('/thread', 'no network of the post takes threads')]
      : []),
    ...(allThread && body.content !== '' ? [idle('/content', 'every target gets the segments of the thread')] : []),
    ...(allThread && body.mediaIds.length > 0
      ? [idle('/mediaIds', 'every target gets the segments of the thread')]
      : []),
    ...(body.coverMediaId !== null && !networks.some(coverOf)
      ? [idle('/coverMediaId', 'no network of the post takes a cover')]
      : []),
    ...(body.coverFrameMs !== null && !networks.some(takesCoverFrame)
      ? [idle('/coverFrameMs', 'no network of the post takes a frame of the video as its cover')]
      : []),
    ...(body.scheduleMode === 'native' && targets.every((one) => one.scheduleMode !== 'native')
      ? [idle('/scheduleMode', `the service publishes every target itself: ${native?.scheduleModeReason ?? 'managed'}`)]
      : []),
  ];
};

const unusedVariant = (
  body: PostBody,
  { platform, contentOverride, mediaIdsOverride }: PostBody['variants'][number],
  path: string,
  networks: readonly Platform[],
): readonly PreviewWarning[] => {
  if (!networks.includes(platform)) return [idle(path, `the post goes to no account on ${platform}`)];
  if (!goesOutAsThread(body, platform)) return [];
  const words = `on ${platform} the segments of the thread stand for it`;
  return [
    ...(contentOverride === null ? [] : [idle(`${path}/contentOverride`, words)]),
    ...(mediaIdsOverride === null ? [] : [idle(`${path}/mediaIdsOverride`, words)]),
  ];
};
