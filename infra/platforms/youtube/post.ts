import { createHash } from 'node:crypto';
import type { PublishRequest } from '#contracts/ports/platform.ts';
import { permalinkOf, rulesOf } from '#domain/platforms/index.ts';
import type { Failure } from '#schemas/target.ts';
import { failureOf } from '../kit/errors.ts';
import { instantOf, type Members, textIn } from '../shared/members.ts';
import { textAt } from './tables.ts';

/** The video resource, as it is sent and as YouTube shows it. */

export const titleOf = ({ content, overrides }: PublishRequest): string | null =>
  rulesOf('youtube').title?.(content, overrides) ?? null;

const textOr = (value: unknown, orElse: string): string => (typeof value === 'string' && value !== '' ? value : orElse);

export const descriptionOf = ({ content, overrides }: PublishRequest): string => textOr(overrides.description, content);

/** One text with commas is a list too. */
const tagsOf = ({ overrides: { tags = [] } }: PublishRequest): readonly string[] => {
  const all = typeof tags === 'string' ? tags.split(',') : Array.isArray(tags) ? tags : [];
  return all.flatMap((one) => (typeof one === 'string' && one.trim() !== '' ? [one.trim()] : []));
};

/** @param publishAt ISO 8601: YouTube makes the video public then; null: it is as it is set at once */
export const resourceOf = (request: PublishRequest, publishAt: string | null): Members => {
  const { overrides, aiDisclosure } = request;
  const { license } = overrides;
  const tags = tagsOf(request);
  return {
    snippet: {
      ...{ title: titleOf(request) ?? '', description: descriptionOf(request) },
      ...(tags.length === 0 ? {} : { tags }),
      categoryId: textOr(overrides.categoryId, '22'),
    },
    status: {
      // YouTube makes a video without it public. A video with a time is private until then.
      privacyStatus: publishAt === null ? textOr(overrides.privacyStatus, 'public') : 'private',
      ...(publishAt === null ? {} : { publishAt }),
      selfDeclaredMadeForKids: overrides.madeForKids === true,
      ...(typeof license === 'string' && license !== '' ? { license } : {}),
      // What the post says of itself counts before what is said of all of them.
      ...((overrides.containsSyntheticMedia ?? aiDisclosure) === true ? { containsSyntheticMedia: true } : {}),
    },
  };
};

/** What YouTube refuses of a request, found before a byte is sent; null: nothing. */
export const refusalOf = (request: PublishRequest): string | null => {
  const { media } = request;
  if (media.length !== 1 || media[0]?.kind !== 'video') return 'YouTube takes exactly one video';
  return titleOf(request) === null ? 'the video has no title of 1 to 100 characters without < and >' : null;
};

/** Of a file with its words: with others an upload begins anew, since YouTube has them from its beginning. */
export const hashOf = (sha256: string, resource: Members): string =>
  createHash('sha256').update(sha256).update(JSON.stringify(resource)).digest('hex');

/** support.google.com, "Understand three-minute YouTube Shorts": by its shape and length alone; no call says it. */
const isShort = ({ media: [video] }: Pick<PublishRequest, 'media'>): boolean => {
  const { width = null, height = null, durationMs = null } = video ?? {};
  return width !== null && height !== null && durationMs !== null && width <= height && durationMs <= 180_000;
};

export const linkTo = (request: PublishRequest, id: string): string | null =>
  isShort(request)
    ? `https://www.youtube.com/shorts/${id}`
    : permalinkOf('youtube', { id, username: request.account.username, account: request.account.externalId });

/** From nobody to everybody. */
const levels = ['private', 'unlisted', 'public'];

/** YouTube may lock the videos of an app or a channel as private: revision history of the API, 2026-11-02. */
const narrowedIn = ({ overrides }: PublishRequest, { status }: Members): { readonly narrowed?: Failure } => {
  const [asked, seen] = [textOr(overrides.privacyStatus, 'public'), textIn(status, 'privacyStatus') ?? ''];
  if (!levels.includes(seen) || levels.indexOf(seen) >= levels.indexOf(asked)) return {};
  const said = `YouTube made the video ${seen}, and ${asked} was asked for`;
  return { narrowed: failureOf('narrowed', seen, said) };
};

export const shownOf = (request: PublishRequest, video: Members, now: number) => {
  const externalId = textIn(video, 'id') ?? '';
  const at = instantOf(Date.parse(textAt(video, 'snippet.publishedAt') ?? ''));
  return {
    ...{ externalId, permalink: linkTo(request, externalId), publishedAt: at ?? new Date(now).toISOString() },
    ...narrowedIn(request, video),
  };
};

/** Why YouTube does not show it ("Videos" resource, `status.uploadStatus`); null: it does, or will. */
export const failureIn = ({ status }: Members, mediaId: string | null) => {
  const state = textIn(status, 'uploadStatus');
  const why = textIn(status, 'failureReason') ?? textIn(status, 'rejectionReason') ?? state;
  if (state === 'failed') return failureOf('media', why, `YouTube could not process the file: ${why}`, mediaId);
  if (state !== 'rejected' && state !== 'deleted') return null;
  return failureOf(why === 'duplicate' ? 'duplicate' : 'content', why, `YouTube rejected the video: ${why}`);
};
