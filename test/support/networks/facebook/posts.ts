import { type Answer, badUpload, invalid, Refusal, refuse } from './answer.ts';
import { accessOf, chosen, pageOf, pageOfList, paramsAre, type Request, whole } from './request.ts';
import type { Edge, Made, Photo, State, Video } from './state.ts';

/** "Page Feed", "Page Photos", "Page Videos", "Page Video Reels", "Page Stories", "Object Comments", "Video Thumbnails". */

const minuteMs = 60_000;
const dayMs = 86_400_000;

const ok = (body: unknown): Answer => ({ status: 200, body });
const isTrue = (text: string | undefined): boolean => text === 'true' || text === '1';
const isFalse = (text: string | undefined): boolean => text === 'false' || text === '0';

/** Milliseconds since the epoch. @throws Refusal it is not in the window */
const dueOf = (state: State, text: string, maxDays: number): number => {
  const at = (whole(text, 'scheduled_publish_time', 0, 1e11) ?? 0) * 1_000;
  const ahead = at - state.now();
  if (ahead < 10 * minuteMs - 1_000 || ahead > maxDays * dayMs) {
    throw invalid('The specified scheduled publish time is invalid.');
  }
  return at;
};

const made = (
  state: State,
  pageId: string,
  request: Request,
  over: Pick<Made, 'kind' | 'text' | 'link' | 'files' | 'publishAt'>,
): Made => {
  const fate = state.fateOf(over.text);
  const now = state.now();
  const isOfVideo = over.files.some(({ kind }) => kind === 'video');
  const then = fate?.then ?? 'shown';
  const isEnd = then === 'shown' || then === 'refused' || then === 'draft';
  const one: Made = {
    ...over,
    ...{ id: state.id(), pageId, tag: request.tag, calledAt: now, params: request.params },
    ...{ isNever: then === 'native_never', isFailing: then === 'native_failed' },
    ...(then === 'native_early' ? { publishAt: now + (fate?.ms ?? 0) } : {}),
    processedAt: isOfVideo && isEnd ? now + (fate?.ms ?? 0) : now,
    end: isOfVideo && isEnd ? then : 'shown',
  };
  state.made.push(one);
  return one;
};

/** Photos that `attached_media` names. */
const attachedOf = (state: State, pageId: string, text: string | undefined, isScheduled: boolean): readonly Photo[] => {
  if (text === undefined) return [];
  let named: unknown;
  try {
    named = JSON.parse(text);
  } catch {
    throw invalid('attached_media must be an array');
  }
  if (!Array.isArray(named) || named.length === 0) throw invalid('attached_media must be an array');
  return named.map((one: { readonly media_fbid?: unknown }) => {
    if (Object.keys(one).join() !== 'media_fbid') throw invalid('attached_media has unknown members');
    const photo = state.photos.get(String(one.media_fbid));
    if (photo?.pageId !== pageId) throw refuse('object_missing');
    if (photo.isUsed) throw refuse('photos_posted');
    if (photo.isTemporary !== isScheduled) throw invalid('temporary goes with scheduled posts');
    photo.isUsed = true;
    return photo;
  });
};

export const postFeed = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_manage_posts', 'pages_read_engagement');
  const { params } = request;
  const scheduling = ['published', 'scheduled_publish_time', 'unpublished_content_type'];
  paramsAre(params, ['message', 'link', 'attached_media', 'place', 'tags', 'fields', ...scheduling]);
  const { message = '', link = null, scheduled_publish_time: due } = params;
  if (message.length > 63_206) throw invalid('Param message is too long');
  if (link !== null && !URL.canParse(link)) throw refuse('link_refused');
  const isScheduled = due !== undefined;
  if (isScheduled && (!isFalse(params.published) || params.unpublished_content_type !== 'SCHEDULED')) {
    throw invalid('A scheduled post is not published, of the type SCHEDULED');
  }
  if (!isScheduled && isFalse(params.published)) throw invalid('A draft is no post of ours');
  const publishAt = isScheduled ? dueOf(state, due, 75) : state.now();
  const files = attachedOf(state, page, params.attached_media, isScheduled);
  if (message === '' && link === null && files.length === 0) throw invalid('The post has no content');
  const isDouble = state.made.some(
    (one) => one.pageId === page && one.text === message && files.length === 0 && state.now() - one.calledAt < 5_000,
  );
  if (isDouble && message !== '' && state.fateOf(message) === null && link === null) throw refuse('duplicate');
  const one = made(state, page, request, { kind: 'post', text: message, link, files, publishAt });
  return ok({ id: state.idOf(one) });
};

