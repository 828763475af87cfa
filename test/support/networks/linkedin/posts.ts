import { type Answer, invalid, Refusal, refuse } from './answer.ts';
import { requireRole } from './consent.ts';
import { littleText } from './little.ts';
import { accessOf, emptyOf, jsonOf, queryOf, type Request, versioned } from './request.ts';
import type { Access, File, Post, State } from './state.ts';
import { type Check, flag, list, object, oneOf, text, urn, whole } from './strict.ts';

/** learn.microsoft.com/linkedin, "Posts API", "MultiImage API", "Poll API", "Comments API": no member that is not one of these. */

const postUrn = urn('share', 'ugcPost');
const image = object({ id: urn('image'), altText: text(null, 4_086), title: text(null, 400) }, ['id']);

const create = object(
  {
    author: urn('person', 'organization'),
    commentary: text(),
    visibility: oneOf('PUBLIC', 'CONNECTIONS', 'LOGGED_IN', 'CONTAINER'),
    distribution: object(
      {
        feedDistribution: oneOf('MAIN_FEED', 'NONE'),
        targetEntities: list(0, 20, object({})),
        thirdPartyDistributionChannels: list(0, 0, text()),
      },
      ['feedDistribution'],
    ),
    content: object({
      media: object({ id: urn('image', 'video', 'document'), altText: text(null, 4_086), title: text(null, 400) }, [
        'id',
      ]),
      multiImage: object({ images: list(2, 20, image), altText: text(null, 4_086) }, ['images']),
      article: object(
        {
          source: text(/^https?:\/\//),
          ...{ thumbnail: urn('image'), thumbnailAltText: text(null, 4_086) },
          ...{ title: text(null, 400), description: text(null, 4_086) },
        },
        ['source', 'title'],
      ),
      poll: object(
        {
          question: text(null, 140),
          options: list(2, 4, object({ text: text(null, 30) }, ['text'])),
          settings: object({ duration: oneOf('ONE_DAY', 'THREE_DAYS', 'SEVEN_DAYS', 'FOURTEEN_DAYS') }),
        },
        ['question', 'options'],
      ),
    }),
    lifecycleState: oneOf('PUBLISHED'),
    isReshareDisabledByAuthor: flag,
    reshareContext: object({ parent: postUrn }, ['parent']),
  },
  ['author', 'commentary', 'visibility', 'distribution', 'lifecycleState'],
);

const maxCommentary = 3_000;
/** LinkedIn was seen to refuse a repeat for about ten minutes. */
const duplicateMs = 600_000;
const posting = ['ADMINISTRATOR', 'CONTENT_ADMINISTRATOR', 'DIRECT_SPONSORED_CONTENT_POSTER'] as const;

/** @throws Refusal the token may not act for that author */
export const mayActAs = (state: State, { personId, scopes }: Access, author: string): void => {
  const isMember = author.startsWith('urn:li:person:');
  const scope = isMember ? 'w_member_social' : 'w_organization_social';
  if (!scopes.some((one) => one === scope || one === `${scope}_feed`)) throw refuse('access_denied');
  if (!isMember) requireRole(state, personId, author, ...posting);
  else if (author !== `urn:li:person:${personId}`) throw refuse('access_denied');
};

interface Content {
  readonly media?: { readonly id: string; readonly title?: string; readonly altText?: string };
  readonly multiImage?: { readonly images: readonly { readonly id: string }[] };
  readonly article?: { readonly thumbnail?: string };
}

const ready = (state: State, author: string, id: string): File => {
  const file = state.files.get(id);
  if (file === undefined) throw invalid(`${id} is no file`, 'INVALID_URN_ID');
  if (file.owner !== author) throw refuse('access_denied');
  if (file.status === 'WAITING_UPLOAD') throw refuse('media_waiting');
  if (file.status === 'PROCESSING') throw refuse('media_processing');
  if (file.status === 'PROCESSING_FAILED') throw refuse('media_failed');
  return file;
};

const checkContent = (state: State, author: string, content: Content): void => {
  if (Object.keys(content).length !== 1) throw invalid('content has one member');
  const { media, multiImage, article } = content;
  if (media !== undefined) {
    const { kind } = ready(state, author, media.id);
    if (kind === 'document' && (media.title ?? '') === '') throw invalid('title of a document', 'MISSING_FIELD');
    if (kind !== 'image' && media.altText !== undefined) throw invalid('altText is of images', 'PARAM_INVALID');
  }
  for (const { id } of multiImage?.images ?? []) ready(state, author, id);
  if (article?.thumbnail !== undefined) ready(state, author, article.thumbnail);
};

export const createPost = (state: State, request: Request): Answer => {
  versioned(state, request, null);
  queryOf(request, {});
  const access = accessOf(state, request);
  const body = jsonOf(request) as Record<string, unknown>;
  create(body, 'body');
  const { author, commentary, visibility, content } = body as Record<string, string> & { content?: Content };
  mayActAs(state, access, author ?? '');
  const written = littleText(commentary ?? '');
  if ([...written.shown].length > maxCommentary) throw refuse('too_long');
  if (visibility === 'CONNECTIONS' && author?.startsWith('urn:li:organization:')) {
    throw invalid('visibility CONNECTIONS is of members', 'INVALID_VALUE_FOR_FIELD');
  }
  if (content !== undefined) checkContent(state, author ?? '', content);
  if (written.shown === '' && content === undefined) throw invalid('commentary is empty', 'MISSING_FIELD');
  const same = JSON.stringify([commentary, content]);
  const earlier = state.posts.findLast(
    (one) => one.author === author && JSON.stringify([one.body.commentary, one.body.content]) === same,
  );
  if (earlier !== undefined && state.now() - earlier.at < duplicateMs && !state.deleted.has(earlier.id)) {
    const message = `Content is a duplicate of ${earlier.id}`;
    const inputErrors = [{ description: message, code: 'DUPLICATE_POST' }];
    throw new Refusal({ status: 422, body: { status: 422, message, errorDetails: { inputErrors } } });
  }
  const isUgc = content?.multiImage !== undefined || content?.media?.id.startsWith('urn:li:video:') === true;
  const id = `urn:li:${isUgc ? 'ugcPost' : 'share'}:${state.id()}`;
  state.posts.push({
    ...{ id, author: author ?? '', body, text: written, visibility: visibility ?? '', at: state.now() },
    content: (content as Record<string, unknown> | undefined) ?? null,
  });
  return { status: 201, headers: { 'x-restli-id': id } };
};

/** LinkedIn writes the text in its own way: a hashtag has no template there. */
const commentaryOf = ({ body }: Post): string =>
  String(body.commentary).replaceAll(/\{hashtag\|\\?#\|([\p{L}\p{N}]+)\}/gu, '#$1');

const shownPost = (post: Post) => ({
  ...{ id: post.id, author: post.author, commentary: commentaryOf(post), visibility: post.visibility },
  ...{ lifecycleState: 'PUBLISHED', createdAt: post.at, publishedAt: post.at, lastModifiedAt: post.at },
  ...{ lifecycleStateInfo: { isEditedByAuthor: false }, isReshareDisabledByAuthor: false },
  distribution: { feedDistribution: 'MAIN_FEED', thirdPartyDistributionChannels: [] },
  ...(post.content === null ? {} : { content: post.content }),
});

/** Posts of members are of a closed programme. */
const mayRead = (state: State, { personId, scopes }: Access, author: string): boolean =>
  author.startsWith('urn:li:organization:') &&
  scopes.includes('r_organization_social') &&
  state.rolesOf(personId, author).some((one) => posting.some((role) => role === one));

export const getPost = (state: State, request: Request, id: string): Answer => {
  versioned(state, request, null);
  emptyOf(request);
  queryOf(request, {});
  const access = accessOf(state, request);
  postUrn(id, 'id');
  const post = state.posts.find((one) => one.id === id);
  if (post !== undefined && !mayRead(state, access, post.author)) throw refuse('access_denied');
  if (post === undefined || state.deleted.has(id)) throw refuse('not_found');
  return { status: 200, body: shownPost(post) };
};

/** `GET /rest/posts`: of an author, or several by their ids. */
export const readPosts = (state: State, request: Request): Answer => {
  emptyOf(request);
  if (request.query.startsWith('ids=')) return batchOfPosts(state, request);
  versioned(state, request, 'FINDER!');
  const asked = queryOf(request, { author: 'text', q: 'text', 'count?': 'text', 'start?': 'text', 'sortBy?': 'text' });
  const access = accessOf(state, request, 'r_organization_social');
  if (asked.q !== 'author') throw invalid('q must be author');
  oneOf('LAST_MODIFIED', 'CREATED')(asked.sortBy ?? 'LAST_MODIFIED', 'sortBy');
  const [start, count] = [Number(asked.start ?? 0), Number(asked.count ?? 10)];
  whole(start, 'start');
  if (!(count >= 1 && count <= 100)) throw invalid('count is at most 100');
  const author = asked.author ?? '';
  urn('person', 'organization')(author, 'author');
  if (!mayRead(state, access, author)) throw refuse('access_denied');
  const own = state.posts.filter((one) => one.author === author && !state.deleted.has(one.id)).toReversed();
  const elements = own.slice(start, start + count).map(shownPost);
  return { status: 200, body: { paging: { start, count, links: [] }, elements } };
};

const batchOfPosts = (state: State, request: Request): Answer => {
  versioned(state, request, 'BATCH_GET!');
  const access = accessOf(state, request, 'r_organization_social');
  const ids = (queryOf(request, { ids: 'list' }).ids ?? '').split(',');
  const results: Record<string, unknown> = {};
  const errors: Record<string, unknown> = {};
  for (const id of ids) {
    postUrn(id, 'ids');
    const post = state.posts.find((one) => one.id === id);
    const isGone = post === undefined || state.deleted.has(id);
    if (post !== undefined && !mayRead(state, access, post.author)) errors[id] = { status: 403 };
    else if (isGone) errors[id] = { status: 404, message: 'Could not find entity' };
    else results[id] = shownPost(post);
  }
  return { status: 200, body: { results, statuses: {}, errors } };
};

export const deletePost = (state: State, request: Request, id: string): Answer => {
  versioned(state, request, 'DELETE!');
  emptyOf(request);
  queryOf(request, {});
  const access = accessOf(state, request);
  postUrn(id, 'id');
  const post = state.posts.find((one) => one.id === id);
  if (post !== undefined) mayActAs(state, access, post.author);
  state.deleted.add(id);
  return { status: 204 };
};

const commentUrn: Check = text(/^urn:li:comment:\(.+\)$/);
const comment = object(
  {
    actor: urn('person', 'organization'),
    object: urn('share', 'ugcPost', 'activity'),
    message: object({ text: text(null, 1_250), attributes: list(0, 100, object({})) }, ['text']),
    parentComment: commentUrn,
    content: list(0, 1, object({ entity: object({ image: urn('image') }, ['image']) }, ['entity'])),
  },
  ['actor', 'message'],
);

export const createComment = (state: State, request: Request, id: string): Answer => {
  versioned(state, request, null);
  queryOf(request, {});
  const access = accessOf(state, request);
  const body = jsonOf(request);
  comment(body, 'body');
  const { actor, object: about, message } = body as { actor: string; object?: string; message: { text: string } };
  mayActAs(state, access, actor);
  if (about !== undefined && about !== id) throw invalid('object is not the post of the path');
  const post = state.post(id);
  if (post === null) throw refuse('not_found');
  if (state.now() - post.at < state.commentLagMs) throw refuse('not_everywhere');
  const number = state.id();
  const made = `urn:li:comment:(${id},${number})`;
  const tag = request.headers['x-test-tag'];
  // A comment is no little text: it is shown as it is.
  state.comments.push({ id: made, post: id, actor, text: message.text, tag: typeof tag === 'string' ? tag : null });
  const [created] = [{ actor, time: state.now() }];
  return {
    status: 201,
    headers: { 'x-restli-id': number },
    body: { actor, object: id, message: { attributes: [], text: message.text }, id: number, commentUrn: made, created },
  };
};
