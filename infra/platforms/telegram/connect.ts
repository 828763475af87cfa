import type { ConnectedProfile, RefusedConnect } from '#contracts/ports/connector.ts';
import type { NewCredential } from '#contracts/ports/credentials.ts';
import { type Members, membersOf, textIn } from '../shared/members.ts';
import { type ApiOptions, type ApiResult, callApi, isToken } from './api.ts';
import { isChatId, secretOf } from './chat.ts';
import { failureOf, isDeadToken } from './errors.ts';
import { idIn } from './shapes.ts';

/** Connects a chat to a bot, the operator's or one of the guest's own. */

export type CheckedChat =
  | { readonly kind: 'connected'; readonly profile: ConnectedProfile; readonly credential: NewCredential }
  | RefusedConnect;

export interface KnownBot {
  readonly kind: 'bot';
  readonly id: string;
  readonly username: string;
  readonly token: string;
  readonly isOperators: boolean;
}

const subject = { accountId: '', targetId: null };
const refused = (words: string) => ({ kind: 'refused', words }) as const;
export const later = 'Telegram does not answer now. Try again in a few minutes.';
const noToken = 'Telegram does not take this bot token. Copy it anew from @BotFather.';
const ofOperator = 'Telegram refuses our bot. Tell the people who sent you the link: only they can mend it.';

const ask = (options: ApiOptions, token: string, method: string, fields: Members, signal: AbortSignal) =>
  callApi(options, { token, method, fields, subject }, signal);

const refusedAs = (result: Exclude<ApiResult, { readonly kind: 'ok' }>, isOperators: boolean): RefusedConnect => {
  if (result.kind !== 'refused') return refused(later);
  if (isOperators && isDeadToken(result.code)) {
    const operator = `Telegram does not take TELEGRAM_BOT_TOKEN: ${result.code} ${result.description}`;
    return { ...refused(ofOperator), operator };
  }
  const { category } = failureOf(result);
  if (category === 'reauth_required') return refused(noToken);
  if (category === 'permission') return refused('The bot is not in this chat any more. Add it as an administrator.');
  return refused(later);
};

/** Whose token this is. */
export const checkBot = async (
  options: ApiOptions,
  { token, isOperators }: Pick<KnownBot, 'token' | 'isOperators'>,
  signal: AbortSignal,
): Promise<KnownBot | RefusedConnect> => {
  if (!isToken(token)) return refused('A bot token has the form 123456789:ABC. Copy it from @BotFather.');
  const me = await ask(options, token, 'getMe', {}, signal);
  if (me.kind !== 'ok') return refusedAs(me, isOperators);
  const [id, username] = [idIn(me.result, 'id'), textIn(me.result, 'username')];
  return id === null || username === null ? refused(later) : { kind: 'bot', id, username, token, isOperators };
};

/** Whether the bot may post there now. */
export const checkChat = async (
  options: ApiOptions,
  bot: KnownBot,
  chatId: string,
  signal: AbortSignal,
): Promise<CheckedChat> => {
  if (!isChatId(chatId)) return refused('This is no chat of Telegram.');
  const fields = { chat_id: Number(chatId) };
  const chat = await ask(options, bot.token, 'getChat', fields, signal);
  if (chat.kind !== 'ok') return refusedAs(chat, bot.isOperators);
  const member = await ask(options, bot.token, 'getChatMember', { ...fields, user_id: Number(bot.id) }, signal);
  if (member.kind !== 'ok') return refusedAs(member, bot.isOperators);
  const type = textIn(chat.result, 'type');
  const rights = rightsOf(type, membersOf(member.result) ?? {});
  if (rights === null) {
    return refused(
      type === 'channel'
        ? `Make @${bot.username} an administrator of the channel with the right to post messages.`
        : `@${bot.username} may not send messages in this group. Allow it, and try again.`,
    );
  }
  const externalId = idIn(chat.result, 'id') ?? chatId;
  return {
    kind: 'connected',
    credential: { secret: secretOf(bot.isOperators ? 'operator' : bot.token, externalId), expiresAt: null },
    profile: {
      externalId,
      username: textIn(chat.result, 'username') || null,
      displayName: textIn(chat.result, 'title') || null,
      // Its address would hold the token.
      avatarUrl: null,
      scopes: rights,
      consentEndsAt: null,
    },
  };
};

/** Why the bot cannot post there, for the account's owner. Null: it can. Undefined: Telegram did not say. */
export const lossIn = (checked: CheckedChat): string | null | undefined => {
  if (checked.kind === 'connected') return null;
  return checked.words === later || checked.operator !== undefined ? undefined : checked.words;
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
