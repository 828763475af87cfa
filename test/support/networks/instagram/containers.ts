import { type Answer, invalid, refuse } from './answer.ts';
import { accessOf, chosen, paramsAre, type Request } from './request.ts';
import type { Container, Fetched, Host, Media, State, Type } from './state.ts';

/** Containers and what is made of them ("IG User Media", "IG Container", "IG User Media Publish"; changelogs of 2026). */

const dayMs = 86_400_000;

/** What each kind of container takes, beside the parameters of its file. */
const ofKind: Readonly<Record<'picture' | 'reel' | 'story' | 'item' | 'carousel', readonly string[]>> = {
  picture: ['caption', 'location_id', 'user_tags', 'collaborators', 'alt_text', 'is_ai_generated', 'product_tags'],
  reel: [
    ...['caption', 'location_id', 'user_tags', 'collaborators', 'share_to_feed', 'cover_url', 'thumb_offset'],
    ...['audio_name', 'trial_params', 'is_ai_generated', 'product_tags'],
  ],
  story: ['user_tags', 'is_ai_generated'],
  item: ['is_carousel_item', 'alt_text', 'user_tags', 'product_tags'],
  carousel: ['children', 'caption', 'location_id', 'collaborators', 'is_ai_generated'],
};
/** Since 2026-04-22, with Facebook Login alone. */
const partnership = ['is_paid_partnership', 'branded_content_sponsor_ids'];

const kindOf = ({ media_type: type, is_carousel_item: item }: Request['params']): keyof typeof ofKind => {
  if (item !== undefined) {
    if (item !== 'true') throw invalid('Param is_carousel_item must be true');
    if (type !== undefined && type !== 'VIDEO') throw refuse('carousel_size');
    return 'item';
  }
  if (type === undefined) return 'picture';
  if (type === 'REELS') return 'reel';
  if (type === 'STORIES') return 'story';
  if (type === 'CAROUSEL') return 'carousel';
  // Since 2023-07 a video of the feed is a reel.
  throw invalid('Param media_type must be one of {CAROUSEL, REELS, STORIES}');
};

const listIn = (text: string | undefined, name: string): readonly unknown[] => {
  if (text === undefined) return [];
  try {
    const list: unknown = JSON.parse(text);
    if (Array.isArray(list)) return list;
  } catch {}
  throw invalid(`Param ${name} must be an array`);
};

const isUsername = (state: State, name: unknown): boolean =>
  typeof name === 'string' && /^[\w.]{1,30}$/.test(name) && !state.unknownNames.has(name);

const isPart = (at: unknown): boolean => typeof at === 'number' && at >= 0 && at <= 1;

const checkPeople = (state: State, params: Request['params'], kind: keyof typeof ofKind): void => {
  const collaborators = listIn(params.collaborators, 'collaborators');
  if (collaborators.length > 3) throw invalid('Param collaborators takes up to 3');
  if (!collaborators.every((one) => isUsername(state, one))) throw refuse('collaborator_invalid');
  const tags = listIn(params.user_tags, 'user_tags');
  if (tags.length > 20) throw invalid('Too many tags');
  for (const tag of tags) {
    const { username, x, y, ...others } = tag as Record<string, unknown>;
    if (!isUsername(state, username) || Object.keys(others).length > 0) throw refuse('collaborator_invalid');
    const hasPlace = x !== undefined || y !== undefined;
    if (kind === 'reel' && hasPlace) throw invalid('Params x and y do not go with a reel');
    if (kind !== 'reel' && kind !== 'story' && !hasPlace) throw invalid('Params x and y are required');
    if (hasPlace && !(isPart(x) && isPart(y))) throw invalid('Params x and y are from 0 to 1');
  }
};

