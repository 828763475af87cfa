import { type Answer, invalid, ofFigures, Refusal, refuse } from './answer.ts';
import { accessOf, chosen, paramsAre, type Request, type Right } from './request.ts';
import type { Media, Person, State } from './state.ts';

/** Profile, media, lists, comments, figures, quota and deletion ("IG User", "IG Media", "Insights", "Content Publishing Limit"). */

const dayMs = 86_400_000;
const stamp = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}+0000`;

/** The account that an address names. @throws Refusal it is not the token's own */
const ownOf = (state: State, request: Request, user: string, ...rights: readonly Right[]): Person => {
  const { personId } = accessOf(state, request, ...rights);
  if (personId === null || (user !== 'me' && user !== personId)) throw refuse('object_missing');
  return state.people.get(personId) as Person;
};

export const showPerson = (state: State, request: Request, user: string): Answer => {
  const { id, scopedId, username, accountType, followers } = ownOf(state, request, user);
  paramsAre(request.params, ['fields']);
  const shared = {
    ...{ username, name: `The ${username}`, profile_picture_url: `https://scontent.example/${id}.jpg?oe=1` },
    ...{ biography: '', followers_count: followers, follows_count: 5, media_count: state.media.length },
  };
  // By its own login the id is that of the person for this app.
  const all =
    request.host === 'ig'
      ? { ...shared, id: user === 'me' ? scopedId : id, user_id: id, account_type: accountType }
      : { ...shared, id, reposts_count: 0, saved_count: 0 };
  return { status: 200, body: chosen(request.params.fields, all) };
};

const mediaTypeOf = ({ container, files }: Media): string =>
  container.type === 'CAROUSEL' ? 'CAROUSEL_ALBUM' : (files[0]?.type ?? 'IMAGE');
const productOf = ({ container: { type } }: Media): string =>
  ({ REELS: 'REELS', STORIES: 'STORY' })[type as string] ?? 'FEED';
const pathOf: Readonly<Record<string, string>> = { REELS: 'reel', STORY: 'stories', FEED: 'p' };

const shown = (state: State, one: Media): Record<string, unknown> => {
  const { username } = state.people.get(one.personId) as Person;
  const product = productOf(one);
  const place = product === 'STORY' ? `stories/${username}/${one.id}` : `${pathOf[product]}/${one.code}/`;
  return {
    ...{ id: one.id, media_product_type: product, media_type: mediaTypeOf(one), username, shortcode: one.code },
    caption: product === 'STORY' || one.caption === '' ? undefined : one.caption,
    ...{ permalink: `https://www.instagram.com/${place}`, timestamp: stamp(one.at), comments_count: 0, like_count: 0 },
    is_ai_generated: one.container.params.is_ai_generated === 'true' ? true : undefined,
    children: one.files.length > 1 ? { data: one.container.children.map(({ id }) => ({ id })) } : undefined,
    ...{ media_url: undefined, thumbnail_url: undefined, is_shared_to_feed: undefined, owner: { id: one.personId } },
  };
};

/** The media as the token may see it. @throws Refusal */
const ownMedia = (state: State, request: Request, id: string, ...rights: readonly Right[]): Media => {
  const { personId } = accessOf(state, request, ...rights);
  const one = state.post(id);
  if (one === null || one.personId !== personId || !state.isShown(one)) throw refuse('object_missing');
  return one;
};

export const showMedia = (state: State, request: Request, id: string): Answer => {
  const one = ownMedia(state, request, id);
  if (state.hiddenMedia.has(id)) throw refuse('object_missing');
  paramsAre(request.params, ['fields']);
  return { status: 200, body: chosen(request.params.fields, shown(state, one)) };
};

const whole = (text: string | undefined, name: string, min: number, max: number): number | null => {
  if (text === undefined) return null;
  if (!/^\d+$/.test(text) || Number(text) < min || Number(text) > max) throw invalid(`Param ${name} is out of range`);
  return Number(text);
};