export const postPhoto = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_manage_posts', 'pages_read_engagement');
  const { params, file } = request;
  paramsAre(params, ['published', 'temporary', 'alt_text_custom', 'caption', 'message', 'no_story']);
  if (file?.name !== 'source' || file.bytes === 0) throw refuse('file_missing');
  if (file.bytes > 4_000_000) throw refuse('photo_unreadable');
  if (!isFalse(params.published)) throw invalid('Our posts name photos that are not published');
  const photo: Photo = {
    ...{ kind: 'photo', id: state.id(), pageId: page, bytes: file.bytes, isUsed: false },
    ...{ altText: params.alt_text_custom ?? null, isTemporary: isTrue(params.temporary) },
  };
  state.photos.set(photo.id, photo);
  return ok({ id: photo.id });
};

export const postPhotoStory = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_manage_posts', 'pages_read_engagement');
  paramsAre(request.params, [], ['photo_id']);
  const photo = state.photos.get(request.params.photo_id ?? '');
  if (photo?.pageId !== page) throw refuse('object_missing');
  if (photo.isUsed) throw refuse('photos_posted');
  photo.isUsed = true;
  const one = made(state, page, request, {
    ...{ kind: 'story', text: '', link: null, files: [photo], publishAt: state.now() },
  });
  return ok({ success: true, post_id: one.id });
};

const started = (state: State, pageId: string, edge: Edge, size: number | null): Video => {
  const video: Video = {
    ...{
      kind: 'video',
      id: state.id(),
      pageId,
      edge,
      session: state.id(),
      size,
      got: 0,
      made: null,
      startedAt: state.now(),
    },
    thumbnails: [],
  };
  state.videos.set(video.id, video);
  return video;
};

const nextPart = (state: State, { got, size }: Video) => ({
  start_offset: String(got),
  end_offset: String(Math.min(got + state.partBytes, size ?? got)),
});

const ofSession = (state: State, page: string, session: string | undefined): Video => {
  const video = [...state.videos.values()].find((one) => one.session === session && one.pageId === page);
  if (video === undefined || video.made !== null) throw refuse('object_missing');
  return video;
};

const finishParams = ['description', 'title', 'is_ai_generated', 'scheduled_publish_time'];

/** One edge, three phases, where each answer says which bytes come next. */
export const postVideo = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_manage_posts', 'pages_read_engagement', 'pages_show_list');
  const { params, file } = request;
  const { upload_phase: phase, ...others } = params;
  if (phase === 'start') {
    paramsAre(others, [], ['file_size']);
    const video = started(state, page, 'videos', whole(others.file_size, 'file_size', 1, 1e11));
    return ok({ upload_session_id: video.session, video_id: video.id, ...nextPart(state, video) });
  }
  if (phase === 'transfer') {
    paramsAre(others, [], ['upload_session_id', 'start_offset']);
    const video = ofSession(state, page, others.upload_session_id);
    const next = nextPart(state, video);
    if (others.start_offset !== next.start_offset || file?.name !== 'video_file_chunk') {
      const error = { message: 'Invalid offset', type: 'OAuthException', code: 6001, error_subcode: 1363037 };
      throw new Refusal({ status: 400, body: { error: { ...error, error_data: next } } });
    }
    if (file.bytes !== Number(next.end_offset) - video.got) throw invalid('The part has another size');
    video.got += file.bytes;
    return ok(nextPart(state, video));
  }
  if (phase !== 'finish') throw invalid('upload_phase must be start, transfer or finish');
  paramsAre(others, [...finishParams, 'published', 'unpublished_content_type'], ['upload_session_id']);
  if (file !== null && file.name !== 'thumb') throw invalid(`Unknown file ${file.name}`);
  const video = ofSession(state, page, others.upload_session_id);
  if (video.got !== video.size) throw invalid('The video is not whole');
  const due = others.scheduled_publish_time;
  if ((due !== undefined) !== isFalse(others.published)) throw invalid('A scheduled video is not published');
  if (file !== null) video.thumbnails.push(file.sha256);
  const publishAt = due === undefined ? state.now() : dueOf(state, due, 180);
  const text = others.description ?? '';
  video.made = made(state, page, request, { kind: 'post', text, link: null, files: [video], publishAt });
  return ok({ success: true });
};

