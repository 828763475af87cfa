import { type Answer, invalid, refuse } from './answer.ts';
import { accessOf, chosen, paramsAre, type Request } from './request.ts';
import type { Container, Fetched, Post, State } from './state.ts';

/** Containers and what is made of them ("Posts", "Carousel posts", "Troubleshooting"; the errors of production). */

const names = [
  ...['media_type', 'text', 'image_url', 'video_url', 'is_carousel_item', 'children', 'alt_text', 'reply_to_id'],
  ...['quote_post_id', 'reply_control', 'topic_tag', 'location_id', 'link_attachment', 'poll_attachment'],
  ...['text_attachment', 'gif_attachment', 'text_entities', 'is_spoiler_media', 'is_ghost_post'],
  ...['enable_reply_approvals', 'allowlisted_country_codes'],
];
const replyControls = [
  'everyone',
  'accounts_you_follow',
  'mentioned_only',
  'parent_post_author_only',
  'followers_only',
];
const ofFile = ['media_type', 'image_url', 'video_url', 'alt_text'];
const dayMs = 86_400_000;

/** Emoji weigh their UTF-8 bytes. */
const lengthOf = (text: string): number =>
  [...new Intl.Segmenter().segment(text)].reduce(
    (sum, { segment }) => sum + (/\p{RGI_Emoji}/v.test(segment) ? Buffer.byteLength(segment) : [...segment].length),
    0,
  );

const checkText = (text: string): void => {
  if (lengthOf(text) > 500) throw refuse('text_too_long');
  if (new Set(text.match(/https?:\/\/\S+/g) ?? []).size > 5) throw refuse('links_exceeded');
};

/** Posts of a moment ago are not found by the first calls. */
const visible = (state: State, id: string): Post => {
  if (!/^\d+$/.test(id)) throw invalid('Param must be an id of a media');
  const post = state.post(id);
  if (post === null) throw refuse('media_not_found');
  if (post.hidden > 0) {
    post.hidden -= 1;
    throw refuse('media_not_found');
  }
  return post;
};

const childrenOf = (state: State, personId: string, given: string): readonly Container[] => {
  const ids = given.split(',');
  if (ids.length < 2 || ids.length > 20) throw invalid('Param children must have 2 to 20 items');
  if (new Set(ids).size !== ids.length) throw refuse('children_invalid');
  return ids.map((id) => {
    const child = state.containers.get(id);
    // A child that is not finished never gets into a carousel.
    if (child?.personId !== personId || !child.isChild || statusOf(state, child) !== 'FINISHED') {
      throw refuse('children_invalid');
    }
    return child;
  });
};

const checkParams = (params: Request['params']): void => {
  paramsAre(params, names, ['media_type']);
  const { media_type: type, text, alt_text: altText } = params;
  const isChild = params.is_carousel_item === 'true';
  if (params.is_carousel_item !== undefined && !isChild) throw invalid('Param is_carousel_item must be true');
  if (isChild) paramsAre(params, [...ofFile, 'is_carousel_item']);
  const wants = { TEXT: 'text', IMAGE: 'image_url', VIDEO: 'video_url', CAROUSEL: 'children' }[type ?? ''];
  if (wants === undefined) throw invalid('Param media_type must be one of {TEXT, IMAGE, VIDEO, CAROUSEL}');
  if (isChild && type !== 'IMAGE' && type !== 'VIDEO') throw invalid('A carousel item is an image or a video');
  if ((params[wants] ?? '') === '') throw invalid(`Param ${wants} is required`);
  for (const name of ['image_url', 'video_url', 'children']) {
    if (name !== wants && params[name] !== undefined) throw invalid(`Param ${name} does not go with ${type}`);
  }
  if (altText !== undefined && type !== 'IMAGE' && type !== 'VIDEO') throw invalid('Param alt_text does not go here');
  if ([...(altText ?? '')].length > 1_000) throw invalid('Param alt_text must be at most 1000 characters long.');
  checkText(text ?? '');
  const control = params.reply_control;
  if (control !== undefined && !replyControls.includes(control))
    throw invalid('Param reply_control is not one of its values');
};

