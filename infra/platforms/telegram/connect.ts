import type { ConnectedProfile } from '#contracts/ports/connector.ts';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import { type ApiOptions, type ApiResult, callApi, isToken } from './api.ts';
import { isChatId } from './chat.ts';
import { failureOf } from './errors.ts';
import { idIn } from './shapes.ts';

/**
 * Connects a chat to a bot, the operator's or one of the guest's own. Which chat it is comes from a code that was posted
 * in it (`codes.ts`), never from a form: a name proves nothing.
 */

export type CheckedChat =
  | { readonly kind: 'connected'; readonly profile: ConnectedProfile; readonly credential: NewCredential }
  /** `words`: for the guest, what is wrong and what to do. */
  | { readonly kind: 'refused'; readonly words: string };

export type CheckedBot =
  | { readonly kind: 'bot'; readonly id: string; readonly username: string }
  | { readonly kind: 'refused'; readonly words: string };

const subject = { accountId: '', targetId: null };
const refused = (words: string) => ({ kind: 'refused', words }) as const;
const later = 'Telegram does not answer now. Try again in a few minutes.';
const noToken = 'Telegram does not take this bot token. Copy it anew from @BotFather.';

const ask = (options: ApiOptions, token: string, method: string, fields: Members, signal: AbortSignal) =>
  callApi(options, { token, method, fields, subject }, signal);

const wordsOf = (result: Exclude<ApiResult, { readonly kind: 'ok' }>): string => {
  if (result.kind !== 'refused') return later;
  const { category } = failureOf(result);
  if (category === 'reauth_required') return noToken;
  if (category === 'permission') return 'The bot is not in this chat any more. Add it as an administrator.';
  return later;
};

/** Whose token this is. */
export const checkBot = async (options: ApiOptions, token: string, signal: AbortSignal): Promise<CheckedBot> => {
  if (!isToken(token)) return refused('A bot token has the form 123456789:ABC. Copy it from @BotFather.');
  const me = await ask(options, token, 'getMe', {}, signal);
  if (me.kind !== 'ok') return refused(wordsOf(me));
  const [id, username] = [idIn(me.result, 'id'), textIn(me.result, 'username')];
  return id === null || username === null ? refused(later) : { kind: 'bot', id, username };
};

/** Whether the bot may post there now. */
export const checkChat = async (
  options: ApiOptions,
  { token, chatId }: { readonly token: string; readonly chatId: string },
  signal: AbortSignal,
): Promise<CheckedChat> => {
  const bot = await checkBot(options, token, signal);
  if (bot.kind === 'refused') return bot;
  if (!isChatId(chatId)) return refused('This is no chat of Telegram.');
  const fields = { chat_id: Number(chatId) };
  const chat = await ask(options, token, 'getChat', fields, signal);
  if (chat.kind !== 'ok') return refused(wordsOf(chat));
  const member = await ask(options, token, 'getChatMember', { ...fields, user_id: Number(bot.id) }, signal);
  if (member.kind !== 'ok') return refused(wordsOf(member));
  const type = textIn(chat.result, 'type');
  const rights = rightsOf(type, membersOf(member.result) ?? {});
  if (rights === null) {
    return refused(
      type === 'channel'
        ? `Make @${bot.username} an administrator of the channel with the right to post messages.`
        : `@${bot.username} may not send messages in this group. Allow it, and try again.`,
    );
  }
  return {
    kind: 'connected',
    credential: { secret: { botToken: token, chatId: idIn(chat.result, 'id') ?? chatId }, expiresAt: null },
    profile: {
      externalId: idIn(chat.result, 'id') ?? chatId,
      username: textIn(chat.result, 'username') || null,
      displayName: textIn(chat.result, 'title') || null,
      // Its address would hold the token.
      avatarUrl: null,
      scopes: rights,
      consentEndsAt: null,
    },
  };
};

/** Null: the bot may not post. */
const rightsOf = (type: string | null, member: Members): readonly string[] | null => {
  const isAdmin = member.status === 'administrator' || member.status === 'creator';
  if (type === 'channel') {
    return member.status === 'creator' || (isAdmin && member.can_post_messages === true) ? ['can_post_messages'] : null;
  }
  if (type !== 'group' && type !== 'supergroup') return null;
  if (isAdmin || member.status === 'member') return ['can_send_messages'];
  return member.status === 'restricted' && member.can_send_messages === true ? ['can_send_messages'] : null;
};
