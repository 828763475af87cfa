import type { Connected, FormConnector } from '#contracts/ports/connector.ts';
import { type ApiOptions, callApi } from './api.ts';
import { isChatId } from './chat.ts';
import { checkBot, checkChat, later } from './connect.ts';
import { idIn } from './shapes.ts';

/**
 * The form of the connect page, for a bot of the guest's own: a person who has its token can already post wherever the bot may,
 * so the name of such a chat gives them nothing more.
 */

const nameForm = /^[a-z]\w{3,31}$/i;

const connect = async (options: ApiOptions, typed: string, token: string, signal: AbortSignal): Promise<Connected> => {
  const bot = await checkBot(options, { token, isOperators: false }, signal);
  if (bot.kind === 'refused') return bot;
  if (isChatId(typed)) return checkChat(options, bot, typed, signal);
  const refused = {
    kind: 'refused',
    words: `@${bot.username} sees no such chat. Add it there, and give its @name.`,
  } as const;
  if (!nameForm.test(typed)) return refused;
  const ask = {
    token,
    method: 'getChat',
    fields: { chat_id: `@${typed}` },
    subject: { accountId: '', targetId: null },
  };
  const chat = await callApi(options, ask, signal);
  if (chat.kind === 'silent' || chat.kind === 'unsent') return { kind: 'refused', words: later };
  const chatId = chat.kind === 'ok' ? idIn(chat.result, 'id') : null;
  return chatId === null ? refused : checkChat(options, bot, chatId, signal);
};

export const ownBotConnector = (options: ApiOptions): FormConnector => ({
  kind: 'form',
  title: 'With a bot of your own',
  usernameLabel: 'Channel or group, such as @channel',
  secrets: [
    {
      name: 'botToken',
      label: 'Bot token',
      hint: 'from @BotFather; the bot is an administrator of the channel, with the right to post',
      maxLength: 300,
    },
  ],
  connect: (name, secrets, signal) =>
    connect(options, name.trim().replace(/^@/, ''), (secrets.get('botToken') ?? '').trim(), signal),
});
