import type { AccountFacts } from '#schemas/account.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { MediaFailure, MediaKind, MediaNeed, MediaUse, RenditionSpec } from '#schemas/media.ts';
import { nearestName, sameName } from '#schemas/nearest.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { breachesOf, type ClientRules, type SentTexts } from '../client-rules.ts';
import { needKey } from '../media.ts';
import {
  capabilities,
  coverOf,
  cutAltTexts,
  doubts,
  factsErrors,
  lateErrors,
  mayNotPost,
  rules as networkRules,
  overrideRules,
  readingOf,
  rulesOf,
  sentText,
  type Terms,
  takesCover,
  takesCoverFrame,
  textLength,
  titleFor,
  unusedOverrides,
  useOf,
} from '../platforms/index.ts';
import { reauthRequired } from '../publish-failures.ts';
import { planRenditions } from '../renditions/index.ts';
import { clockChangeAt, instantOf } from '../zones.ts';
import { concerns, inputsOf, type PostAsset, type PostAssets, placeOf, pointer } from './compose.ts';
import { contentFor, firstCommentOf, goesOutAsThread, needsOfTarget } from './content.ts';
import type { Destination } from './scheduling.ts';

/** What publishing a body would do on one account: what its network gets, and what its author should know before. */

export interface PreviewWarning {
  readonly code: string;
  readonly path: string;
  readonly message: string;
  /** Whether the target fails when it is published. */
  readonly willFail: boolean;
  readonly mediaId: string | null;
  readonly postId: string | null;
}

interface PreviewedFile {
  readonly mediaId: string;
  readonly kind: MediaKind;
  readonly use: MediaUse;
  readonly status: 'ready' | 'not_needed' | 'preparing' | 'not_requested' | 'failed';
  readonly failure: MediaFailure | null;
  /** The file that is made for the network; null: the file itself, none, or not known yet. */
  readonly rendition: PreviewedRendition | null;
}

interface PreviewedRendition {
  readonly contentType: string;
  readonly width: number;
  readonly height: number;
  readonly fit: RenditionSpec['fit'];
}

interface PreviewedContent {
  readonly text: string;
  readonly title: string | null;
  readonly length: { readonly used: number; readonly limit: number };
  readonly terms: readonly Terms[];
  readonly media: readonly PreviewedFile[];
  readonly errors: readonly Issue[];
}

export const warning = (
  code: string,
  path: string,
  message: string,
  more: Partial<Pick<PreviewWarning, 'willFail' | 'mediaId' | 'postId'>> = {},
): PreviewWarning => ({ code, path, message, willFail: false, mediaId: null, postId: null, ...more });

/** A member that is known and changes nothing here. */
const idle = (path: string, message: string): PreviewWarning => warning('member_without_effect', path, message);

const ready = { ready: 'ready', wanted: 'preparing', planned: 'preparing' } as const;

const renditionOf = (spec: RenditionSpec): PreviewedRendition => ({
  contentType: spec.kind === 'video' ? 'video/mp4' : `image/${spec.format}`,
  width: spec.width,
  height: spec.height,
  fit: spec.fit,
});

const stateOf = (asset: PostAsset, need: MediaNeed): Pick<PreviewedFile, 'status' | 'failure' | 'rendition'> => {
  const made = asset.needs.get(needKey(need));
  const none = { failure: null, rendition: null };
  if (made?.status === 'fits') return { ...none, status: 'not_needed' };
  if (made?.status === 'failed') return { ...none, status: 'failed', failure: made.failure };
  if (asset.status === 'failed' || asset.status === 'quarantined') return { ...none, status: 'failed' };
  if (asset.probe === null) return { ...none, status: made === undefined ? 'preparing' : ready[made.status] };
  const [plan] = planRenditions(asset.probe, [need]);
  const rendition = plan?.outcome === 'rendition' ? renditionOf(plan.spec) : null;
  if (made !== undefined) return { status: ready[made.status], failure: null, rendition };
  if (plan?.outcome === 'failed') return { ...none, status: 'failed', failure: plan.failure };
  return { status: plan?.outcome === 'fits' ? 'not_needed' : 'not_requested', failure: null, rendition };
};

