import type { Json, PublishRequest } from '#contracts/ports/platform.ts';
import type {
  AccountInsightsAnswer,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import { instantOf, type Members, membersOf, textIn } from '../shared/members.ts';
import { outcomeOf } from './errors.ts';
import type { BlueskyOptions } from './options.ts';
import { findPost, partsOf } from './posts.ts';
import { type XrpcResult, xrpc } from './xrpc.ts';

/**
 * Figures of posts and accounts, from the public app view and without a token (app.bsky.feed.getPosts, at most 25;
 * app.bsky.actor.getProfile): calls of a server that holds repositories count against all accounts of its address.
 */

const perCall = 25;
const publicAppView = 'https://public.api.bsky.app';

type Account = PublishRequest['account'];
type NoFigures = Exclude<PostInsightsAnswer, { kind: 'reported' | 'removed' }>;

export class BlueskyInsights implements InsightsSource {
  readonly insightsVersion = 'bluesky/1';
  readonly minIntervalMs = 300_000;
  readonly maxAheadMs = 300_000;
  readonly #options: BlueskyOptions;

  constructor(options: BlueskyOptions) {
    this.#options = options;
  }

  async *fetchPostInsights(
    _platform: Platform,
    account: Account,
    posts: readonly InsightsSubject[],
    signal: AbortSignal,
  ): AsyncGenerator<PostInsightsAnswer> {
    signal.throwIfAborted();
    for (let at = 0; at < posts.length; at += perCall) {
      const some = posts.slice(at, at + perCall);
      const own = [...new Set(some.map(({ externalId }) => externalId).filter((uri) => isOwn(uri, account)))];
      const seen = own.length === 0 ? null : await this.#views(account, own, signal);
      for (const { externalId } of some) {
        if (!isOwn(externalId, account)) yield { kind: 'removed', raw: null, observedAt: this.#now() };
        else if (seen !== null && 'kind' in seen) yield seen;
        else yield await this.#answer(account, externalId, seen, signal);
      }
    }
  }

  async #views(
    { id }: Account,
    uris: readonly string[],
    signal: AbortSignal,
  ): Promise<NoFigures | { readonly views: ReadonlyMap<string, Members>; readonly observedAt: string }> {
    const result = await this.#ask('app.bsky.feed.getPosts', { uris }, id, signal);
    signal.throwIfAborted();
    if (result.kind !== 'ok') return this.#without(result);
    const { posts } = result.data;
    const list = Array.isArray(posts) ? (posts as readonly Json[]) : [];
    const views = list.flatMap((one): [string, Members][] => {
      const [uri, view] = [textIn(one, 'uri'), membersOf(one)];
      return uri === null || view === null ? [] : [[uri, view]];
    });
    return { views: new Map(views), observedAt: this.#at(result.headers) };
  }

  /** A post that the app view does not show may be hidden or not indexed yet: only its repository says that it is gone. */
  async #answer(
    account: Account,
    uri: string,
    seen: { readonly views: ReadonlyMap<string, Members>; readonly observedAt: string } | null,
    signal: AbortSignal,
  ): Promise<PostInsightsAnswer> {
    const view = seen?.views.get(uri);
    if (seen !== null && view !== undefined) return { kind: 'reported', raw: view, observedAt: seen.observedAt };
    const kept = await this.#options.credentials.read(account.id);
    const service = textIn(kept?.secret, 'service');
    const parts = partsOf(uri);
    if (service === null || parts === null)
      return { kind: 'unavailable', reason: 'the app view does not show the post' };
    const subject = { accountId: account.id, targetId: null };
    const post = await findPost(this.#options.http, { service, ...parts }, subject, signal);
    signal.throwIfAborted();
    if (post.kind === 'absent') return { kind: 'removed', raw: null, observedAt: this.#now() };
    return { kind: 'unavailable', reason: 'the app view does not show the post' };
  }

  async fetchAccountInsights(
    _platform: Platform,
    account: Account,
    signal: AbortSignal,
  ): Promise<AccountInsightsAnswer> {
    signal.throwIfAborted();
    const result = await this.#ask('app.bsky.actor.getProfile', { actor: account.externalId }, account.id, signal);
    signal.throwIfAborted();
    if (result.kind !== 'ok') return this.#without(result);
    const { data, headers } = result;
    const shown = (name: string): string | null => textIn(data, name) || null;
    const profile = { username: shown('handle'), displayName: shown('displayName'), avatarUrl: shown('avatar') };
    return { kind: 'reported', raw: data, observedAt: this.#at(headers), figuresOf: null, profile };
  }

  #ask(
    nsid: string,
    params: Readonly<Record<string, string | readonly string[]>>,
    accountId: string,
    signal: AbortSignal,
  ) {
    const { http, appView = publicAppView } = this.#options;
    return xrpc(http, { service: appView, nsid, params, subject: { accountId, targetId: null } }, signal);
  }

  /** No token is shown to the app view, so its refusal says nothing of any owner's consent. */
  #without(result: Exclude<XrpcResult, { kind: 'ok' }>): NoFigures {
    const outcome = outcomeOf(result, false, this.#options.clock());
    if (outcome.kind === 'rate_limited') return { kind: 'rate_limited', retryAt: outcome.retryAt };
    return {
      kind: 'unavailable',
      reason: result.kind === 'refused' ? `${result.status} ${result.error}` : result.reason,
    };
  }

  #now(): string {
    return new Date(this.#options.clock()).toISOString();
  }

  /** By the network's clock, where it tells the time. */
  #at(headers: Readonly<Record<string, string>>): string {
    return instantOf(Date.parse(headers.date ?? '')) ?? this.#now();
  }
}

const isOwn = (uri: string, { externalId }: Account): boolean => partsOf(uri)?.did === externalId;
