import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import type { MediaFailure, MediaKind, MediaNeed, MediaUse, RenditionSpec } from '#schemas/media.ts';
import type { PostBody } from '#schemas/post.ts';
import type { PlannedTarget } from '#schemas/target.ts';
import { breachesOf, type ClientRules, type SentTexts } from '../client-rules.ts';
import { needKey } from '../media.ts';
import {
  cutAltTexts,
  doubts,
  lateErrors,
  rulesOf,
  sentText,
  takesCover,
  textLength,
  titleFor,
  unusedOverrides,
  useOf,
} from '../platforms/index.ts';
import { reauthRequired } from '../publish-failures.ts';
import { planRenditions } from '../renditions/index.ts';
import { concerns, inputsOf, type PostAsset, type PostAssets, placeOf, pointer } from './compose.ts';
import { contentFor, firstCommentOf, needsOfTarget } from './content.ts';
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

export interface PreviewedContent {
  readonly text: string;
  readonly title: string | null;
  readonly length: { readonly used: number; readonly limit: number };
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
export const idle = (path: string, message: string): PreviewWarning => warning('member_without_effect', path, message);

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

/** Of a client whose rule is `retry_when_absent`. A post in the network's own scheduler is on no list of posts. */
export const retryWarnings = ({
  platform,
  scheduleMode,
}: Pick<PlannedTarget, 'platform' | 'scheduleMode'>): readonly PreviewWarning[] =>
  rulesOf(platform).publish.listsOwnPosts && scheduleMode !== 'native'
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