export const createContainer = async (state: State, request: Request, user: string): Promise<Answer> => {
  const { personId } = accessOf(state, request, 'threads_content_publish');
  if (user !== 'me' && user !== personId) throw refuse('object_missing');
  const { params } = request;
  checkParams(params);
  if (params.reply_to_id !== undefined) visible(state, params.reply_to_id);
  if (params.quote_post_id !== undefined) visible(state, params.quote_post_id);
  const type = params.media_type as Container['type'];
  const children = type === 'CAROUSEL' ? childrenOf(state, personId, params.children ?? '') : [];
  const container: Container = {
    ...{ id: state.id(), personId, type, params, isChild: params.is_carousel_item === 'true', children },
    ...{ at: state.now(), file: null, looks: state.processing[type], status: 'IN_PROGRESS', error: null },
    hidden: state.hidesContainers.shift() ?? 0,
  };
  // A picture is fetched within the call, a video after it.
  if (type === 'IMAGE') {
    container.file = await fetched(state, 'IMAGE', params);
    if (container.file === null) throw refuse('media_not_fetched');
  }
  const broken = state.breaks.findIndex((one) => one.type === type);
  if (broken >= 0) container.error = state.breaks.splice(broken, 1)[0]?.error ?? null;
  if (type === 'VIDEO' && container.error === null) {
    container.file = await fetched(state, 'VIDEO', params);
    if (container.file === null) container.error = 'FAILED_DOWNLOADING_VIDEO';
  }
  state.containers.set(container.id, container);
  return { status: 200, body: { id: container.id } };
};

const types = { IMAGE: ['image/jpeg', 'image/png'], VIDEO: ['video/mp4', 'video/quicktime'] };

/** Null: the address does not give such a file. */
const fetched = async (state: State, type: 'IMAGE' | 'VIDEO', params: Request['params']): Promise<Fetched | null> => {
  const address = (type === 'IMAGE' ? params.image_url : params.video_url) ?? '';
  state.fetched.push(address);
  try {
    const answer = await fetch(address, { redirect: 'error', signal: AbortSignal.timeout(5_000) });
    const bytes = (await answer.arrayBuffer()).byteLength;
    const isRight = answer.status === 200 && types[type].includes(answer.headers.get('content-type') ?? '');
    return isRight && bytes > 0 ? { type, address, bytes, altText: params.alt_text ?? null } : null;
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

export const showContainer = (state: State, request: Request, container: Container): Answer => {
  const { personId } = accessOf(state, request);
  paramsAre(request.params, ['fields']);
  if (container.personId !== personId) throw refuse('object_missing');
  if (container.hidden > 0) {
    container.hidden -= 1;
    throw refuse('media_not_found');
  }
  const status = statusOf(state, container);
  container.looks -= 1;
  const isPost = status === 'PUBLISHED' && state.forgetsContainers;
  const all = { id: container.id, ...(isPost ? {} : { status, error_message: container.error ?? undefined }) };
  return { status: 200, body: chosen(request.params.fields, all) };
};

export const publishContainer = (state: State, request: Request, user: string): Answer => {
  const { personId } = accessOf(state, request, 'threads_content_publish');
  if (user !== 'me' && user !== personId) throw refuse('object_missing');
  paramsAre(request.params, [], ['creation_id']);
  const container = state.containers.get(request.params.creation_id ?? '');
  if (container?.personId !== personId || container.isChild) throw refuse('media_not_found');
  const made = state.posts.find((one) => one.container === container);
  if (made !== undefined && state.answersTwice) return { status: 200, body: { id: made.id } };
  if (statusOf(state, container) !== 'FINISHED') throw refuse('media_not_found');
  const { text = '', reply_to_id: parent = null, quote_post_id: quoted = null } = container.params;
  const over = parent === null ? state.quota.posts : state.quota.replies;
  if (state.used(personId, parent !== null) >= over) throw refuse('posts_limited');
  container.status = 'PUBLISHED';
  const post: Post = {
    ...{ id: state.id(), personId, container, text, parent, quoted, at: state.now() },
    code: `D${container.id.slice(-10)}`,
    root: parent === null ? null : (state.post(parent)?.root ?? parent),
    replyControl: container.params.reply_control ?? 'everyone',
    files: [container, ...container.children].flatMap(({ file }) => file ?? []),
    hidden: state.hidesPosts.shift() ?? 0,
  };
  state.posts.push(post);
  return { status: 200, body: { id: post.id } };
};
