/**
 * The adapter of Telegram: a bot sends messages to a chat. A bot reads nothing back, and a send takes no key, so an effect
 * that is unknown stays unknown.
 */
import type {
  CommentOutcome,
  CommentRequest,
  FindOutcome,
  PlatformAdapter,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  ReconcileOutcome,
  RemovalOutcome,
  RemovalRequest,
} from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { commentTooLate, publishTooLate, unknown } from '../kit/errors.ts';
import { textIn } from '../shared/members.ts';
import { postOf, publishedAs } from './answers.ts';
import type { ApiResult } from './api.ts';
import { type Chat, callFor, chatOf, moveChat } from './chat.ts';
import { checkEntities } from './entities.ts';
import { contentFailure, readFailed, sendFailed, withoutChat } from './errors.ts';
import { tellLimits } from './limits.ts';
import { messageOf, type Send } from './message.ts';
import type { TelegramOptions } from './options.ts';

/** A reply to the post in the same chat. It has no markup: its text is what its author typed. */
const commentOn = async (
  options: Pick<TelegramOptions, 'http' | 'api' | 'separator' | 'clock' | 'onLimits'>,
  chat: Chat,
  { account, targetId, externalId, content }: CommentRequest,
  signal: AbortSignal,
): Promise<CommentOutcome> => {
  const { chatId } = chat;
  const post = postOf(externalId);
  // Messages of a group before it became a supergroup stay in the group.
  if (post === null || post.chatId !== chatId) {
    return { kind: 'failed', failure: contentFailure('the post is no message of this chat') };
  }
  const fields = {
    chat_id: Number(chatId),
    text: content,
    reply_parameters: { message_id: post.messageId },
  };
  const subject = { accountId: account.id, targetId };
  const result = await callFor(options, chat, { method: 'sendMessage', fields, subject }, signal);
  tellLimits(options, subject, result);
  if (result.kind === 'silent') return { kind: 'unknown', failure: unknown(result.reason) };
  if (result.kind === 'refused' && result.code >= 500) {
    return { kind: 'unknown', failure: unknown(`${result.code} ${result.description}`) };
  }
  if (result.kind !== 'ok') return readFailed(result, options.clock());
  const made = publishedAs(result.result, chatId, null, options.clock());
  return made === null
    ? { kind: 'unknown', failure: unknown('the answer names no message') }
    : { kind: 'posted', externalId: made.externalId };
};

export class TelegramAdapter implements PlatformAdapter {
  readonly boundaryDeadlineMs: number;
  readonly #options: TelegramOptions;

  constructor(options: TelegramOptions) {
    this.#options = options;
    this.boundaryDeadlineMs = options.boundaryDeadlineMs ?? 120_000;
  }

  settleWindowMs(): number {
    return rulesOf('telegram').publish.settleWindowMs;
  }

  absenceIsProof(): boolean {
    return rulesOf('telegram').publish.absenceIsProof;
  }

  listsOwnPosts(): boolean {
    return rulesOf('telegram').publish.listsOwnPosts;
  }