const filesOf = (body: PostBody, { platform }: Destination, assets: PostAssets): readonly PreviewedFile[] => {
  const kindOf = (id: string): MediaKind => assets.get(id)?.kind ?? 'image';
  return needsOfTarget(body, platform, kindOf).flatMap(({ mediaId, need }) => {
    const asset = assets.get(mediaId);
    return asset === undefined ? [] : [{ mediaId, kind: asset.kind, use: need.use, ...stateOf(asset, need) }];
  });
};

/** The files of the first segment, and its cover. */
const headOf = (body: PostBody, { platform }: Destination, files: readonly PreviewedFile[]) => {
  const { segments, overrides } = contentFor(body, platform);
  const { mediaIds } = segments[0];
  const kinds = mediaIds.map((id) => files.find((one) => one.mediaId === id)?.kind ?? 'image');
  const use = useOf(platform, overrides, kinds);
  const shown = files.filter((one) => one.use === use && mediaIds.includes(one.mediaId));
  return takesCover(platform, use, kinds) ? [...shown, ...files.filter((one) => one.use === 'cover')] : shown;
};

/**
 * Accounts of one network that allow the same have the same content.
 * @param errors the rules of its network that the destination breaks
 */
export const previewContent = (
  body: PostBody,
  destination: Destination,
  assets: PostAssets,
  errors: readonly Issue[],
): PreviewedContent => {
  const { platform } = destination;
  const { segments, overrides } = contentFor(body, platform);
  const { content } = segments[0];
  const { text } = sentText(rulesOf(platform).text, content, overrides);
  const { used, limit } = textLength(platform, text, overrides);
  return {
    text,
    title: titleFor(platform, content, overrides),
    length: { used, limit },
    terms: rulesOf(platform).agreedTo?.(overrides) ?? [],
    media: headOf(body, destination, filesOf(body, destination, assets)),
    errors,
  };
};

/**
 * What its author should know of that content.
 * @param errors as of `previewContent`
 */
export const contentWarnings = (
  body: PostBody,
  destination: Destination,
  assets: PostAssets,
  errors: readonly Issue[],
): readonly PreviewWarning[] => {
  const { platform } = destination;
  const unmade = filesOf(body, destination, assets).flatMap(({ mediaId, status, failure }) => {
    const isRefused = status !== 'failed' || errors.some((one) => one.mediaId === mediaId);
    if (isRefused || failure === null) return [];
    return [warning(failure.code, placeOf(body, destination, mediaId), failure.message, { willFail: true, mediaId })];
  });
  const inputs = inputsOf(body, destination, assets);
  const cuts = new Map(inputs.flatMap((input) => [...cutAltTexts(input)]));
  const late = inputs.flatMap((input, part) =>
    lateErrors(input).map(({ code, path, message }) =>
      warning(code, pointer(body, platform, part, path), message, { willFail: true }),
    ),
  );
  return [
    ...unmade,
    ...late,
    ...inputs.flatMap((input, part) =>
      doubts(input).map(({ path, message }) => warning('may_be_refused', pointer(body, platform, part, path), message)),
    ),
    ...[...cuts].map(([mediaId, message]) =>
      warning('alt_text_cut', placeOf(body, destination, mediaId), message, { mediaId }),
    ),
    ...unused(body, platform, assets),
  ];
};

/** Settings that the network does not get for files that it shows so. */
const unused = (body: PostBody, platform: Platform, assets: PostAssets): readonly PreviewWarning[] => {
  const { segments, overrides } = contentFor(body, platform);
  const kinds = segments[0].mediaIds.map((id) => assets.get(id)?.kind ?? null).filter((kind) => kind !== null);
  if (kinds.length < segments[0].mediaIds.length) return [];
  const use = kinds.length === 0 ? null : useOf(platform, overrides, kinds);
  return unusedOverrides(platform, overrides, use).map((key) =>
    idle(
      pointer(body, platform, 0, `/overrides/${key}`),
      use === null ? 'counts only with media' : `does not count for a post that is shown as ${use}`,
    ),
  );
};

/** A target fails with the first of these. */
export const accountWarnings = (status: string): readonly PreviewWarning[] =>
  status === 'reauth_required'
    ? [warning(reauthRequired.code, '/targets', reauthRequired.message, { willFail: true })]
    : [];