const postByPhases =
  (edge: 'video_reels' | 'video_stories') =>
  (state: State, request: Request, page: string, origin = ''): Answer => {
    pageOf(state, request, page, 'pages_manage_posts', 'pages_read_engagement', 'pages_show_list');
    const { upload_phase: phase, ...others } = request.params;
    if (phase === 'start') {
      paramsAre(others, []);
      const video = started(state, page, edge, null);
      return ok({ video_id: video.id, upload_url: `${origin}/rupload/video-upload/${state.version}/${video.id}` });
    }
    if (phase !== 'finish') throw new Refusal({ status: 400, body: refuse('fetch_failed').answer.body });
    const isReel = edge === 'video_reels';
    paramsAre(others, isReel ? [...finishParams, 'place'] : ['is_ai_generated'], [
      'video_id',
      ...(isReel ? ['video_state'] : []),
    ]);
    const video = state.videos.get(others.video_id ?? '');
    if (video?.pageId !== page || video.edge !== edge) throw refuse('object_missing');
    if (video.made !== null) throw invalid('The video is published already');
    if (video.size === null || video.got !== video.size) throw refuse('fetch_failed');
    const due = others.scheduled_publish_time;
    if (isReel && (due !== undefined) !== (others.video_state === 'SCHEDULED')) throw invalid('video_state');
    const publishAt = due === undefined ? state.now() : dueOf(state, due, 29);
    const text = others.description ?? '';
    const kind = isReel ? 'post' : 'story';
    video.made = made(state, page, request, { kind, text, link: null, files: [video], publishAt });
    return ok(isReel ? { success: true } : { success: true, post_id: video.made.id });
  };

export const postReel = postByPhases('video_reels');
export const postVideoStory = postByPhases('video_stories');

/** rupload.facebook.com: the bytes of a file from an offset on. */
export const takeBytes = (state: State, request: Request, id: string): Answer => {
  const { pageId } = accessOf(state, request, 'pages_manage_posts');
  const video = state.videos.get(id);
  if (video === undefined || video.pageId !== pageId) throw badUpload('NotFoundError', 'There is no such upload');
  const [offset, size] = [Number(request.headers.offset), Number(request.headers.file_size)];
  if (!(size > 0) || offset !== video.got) throw badUpload('OffsetInvalidError', 'The offset is another one', true);
  video.size = size;
  video.got += request.bytes;
  if (video.got !== size)
    throw badUpload('PartialRequestError', 'Partial request (did not match length of file)', true);
  return ok({ success: true });
};

export const postThumbnail = (state: State, request: Request, id: string): Answer => {
  const video = state.videos.get(id);
  if (video === undefined) throw refuse('object_missing');
  pageOf(state, request, video.pageId, 'pages_manage_posts');
  paramsAre(request.params, ['is_preferred']);
  if (state.coverless.has(video.pageId)) throw refuse('no_permission_for_video');
  if (request.file?.name !== 'source') throw refuse('file_missing');
  if (isTrue(request.params.is_preferred)) video.thumbnails.splice(0, video.thumbnails.length, request.file.sha256);
  return ok({ success: true });
};

