import { type Answer, invalidRequest, refuse } from './answer.ts';
import { accessOf, emptyOf, type Request, single } from './request.ts';
import type { Person, Post, State } from './state.ts';
import { type Check, id, list, names, object, text } from './strict.ts';

/** Lookups. Each member comes only when it is asked for by name; a name that the contract lacks fails the call. */

/** The names that the OpenAPI document has, or those of the guides. */
const referencesOf = ({ fieldsName }: State) =>
  fieldsName === 'post.fields' ? 'referenced_posts' : 'referenced_tweets';
const repostsOf = ({ fieldsName }: State) => (fieldsName === 'post.fields' ? 'repost_count' : 'retweet_count');

const postFields = (state: State): Check =>
  names(
    referencesOf(state),
    ...['article', 'attachments', 'author_id', 'card_uri', 'community_id', 'context_annotations', 'conversation_id'],
    ...['created_at', 'display_text_range', 'edit_controls', 'edit_history_tweet_ids', 'entities', 'geo', 'id'],
    ...['in_reply_to_user_id', 'lang', 'media_metadata', 'non_public_metrics', 'note_tweet', 'organic_metrics'],
    ...['paid_partnership', 'possibly_sensitive', 'promoted_metrics', 'public_metrics'],
    ...['reply_settings', 'scopes', 'source', 'text', 'withheld'],
  );
const mediaFields = names(
  ...['alt_text', 'duration_ms', 'height', 'media_key', 'non_public_metrics', 'organic_metrics', 'preview_image_url'],
  ...['promoted_metrics', 'public_metrics', 'type', 'url', 'variants', 'width'],
);
const userFields = names(
  ...['affiliation', 'created_at', 'description', 'entities', 'id', 'location', 'most_recent_tweet_id', 'name'],
  ...['pinned_tweet_id', 'profile_banner_url', 'profile_image_url', 'protected', 'public_metrics', 'subscription_type'],
  ...['url', 'username', 'verified', 'verified_type', 'withheld'],
);
const expansions = names('attachments.media_keys', 'author_id', 'referenced_tweets.id');
const instant = text(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
const count =
  (min: number, max: number): Check =>
  (value, path) => {
    if (!/^\d+$/.test(String(value)) || Number(value) < min || Number(value) > max) {
      throw invalidRequest(`${path}: ${String(value)} is not between ${min} and ${max}`);
    }
  };

const shared = (state: State): Record<string, Check> => ({
  [state.fieldsName]: postFields(state),
  'media.fields': mediaFields,
  'user.fields': userFields,
  expansions,
});

const ownDays = 30 * 86_400_000;
const asked = (members: Record<string, string>, name: string) => new Set((members[name] ?? '').split(','));

/** How a post is seen: it grows with the hours. */
const publicMetrics = (state: State, { at }: Post) => {
  const hours = Math.floor((state.now() - at) / 3_600_000);
  return {
    ...{ [repostsOf(state)]: hours, reply_count: hours, like_count: 3 * hours, quote_count: 0 },
    ...{ bookmark_count: 1, impression_count: 50 * hours },
  };
};

const shownPost = (state: State, post: Post, fields: ReadonlySet<string>, personId: string) => {
  const references = [
    ...(post.parent === null ? [] : [{ type: 'replied_to', id: post.parent }]),
    ...(post.quoted === null ? [] : [{ type: 'quoted', id: post.quoted }]),
  ];
  const isOwn = post.personId === personId && state.now() - post.at < ownDays;
  const all: Record<string, unknown> = {
    created_at: new Date(post.at).toISOString(),
    author_id: post.personId,
    public_metrics: publicMetrics(state, post),
    ...(post.mediaKeys.length > 0 ? { attachments: { media_keys: post.mediaKeys } } : {}),
    ...(post.urls.length > 0 ? { entities: { urls: post.urls } } : {}),
    ...(references.length > 0 ? { [referencesOf(state)]: references } : {}),
    ...(isOwn ? { non_public_metrics: { url_link_clicks: 12, user_profile_clicks: 6, engagements: 66 } } : {}),
  };
  const chosen = Object.entries(all).filter(([name]) => fields.has(name));
  return { id: post.id, text: post.text, edit_history_tweet_ids: [post.id], ...Object.fromEntries(chosen) };
};

const includesOf = (posts: readonly Post[], members: Record<string, string>) => {
  if (!asked(members, 'expansions').has('attachments.media_keys')) return {};
  const fields = asked(members, 'media.fields');
  const media = posts
    .flatMap(({ mediaKeys }) => mediaKeys)
    .map((key) => {
      const video = key.startsWith('7_') ? { duration_ms: 31_000, public_metrics: { view_count: 900 } } : {};
      const chosen = Object.entries(video).filter(([name]) => fields.has(name));
      return { media_key: key, type: key.startsWith('7_') ? 'video' : 'photo', ...Object.fromEntries(chosen) };
    });
  return media.length === 0 ? {} : { includes: { media } };
};

export const lookUp = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'tweet.read', 'users.read');
  emptyOf(request);
  const members = single(request.query);
  object({ ids: () => {}, ...shared(state) }, ['ids'])(members, 'query');
  const ids = (members.ids ?? '').split(',');
  list(1, 100, id)(ids, 'ids');
  const fields = asked(members, state.fieldsName);
  const posts = ids.flatMap((one) => state.post(one) ?? []);
  const error = (value: string, title: string, type: string, more: object = {}) => ({
    ...{ resource_id: value, resource_type: 'tweet', parameter: 'ids', value, title },
    ...{ detail: `${title}: [${value}].`, type: `https://api.x.com/2/problems/${type}`, ...more },
  });
  const missing = ids.filter((one) => state.post(one) === null);
  const closed = posts.filter(({ personId: by, at }) => by !== personId || state.now() - at >= ownDays);
  const errors = [
    ...missing.map((one) => error(one, 'Not Found Error', 'resource-not-found')),
    ...(fields.has('non_public_metrics') ? closed : []).map((one) =>
      error(one.id, 'Field Authorization Error', 'not-authorized-for-field', { parameter: 'non_public_metrics' }),
    ),
  ];
  return {
    status: 200,
    body: {
      ...(posts.length === 0 ? {} : { data: posts.map((one) => shownPost(state, one, fields, personId)) }),
      ...includesOf(posts, members),
      ...(errors.length === 0 ? {} : { errors }),
    },
  };
};

