import { type Answer, invalidRequest, Refusal, refuse } from './answer.ts';
import { accessOf, emptyOf, jsonOf, type Request } from './request.ts';
import type { MediaUpload, Person, Post, State } from './state.ts';
import { flag, id, list, object, oneOf, text, whole } from './strict.ts';
import { weigh } from './weigh.ts';

/** `POST` and `DELETE /2/tweets`. OpenAPI 2.167, TweetCreateRequest: no member that is not one of these. */

const settings = oneOf('following', 'mentionedUsers', 'subscribers', 'verified');

const create = object({
  text: text(),
  media: object({ media_ids: list(1, 4, id), tagged_user_ids: list(0, 10, id) }, ['media_ids']),
  reply: object(
    { in_reply_to_tweet_id: id, exclude_reply_user_ids: list(0, 100, id), auto_populate_reply_metadata: flag },
    ['in_reply_to_tweet_id'],
  ),
  quote_tweet_id: id,
  reply_settings: settings,
  poll: object(
    { options: list(2, 4, text(/^[\s\S]{1,25}$/)), duration_minutes: whole(5, 10_080), reply_settings: settings },
    ['options', 'duration_minutes'],
  ),
  community_id: id,
  share_with_followers: flag,
  geo: object({ place_id: text() }),
  made_with_ai: flag,
  paid_partnership: flag,
  for_super_followers_only: flag,
  nullcast: flag,
  direct_message_deep_link: text(),
  card_uri: text(),
  edit_options: object({ previous_post_id: id }, ['previous_post_id']),
});

interface CreateBody {
  readonly text?: string;
  readonly media?: { readonly media_ids: readonly string[] };
  readonly reply?: { readonly in_reply_to_tweet_id: string };
  readonly quote_tweet_id?: string;
  readonly reply_settings?: string;
  readonly poll?: unknown;
}

/** Hours for which the same text is a duplicate; X does not say. */
const duplicateMs = 12 * 3_600_000;

export const createTweet = (state: State, request: Request): Answer => {
  const { personId } = accessOf(state, request, 'tweet.read', 'tweet.write', 'users.read');
  const person = state.people.get(personId) as Person;
  const body = jsonOf(request);
  create(body, 'body');
  const asked = body as CreateBody;
  const uploads = mediaOf(state, person, asked);
  check(state, person, asked);
  const post = madePost(state, person, asked, uploads);
  state.posts.push(post);
  const { text: shown } = post;
  return { status: 201, body: { data: { id: post.id, text: shown, edit_history_tweet_ids: [post.id] } } };
};

const mediaOf = (state: State, person: Person, { media }: CreateBody): readonly MediaUpload[] => {
  const uploads = (media?.media_ids ?? []).map((one) => {
    const upload = state.uploads.get(one);
    if (upload === undefined || upload.personId !== person.id || upload.until <= state.now()) {
      throw invalidRequest('Your media IDs are invalid.');
    }
    if (!upload.isReady) throw invalidRequest('Your media ID is not ready: it is being processed.');
    return upload;
  });
  if (uploads.length > 1 && uploads.some(({ category }) => category !== 'tweet_image')) {
    throw invalidRequest('A post takes four photos, or one animated GIF, or one video.');
  }
  if (new Set(uploads).size !== uploads.length) throw invalidRequest('Your media IDs are invalid.');
  return uploads;
};

const check = (state: State, person: Person, asked: CreateBody): void => {
  const { text: said = '', media, poll, quote_tweet_id: quoted, reply, reply_settings } = asked;
  if (said === '' && media === undefined) throw invalidRequest('text: the member is required');
  if ([media, poll, quoted].filter((one) => one !== undefined).length > 1) {
    throw invalidRequest('Poll, media and quote exclude each other.');
  }
  if (weigh(said) > (person.subscription === 'Premium' ? 25_000 : 280)) throw refuse('not_permitted');
  if ((said.match(/(?<![\w$])\$[A-Za-z]{1,6}\b/g) ?? []).length > 1 && person.tier === 'self_serve') {
    throw invalidRequest('Posts are limited to a maximum of one cashtag.');
  }
  if (reply !== undefined) {
    const parent = state.post(reply.in_reply_to_tweet_id);
    if (parent === null) throw refuse('not_found');
    const isSummoned = parent.personId === person.id || parent.sent.includes(`@${person.username}`);
    if (!isSummoned && person.tier === 'self_serve') throw refuse('reply_refused');
    if (reply_settings !== undefined) throw invalidRequest('reply_settings: not on a reply');
  }
  if (quoted !== undefined) {
    if (person.tier === 'self_serve') throw refuse('quote_refused');
    if (state.post(quoted) === null) throw refuse('not_found');
  }
  const isRepeat = (one: Post) =>
    one.personId === person.id && one.sent === said && state.now() - one.at < duplicateMs && !state.deleted.has(one.id);
  if (said !== '' && state.posts.some(isRepeat)) throw refuse('duplicate');
};

const madePost = (state: State, person: Person, asked: CreateBody, uploads: readonly MediaUpload[]): Post => {
  const made = state.id();
  const { text: sent = '' } = asked;
  const urls: { url: string; expanded_url: string; media_key?: string }[] = [];
  const shorten = (expanded_url: string, media_key?: string): string => {
    const url = `https://t.co/${made.slice(-6)}${String(urls.length).padStart(4, '0')}`;
    urls.push({ url, expanded_url, ...(media_key === undefined ? {} : { media_key }) });
    return url;
  };
  let shown = sent.normalize('NFC').replace(/https?:\/\/[^\s]{1,2000}/g, (one) => shorten(one));
  shown = shown.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
  const own = `https://x.com/${person.username}/status/${made}`;
  const [first] = uploads;
  if (first !== undefined) {
    const kind = first.category === 'tweet_image' ? 'photo' : 'video';
    shown = `${shown} ${shorten(`${own}/${kind}/1`, first.key)}`.trim();
  }
  const quoted = asked.quote_tweet_id ?? null;
  if (quoted !== null) shown = `${shown} ${shorten(`https://x.com/i/status/${quoted}`)}`;
  return {
    ...{ id: made, personId: person.id, sent, text: shown, urls, quoted },
    parent: asked.reply?.in_reply_to_tweet_id ?? null,
    mediaKeys: uploads.map(({ key }) => key),
    body: { ...asked },
    at: state.now(),
  };
};

export const deleteTweet = (state: State, request: Request, postId: string): Answer => {
  const { personId } = accessOf(state, request, 'tweet.read', 'tweet.write', 'users.read');
  emptyOf(request);
  const post = state.post(postId);
  if (post === null) throw refuse('not_found');
  if (post.personId !== personId) throw new Refusal(refuse('not_permitted').answer);
  state.deleted.add(postId);
  return { status: 200, body: { data: { deleted: true } } };
};
