import { type Answer, invalid, refuse } from './answer.ts';
import { accessOf, chosen, paramsAre, type Request } from './request.ts';
import type { Person, Post, State } from './state.ts';

/** Profile, posts, lists, figures, quota and deletion ("Retrieve posts", "Insights", "Troubleshooting", "Delete posts"). */

const dayMs = 86_400_000;
const stamp = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}+0000`;

/** The person that an address names. @throws Refusal it is not the token's own */
const ownOf = (state: State, request: Request, user: string, ...scopes: readonly string[]): Person => {
  const { personId } = accessOf(state, request, ...scopes);
  if (user !== 'me' && user !== personId) throw refuse('object_missing');
  return state.people.get(personId) as Person;
};

export const showPerson = (state: State, request: Request, user: string): Answer => {
  const { id, username } = ownOf(state, request, user);
  paramsAre(request.params, ['fields']);
  const threads_profile_picture_url = `https://scontent.example/${id}.jpg?oe=1`;
  const all = {
    id,
    username,
    name: `The ${username}`,
    threads_profile_picture_url,
    threads_biography: '',
    is_verified: false,
  };
  return { status: 200, body: chosen(request.params.fields, all) };
};

const typeOf = ({ container: { type } }: Post): string =>
  ({ TEXT: 'TEXT_POST', CAROUSEL: 'CAROUSEL_ALBUM' })[type as string] ?? type;

const shown = (state: State, post: Post): Record<string, unknown> => {
  const { username } = state.people.get(post.personId) as Person;
  const of = (id: string | null) => (id === null ? undefined : { id });
  return {
    ...{
      id: post.id,
      media_product_type: 'THREADS',
      media_type: typeOf(post),
      text: state.takesTags ? post.text.replace('#', '') : post.text,
      username,
    },
    ...{ permalink: `https://www.threads.com/@${username}/post/${post.code}`, shortcode: post.code },
    ...{
      timestamp: stamp(post.at),
      is_quote_post: post.quoted !== null,
      has_replies: false,
      is_reply: post.parent !== null,
    },
    ...{
      quoted_post: of(post.quoted),
      reply_audience: post.replyControl.toUpperCase(),
      alt_text: post.files[0]?.altText ?? undefined,
    },
    ...{ root_post: of(post.root), replied_to: of(post.parent), hide_status: 'NOT_HUSHED', owner: of(post.personId) },
    ...{ link_attachment_url: undefined, media_url: undefined, thumbnail_url: undefined, is_reply_owned_by_me: true },
    children:
      post.files.length > 1 ? { data: post.files.map((_, place) => ({ id: `${post.id}${place}` })) } : undefined,
  };
};

/** The post as the token may see it. @throws Refusal */
const ownPost = (state: State, request: Request, id: string, ...scopes: readonly string[]): Post => {
  const { personId } = accessOf(state, request, ...scopes);
  const post = state.post(id);
  if (post?.personId !== personId) throw refuse('object_missing');
  return post;
};

export const showPost = (state: State, request: Request, id: string): Answer => {
  const post = ownPost(state, request, id);
  paramsAre(request.params, ['fields']);
  return { status: 200, body: chosen(request.params.fields, shown(state, post)) };
};

const whole = (text: string | undefined, name: string, min: number, max: number): number | null => {
  if (text === undefined) return null;
  if (!/^\d+$/.test(text) || Number(text) < min || Number(text) > max) throw invalid(`Param ${name} is out of range`);
  return Number(text);
};

/** Newest first, with the cursors of a page. */
const listOf = (state: State, request: Request, user: string, isReplies: boolean): Answer => {
  const person = ownOf(state, request, user);
  const { params } = request;
  paramsAre(params, ['fields', 'since', 'until', 'limit', 'before', 'after']);
  const limit = whole(params.limit, 'limit', 1, 100) ?? 25;
  const [since, until] = [whole(params.since, 'since', 0, 1e11), whole(params.until, 'until', 0, 1e11)];
  if (since !== null && until !== null && since >= until) throw invalid('Param since must be before until');
  // A permission that is missing makes a list empty, without an error.
  const mayRead = !isReplies || accessOf(state, request).scopes.includes('threads_read_replies');
  const from = (since ?? 0) * 1_000;
  const to = Math.min(until === null ? Number.POSITIVE_INFINITY : until * 1_000, state.now() - state.listLagMs);
  const all = state.posts
    .filter(({ personId, parent }) => mayRead && personId === person.id && (parent !== null) === isReplies)
    .filter(({ id, at }) => at >= from && at <= to && !state.deleted.has(id))
    .reverse();
  const begin = params.after === undefined ? 0 : Number(Buffer.from(params.after, 'base64url').toString('utf8'));
  // What is filtered out of a page is not made up for: a short one may have a next one.
  const page = all.slice(begin, begin + Math.min(limit, state.maxPage));
  const cursor = (place: number): string => Buffer.from(String(place)).toString('base64url');
  const end = begin + page.length;
  const next = end < all.length ? { next: `https://graph.threads.net${request.path}?after=${cursor(end)}` } : {};
  const paging =
    page.length === 0 ? {} : { paging: { cursors: { before: cursor(begin), after: cursor(end) }, ...next } };
  return { status: 200, body: { data: page.map((one) => chosen(params.fields, shown(state, one))), ...paging } };
};

