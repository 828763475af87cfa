import type { PublishRequest } from '#contracts/ports/platform.ts';
import type {
  AccountInsightsAnswer,
  InsightsSource,
  InsightsSubject,
  PostInsightsAnswer,
} from '#contracts/ports/platform-insights.ts';
import type { Platform } from '#schemas/common.ts';
import { instantOf, textIn } from '../shared/members.ts';
import { postOf } from './answers.ts';
import type { ApiResult } from './api.ts';
import { callFor, chatOf } from './chat.ts';
import { readFailed, withoutChat } from './errors.ts';
import type { TelegramOptions } from './options.ts';

/**
 * Figures of chats. The network answers with the number of members, and with nothing about a message: figures of messages
 * come from stored updates to the operator's bot. Where the network pushed nothing of a figure, the figure is null.
 */

type Account = PublishRequest['account'];
type NoFigures = Exclude<PostInsightsAnswer, { kind: 'reported' | 'removed' }>;

export class TelegramInsights implements InsightsSource {
  readonly insightsVersion = 'telegram/1';
  readonly minIntervalMs = 300_000;
  readonly maxAheadMs = 300_000;
  readonly #options: TelegramOptions;

  constructor(options: TelegramOptions) {
    this.#options = options;
  }

  async *fetchPostInsights(
    _platform: Platform,
    account: Account,
    posts: readonly InsightsSubject[],
    signal: AbortSignal,
  ): AsyncGenerator<PostInsightsAnswer> {
    signal.throwIfAborted();
    if (posts.length === 0) return;
    const chat = await chatOf(this.#options, account.id);
    if ('failure' in chat) {
      for (const _ of posts) yield this.#without(withoutChat(chat.failure));
      return;
    }
    const own = posts.flatMap(({ externalId }) => {
      const post = postOf(externalId);
      return post !== null && post.chatId === chat.chatId ? [post.messageId] : [];
    });
    const pushed = await this.#options.pushed?.of(chat.chatId, own);
    signal.throwIfAborted();
    for (const { externalId } of posts) {
      const observedAt = new Date(this.#options.clock()).toISOString();
      const post = postOf(externalId);
      if (post?.chatId !== chat.chatId) yield { kind: 'removed', raw: null, observedAt };
      else {
        const { reactions = null, comments = null } = pushed?.get(post.messageId) ?? {};
        const raw = {
          ...(reactions === null ? {} : { message_reaction_count: reactions }),
          ...(comments === null ? {} : { discussion: { messages: comments } }),
        };
        yield { kind: 'reported', raw, observedAt, fields: ['likes', 'comments'] };
      }
    }
  }

  async fetchAccountInsights(
    _platform: Platform,
    account: Account,
    signal: AbortSignal,
  ): Promise<AccountInsightsAnswer> {
    signal.throwIfAborted();
    const chat = await chatOf(this.#options, account.id);
    if ('failure' in chat) return this.#without(withoutChat(chat.failure));
    const ask = (method: string) => {
      const subject = { accountId: account.id, targetId: null };
      const fields = { chat_id: Number(chat.chatId) };
      return callFor(this.#options, chat, { method, fields, subject }, signal);
    };
    const members = await ask('getChatMemberCount');
    signal.throwIfAborted();
    if (members.kind !== 'ok') return this.#unread(members);
    const shown = await ask('getChat');
    signal.throwIfAborted();
    if (shown.kind !== 'ok') return this.#unread(shown);
    const said = Date.parse(members.date ?? '');
    return {
      kind: 'reported',
      raw: { getChatMemberCount: members.result },
      observedAt: instantOf(said) ?? new Date(this.#options.clock()).toISOString(),
      figuresOf: null,
      profile: {
        username: textIn(shown.result, 'username') || null,
        displayName: textIn(shown.result, 'title') || null,
        // Its address would hold the token.
        avatarUrl: null,
      },
    };
  }

  #unread(result: Exclude<ApiResult, { readonly kind: 'ok' }>): NoFigures {
    return this.#without(readFailed(result, this.#options.clock()));
  }

  #without(failed: ReturnType<typeof readFailed>): NoFigures {
    if (failed.kind === 'rate_limited') return { kind: 'rate_limited', retryAt: failed.retryAt };
    const { category } = failed.failure;
    const reason = failed.failure.platformMessage ?? failed.failure.message;
    return category === 'reauth_required' || category === 'permission'
      ? { kind: 'reauth_required', reason }
      : { kind: 'unavailable', reason };
  }
}
