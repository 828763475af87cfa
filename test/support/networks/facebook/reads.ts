import { type Answer, badToken, invalid, refuse } from './answer.ts';
import { shownPost, shownVideo } from './posts.ts';
import { accessOf, chosen, namesIn, pageOf, paramsAre, type Request, whole } from './request.ts';
import type { State } from './state.ts';

/** Nodes, and "Page Insights" and "Video Insights" after the retirements of 2025-11-15 and 2026-06-15. */

const ok = (body: unknown): Answer => ({ status: 200, body });
const hourMs = 3_600_000;

/** A page, a post and a video have the same address. */
export const showNode = (state: State, request: Request, id: string): Answer => {
  const { params } = request;
  const page = state.pages.get(id);
  if (page !== undefined) return showPage(state, request, id);
  const video = state.videos.get(id);
  const made = video === undefined ? state.find(id) : null;
  if (video === undefined && made === null) throw refuse('object_missing');
  const { scopes } = pageOf(state, request, video?.pageId ?? made?.pageId ?? '', 'pages_read_engagement');
  paramsAre(params, ['fields']);
  if (video !== undefined) {
    if (video.made !== null && state.deleted.has(video.made.id)) throw refuse('object_missing');
    return ok(chosen(params.fields, shownVideo(state, video)));
  }
  const names = namesIn(params.fields ?? 'id');
  const isOfUsers = names.includes('reactions') || names.includes('comments');
  if (isOfUsers && !scopes.includes('pages_read_user_content')) throw refuse('no_permission');
  if (made === null) throw refuse('object_missing');
  return ok(chosen(params.fields, shownPost(state, made)));
};

const showPage = (state: State, request: Request, id: string): Answer => {
  const access = accessOf(state, request);
  const page = state.pages.get(id);
  const person = state.people.get(access.personId);
  if (page === undefined || (access.pageId !== null && access.pageId !== id)) throw refuse('object_missing');
  paramsAre(request.params, ['fields']);
  const isAskedForToken = namesIn(request.params.fields ?? 'id').includes('access_token');
  if (isAskedForToken) state.minted.set(id, (state.minted.get(id) ?? 0) + 1);
  return ok(
    chosen(request.params.fields, {
      ...{ id, name: page.name, username: page.username ?? undefined, followers_count: page.followers },
      picture: { data: { url: `https://scontent.example.com/${id}.jpg` } },
      access_token:
        isAskedForToken && access.pageId === null && person?.tasks.has(id) === true
          ? state.grantPage(access, id)
          : undefined,
    }),
  );
};

const metricsIn = (state: State, { params }: Request, known: readonly string[]): readonly string[] => {
  const metrics = (params.metric ?? '').split(',');
  for (const one of metrics) if (!known.includes(one) || state.retired.has(one)) throw refuse('metric_invalid');
  return metrics;
};

const reported = (id: string, name: string, period: string, value: unknown) => ({
  ...{ name, period, values: [{ value }], title: name, description: name, id: `${id}/insights/${name}/${period}` },
});

/** Without `read_insights` a list is empty, without an error. */
const mayRead = (scopes: readonly string[]): boolean => scopes.includes('read_insights');

/** A post grows with the hours. */
export const postInsights = (state: State, request: Request, id: string): Answer => {
  const one = state.find(id);
  if (one === null || !state.isOut(one)) throw refuse('object_missing');
  const { scopes } = pageOf(state, request, one.pageId, 'pages_read_engagement');
  paramsAre(request.params, ['period'], ['metric']);
  if ((request.params.period ?? 'lifetime') !== 'lifetime') throw invalid('period must be lifetime');
  const hours = Math.floor((state.now() - (one.publishAt ?? 0)) / hourMs);
  const values: Readonly<Record<string, unknown>> = {
    ...{ post_media_view: 90 * hours, post_total_media_view_unique: 60 * hours, post_clicks: 4 * hours },
    post_clicks_by_type: { 'link clicks': 2 * hours, 'other clicks': 2 * hours },
    post_reactions_by_type_total: { like: 4 * hours, love: hours, sorry: hours, anger: hours },
    ...{ post_video_view_time: 60_000 * hours, post_video_views: 20 * hours },
  };
  const metrics = metricsIn(state, request, Object.keys(values));
  return ok({ data: mayRead(scopes) ? metrics.map((name) => reported(id, name, 'lifetime', values[name])) : [] });
};

export const videoInsights = (state: State, request: Request, id: string): Answer => {
  const video = state.videos.get(id);
  if (video?.made === undefined || video.made === null || !state.isOut(video.made)) throw refuse('object_missing');
  const { scopes } = pageOf(state, request, video.pageId, 'pages_read_engagement');
  if (!scopes.includes('pages_manage_engagement')) throw badToken(200, '(#200) Requires pages_manage_engagement');
  paramsAre(request.params, [], ['metric']);
  const hours = Math.floor((state.now() - (video.made.publishAt ?? 0)) / hourMs);
  const graph = Object.fromEntries(Array.from({ length: 40 }, (_, at) => [String(at), 1 - at / 50]));
  const values: Readonly<Record<string, unknown>> = {
    ...{
      post_video_avg_time_watched: 6_500,
      post_video_followers: hours,
      total_video_view_total_time: 120_000 * hours,
    },
    ...(video.edge === 'videos'
      ? {
          ...{ total_video_views: 20 * hours, total_video_complete_views: 5 * hours },
          total_video_retention_graph: graph,
        }
      : {
          ...{ fb_reels_total_plays: 30 * hours, blue_reels_play_count: 25 * hours },
          post_video_retention_graph: graph,
        }),
  };
  const metrics = metricsIn(state, request, Object.keys(values));
  return ok({ data: mayRead(scopes) ? metrics.map((name) => reported(id, name, 'lifetime', values[name])) : [] });
};

const dayMs = 24 * hourMs;

/** Days end at midnight of California: 8:00 UTC in winter. */
const lastEnd = (now: number): number => Math.floor((now - 8 * hourMs) / dayMs) * dayMs + 8 * hourMs;

const pageMetrics: Readonly<Record<string, (day: number) => unknown>> = {
  page_media_view: (day) => 1_000 + day,
  page_views_total: (day) => 100 + day,
  page_total_actions: (day) => 10 + day,
  page_video_views: () => 50,
  page_video_view_time: () => 60_000,
  page_follows_country: () => ({ DE: 800, US: 100 }),
  page_follows_city: () => ({ 'Berlin, Germany': 300 }),
};

export const pageInsights = (state: State, request: Request, page: string): Answer => {
  const { scopes } = pageOf(state, request, page, 'pages_read_engagement');
  const { params } = request;
  paramsAre(params, ['since', 'until'], ['metric', 'period']);
  if (params.period !== 'day') throw invalid('period must be day');
  const [since, until] = ['since', 'until'].map((name) => (whole(params[name], name, 0, 1e11) ?? 0) * 1_000);
  if (since === undefined || until === undefined || until - since > 90 * dayMs) throw invalid('since and until');
  const metrics = metricsIn(state, request, Object.keys(pageMetrics));
  const ends: number[] = [];
  for (let at = lastEnd(Math.min(until, state.now())); at > since; at -= dayMs) ends.unshift(at);
  const data = metrics.map((name) => ({
    ...{ name, period: 'day', title: name, description: name, id: `${page}/insights/${name}/day` },
    values: ends.map((end, day) => ({
      value: pageMetrics[name]?.(day),
      end_time: new Date(end).toISOString().replace('.000Z', '+0000'),
    })),
  }));
  return ok({ data: mayRead(scopes) ? data : [] });
};
