import { type Answer, invalid, refuse } from './answer.ts';
import {
  accessOf,
  changes,
  jsonOf,
  manage,
  onlyHeaders,
  partsOf,
  queryOf,
  type Request,
  reads,
  resourceIn,
  tagOf,
} from './request.ts';
import type { Resource, State, Video } from './state.ts';

/** developers.google.com/youtube: "Videos", "Channels", "PlaylistItems", "CommentThreads", "VideoCategories". */

export const categories: Readonly<Record<string, { readonly title: string; readonly assignable: boolean }>> = {
  '1': { title: 'Film & Animation', assignable: true },
  '2': { title: 'Autos & Vehicles', assignable: true },
  '10': { title: 'Music', assignable: true },
  '18': { title: 'Short Movies', assignable: false },
  '20': { title: 'Gaming', assignable: true },
  '22': { title: 'People & Blogs', assignable: true },
  '24': { title: 'Entertainment', assignable: true },
  '27': { title: 'Education', assignable: true },
  '28': { title: 'Science & Technology', assignable: true },
  '44': { title: 'Trailers', assignable: false },
};

const only = (value: Readonly<Record<string, unknown>> | undefined, ...names: readonly string[]) => {
  for (const name of Object.keys(value ?? {})) {
    if (!names.includes(name)) throw invalid(`${name} cannot be set`);
  }
  return value ?? {};
};

const flag = (value: unknown, name: string): void => {
  if (value !== undefined && typeof value !== 'boolean') throw invalid(`${name} is no boolean`);
};

/** A tag with a space counts two more, and the commas between them count. */
const lengthOf = (tags: readonly string[]): number =>
  tags.reduce((sum, one) => sum + [...one].length + (one.includes(' ') ? 2 : 0), Math.max(tags.length - 1, 0));

const checkedStatus = (state: State, given: Readonly<Record<string, unknown>> | undefined): void => {
  const status = only(
    given,
    ...['privacyStatus', 'publishAt', 'license', 'embeddable', 'publicStatsViewable', 'selfDeclaredMadeForKids'],
    'containsSyntheticMedia',
  );
  for (const name of ['embeddable', 'publicStatsViewable', 'selfDeclaredMadeForKids', 'containsSyntheticMedia']) {
    flag(status[name], name);
  }
  const { privacyStatus = 'public', publishAt, license = 'youtube' } = status;
  if (!['public', 'unlisted', 'private'].includes(String(privacyStatus))) throw refuse('forbidden_privacy');
  if (!['youtube', 'creativeCommon'].includes(String(license))) throw invalid('license');
  if (publishAt === undefined) return;
  const at = Date.parse(String(publishAt));
  if (privacyStatus !== 'private' || Number.isNaN(at)) throw refuse('invalid_publish_at');
  if (at > state.now() + 2 * 365 * 86_400_000) throw refuse('invalid_publish_at');
};

const checkedSnippet = (given: Readonly<Record<string, unknown>> | undefined): void => {
  const snippet = only(given, 'title', 'description', 'tags', 'categoryId', 'defaultLanguage');
  const { title, description = '', tags = [], categoryId } = snippet;
  if (typeof title !== 'string' || title === '' || [...title].length > 100 || /[<>]/.test(title)) {
    throw refuse('invalid_title');
  }
  if (typeof description !== 'string' || Buffer.byteLength(description) > 5_000 || /[<>]/.test(description)) {
    throw refuse('invalid_description');
  }
  if (!Array.isArray(tags) || tags.some((one) => typeof one !== 'string') || lengthOf(tags) > 500) {
    throw refuse('invalid_tags');
  }
  if (categoryId !== undefined && categories[String(categoryId)]?.assignable !== true) throw refuse('invalid_category');
};

/** @throws Refusal of the words of a new video */
export const checkedResource = (state: State, { snippet, status }: Resource): void => {
  checkedSnippet(snippet);
  checkedStatus(state, status);
};

const iso = (at: number): string => `${new Date(at).toISOString().slice(0, 19)}Z`;

/** When people see it. */
const publishedAt = (state: State, { at, visibleAt }: Video): number =>
  visibleAt !== null && visibleAt <= state.now() ? visibleAt : at;

const statusOf = (state: State, video: Video): Readonly<Record<string, unknown>> => {
  const now = state.now();
  const { publishAt, ...status } = video.status;
  const isOut = video.visibleAt !== null && video.visibleAt <= now;
  const hasFailed = video.failsAt !== null && video.failsAt <= now;
  const uploadStatus = hasFailed ? 'failed' : now < video.processedAt ? 'uploaded' : video.ends;
  return {
    ...{ uploadStatus, license: 'youtube', embeddable: true, publicStatsViewable: true, ...status },
    privacyStatus: isOut ? 'public' : (status.privacyStatus ?? 'public'),
    ...(publishAt === undefined || isOut ? {} : { publishAt }),
    ...(uploadStatus === 'rejected' ? { rejectionReason: video.reason } : {}),
    ...(hasFailed ? { failureReason: 'conversion' } : {}),
  };
};

