import { createHash } from 'node:crypto';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { permalinkOf, rulesOf } from '#domain/platforms/index.ts';
import { failureOf } from '../kit/errors.ts';
import { instantOf, type Members, membersOf, textIn } from '../shared/members.ts';

/** The video resource, as it is sent and as YouTube shows it. */

const titleOf = ({ content, overrides }: PublishRequest): string | null =>
  rulesOf('youtube').title?.(content, overrides) ?? null;

export const descriptionOf = ({ content, overrides }: PublishRequest): string =>
  typeof overrides.description === 'string' ? overrides.description : content;

/** One text with commas is a list too. */
const tagsOf = ({ overrides: { tags = [] } }: PublishRequest): readonly string[] => {
  const all = typeof tags === 'string' ? tags.split(',') : Array.isArray(tags) ? tags : [];
  return all.flatMap((one) => (typeof one === 'string' && one.trim() !== '' ? [one.trim()] : []));
};

const textOr = (value: unknown, orElse: string): string => (typeof value === 'string' && value !== '' ? value : orElse);

/** @param publishAt ISO 8601: YouTube makes the video public then; null: it is as it is set at once */
export const resourceOf = (request: PublishRequest, publishAt: string | null): Members => {
  const { overrides, aiDisclosure } = request;
  const { license } = overrides;
  const tags = tagsOf(request);
  return {
    snippet: {
      title: titleOf(request) ?? '',
      description: descriptionOf(request),
      ...(tags.length === 0 ? {} : { tags }),
      categoryId: textOr(overrides.categoryId, '22'),
    },
    status: {
      // YouTube makes a video without it public. A video with a time is private until then.
      privacyStatus: publishAt === null ? textOr(overrides.privacyStatus, 'public') : 'private',
      ...(publishAt === null ? {} : { publishAt }),
      selfDeclaredMadeForKids: overrides.madeForKids === true,
      ...(typeof license === 'string' && license !== '' ? { license } : {}),
      ...(aiDisclosure ? { containsSyntheticMedia: true } : {}),
    },
  };
};

/** What YouTube refuses of a request, found before a byte is sent; null: nothing. */
export const refusalOf = (request: PublishRequest): string | null => {
  const { media } = request;
  if (media.length !== 1 || media[0]?.kind !== 'video') return 'YouTube takes exactly one video';
  if (titleOf(request) === null) return 'the video has no title of 1 to 100 characters without < and >';
  return null;
};

/** Of a file with its words: with others an upload begins anew, since YouTube has them from its beginning. */
export const hashOf = (sha256: string, resource: Members): string =>
  createHash('sha256').update(sha256).update(JSON.stringify(resource)).digest('hex');

const threeMinutesMs = 180_000;

/** support.google.com, "Understand three-minute YouTube Shorts": by its shape and length alone; no call says it. */
const isShort = ({ media: [video] }: Pick<PublishRequest, 'media'>): boolean => {
  const { width = null, height = null, durationMs = null } = video ?? {};
  return width !== null && height !== null && durationMs !== null && width <= height && durationMs <= threeMinutesMs;
};

export const linkTo = (request: PublishRequest, id: string): string | null => {
  if (isShort(request)) return `https://www.youtube.com/shorts/${id}`;
  const { username, externalId: account } = request.account;
  return permalinkOf('youtube', { id, username, account });
};

export const shownOf = (request: PublishRequest, video: Members, now: number) => {
  const externalId = textIn(video, 'id') ?? '';
  const at = instantOf(Date.parse(textIn(membersOf(video.snippet), 'publishedAt') ?? ''));
  return { externalId, permalink: linkTo(request, externalId), publishedAt: at ?? new Date(now).toISOString() };
};

type State =
  | { readonly kind: 'shown' | 'processing' }
  | { readonly kind: 'failed'; readonly failure: ReturnType<typeof failureOf> };

/** "Videos" resource, `status.uploadStatus`. */
export const stateOf = ({ status }: Members, mediaId: string | null): State => {
  const [state, failed, rejected] = ['uploadStatus', 'failureReason', 'rejectionReason'].map((one) =>
    textIn(status, one),
  );
  switch (state) {
    case 'failed': {
      const said = `YouTube could not process the file: ${failed ?? 'it does not say why'}`;
      return { kind: 'failed', failure: failureOf('media', failed ?? state, said, mediaId) };
    }
    case 'rejected': {
      const meaning = rejected === 'duplicate' ? 'duplicate' : 'content';
      const said = `YouTube rejected the video: ${rejected ?? 'it does not say why'}`;
      return { kind: 'failed', failure: failureOf(meaning, rejected ?? state, said) };
    }
    case 'deleted':
      return { kind: 'failed', failure: failureOf('content', state, 'the video was deleted') };
    case 'uploaded':
      return { kind: 'processing' };
    default:
      return { kind: 'shown' };
  }
};