export const timeline = (state: State, request: Request, of: string): Answer => {
  const { personId } = accessOf(state, request, 'tweet.read', 'users.read');
  emptyOf(request);
  const members = single(request.query);
  object({
    ...{ max_results: count(5, 100), start_time: instant, end_time: instant, since_id: id, until_id: id },
    ...{ pagination_token: text(/^p\d+$/), exclude: names('replies', 'retweets'), ...shared(state) },
  })(members, 'query');
  if (!state.people.has(of)) throw refuse('not_found');
  const since = Date.parse(members.start_time ?? '1970-01-01T00:00:00Z');
  const before = Date.parse(members.end_time ?? '9999-01-01T00:00:00Z');
  const all = state.posts
    .filter((one) => one.personId === of && one.at >= since && one.at < before && !state.deleted.has(one.id))
    .reverse();
  const from = Number(members.pagination_token?.slice(1) ?? 0);
  const size = Number(members.max_results ?? 10);
  const posts = all.slice(from, from + size);
  const [newest, oldest] = [posts[0]?.id, posts.at(-1)?.id];
  const next = from + size < all.length ? { next_token: `p${from + size}` } : {};
  const edges = posts.length === 0 ? {} : { newest_id: newest, oldest_id: oldest };
  const fields = asked(members, state.fieldsName);
  return {
    status: 200,
    body: {
      ...(posts.length === 0 ? {} : { data: posts.map((one) => shownPost(state, one, fields, personId)) }),
      ...includesOf(posts, members),
      meta: { result_count: posts.length, ...edges, ...next },
    },
  };
};

export const me = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'tweet.read', 'users.read');
  emptyOf(request);
  const members = single(request.query);
  object({ 'user.fields': userFields, expansions, [state.fieldsName]: postFields(state) })(members, 'query');
  const { id: own, username, subscription } = state.people.get(personId) as Person;
  const fields = asked(members, 'user.fields');
  const all = {
    profile_image_url: `https://pbs.twimg.com/profile_images/${own}.jpg`,
    public_metrics: { followers_count: 1_234, following_count: 10, tweet_count: state.posts.length, listed_count: 0 },
    ...{ verified_type: 'none', subscription_type: subscription },
  };
  const chosen = Object.fromEntries(Object.entries(all).filter(([name]) => fields.has(name)));
  return { status: 200, body: { data: { id: own, username, name: `The ${username}`, ...chosen } } };
};