/** Nobody has seen it for the first second. */
const viewsOf = (state: State, { at }: Video): number => Math.floor((state.now() - at) / 1_000);

export const shown = (state: State, video: Video, parts: readonly string[]): Readonly<Record<string, unknown>> => {
  const now = state.now();
  const channel = state.channels.get(video.channelId);
  const snippet = {
    // YouTube writes the milliseconds of a time that it was given.
    publishedAt: new Date(publishedAt(state, video)).toISOString(),
    ...{
      channelId: video.channelId,
      description: '',
      categoryId: '22',
      ...video.snippet,
      channelTitle: channel?.title,
    },
  };
  const isDone = now >= video.processedAt;
  const processingDetails = {
    processingStatus: isDone ? 'succeeded' : 'processing',
    ...(isDone ? {} : { processingProgress: { timeLeftMs: String(video.processedAt - now) } }),
  };
  const views = viewsOf(state, video);
  const counts = { viewCount: views, likeCount: Math.floor(views / 10), commentCount: Math.floor(views / 100) };
  const statistics = Object.fromEntries(Object.entries(counts).map(([name, value]) => [name, String(value)]));
  const all = { snippet, status: statusOf(state, video), processingDetails, statistics };
  return {
    ...{ kind: 'youtube#video', etag: 'e', id: video.id },
    ...Object.fromEntries(Object.entries(all).filter(([name]) => parts.includes(name))),
  };
};

const listed = (kind: string, items: readonly unknown[], more: object = {}): Answer => ({
  status: 200,
  body: { kind: `youtube#${kind}`, etag: 'e', items, ...more },
});

const read = (state: State, request: Request): string => {
  onlyHeaders(request);
  const { channelId } = accessOf(state, request, reads);
  if (!state.takes('units', 1)) throw refuse('quota');
  return channelId;
};

export const listVideos = (state: State, request: Request): Answer => {
  const channelId = read(state, request);
  const { part, id = '' } = queryOf(request, 'part', 'id', 'maxResults?');
  const parts = partsOf(part, 'id', 'snippet', 'status', 'processingDetails', 'statistics');
  const ids = id.split(',');
  if (ids.length > 50) throw invalid('id has at most 50');
  const found = ids.flatMap((one) => state.video(one) ?? []);
  // Private videos, and what is processed, are the owner's to see.
  return listed(
    'videoListResponse',
    found.filter((one) => one.channelId === channelId).map((one) => shown(state, one, parts)),
    { pageInfo: { totalResults: found.length, resultsPerPage: found.length } },
  );
};

/** What a part leaves out falls back to its default. A time that is over publishes at once. */
export const updateVideo = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  const { channelId } = accessOf(state, request, changes);
  const { part } = queryOf(request, 'part');
  if (!state.takes('units', 50)) throw refuse('quota');
  const parts = partsOf(part, 'snippet', 'status');
  const body = jsonOf(request);
  const { snippet, status } = resourceIn(body, parts);
  const video = state.video(String(body.id));
  if (video === null) throw refuse('not_found');
  if (video.channelId !== channelId) throw refuse('forbidden');
  // "snippet.title and snippet.categoryId are required when the request updates the snippet".
  if (parts.includes('snippet')) {
    if (snippet?.categoryId === undefined) throw refuse('invalid_category');
    checkedSnippet(snippet);
  }
  if (!parts.includes('status')) {
    video.snippet = snippet ?? {};
    return { status: 200, body: shown(state, video, parts) };
  }
  checkedStatus(state, status);
  const isOut = video.visibleAt !== null && video.visibleAt <= state.now();
  // "publishAt … can only be set if the privacy status of the video is private", and was never published.
  if (isOut && status?.publishAt !== undefined) throw refuse('invalid_publish_at');
  if (snippet !== undefined) video.snippet = snippet;
  video.status = status ?? {};
  video.visibleAt = typeof status?.publishAt === 'string' ? Date.parse(status.publishAt) : null;
  return { status: 200, body: shown(state, video, parts) };
};

export const deleteVideo = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  const { channelId } = accessOf(state, request, changes);
  const { id = '' } = queryOf(request, 'id');
  if (!state.takes('units', 50)) throw refuse('quota');
  const video = state.video(id);
  if (video === null) throw refuse('not_found');
  if (video.channelId !== channelId) throw refuse('forbidden');
  state.deleted.add(id);
  return { status: 204 };
};

