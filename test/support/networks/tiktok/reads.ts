import { type Answer, fine, refuse } from './answer.ts';
import { fieldsOf, jsonOf, personOf, type Request } from './request.ts';
import type { Person, Post, State } from './state.ts';
import { list, object, text, whole } from './strict.ts';

/** "Get User Info", "List Videos", "Query Videos": the account's own public posts, with four counters. */

const ofProfile = ['username', 'profile_deep_link', 'bio_description', 'is_verified'];
const ofStats = ['follower_count', 'following_count', 'likes_count', 'video_count'];
const ofUser = ['open_id', 'union_id', 'avatar_url', 'avatar_url_100', 'avatar_large_url', 'display_name'];

const pick = (all: Readonly<Record<string, unknown>>, names: readonly string[]) =>
  Object.fromEntries(names.map((name) => [name, all[name]]));

export const userInfo = (state: State, request: Request): Answer => {
  const person = personOf(state, request, 'user.info.basic');
  const names = fieldsOf(request, [...ofUser, ...ofProfile, ...ofStats]);
  if (names.some((one) => ofProfile.includes(one))) personOf(state, request, 'user.info.profile');
  if (names.some((one) => ofStats.includes(one))) personOf(state, request, 'user.info.stats');
  const likes = ownPosts(state, person).length * 410;
  const all = {
    ...{ open_id: person.id, union_id: `u${person.id}`, avatar_url: 'https://p16.example/a.jpg' },
    ...{ display_name: person.nickname, username: person.username, is_verified: false, bio_description: '' },
    ...{ follower_count: person.followers, following_count: 88, likes_count: likes, video_count: likes / 410 },
  };
  return fine({ user: pick(all, names) });
};

const ownPosts = (state: State, { id }: Person): readonly Post[] =>
  state.posts.filter((one) => one.personId === id && state.isPublic(one)).toReversed();

const ofVideo = [
  ...['id', 'create_time', 'cover_image_url', 'share_url', 'video_description', 'duration', 'height', 'width', 'title'],
  ...['embed_html', 'embed_link', 'like_count', 'comment_count', 'share_count', 'view_count', 'is_aigc'],
];

const shown = ({ username }: Person, { postId, info, takenAt, kind }: Post, names: readonly string[]) => {
  const words = String(info.title ?? info.description ?? '');
  const all = {
    ...{ id: postId, create_time: Math.floor((takenAt ?? 0) / 1_000), title: words, video_description: words },
    ...{
      share_url: `https://www.tiktok.com/@${username}/${kind}/${postId}`,
      duration: 12,
      is_aigc: info.is_aigc === true,
    },
    ...{ view_count: 5_300, like_count: 410, comment_count: 22, share_count: 17 },
  };
  return pick(all, names);
};

export const listVideos = (state: State, request: Request): Answer => {
  const person = personOf(state, request, 'video.list');
  const names = fieldsOf(request, ofVideo);
  const body = jsonOf(request);
  object({}, { max_count: whole, cursor: whole })(body, 'body');
  const { max_count: count = 10, cursor } = body as { readonly max_count?: number; readonly cursor?: number };
  if (count < 1 || count > 20) throw refuse('invalid_params');
  const at = (post: Post): number => post.takenAt ?? 0;
  const all = ownPosts(state, person).filter((post) => cursor === undefined || at(post) < cursor);
  const page = all.slice(0, count);
  const last = page.at(-1);
  const next = last === undefined ? (cursor ?? 0) : at(last);
  return fine({
    videos: page.map((one) => shown(person, one, names)),
    cursor: next,
    has_more: all.length > page.length,
  });
};

export const queryVideos = (state: State, request: Request): Answer => {
  const person = personOf(state, request, 'video.list');
  const names = fieldsOf(request, ofVideo);
  const body = jsonOf(request);
  object({ filters: object({ video_ids: list(1, 20, text(30, /^\d+$/)) }) })(body, 'body');
  const { filters } = body as { readonly filters: { readonly video_ids: readonly string[] } };
  const found = ownPosts(state, person).filter(({ postId }) => filters.video_ids.includes(postId));
  return fine({ videos: found.map((one) => shown(person, one, names)) });
};