/** Newest first, with the cursors of a page. Stories are those of 24 hours, and take no span. */
const listOf = (state: State, request: Request, user: string, isOfStories: boolean): Answer => {
  const person = ownOf(state, request, user);
  const { params } = request;
  paramsAre(params, ['fields', 'limit', 'before', 'after', ...(isOfStories ? [] : ['since', 'until'])]);
  const limit = whole(params.limit, 'limit', 1, 100) ?? 25;
  const [since, until] = [whole(params.since, 'since', 0, 1e11), whole(params.until, 'until', 0, 1e11)];
  if (since !== null && until !== null && since >= until) throw invalid('Param since must be before until');
  const from = (since ?? 0) * 1_000;
  const to = Math.min(until === null ? Number.POSITIVE_INFINITY : until * 1_000, state.now() - state.listLagMs);
  const all = state.media
    .filter((one) => one.personId === person.id && state.isStory(one) === isOfStories && state.isShown(one))
    .filter(({ at }) => at >= from && at <= to)
    .reverse();
  const begin = params.after === undefined ? 0 : Number(Buffer.from(params.after, 'base64url').toString('utf8'));
  const page = all.slice(begin, begin + Math.min(limit, state.maxPage));
  const cursor = (place: number): string => Buffer.from(String(place)).toString('base64url');
  const end = begin + page.length;
  const next = end < all.length ? { next: `https://graph.instagram.com${request.path}?after=${cursor(end)}` } : {};
  const paging =
    page.length === 0 ? {} : { paging: { cursors: { before: cursor(begin), after: cursor(end) }, ...next } };
  return { status: 200, body: { data: page.map((one) => chosen(params.fields, shown(state, one))), ...paging } };
};

export const listMedia = (state: State, request: Request, user: string): Answer => listOf(state, request, user, false);
export const listStories = (state: State, request: Request, user: string): Answer => listOf(state, request, user, true);

export const showQuota = (state: State, request: Request, user: string): Answer => {
  const person = ownOf(state, request, user, 'publish');
  paramsAre(request.params, ['fields', 'since']);
  const config = { quota_total: state.quota, quota_duration: dayMs / 1_000 };
  const all = { quota_usage: state.used(person.id), config, id: undefined };
  return { status: 200, body: { data: [chosen(request.params.fields ?? 'quota_usage', all)] } };
};

export const writeComment = (state: State, request: Request, id: string): Answer => {
  const one = ownMedia(state, request, id, 'comments');
  paramsAre(request.params, [], ['message']);
  const { message = '' } = request.params;
  if (message.trim() === '' || [...message].length > 2_200) throw invalid('Param message is too long');
  // A story has replies in messages, and no comments.
  if (state.isStory(one)) throw refuse('object_missing');
  const tag = request.headers['x-test-tag'];
  const made = { id: state.id(), mediaId: id, text: message, tag: typeof tag === 'string' ? tag : null };
  state.comments.push(made);
  return { status: 200, body: { id: made.id } };
};

/** With Facebook Login alone. */
export const deleteMedia = (state: State, request: Request, id: string): Answer => {
  if (request.host !== 'fb') throw invalid('Unsupported delete request');
  ownMedia(state, request, id, 'publish');
  paramsAre(request.params, []);
  state.deleted.add(id);
  return { status: 200, body: { success: true } };
};

const all = ['views', 'reach', 'shares', 'total_interactions', 'reposts'];
const activity = ['follows', 'profile_visits', 'profile_activity'];
const metricsOfProduct: Readonly<Record<string, readonly string[]>> = {
  FEED: [...all, 'likes', 'comments', 'saved', ...activity],
  REELS: [
    ...[...all, 'likes', 'comments', 'saved', 'ig_reels_avg_watch_time', 'ig_reels_video_view_total_time'],
    ...['reels_skip_rate', 'crossposted_views', 'facebook_views'],
  ],
  STORY: [...all, 'replies', 'navigation', ...activity],
};
const breakdowns: Readonly<Record<string, string>> = {
  profile_activity: 'action_type',
  navigation: 'story_navigation_action_type',
};

const metricsIn = (params: Request['params'], known: readonly string[]): readonly string[] => {
  const metrics = (params.metric ?? '').split(',');
  for (const one of metrics) {
    if (!known.includes(one)) throw invalid(`metric[0] must be one of the following values: ${known.join(', ')}`);
  }
  return metrics;
};