export const listPosts = (state: State, request: Request, user: string): Answer => listOf(state, request, user, false);
export const listReplies = (state: State, request: Request, user: string): Answer => listOf(state, request, user, true);

export const showQuota = (state: State, request: Request, user: string): Answer => {
  const person = ownOf(state, request, user, 'threads_content_publish');
  const { fields = '' } = request.params;
  paramsAre(request.params, [], ['fields']);
  const isOfReplies = fields.split(',').some((name) => name.startsWith('reply_'));
  if (isOfReplies) accessOf(state, request, 'threads_manage_replies');
  const config = (quota_total: number) => ({ quota_total, quota_duration: dayMs / 1_000 });
  const all = {
    ...{ quota_usage: state.used(person.id, false), config: config(state.quota.posts) },
    ...{ reply_quota_usage: state.used(person.id, true), reply_config: config(state.quota.replies) },
    ...{
      delete_quota_usage: 0,
      delete_config: config(100),
      location_search_quota_usage: 0,
      location_search_config: config(500),
    },
    id: undefined,
  };
  return { status: 200, body: { data: [chosen(fields, all)] } };
};

export const deletePost = (state: State, request: Request, id: string): Answer => {
  ownPost(state, request, id, 'threads_delete');
  paramsAre(request.params, []);
  state.deleted.add(id);
  return { status: 200, body: { success: true, deleted_id: id } };
};

const metricsIn = (params: Request['params'], known: readonly string[]): readonly string[] => {
  const metrics = (params.metric ?? '').split(',');
  for (const one of metrics)
    if (!known.includes(one)) throw invalid(`metric[0] must be one of the following values: ${known}`);
  return metrics;
};

/** A post grows with the hours. */
export const postInsights = (state: State, request: Request, id: string): Answer => {
  const { at } = ownPost(state, request, id, 'threads_manage_insights');
  paramsAre(request.params, ['since', 'until'], ['metric']);
  const hours = Math.floor((state.now() - at) / 3_600_000);
  const values: Record<string, number> = {
    ...{ views: 50 * hours, likes: 3 * hours, replies: hours, reposts: hours, quotes: 0, shares: 1 },
  };
  const data = metricsIn(request.params, Object.keys(values)).map((name) => ({
    ...{ name, period: 'lifetime', values: [{ value: values[name] }], title: name, description: name },
    id: `${id}/insights/${name}/lifetime`,
  }));
  return { status: 200, body: { data } };
};

const userMetrics = [
  'views',
  'likes',
  'replies',
  'reposts',
  'quotes',
  'clicks',
  'followers_count',
  'follower_demographics',
];
const firstSecond = 1_712_991_600;

export const userInsights = (state: State, request: Request, user: string): Answer => {
  const person = ownOf(state, request, user, 'threads_manage_insights');
  const { params } = request;
  paramsAre(params, ['since', 'until', 'breakdown'], ['metric']);
  const metrics = metricsIn(params, userMetrics);
  const [since, until] = ['since', 'until'].map((name) => whole(params[name], name, firstSecond, 1e11));
  if ((since === null) !== (until === null)) throw invalid('Params since and until go together');
  const isDemographic = metrics.includes('follower_demographics');
  if (isDemographic !== (params.breakdown !== undefined) || (isDemographic && metrics.length > 1)) {
    throw invalid('Param breakdown goes with follower_demographics alone');
  }
  if (since !== null && (isDemographic || metrics.includes('followers_count'))) {
    throw invalid('Params since and until do not go with these metrics');
  }
  if (isDemographic && !['country', 'city', 'age', 'gender'].includes(params.breakdown ?? ''))
    throw invalid('Param breakdown');
  if (isDemographic && person.followers < 100) throw refuse('demographics_missing');
  if (metrics.includes('followers_count') && !person.isLinked) throw refuse('feature_missing');
  const [from, to] = [since ?? Math.floor(state.now() / 1_000) - 86_400, until ?? Math.floor(state.now() / 1_000)];
  const days = Math.max(1, Math.round((to - from) / 86_400));
  const day = (place: number) => ({ value: 10 + place, end_time: stamp((from + (place + 1) * 86_400) * 1_000) });
  const data = metrics.map((name) => {
    const all = { name, period: 'day', title: name, description: name, id: `${person.id}/insights/${name}/day` };
    if (name === 'views') return { ...all, values: Array.from({ length: days }, (_, place) => day(place)) };
    if (name === 'clicks') {
      return {
        ...all,
        link_total_values: [
          { value: 6, link_url: 'https://example.com/a' },
          { value: 1, link_url: 'https://example.com/b' },
        ],
      };
    }
    if (name === 'followers_count') return { ...all, total_value: { value: person.followers } };
    if (name !== 'follower_demographics') return { ...all, total_value: { value: 23 } };
    const label = { country: 'US', city: 'Berlin, Germany', age: '25-34', gender: 'F' }[params.breakdown ?? ''];
    const results = [{ dimension_values: [label], value: person.followers }];
    return { ...all, total_value: { breakdowns: [{ dimension_keys: [params.breakdown], results }] } };
  });
  return { status: 200, body: { data } };
};