export const listChannels = (state: State, request: Request): Answer => {
  const own = read(state, request);
  const { part, mine, id } = queryOf(request, 'part', 'mine?', 'id?');
  const parts = partsOf(part, 'id', 'snippet', 'contentDetails', 'statistics', 'status');
  if ((mine === 'true') === (id !== undefined)) throw invalid('mine or id');
  const channel = state.channels.get(id ?? own);
  if (channel === undefined) {
    if (mine !== undefined) throw refuse('no_channel');
    return listed('channelListResponse', []);
  }
  const { title, handle, country, subscribers } = channel;
  const url = `https://yt3.ggpht.com/${channel.id}`;
  const all = {
    snippet: {
      ...{ title, description: '', customUrl: `@${handle}`, publishedAt: '2020-01-01T00:00:00Z' },
      thumbnails: { default: { url, width: 88, height: 88 } },
      ...(country === null ? {} : { country }),
    },
    contentDetails: { relatedPlaylists: { likes: '', uploads: `UU${channel.id.slice(2)}` } },
    statistics: { subscriberCount: String(Number(subscribers.toPrecision(3))), hiddenSubscriberCount: false },
    status: { privacyStatus: 'public', longUploadsStatus: 'allowed' },
  };
  const shownParts = Object.fromEntries(Object.entries(all).filter(([name]) => parts.includes(name)));
  return listed('channelListResponse', [{ kind: 'youtube#channel', etag: 'e', id: channel.id, ...shownParts }]);
};

/** Newest first. The owner sees private videos and those that are processed too. */
export const listPlaylist = (state: State, request: Request): Answer => {
  const channelId = read(state, request);
  const asked = queryOf(request, 'part', 'playlistId', 'maxResults', 'pageToken?');
  const parts = partsOf(asked.part, 'id', 'snippet', 'contentDetails', 'status');
  if (asked.playlistId !== `UU${channelId.slice(2)}`) throw refuse('forbidden');
  const most = Number(asked.maxResults);
  if (!(most >= 1 && most <= 50)) throw invalid('maxResults is 1 to 50');
  const own = state.videos.filter((one) => one.channelId === channelId && !state.deleted.has(one.id)).toReversed();
  const from = Number(asked.pageToken ?? '0');
  const items = own.slice(from, from + most).map((video) => {
    const { title, description = '' } = video.snippet;
    const all = {
      snippet: { publishedAt: iso(video.at), channelId, title, description, playlistId: asked.playlistId },
      contentDetails: { videoId: video.id, videoPublishedAt: iso(publishedAt(state, video)) },
      status: { privacyStatus: statusOf(state, video).privacyStatus },
    };
    const shownParts = Object.fromEntries(Object.entries(all).filter(([name]) => parts.includes(name)));
    return { kind: 'youtube#playlistItem', etag: 'e', id: `UU.${video.id}`, ...shownParts };
  });
  const more = from + most < own.length ? { nextPageToken: String(from + most) } : {};
  return listed('playlistItemListResponse', items, more);
};

export const listCategories = (state: State, request: Request): Answer => {
  read(state, request);
  const { part, regionCode = '' } = queryOf(request, 'part', 'regionCode');
  partsOf(part, 'snippet');
  if (!/^[A-Z]{2}$/.test(regionCode)) throw invalid('regionCode');
  const items = Object.entries(categories).map(([id, one]) => ({
    ...{ kind: 'youtube#videoCategory', etag: 'e', id, snippet: { ...one, channelId: 'UCBR8-60-B28hp2BmDPdntcQ' } },
  }));
  return listed('videoCategoryListResponse', items);
};

export const createComment = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  accessOf(state, request, [manage]);
  const { part } = queryOf(request, 'part');
  if (!state.takes('units', 50)) throw refuse('quota');
  const { snippet = {} } = resourceIn(jsonOf(request), partsOf(part, 'snippet'));
  const { channelId, videoId, topLevelComment } = only(snippet, 'channelId', 'videoId', 'topLevelComment');
  const text = (topLevelComment as { snippet?: { textOriginal?: unknown } } | undefined)?.snippet?.textOriginal;
  if (typeof text !== 'string' || text === '') throw invalid('commentTextRequired');
  if ([...text].length > 10_000) throw refuse('comment_too_long');
  const video = state.video(String(videoId));
  if (video === null) throw refuse('not_found');
  if (video.channelId !== channelId) throw invalid('channelId is of another channel');
  const status = statusOf(state, video);
  if (status.privacyStatus === 'private' || status.selfDeclaredMadeForKids === true) throw refuse('comments_disabled');
  const id = `Ug${state.id(24)}`;
  state.comments.push({ id, videoId: video.id, text, tag: tagOf(request) });
  const top = { kind: 'youtube#comment', etag: 'e', id, snippet: { textOriginal: text, textDisplay: text } };
  return {
    status: 200,
    body: { kind: 'youtube#commentThread', etag: 'e', id, snippet: { channelId, videoId, topLevelComment: top } },
  };
};