/**
 * What the network of a target says that its account may post now.
 * @param goesAt when the target goes out
 */
export const factsWarnings = (
  body: PostBody,
  destination: Destination,
  assets: PostAssets,
  facts: AccountFacts,
  goesAt: string,
): readonly PreviewWarning[] => {
  const { platform } = destination;
  const { name } = rulesOf(platform);
  const { canPostNow, until } = facts;
  const errors = inputsOf(body, destination, assets).flatMap((input, part) =>
    factsErrors(input, facts).map(({ code, path, message, mediaId }) => {
      const place = mediaId === null ? pointer(body, platform, part, path) : placeOf(body, destination, mediaId);
      return warning(code, place, message, { willFail: true, mediaId });
    }),
  );
  if (canPostNow || (until !== null && until <= goesAt)) return errors;
  const words =
    until === null ? mayNotPost.message : `${name} lets the account post nothing until ${until}, and the target waits`;
  const waits =
    until === null
      ? warning(mayNotPost.code, '/targets', words, { willFail: true })
      : warning('account_posts_later', '/targets', words);
  return [waits, ...errors];
};

/** The network did not say what the account may post, or was not asked. */
export const unaskedWarnings = (platform: Platform): readonly PreviewWarning[] => [
  warning(
    'account_not_asked',
    '/targets',
    `${rulesOf(platform).name} did not say what the account may post now: it is asked again right before the post goes out`,
  ),
];

/** Of a client whose rule is `retry_when_absent`. A post in the network's own scheduler is on no list of posts. */
export const retryWarnings = (
  { platform, scheduleMode }: Pick<PlannedTarget, 'platform' | 'scheduleMode'>,
  externalId: string,
): readonly PreviewWarning[] =>
  readingOf(platform, externalId).listsOwnPosts && scheduleMode !== 'native'
    ? [
        warning(
          'duplicate_possible',
          '/clientId',
          'by the rule of the client, a target whose outcome stays unknown is tried again when no post is found: a duplicate is possible',
        ),
      ]
    : [];

/** The rules that one target breaks: those that refused the body, and those that its network adds. Each once. */
export const errorsOf = (
  body: PostBody,
  destination: Destination,
  refused: readonly Issue[],
  own: readonly Issue[],
): readonly Issue[] => {
  const errors = [...refused.filter((issue) => concerns(body, destination, issue)), ...own];
  if (errors.length === 0) return errors;
  const key = ({ path, code, message, mediaId = '' }: Issue) => JSON.stringify([path, code, message, mediaId]);
  return [...new Map(errors.map((one) => [key(one), one])).values()];
};

const textsOf = (body: PostBody, platform: Platform): SentTexts => {
  const { segments, overrides } = contentFor(body, platform);
  const [head, ...replies] = segments;
  const others = [titleFor(platform, head.content, overrides), firstCommentOf(platform, overrides)];
  return {
    segments: [
      sentText(rulesOf(platform).text, head.content, overrides).text,
      ...replies.map(({ content }) => content),
    ],
    others: others.filter((text) => text !== null),
    links: typeof overrides.link === 'string' ? [overrides.link] : [],
  };
};

export interface Ruled {
  readonly errors: readonly Issue[];
  readonly warnings: readonly Issue[];
}

/** @param rules of the client of the post, and of that of the account where it is another */
export const ruledOn = (body: PostBody, platform: Platform, rules: readonly ClientRules[]): Ruled => {
  const texts = textsOf(body, platform);
  const found = rules.flatMap((one) => breachesOf(one, texts));
  const issueOf = ({ code, part, message }: (typeof found)[number]): Issue => ({
    path: pointer(body, platform, part, '/content'),
    code,
    message,
  });
  return {
    errors: found.filter(({ isWarning }) => !isWarning).map(issueOf),
    warnings: found.filter(({ isWarning }) => isWarning).map(issueOf),
  };
};

/**
 * What of a body changes nothing, or means something else than its author may think. It follows from the body and its
 * targets alone, so that a repeat of a call says the same.
 */

export type ComposedTarget = Pick<
  PlannedTarget,
  'accountId' | 'platform' | 'scheduledLocal' | 'timezone' | 'scheduleMode' | 'scheduleModeReason'
>;

interface ComposedFor {
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
