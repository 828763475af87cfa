import type { CommentOutcome, CommentRequest } from '#contracts/ports/platform.ts';
import { postOf, publishedAs } from './answers.ts';
import { type Chat, callFor } from './chat.ts';
import { contentFailure, readFailed, unknown } from './errors.ts';
import { tellLimits } from './limits.ts';
import type { TelegramOptions } from './options.ts';

/** A reply to the post in the same chat. It has no markup: its text is what its author typed. */
export const commentOn = async (
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
