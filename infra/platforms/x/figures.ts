import type {
  InsightsAccount,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { Ask } from '../kit/client.ts';
import { byBatch, type NoFigures, observedAt, withoutFigures } from '../kit/figures.ts';
import type { Bound } from '../kit/network.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { CallFor } from './fields.ts';
import { readsOfPerson } from './tables.ts';

/**
 * Figures of posts by `GET /2/tweets`, at most 100 a call, and of the account by `GET /2/users/me`. X bills each post
 * that is read; how often is the caller's matter.
 */

const perCall = 100;
/** X has figures of its owner alone for 30 days, and refuses the request for them afterwards. */
const ownMs = 30 * 86_400_000 - 3_600_000;

type Fields = NonNullable<Extract<PostInsightsAnswer, { kind: 'reported' }>['fields']>;

const publicFields: Fields = ['impressions', 'likes', 'comments', 'saves', 'reposts', 'quotes'];
const ownFields: Fields = ['clicks', 'totalInteractions'];
const recent = 'recent';

interface Batch {
  readonly posts: ReadonlyMap<string, Members>;
  readonly media: ReadonlyMap<string, Members>;
  /** By the id that they are about. */
  readonly errors: ReadonlyMap<string, Members>;
  readonly observedAt: string;
}

const isOfField = (error: Members): boolean =>
  (textIn(error, 'type') ?? '').endsWith('/problems/not-authorized-for-field');

const by = (list: readonly Members[], name: string) =>
  new Map(list.flatMap((one): [string, Members][] => [[textIn(one, name) ?? '', one]]));

const read = async (
  bound: Bound,
  callFor: CallFor,
  { id: accountId, workspaceId }: InsightsAccount,
  ids: readonly string[],
  isRecent: boolean,
  signal: AbortSignal,
): Promise<Batch | NoFigures> => {
  const own = isRecent ? ',non_public_metrics' : '';
  const ask = (fieldsName: string): Ask => ({
    ...{ method: 'GET', path: '/2/tweets', cost: { workspaceId, reads: ids.length, isOptional: true } },
    query: {
      ids: ids.join(','),
      [fieldsName]: `attachments,author_id,created_at,public_metrics${own}`,
      expansions: 'attachments.media_keys',
      'media.fields': `duration_ms,public_metrics${own}`,
    },
  });
  const answer = await callFor({ accountId, targetId: null }, ask, signal);
  signal.throwIfAborted();
  if (answer.kind !== 'ok') return withoutFigures(answer, bound.clock());
  const { body, headers } = answer;
  const errors = listIn(body, 'errors').filter((one) => !isOfField(one));
  return {
    posts: by(listIn(body, 'data'), 'id'),
    media: by(listIn(body.includes, 'media'), 'media_key'),
    errors: new Map([...by(errors, 'value'), ...by(errors, 'resource_id')]),
    observedAt: observedAt(headers, bound.clock()),
  };
};

const answerOf = (
  account: InsightsAccount,
  { externalId, hasVideo }: InsightsSubject,
  isRecent: boolean,
  { posts, media, errors, observedAt: at }: Batch,
): PostInsightsAnswer => {
  const post = posts.get(externalId);
  if (post === undefined) {
    const error = errors.get(externalId);
    const isGone = (textIn(error, 'type') ?? '').endsWith('/problems/resource-not-found');
    if (isGone) return { kind: 'removed', raw: error ?? null, observedAt: at };
    return { kind: 'unavailable', reason: textIn(error, 'detail') ?? 'X does not show the post' };
  }
  const author = textIn(post, 'author_id');
  if (author !== null && author !== account.externalId) return { kind: 'removed', raw: null, observedAt: at };
  const keys = membersOf(post.attachments)?.media_keys;
  const shown = (Array.isArray(keys) ? keys : []).flatMap((key): Members[] => {
    const one = media.get(String(key));
    return one === undefined ? [] : [one];
  });
  const includes = shown.length === 0 ? {} : { includes: { media: shown } };
  const fields: Fields = [
    ...publicFields,
    ...(isRecent ? ownFields : []),
    ...(hasVideo ? (['videoViews'] as const) : []),
  ];
  return { kind: 'reported', raw: { data: post, ...includes }, observedAt: at, fields };
};

export const postFigures =
  (bound: Bound, callFor: CallFor): InsightsSource['fetchPostInsights'] =>
  (_platform, account, posts, signal) => {
    const now = bound.clock();
    return byBatch<Batch>(
      posts,
      {
        perCall,
        group: ({ publishedAt }) => (now - Date.parse(publishedAt) < ownMs ? recent : 'older'),
        ask: (ids, group) => read(bound, callFor, account, ids, group === recent, signal),
        answer: (post, group, batch) => answerOf(account, post, group === recent, batch),
      },
      signal,
    );
  };

/** Who the token is of. */
export const me = (workspaceId: string, isOptional: boolean): Ask => ({
  ...{ method: 'GET', path: '/2/users/me', query: { 'user.fields': userFields } },
  cost: { workspaceId, reads: readsOfPerson, isOptional },
});
const userFields = 'username,name,profile_image_url,public_metrics,verified_type,subscription_type';

export const accountFigures =
  ({ client, clock }: Bound): InsightsSource['fetchAccountInsights'] =>
  async (_platform, { id: accountId, workspaceId }, signal) => {
    signal.throwIfAborted();
    const answer = await client.call({ accountId, targetId: null }, me(workspaceId, true), signal);
    signal.throwIfAborted();
    if (answer.kind !== 'ok') return withoutFigures(answer, clock());
    const { data } = answer.body;
    // X says with 200 too that it does not show an account: names that are not there would take the place of those we have.
    if (textIn(data, 'id') === null) return { kind: 'unavailable', reason: 'X does not show the account' };
    const shown = (name: string): string | null => textIn(data, name) || null;
    return {
      ...{ kind: 'reported', raw: { data: data ?? null }, figuresOf: null, fields: ['followerCount'] },
      observedAt: observedAt(answer.headers, clock()),
      profile: { username: shown('username'), displayName: shown('name'), avatarUrl: shown('profile_image_url') },
    };
  };
