import type { PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import { permalinkOf } from '#domain/platforms/index.ts';
import { failureOf, membersAt } from '../kit/errors.ts';
import { comparable } from '../kit/own-posts.ts';
import { secondOf } from '../meta/graph.ts';
import { instantOf, type Members, membersOf, textIn } from '../shared/members.ts';
import { linkIn } from '../shared/page.ts';

/** What a post becomes on Facebook, and how Facebook shows it. */

/** By which edge of the page it goes. */
export type Way = 'feed' | 'videos' | 'video_reels' | 'video_stories' | 'photo_stories';

export const isVideo = (way: Way): boolean => way.startsWith('video');

/** "Reels Publishing": what the API takes as a reel. */
const reelMs = { min: 3_000, max: 90_000 };

/** A vertical video is made a reel, whichever way it goes: by the edge of videos it was seen to stay a draft. */
const isReel = ({ width, height, durationMs }: PublishMedia): boolean =>
  (width ?? 0) < (height ?? 0) && (durationMs ?? 0) >= reelMs.min && (durationMs ?? 0) <= reelMs.max;

export const wayOf = ({ overrides, media: [first] }: Pick<PublishRequest, 'overrides' | 'media'>): Way => {
  const isOfVideo = first?.kind === 'video' || first?.kind === 'gif';
  if (overrides.contentType === 'story') return isOfVideo ? 'video_stories' : 'photo_stories';
  if (!isOfVideo) return 'feed';
  return overrides.contentType === 'reel' || isReel(first) ? 'video_reels' : 'videos';
};

/** What Facebook refuses of a request, found before anything is sent; null: nothing. */
export const refusalOf = ({ content, overrides, media }: PublishRequest): string | null => {
  const { contentType = 'feed' } = overrides;
  const videos = media.filter(({ kind }) => kind !== 'image').length;
  if (contentType === 'reel' && (media.length !== 1 || videos !== 1)) return 'a reel is exactly one video';
  if (contentType === 'story' && media.length !== 1) return 'a story is exactly one picture or video';
  if (videos > 0 && media.length > 1) return 'Facebook takes pictures or one video in a post, and not both';
  return media.length === 0 && content.trim() === '' ? 'the post has neither text nor files' : null;
};

export type Fields = Readonly<Record<string, string>>;

/**
 * Of the call that makes the post. @param ids photos, or the video @param dueAt ISO 8601, when Facebook publishes it;
 * null: at once
 */
export const fieldsOf = (request: PublishRequest, way: Way, ids: readonly string[], dueAt: string | null): Fields => {
  const { content, media, aiDisclosure } = request;
  const at: Fields = dueAt === null ? {} : { scheduled_publish_time: secondOf(Date.parse(dueAt)) };
  const unpublished: Fields =
    dueAt === null ? {} : { ...at, published: 'false', unpublished_content_type: 'SCHEDULED' };
  const made: Fields = aiDisclosure && isVideo(way) ? { is_ai_generated: 'true' } : {};
  const [id = ''] = ids;
  const words: Fields = content === '' ? {} : { description: content };
  switch (way) {
    case 'feed': {
      // Without it Facebook shows no card of the page.
      const link = media.length === 0 ? linkIn(content) : null;
      const attached =
        ids.length === 0 ? {} : { attached_media: JSON.stringify(ids.map((one) => ({ media_fbid: one }))) };
      const message: Fields = content === '' ? {} : { message: content };
      return { ...message, ...(link === null ? {} : { link }), ...attached, ...unpublished };
    }
    case 'videos':
      return { ...words, ...made, ...unpublished };
    case 'video_reels':
      return { video_id: id, video_state: dueAt === null ? 'PUBLISHED' : 'SCHEDULED', ...words, ...made, ...at };
    case 'video_stories':
      return { video_id: id, ...made };
    case 'photo_stories':
      return { photo_id: id };
  }
};

/** "Page Post", "Video: Updating": words alone. Null: another link has another card, and a disclosure is made with the post. */
export const wordsOf = (request: PublishRequest, former: PublishRequest): Fields | null => {
  const { content, media, aiDisclosure } = request;
  const isOther = media.length === 0 && linkIn(content) !== linkIn(former.content);
  if (isOther || content === '' || aiDisclosure !== former.aiDisclosure) return null;
  return isVideo(wayOf(request)) ? { description: content } : { message: content };
};

/** Whether a post or a video has this text. */
export const says = ({ content }: Pick<PublishRequest, 'content'>, one: Members): boolean =>
  comparable(textIn(one, 'message') ?? textIn(one, 'description')) === comparable(content);

/** Files of a post, as the list of the page's posts has them. */
export const filesOf = (post: Members): readonly string[] => {
  const several = membersAt(post, 'attachments.data.subattachments.data.target.id').map(String);
  return several.length > 0 ? several : membersAt(post, 'attachments.data.target.id').map(String);
};

/** Texts and photos: by the photos, where they are known, else by the text and how many there are. */
export const isOf = (post: Members, { content, media }: PublishRequest, photos: readonly string[] | null): boolean => {
  const [own, kinds] = [filesOf(post), membersAt(post, 'attachments.data.media_type')];
  if (photos !== null && photos.length > 0) return photos.every((id) => own.includes(id));
  // The card of a link is no file.
  const files = kinds.includes('link') ? 0 : own.length;
  return says({ content }, post) && files === media.length;
};

/** @param dueAt of a post that Facebook's scheduler had, which published it in that second */
export const shownOf = (
  { account }: PublishRequest,
  post: Members,
  externalId: string,
  now: number,
  dueAt: string | null = null,
) => {
  // A video was created when its upload began.
  const [published = post.created_time] = membersAt(post, 'status.publishing_phase.publish_time');
  const at = Date.parse(String(published));
  const link = textIn(post, 'permalink_url');
  const permalink = permalinkOf('facebook', {
    id: externalId,
    username: account.username,
    account: account.externalId,
  });
  const isDue = dueAt !== null && secondOf(at) === secondOf(Date.parse(dueAt));
  return {
    externalId,
    // Facebook names it whole, or below itself.
    permalink: (link === null ? null : URL.parse(link, 'https://www.facebook.com')?.href) ?? permalink,
    publishedAt: (isDue ? dueAt : instantOf(at)) ?? new Date(now).toISOString(),
  };
};

const publishingOf = ({ status }: Members, name: string): string =>
  textIn(membersOf(status)?.publishing_phase, name) ?? '';

export const isOut = (video: Members): boolean => publishingOf(video, 'publish_status') === 'published';

/** Facebook has all of it and does nothing with it: the call that publishes it did not arrive. */
export const isUntouched = (video: Members): boolean =>
  publishingOf(video, 'status') === 'not_started' && textIn(video.status, 'video_status') === 'ready';

/** Why Facebook shows no post of a video; null: it does, or will. */
export const failureIn = (video: Members, mediaId: string | null) => {
  const [state, result] = [textIn(video.status, 'video_status') ?? '', publishingOf(video, 'publish_status')];
  if ([state, publishingOf(video, 'status')].includes('error') || state === 'expired') {
    const phases = ['processing_phase', 'publishing_phase'].flatMap((one) => [`${one}.error`, `${one}.errors`]);
    const [words = state] = phases.flatMap((one) => membersAt(video, `status.${one}.message`));
    return failureOf('media', state, `Facebook could not make the video ready: ${words}`, mediaId);
  }
  // A success that leaves a draft: nobody sees it until a person publishes it.
  return publishingOf(video, 'status') === 'complete' && ['draft', 'not_published'].includes(result)
    ? failureOf('media', result, 'Facebook keeps the video as a draft: publish it there', mediaId)
    : null;
};