  async publish(request: PublishRequest, steps: PublishSteps): Promise<PublishOutcome> {
    steps.signal.throwIfAborted();
    const { credentials, http, clock } = this.#options;
    const wrong = checkEntities(request.content, request.overrides.parseMode);
    if (wrong !== null) return { kind: 'failed', failure: contentFailure(wrong) };
    const chat = await chatOf(this.#options, request.account.id);
    if ('failure' in chat) return withoutChat(chat.failure);
    // Finds a dead token, a lost chat and a network that is down while it is still certain that nothing is out.
    const subject = { accountId: request.account.id, targetId: request.targetId };
    const fields = { chat_id: Number(chat.chatId) };
    const seen = await callFor(this.#options, chat, { method: 'getChat', fields, subject }, steps.signal);
    tellLimits(this.#options, subject, seen);
    steps.signal.throwIfAborted();
    if (seen.kind !== 'ok') return readFailed(seen, clock());
    const { first, then } = await messageOf(request, chat.chatId);
    steps.signal.throwIfAborted();
    const send = (one: Send, to: Chat, signal: AbortSignal): Promise<ApiResult> =>
      callFor(
        { ...this.#options, http },
        to,
        {
          ...{ method: one.method, subject, files: one.files, onSent: (bytes) => steps.moved(bytes) },
          fields: { ...one.fields, chat_id: Number(to.chatId) },
        },
        signal,
      );
    const signal = await steps.boundary({ chatId: chat.chatId, method: first.method });
    if (signal.aborted) return publishTooLate;
    let to = chat;
    let result = await send(first, to, signal);
    // The refusal of a chat that moved made nothing, so one more call is the same crossing.
    if (result.kind === 'refused' && result.code === 400 && result.migrateTo !== null) {
      to = { ...chat, chatId: result.migrateTo };
      await moveChat(credentials, request.account.id, chat, to.chatId, signal);
      if (signal.aborted) return sendFailed({ kind: 'unsent', reason: 'aborted' }, false, clock());
      result = await send(first, to, signal);
    }
    tellLimits(this.#options, subject, result);
    if (result.kind !== 'ok') return sendFailed(result, first.method === 'sendMediaGroup', clock());
    const username = textIn(seen.result, 'username') || null;
    const published = publishedAs(result.result, to.chatId, username, clock());
    if (published === null) return { kind: 'unknown', failure: unknown('the answer names no message') };
    if (then === null) return published;
    return this.#withText(published, await send(then, to, signal));
  }

  /** The media are out. Without its text the post is not what was asked for, and another attempt would double them. */
  #withText(published: Extract<PublishOutcome, { readonly kind: 'published' }>, result: ApiResult): PublishOutcome {
    if (result.kind === 'ok') return published;
    const why = result.kind === 'refused' ? `${result.code} ${result.description}` : result.reason;
    const where = published.permalink ?? published.externalId;
    return {
      kind: 'unknown',
      failure: unknown(`the media are out (${where}), the text after them is not certain: ${why}`),
    };
  }

  async reconcile(): Promise<ReconcileOutcome> {
    return {
      kind: 'undecided',
      failure: unknown('Telegram shows a bot none of its own messages: look into the chat'),
    };
  }

  /** A bot reads none of its own messages. */
  async findPosts(): Promise<FindOutcome> {
    return { kind: 'not_askable' };
  }

  async comment(request: CommentRequest, signal: AbortSignal): Promise<CommentOutcome> {
    if (signal.aborted) return commentTooLate;
    const chat = await chatOf(this.#options, request.account.id);
    if ('failure' in chat) return withoutChat(chat.failure);
    if (signal.aborted) return commentTooLate;
    return commentOn(this.#options, chat, request, signal);
  }

  /** Telegram deletes a bot's own message for 48 hours. */
  async removePost({ account, externalId }: RemovalRequest, signal: AbortSignal): Promise<RemovalOutcome> {
    const chat = await chatOf(this.#options, account.id);
    if ('failure' in chat) return { kind: 'not_removed', failure: chat.failure };
    const post = postOf(externalId);
    if (post?.chatId !== chat.chatId) {
      return { kind: 'not_removed', failure: contentFailure('the post is no message of this chat') };
    }
    const fields = { chat_id: Number(chat.chatId), message_id: post.messageId };
    const subject = { accountId: account.id, targetId: null };
    const result = await callFor(this.#options, chat, { method: 'deleteMessage', fields, subject }, signal);
    const isGone = result.kind === 'refused' && /message to delete not found/i.test(result.description);
    if (result.kind === 'ok' || isGone) return { kind: 'removed' };
    return { kind: 'not_removed', failure: readFailed(result, this.#options.clock()).failure };
  }
}
