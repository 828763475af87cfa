import type {
  AccountInsightsAnswer,
  InsightsAccount,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import type { Ask, XApi } from './api.ts';
import { billed, readsOfPerson, type Spent } from './billed.ts';
import { userFields } from './oauth.ts';
import type { XOptions } from './options.ts';
import { beforeCreate, type NotOk } from './outcomes.ts';

/**
 * Figures of posts by `GET /2/tweets`, at most 100 a call, and of the account by `GET /2/users/me`. X bills each post
 * that is read; how often is the caller's matter.
 */

const perCall = 100;
const dayMs = 86_400_000;
/** X has figures of its owner alone for 30 days, and refuses the request for them afterwards. */
const ownMs = 30 * dayMs - 3_600_000;

type NoFigures = Exclude<PostInsightsAnswer, { kind: 'reported' | 'removed' }>;
type Fields = NonNullable<Extract<PostInsightsAnswer, { kind: 'reported' }>['fields']>;

const publicFields: Fields = ['impressions', 'likes', 'comments', 'saves', 'reposts', 'quotes'];
const ownFields: Fields = ['clicks', 'totalInteractions'];

interface Batch {
  readonly posts: ReadonlyMap<string, Members>;
  readonly media: ReadonlyMap<string, Members>;
  /** By the id that they are about. */
  readonly errors: ReadonlyMap<string, Members>;
  readonly observedAt: string;
}

export class XInsights implements InsightsSource {
  readonly insightsVersion = 'x/1';
  readonly minIntervalMs = 900_000;
  readonly maxAheadMs = 300_000;
  /** Of some 90 midnights these; the one of four weeks is the last within which X tells its owner's figures. */
  readonly nightAgesMs = [1, 2, 3, 5, 7, 10, 14, 21, 28, 45, 60, 89].map((days) => days * dayMs);
  readonly #options: XOptions;
  readonly #api: XApi;

  constructor(options: XOptions, api: XApi) {
    this.#options = options;
    this.#api = api;
  }

  async *fetchPostInsights(
    _platform: Platform,
    account: InsightsAccount,
    posts: readonly InsightsSubject[],
    signal: AbortSignal,
  ): AsyncGenerator<PostInsightsAnswer> {
    signal.throwIfAborted();
    const batches = new Map<string, Promise<Batch | NoFigures>>();
    // Each batch is asked for when its first post is due, so that answers already there are not held up.
    const plans = this.#plansOf(posts);
    for (const post of posts) {
      const plan = plans.get(post.externalId);
      if (plan === undefined) throw new Error('a post without a batch');
      const name = `${plan.isRecent} ${plan.ids[0]}`;
      const asked = batches.get(name) ?? this.#read(account, plan.ids, plan.isRecent, signal);
      batches.set(name, asked);
      const batch = await asked;
      signal.throwIfAborted();
      yield 'kind' in batch ? batch : answerOf(account, post, plan.isRecent, batch);
    }
  }

  #plansOf(
    posts: readonly InsightsSubject[],
  ): ReadonlyMap<string, { readonly ids: readonly string[]; readonly isRecent: boolean }> {
    const now = this.#options.clock();
    const isRecent = ({ publishedAt }: InsightsSubject) => now - Date.parse(publishedAt) < ownMs;
    const plans = new Map<string, { readonly ids: readonly string[]; readonly isRecent: boolean }>();
    for (const recent of [true, false]) {
      const ids = [...new Set(posts.filter((one) => isRecent(one) === recent).map(({ externalId }) => externalId))];
      for (let at = 0; at < ids.length; at += perCall) {
        const some = ids.slice(at, at + perCall);
        for (const id of some) if (!plans.has(id)) plans.set(id, { ids: some, isRecent: recent });
      }
    }
    return plans;
  }

  async #read(
    { id: accountId, workspaceId }: InsightsAccount,
    ids: readonly string[],
    isRecent: boolean,
    signal: AbortSignal,
  ): Promise<Batch | NoFigures> {
    const own = isRecent ? ',non_public_metrics' : '';
    const ask = (fieldsName: string): Ask => ({
      method: 'GET',
      path: '/2/tweets',
      query: {
        ids: ids.join(','),
        [fieldsName]: `attachments,author_id,created_at,public_metrics${own}`,
        expansions: 'attachments.media_keys',
        'media.fields': `duration_ms,public_metrics${own}`,
      },
    });
    const result = await billed(this.#options, { workspaceId, reads: ids.length, isOptional: true }, () =>
      this.#api.callFor({ accountId, targetId: null }, ask, signal),
    );
    signal.throwIfAborted();
    if (result.kind !== 'ok') return this.#without(result);
    const { body, headers } = result;
    const by = (list: readonly Members[], name: string) =>
      new Map(list.flatMap((one): [string, Members][] => [[textIn(one, name) ?? '', one]]));
    const errors = listIn(body, 'errors').filter((one) => !isOfField(one));
    return {
      posts: by(listIn(body, 'data'), 'id'),
      media: by(listIn(body.includes, 'media'), 'media_key'),
      errors: new Map([...by(errors, 'value'), ...by(errors, 'resource_id')]),
      observedAt: this.#at(headers),
    };
  }

  async fetchAccountInsights(
    _platform: Platform,
    { id: accountId, workspaceId }: InsightsAccount,
    signal: AbortSignal,
  ): Promise<AccountInsightsAnswer> {
    signal.throwIfAborted();
    const ask = { method: 'GET', path: '/2/users/me', query: { 'user.fields': userFields } } as const;
    const result = await billed(this.#options, { workspaceId, reads: readsOfPerson, isOptional: true }, () =>
      this.#api.call({ accountId, targetId: null }, ask, signal),
    );
    signal.throwIfAborted();
    if (result.kind !== 'ok') return this.#without(result);
    const { data } = result.body;
    const shown = (name: string): string | null => textIn(data, name) || null;
    return {
      ...{ kind: 'reported', raw: { data: data ?? null }, observedAt: this.#at(result.headers), figuresOf: null },
      fields: ['followerCount'],
      profile: { username: shown('username'), displayName: shown('name'), avatarUrl: shown('profile_image_url') },
    };
  }

  #without(result: NotOk | Spent): NoFigures {
    if (result.kind === 'spent') {
      const { reason, until } = result;
      return until === null ? { kind: 'unavailable', reason } : { kind: 'rate_limited', retryAt: until };
    }
    const outcome = beforeCreate(result, this.#options.clock());
    if (outcome.kind === 'rate_limited') return { kind: 'rate_limited', retryAt: outcome.retryAt };
    const { failure } = outcome;
    const reason = failure.platformMessage ?? failure.message;
    return { kind: failure.category === 'reauth_required' ? 'reauth_required' : 'unavailable', reason };
  }

  /** By X's clock, where it tells the time. */
  #at(headers: Readonly<Record<string, string>>): string {
    const said = Date.parse(headers.date ?? '');
    return new Date(Number.isNaN(said) ? this.#options.clock() : said).toISOString();
  }
}

const isOfField = (error: Members): boolean =>
  (textIn(error, 'type') ?? '').endsWith('/problems/not-authorized-for-field');

const answerOf = (
  account: InsightsAccount,
  { externalId, hasVideo }: InsightsSubject,
  isRecent: boolean,
  { posts, media, errors, observedAt }: Batch,
): PostInsightsAnswer => {
  const post = posts.get(externalId);
  if (post === undefined) {
    const error = errors.get(externalId);
    const isGone = (textIn(error, 'type') ?? '').endsWith('/problems/resource-not-found');
    if (isGone) return { kind: 'removed', raw: error ?? null, observedAt };
    return { kind: 'unavailable', reason: textIn(error, 'detail') ?? 'X does not show the post' };
  }
  const author = textIn(post, 'author_id');
  if (author !== null && author !== account.externalId) return { kind: 'removed', raw: null, observedAt };
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
  return { kind: 'reported', raw: { data: post, ...includes }, observedAt, fields };
};
