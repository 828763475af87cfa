import type { Json, PublishMedia, PublishRequest } from '#contracts/ports/platform.ts';
import type {
  ContainedPost,
  ContainerFields,
  ContainerForms,
  ContainerStatus,
  ContainerWork,
  MadeContainer,
} from '../kit/containers.ts';
import { failureOf, type NotOk } from '../kit/errors.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { numberIn, textIn } from '../shared/members.ts';
import { isGone } from './tables.ts';

/** The containers of Instagram: what it gets of a post ("IG User Media"), and what it says of how far one is. */

const text = (value: unknown): string => (typeof value === 'string' ? value.trim() : '');
const listOf = (value: Json | undefined): readonly Json[] => (Array.isArray(value) ? value : []);
const bare = (name: string): string => name.trim().replace(/^@+/, '');

/** What is not set is not sent. */
const withoutEmpty = (fields: ContainerFields): ContainerFields =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== ''));

const json = (value: readonly Json[]): string => (value.length === 0 ? '' : JSON.stringify(value));

/** `reel` of a single video, whatever it was asked as; `item` of a carousel. */
type Form = 'image' | 'reel' | 'story' | 'item';

/**
 * A picture of the feed wants a place for each tag, and a video has none. People without a place stand side by side.
 */
const tagsOf = ({ overrides }: PublishRequest, { kind }: PublishMedia, form: Form): string => {
  const all = listOf(overrides.userTags);
  const tags = all.map((one, index): Json => {
    const username = bare(typeof one === 'string' ? one : (textIn(one, 'username') ?? ''));
    if (kind === 'video' && form !== 'story') return { username };
    const [x, y] = [numberIn(one, 'x'), numberIn(one, 'y')];
    if (form === 'story' && (x === null || y === null)) return { username };
    return { username, x: x ?? (index + 1) / (all.length + 1), y: y ?? 0.5 };
  });
  return json(tags.filter((one) => textIn(one, 'username') !== ''));
};

/** The address of a cover wins over a frame; the poster frame of the video itself is sent where neither was chosen. */
const coverOf = ({ overrides, cover, coverFrameMs, media }: PublishRequest): ContainerFields => {
  const address = text(overrides.coverUrl);
  if (address !== '') return { cover_url: address };
  const isPoster = cover !== null && cover.mediaId === media[0]?.mediaId;
  if (cover !== null && (!isPoster || coverFrameMs === null)) return { cover_url: cover };
  return coverFrameMs === null ? {} : { thumb_offset: String(coverFrameMs) };
};

/** Of a post as a whole: of a carousel its parent alone has them. */
const wordsOf = ({ content, overrides, aiDisclosure }: PublishRequest): ContainerFields => ({
  caption: content,
  collaborators: json(
    listOf(overrides.collaborators)
      .map((one) => bare(text(one)))
      .filter((one) => one !== ''),
  ),
  location_id: text(overrides.locationId),
  ...disclosedBy(overrides, aiDisclosure),
});

const disclosedBy = (overrides: PublishRequest['overrides'], aiDisclosure: boolean): ContainerFields => ({
  is_ai_generated: (overrides.aiGenerated ?? aiDisclosure) === true ? 'true' : '',
  is_paid_partnership: overrides.paidPartnership === true ? 'true' : '',
});

const fileOf = (request: PublishRequest, media: PublishMedia, form: Form): ContainerFields => ({
  ...(media.kind === 'video'
    ? { media_type: form === 'story' ? 'STORIES' : form === 'reel' ? 'REELS' : 'VIDEO', video_url: media }
    : { media_type: form === 'story' ? 'STORIES' : '', image_url: media }),
  alt_text: media.kind === 'image' && form !== 'story' ? (media.altText ?? '') : '',
  // Of a carousel Instagram takes them on pictures.
  user_tags: form === 'item' && media.kind !== 'image' ? '' : tagsOf(request, media, form),
});

const formOf = ({ kind, use }: PublishMedia): Form => (use === 'story' ? 'story' : kind === 'video' ? 'reel' : 'image');

export const postOf = (request: PublishRequest): ContainedPost => {
  const { media, overrides } = request;
  const [only, ...others] = media;
  if (only !== undefined && others.length === 0) {
    const form = formOf(only);
    const { shareToFeed } = overrides;
    const ofReel =
      form !== 'reel'
        ? {}
        : { ...coverOf(request), share_to_feed: typeof shareToFeed === 'boolean' ? String(shareToFeed) : '' };
    const words = form === 'story' ? disclosedBy(overrides, request.aiDisclosure) : wordsOf(request);
    return { children: [], whole: () => withoutEmpty({ ...fileOf(request, only, form), ...ofReel, ...words }) };
  }
  return {
    children: media.map((one) => withoutEmpty({ ...fileOf(request, one, 'item'), is_carousel_item: 'true' })),
    whole: (children) => withoutEmpty({ media_type: 'CAROUSEL', children: children.join(','), ...wordsOf(request) }),
  };
};

const kinds = { FINISHED: 'finished', IN_PROGRESS: 'working', PUBLISHED: 'published' } as const;

/** "IG Container". The text of an error ends in its subcode. */
const statusOf = async (
  { bound, subject, signal }: Omit<ContainerWork, 'user'>,
  id: string,
): Promise<ContainerStatus | NotOk> => {
  const ask = { method: 'GET', path: at(id), query: { fields: 'status_code,status' } } as const;
  const answer = await bound.client.call(subject, ask, signal);
  if (answer.kind !== 'ok') return isGone(answer) ? { kind: 'gone' } : answer;
  const status = textIn(answer.body, 'status_code') ?? '';
  if (status === 'ERROR' || status === 'EXPIRED') {
    return { kind: 'broken', code: /\b22\d{5}\b/.exec(textIn(answer.body, 'status') ?? '')?.[0] ?? status };
  }
  const kind = Object.entries(kinds).find(([name]) => name === status)?.[1];
  return kind === undefined ? { kind: 'silent', reason: 'the answer does not say how far the container is' } : { kind };
};

const make = async (
  { bound, subject, user, signal }: ContainerWork,
  fields: Readonly<Record<string, string>>,
): Promise<MadeContainer | NotOk> => {
  const answer = await bound.client.call(subject, { method: 'POST', path: at(`${user}/media`), fields }, signal);
  if (answer.kind === 'ok') {
    const id = textIn(answer.body, 'id') ?? '';
    return isMediaId(id) ? { id } : { kind: 'silent', reason: 'the answer has no id of the container' };
  }
  if (answer.kind !== 'refused' || answer.row.means !== 'gone') return answer;
  // The account is closed to this token, or Instagram does not find yet what it made a moment ago: a child.
  const { platformCode, platformMessage } = answer.failure;
  const means = platformMessage?.includes(user) === true ? 'unpermitted' : 'later';
  return { ...answer, row: { means }, failure: failureOf(means, platformCode, platformMessage) };
};

/** Trouble of Instagram's own servers and of the way to the file: the second container is the last. */
export const containers: ContainerForms = {
  ...{ make, statusOf, maxBuilds: 2 },
  // A container of a moment ago was not found for as long as anybody asked, and was published all the same (postiz#1562).
  unfound: { looks: 20, then: 'publish' },
  said: (code) => `Instagram could not make the post: ${code}`,
  mayPass: /(?:^|\/)(?:2207003|2207052|2207001|2207032|2207053|2207082|EXPIRED|ERROR)$/,
};