export const postComment = (state: State, request: Request, id: string): Answer => {
  const one = state.find(id);
  if (one === null || !state.isOut(one) || one.kind === 'story') throw refuse('object_missing');
  pageOf(state, request, one.pageId, 'pages_manage_engagement');
  paramsAre(request.params, ['attachment_url'], ['message']);
  const { message = '' } = request.params;
  if (message.length > 8_000) throw invalid('Param message is too long');
  const comment = { id: `${one.id}_${state.id()}`, postId: id, tag: request.tag, text: message };
  state.comments.push(comment);
  return ok({ id: comment.id });
};

const timeOf = (ms: number): string => new Date(Math.floor(ms / 1_000) * 1_000).toISOString().replace('.000Z', '+0000');

const attachmentsOf = ({ files, link }: Made): object | undefined => {
  const all = files.map(({ id, kind }) => ({ media_type: kind, target: { id } }));
  if (all.length === 0) return link === null ? undefined : { data: [{ media_type: 'link', target: { url: link } }] };
  if (all.length === 1) return { data: all };
  return { data: [{ media_type: 'album', target: { id: files[0]?.id }, subattachments: { data: all } }] };
};

/** A post as its node shows it. */
export const shownPost = (state: State, one: Made): Readonly<Record<string, unknown>> => {
  const isOut = state.isOut(one);
  const due = one.publishAt ?? one.calledAt;
  const hasNoTime = one.publishAt === null || (one.isFailing && one.publishAt <= state.now());
  const hours = Math.floor((state.now() - due) / 3_600_000);
  return {
    ...{ id: state.idOf(one), message: one.text === '' ? undefined : one.text, is_published: isOut },
    created_time: timeOf(isOut ? due : one.calledAt),
    scheduled_publish_time: isOut || hasNoTime || due === one.calledAt ? undefined : Math.floor(due / 1_000),
    permalink_url: `https://www.facebook.com/${one.pageId}/posts/${one.id}`,
    attachments: attachmentsOf(one),
    shares: hours > 0 ? { count: hours } : undefined,
    reactions: { data: [], summary: { total_count: 7 * hours } },
    comments: { data: [], summary: { order: 'ranked', total_count: hours, can_comment: true } },
  };
};

/** "Reels Publishing", "Get the status of a video". */
export const shownVideo = (state: State, video: Video): Readonly<Record<string, unknown>> => {
  const { made: one, got, size } = video;
  const isWhole = size !== null && got === size;
  const isLooking = one !== null && one.processedAt > state.now();
  const isBroken = one !== null && !isLooking && one.end === 'refused';
  const isFailed = one?.isFailing === true && (one.publishAt ?? 0) <= state.now();
  const isOut = one !== null && state.isOut(one);
  const isDraft = one !== null && !isLooking && one.end === 'draft';
  const state3 = isBroken || isFailed ? 'error' : !isWhole ? 'upload_complete' : isLooking ? 'processing' : 'ready';
  const error = { error: { message: 'Resolution too low. Video must have a minimum resolution of 540p.' } };
  const due = one?.publishAt ?? null;
  return {
    id: video.id,
    status: {
      video_status: state3,
      uploading_phase: {
        status: isWhole ? 'complete' : got > 0 ? 'in_progress' : 'not_started',
        bytes_transfered: got,
      },
      processing_phase: isBroken
        ? { status: 'error', ...error }
        : { status: isLooking ? 'in_progress' : isWhole ? 'complete' : 'not_started' },
      publishing_phase: isOut
        ? { status: 'complete', publish_status: 'published', publish_time: timeOf(due ?? 0) }
        : isDraft
          ? { status: 'complete', publish_status: 'draft' }
          : { status: isFailed ? 'error' : 'not_started' },
    },
    ...{ published: isOut, description: one?.text },
    created_time: timeOf(video.startedAt),
    scheduled_publish_time:
      !isOut && !isFailed && one !== null && due !== null && due > one.calledAt ? timeOf(due) : undefined,
    permalink_url: isOut ? `/reel/${video.id}/` : undefined,
    post_id: isOut ? one?.id : undefined,
  };
};

