import { randomInt } from 'node:crypto';
import type { Json } from '#contracts/ports/platform.ts';
import { integerIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { type ApiOptions, callApi } from './api.ts';
import { idIn } from './shapes.ts';

/** One-time codes, posted in a chat by somebody who may speak for it: `/connect CODE`. */

/** Without letters and digits that look alike. */
const alphabet = 'ABCDEFGHJKMNPQRSTUVWXYZ23456789';
const length = 10;

/** About 2^49 of them. */
export const newCode = (): string => Array.from({ length }, () => alphabet.charAt(randomInt(alphabet.length))).join('');

const command = /^\/connect(?:@\w{1,64})?[ \n]{1,4}([A-HJKMNP-Z2-9]{10})$/i;

/** Null: the message is no such command. */
export const codeIn = (text: string): string | null =>
  text.length > 200 ? null : (command.exec(text.trim())?.[1]?.toUpperCase() ?? null);

export interface Posted {
  readonly code: string;
  readonly chatId: string;
  /** The person who wrote it, in a group; null: the chat itself, as its administrators do. */
  readonly writerId: string | null;
}

/** A forwarded command speaks for the chat that it came from, so it counts nowhere else. */
export const postedIn = (update: Json): Posted | null => {
  const inChannel = membersOf(membersOf(update)?.channel_post);
  const message = inChannel ?? membersOf(membersOf(update)?.message);
  if (message === null || message.forward_origin !== undefined || message.via_bot !== undefined) return null;
  const chatId = idIn(message.chat, 'id');
  const code = codeIn(textIn(message, 'text') ?? '');
  if (chatId === null || code === null) return null;
  if (inChannel !== null || idIn(message.sender_chat, 'id') === chatId) return { code, chatId, writerId: null };
  // Another chat speaks there, such as the channel of a stranger.
  if (message.sender_chat !== undefined) return null;
  const writerId = idIn(message.from, 'id');
  return writerId === null ? null : { code, chatId, writerId };
};

/** Whether the writer of a code may connect the chat. Null: the network did not say. */
export const speaksFor = async (
  options: ApiOptions,
  token: string,
  { chatId, writerId }: Posted,
  signal: AbortSignal,
): Promise<boolean | null> => {
  if (writerId === null) return true;
  const fields: Members = { chat_id: Number(chatId), user_id: Number(writerId) };
  const subject = { accountId: '', targetId: null };
  const member = await callApi(options, { token, method: 'getChatMember', fields, subject }, signal);
  if (member.kind === 'refused' && member.code >= 400 && member.code < 500 && member.code !== 429) return false;
  if (member.kind !== 'ok') return null;
  const status = textIn(member.result, 'status');
  return status === 'creator' || status === 'administrator';
};

export const updateIdOf = (update: Json): number | null => integerIn(update, 'update_id');