const checkWords = (params: Request['params']): void => {
  const { caption = '', alt_text: alt = '', location_id: place, thumb_offset: offset } = params;
  const found = (pattern: RegExp): number => (caption.match(pattern) ?? []).length;
  if ([...caption].length > 2_200 || found(/#[\p{L}\d_]+/gu) > 30 || found(/@[\w.]+/g) > 20)
    throw refuse('caption_too_long');
  if ([...alt].length > 1_000) throw invalid('Param alt_text must be at most 1000 characters long');
  if (place !== undefined && !/^\d+$/.test(place)) throw invalid('INSTAGRAM_PLATFORM_API__INVALID_LOCATION_ID');
  if (offset !== undefined && !/^\d{1,7}$/.test(offset)) throw refuse('thumb_offset');
  for (const name of ['share_to_feed', 'is_ai_generated', 'is_paid_partnership']) {
    const value = params[name];
    if (value !== undefined && value !== 'true' && value !== 'false') throw invalid(`Param ${name} must be a boolean`);
  }
};

const checkParams = (state: State, host: Host, params: Request['params']): keyof typeof ofKind => {
  const kind = kindOf(params);
  const files =
    kind === 'carousel'
      ? []
      : kind === 'picture'
        ? ['image_url']
        : kind === 'reel'
          ? ['video_url']
          : ['image_url', 'video_url'];
  const labels = host === 'fb' && kind !== 'item' ? partnership : [];
  paramsAre(params, ['media_type', ...files, ...ofKind[kind], ...labels]);
  const given = files.filter((name) => params[name] !== undefined);
  if (kind === 'carousel' ? params.children === undefined : given.length !== 1) throw invalid('The media is required');
  // A picture of a carousel has no type, and a video of one says so.
  if (kind === 'item' && (params.video_url !== undefined) !== (params.media_type === 'VIDEO'))
    throw refuse('carousel_size');
  if (params.alt_text !== undefined && params.image_url === undefined)
    throw invalid('Param alt_text goes with images alone');
  if (kind === 'item' && params.user_tags !== undefined && params.video_url !== undefined)
    throw invalid('Param user_tags goes with images');
  for (const name of ['image_url', 'video_url', 'cover_url']) {
    const address = params[name];
    if (address !== undefined && !/^https?:\/\/[\x21-\x7e]+$/.test(address)) throw refuse('media_not_fetched');
  }
  checkPeople(state, params, kind);
  checkWords(params);
  return kind;
};

const childrenOf = (state: State, personId: string, given: string): readonly Container[] => {
  const ids = given.split(',');
  if (ids.length < 2 || ids.length > 10 || new Set(ids).size !== ids.length) throw refuse('carousel_size');
  return ids.map((id) => {
    const child = state.containers.get(id);
    if (child?.personId !== personId || !child.isChild) throw refuse('container_missing');
    // A child that is not finished never gets into a carousel.
    if (statusOf(state, child) !== 'FINISHED') throw refuse('not_ready');
    return child;
  });
};

const typeOf = (params: Request['params']): Type =>
  params.media_type === undefined ? 'IMAGE' : (params.media_type as Type);

export const createContainer = async (state: State, request: Request, user: string): Promise<Answer> => {
  const { personId } = accessOf(state, request, 'publish');
  if (user !== personId) throw refuse('object_missing');
  const { params, host } = request;
  checkParams(state, host as Host, params);
  const type = typeOf(params);
  const children = type === 'CAROUSEL' ? childrenOf(state, personId, params.children ?? '') : [];
  const container: Container = {
    ...{ id: state.id(), personId, type, params, isChild: params.is_carousel_item === 'true', children },
    ...{ at: state.now(), file: null, looks: state.processing[type], status: 'IN_PROGRESS', error: null },
    hidden: state.hidesContainers.shift() ?? 0,
  };
  // A picture is fetched within the call, a video after it.
  if (params.image_url !== undefined) container.file = await fetched(state, 'IMAGE', params.image_url, params.alt_text);
  if (params.image_url !== undefined && container.file === null) throw refuse('media_not_fetched');
  if (params.cover_url !== undefined && (await fetched(state, 'IMAGE', params.cover_url)) === null)
    throw refuse('media_not_fetched');
  const broken = state.breaks.findIndex((one) => one.type === type);
  if (broken >= 0) container.error = state.breaks.splice(broken, 1)[0]?.error ?? null;
  if (params.video_url !== undefined && container.error === null) {
    container.file = await fetched(state, 'VIDEO', params.video_url);
    if (container.file === null) container.error = 2_207_052;
  }
  state.containers.set(container.id, container);
  return { status: 200, body: { id: container.id } };
};

/** JPEG is the one format of pictures. */
const types = { IMAGE: ['image/jpeg'], VIDEO: ['video/mp4', 'video/quicktime'] };

/** Null: the address does not give such a file. */
const fetched = async (
  state: State,
  type: 'IMAGE' | 'VIDEO',
  address: string,
  altText?: string,
): Promise<Fetched | null> => {
  state.fetched.push(address);
  try {
    const answer = await fetch(address, { redirect: 'error', signal: AbortSignal.timeout(5_000) });
    const bytes = (await answer.arrayBuffer()).byteLength;
    const isRight = answer.status === 200 && types[type].includes(answer.headers.get('content-type') ?? '');
    return isRight && bytes > 0 ? { type, address, altText: altText ?? null } : null;
  } catch {
    return null;
  }
};

/** As it is now, without a look. */
const statusOf = (state: State, container: Container): Container['status'] => {
  const isOpen = container.status === 'IN_PROGRESS' || container.status === 'FINISHED';
  if (isOpen && state.now() - container.at > dayMs) container.status = 'EXPIRED';
  if (container.status !== 'IN_PROGRESS' || container.looks > 0) return container.status;
  container.status = container.error === null ? 'FINISHED' : 'ERROR';
  return container.status;
};

const words = (status: Container['status'], error: number | null): string =>
  status === 'ERROR' ? `Error: Media upload has failed with error code ${error}` : `${status}: as the status says`;

export const showContainer = (state: State, request: Request, container: Container): Answer => {
  const { personId } = accessOf(state, request);
  paramsAre(request.params, ['fields']);
  if (container.personId !== personId) throw refuse('object_missing');
  if (container.hidden > 0) {
    container.hidden -= 1;
    throw refuse('object_missing');
  }
  const status_code = statusOf(state, container);
  container.looks -= 1;
  const all = {
    id: container.id,
    status_code,
    status: words(status_code, container.error),
    copyright_check_status: undefined,
  };
  return { status: 200, body: chosen(request.params.fields, all) };
};

export const publishContainer = (state: State, request: Request, user: string): Answer => {
  const { personId } = accessOf(state, request, 'publish');
  if (user !== personId) throw refuse('object_missing');
  paramsAre(request.params, [], ['creation_id']);
  const container = state.containers.get(request.params.creation_id ?? '');
  if (container?.personId !== personId || container.isChild) throw refuse('container_missing');
  const status = statusOf(state, container);
  if (status === 'IN_PROGRESS') throw refuse('not_ready');
  if (status !== 'FINISHED') throw refuse('container_missing');
  if (state.used(personId) >= state.quota) throw refuse('posts_limited');
  container.status = 'PUBLISHED';
  const made: Media = {
    ...{ id: state.id(), personId, container, at: state.now(), code: `D${container.id.slice(-10)}` },
    caption: container.params.caption ?? '',
    files: [container, ...container.children].flatMap(({ file }) => file ?? []),
  };
  state.media.push(made);
  return { status: 200, body: { id: made.id } };
};