/** Grows with the hours. One metric that does not go with the media fails the whole call. */
export const mediaInsights = (state: State, request: Request, id: string): Answer => {
  const one = ownMedia(state, request, id, 'insights');
  paramsAre(request.params, ['breakdown', 'period'], ['metric']);
  const product = productOf(one);
  const links = product === 'STORY' && request.host === 'fb' ? ['link_clicks'] : [];
  const metrics = metricsIn(request.params, [...(metricsOfProduct[product] ?? []), ...links]);
  const wanted = new Set(metrics.map((name) => breakdowns[name]));
  if (request.params.breakdown !== undefined && (wanted.size > 1 || !wanted.has(request.params.breakdown))) {
    throw invalid('An unsupported breakdown');
  }
  const hours = Math.floor((state.now() - one.at) / 3_600_000);
  if (product === 'STORY' && hours < 1 && !metrics.every((name) => name in breakdowns)) {
    throw new Refusal(ofFigures.few_viewers);
  }
  const values: Record<string, number> = {
    ...{ views: 50 * hours, reach: 40 * hours, likes: 3 * hours, comments: hours, shares: 1, saved: 2, reposts: 0 },
    ...{ total_interactions: 5 * hours, follows: 1, profile_visits: 4, replies: hours, link_clicks: 2 * hours },
    ...{ ig_reels_avg_watch_time: 4_200, ig_reels_video_view_total_time: 120_000 * hours, reels_skip_rate: 31.5 },
  };
  const labels: Readonly<Record<string, readonly (readonly [string, number])[]>> = {
    profile_activity: [
      ['BIO_LINK_CLICKED', 2],
      ['EMAIL', 1],
    ],
    navigation: [
      ['tap_forward', 31],
      ['tap_back', 3],
      ['tap_exit', 9],
      ['swipe_forward', 2],
    ],
  };
  const data = metrics.map((name) => {
    const about = { name, period: 'lifetime', title: name, description: name, id: `${id}/insights/${name}/lifetime` };
    const split = labels[name];
    if (split === undefined) return { ...about, values: [{ value: values[name] }] };
    const value = split.reduce((sum, [, n]) => sum + n, 0);
    if (request.params.breakdown === undefined) return { ...about, total_value: { value } };
    const results = split.map(([label, n]) => ({ dimension_values: [label], value: n }));
    return { ...about, total_value: { value, breakdowns: [{ dimension_keys: [request.params.breakdown], results }] } };
  });
  return { status: 200, body: { data } };
};

const userMetrics = [
  ...['reach', 'views', 'accounts_engaged', 'total_interactions', 'likes', 'comments', 'saves', 'shares', 'replies'],
  ...['follows_and_unfollows', 'profile_links_taps', 'profile_views', 'follower_demographics'],
  ...['engaged_audience_demographics', 'follower_count'],
];

export const userInsights = (state: State, request: Request, user: string): Answer => {
  const person = ownOf(state, request, user, 'insights');
  const { params } = request;
  paramsAre(params, ['since', 'until', 'breakdown', 'metric_type', 'timeframe'], ['metric', 'period']);
  const metrics = metricsIn(params, userMetrics);
  if (params.metric_type !== 'total_value') throw invalid('Param metric_type must be total_value');
  const isDemographic = metrics.includes('follower_demographics');
  if (isDemographic) {
    if (metrics.length > 1 || params.period !== 'lifetime' || params.timeframe === undefined)
      throw invalid('Param timeframe');
    if (!['country', 'city', 'age', 'gender'].includes(params.breakdown ?? '')) throw invalid('Param breakdown');
    if (params.since !== undefined) throw invalid('Params since and until do not go with demographics');
    if (person.followers < 100) throw new Refusal(ofFigures.few_followers);
    const label = { country: 'DE', city: 'Berlin, Germany', age: '25-34', gender: 'F' }[params.breakdown ?? ''];
    const results = [{ dimension_values: [label], value: person.followers }];
    const total_value = { breakdowns: [{ dimension_keys: [params.breakdown], results }] };
    return { status: 200, body: { data: [{ name: metrics[0], period: 'lifetime', total_value }] } };
  }
  if (params.period !== 'day') throw invalid('Param period must be day');
  const [since, until] = [whole(params.since, 'since', 0, 1e11), whole(params.until, 'until', 0, 1e11)];
  if (since === null || until === null || until <= since || until - since > 30 * 86_400)
    throw invalid('Params since and until');
  if (
    params.breakdown !== undefined &&
    (metrics.length > 1 || metrics[0] !== 'views' || params.breakdown !== 'media_product_type')
  ) {
    throw invalid('An unsupported breakdown');
  }
  const values: Readonly<Record<string, number>> = {
    views: 120,
    accounts_engaged: 7,
    profile_links_taps: 3,
    profile_views: 11,
  };
  const data = metrics.map((name) => {
    const value = values[name] ?? 1;
    const results = [
      { dimension_values: ['REELS'], value: 90 },
      { dimension_values: ['POST'], value: 30 },
    ];
    const split =
      params.breakdown === undefined ? {} : { breakdowns: [{ dimension_keys: ['media_product_type'], results }] };
    return {
      name,
      period: 'day',
      title: name,
      description: name,
      total_value: { value, ...split },
      id: `${person.id}/insights/${name}/day`,
    };
  });
  return { status: 200, body: { data } };
};