const listParams = ['fields', 'since', 'until', 'limit', 'after'];

const between = ({ params }: Request, at: number): boolean =>
  at >= (whole(params.since, 'since', 0, 1e11) ?? 0) * 1_000 &&
  at <= (whole(params.until, 'until', 0, 1e11) ?? 1e11) * 1_000;

const origin = 'https://graph.facebook.com';

export const publishedPosts = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_read_engagement');
  paramsAre(request.params, listParams);
  const own = state.made.filter((one) => one.pageId === page && one.kind === 'post' && state.isOut(one));
  const all = own
    .filter((one) => between(request, one.publishAt ?? 0))
    .toSorted((a, b) => (b.publishAt ?? 0) - (a.publishAt ?? 0) || (b.id > a.id ? 1 : -1))
    .map((one) => chosen(request.params.fields, shownPost(state, one)));
  return ok(pageOfList(state, request, all, origin));
};

export const scheduledPosts = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_read_engagement');
  paramsAre(request.params, ['fields', 'limit', 'after']);
  const all = state.made
    .filter((one) => one.pageId === page && one.kind === 'post' && !state.isOut(one) && !state.deleted.has(one.id))
    .filter((one) => one.files.every(({ kind }) => kind === 'photo'))
    .map((one) => chosen(request.params.fields, shownPost(state, one)));
  return ok(pageOfList(state, request, all, origin));
};

export const stories = (state: State, request: Request, page: string): Answer => {
  pageOf(state, request, page, 'pages_read_engagement');
  paramsAre(request.params, [...listParams, 'status']);
  const all = state.made
    .filter((one) => one.pageId === page && one.kind === 'story' && state.isOut(one) && between(request, one.calledAt))
    .toReversed()
    .map((one) => ({
      ...{ post_id: one.id, status: 'PUBLISHED', creation_time: String(Math.floor(one.calledAt / 1_000)) },
      ...{ media_type: one.files[0]?.kind, media_id: one.files[0]?.id, url: `https://facebook.com/stories/${one.id}` },
    }));
  return ok(pageOfList(state, request, all, origin));
};

/** "Page Post: Updating", "Video: Updating": the time of a post that is not out, and its words. */
export const changePost = (state: State, request: Request, id: string): Answer => {
  const one = state.find(id) ?? state.videos.get(id)?.made ?? null;
  if (one === null || state.deleted.has(one.id)) throw refuse('object_missing');
  pageOf(state, request, one.pageId, 'pages_manage_posts');
  const isVideo = one.files[0]?.kind === 'video';
  const words = isVideo ? 'description' : 'message';
  paramsAre(request.params, ['scheduled_publish_time', words]);
  const { scheduled_publish_time: due, [words]: text } = request.params;
  if (due === undefined && text === undefined) throw invalid('Nothing is to be changed');
  if (text !== undefined && text.length > 63_206) throw invalid(`Param ${words} is too long`);
  if (due !== undefined && state.isOut(one)) throw invalid('You can not change the time of a published post');
  if (due !== undefined) one.publishAt = dueOf(state, due, isVideo ? 29 : 75);
  if (text !== undefined) one.text = text;
  return ok({ success: true });
};

export const deletePost = (state: State, request: Request, id: string): Answer => {
  const one = state.find(id) ?? state.videos.get(id)?.made ?? null;
  if (one === null || state.deleted.has(one.id)) throw refuse('object_missing');
  pageOf(state, request, one.pageId, 'pages_manage_posts');
  paramsAre(request.params, []);
  state.deleted.add(one.id);
  return ok({ success: true });
};
