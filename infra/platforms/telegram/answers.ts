import type { Json, PublishOutcome } from '#contracts/ports/platform.ts';
import { permalinkOf } from '#domain/platforms/index.ts';
import { instantOf, integerIn, type Members } from '../shared/members.ts';

/** A post is a message of a chat: its id is `{chat}:{message}`, an album's that of its first message. */
const postForm = /^(-?\d{1,16}):(\d{1,16})$/;

export const postOf = (externalId: string): { readonly chatId: string; readonly messageId: number } | null => {
  const [, chatId, messageId] = postForm.exec(externalId) ?? [];
  return chatId === undefined ? null : { chatId, messageId: Number(messageId) };
};

/** Supergroups and channels have ids that begin so; the rest of it stands in addresses. */
const channelForm = /^-100(\d{1,13})$/;

/** Basic groups have no addresses. */
const linkOf = (chatId: string, username: string | null, messageId: number): string | null => {
  const [, inside] = channelForm.exec(chatId) ?? [];
  if (inside === undefined) return null;
  const parts = { id: `${chatId}:${messageId}`, code: String(messageId), username, account: inside };
  return permalinkOf('telegram', parts);
};

/** Null: the answer names no message. @param username of the chat, where it is public */
export const publishedAs = (
  result: Json,
  chatId: string,
  username: string | null,
  now: number,
): Extract<PublishOutcome, { readonly kind: 'published' }> | null => {
  const message = (Array.isArray(result) ? (result as readonly Json[])[0] : result) as Members | undefined;
  const messageId = integerIn(message, 'message_id');
  if (messageId === null) return null;
  const date = integerIn(message, 'date');
  return {
    kind: 'published',
    externalId: `${chatId}:${messageId}`,
    permalink: linkOf(chatId, username, messageId),
    publishedAt: instantOf(date === null ? null : date * 1_000) ?? new Date(now).toISOString(),
  };
};
