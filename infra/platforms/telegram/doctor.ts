import type { Finding } from '#contracts/ports/finding.ts';
import { found, noAnswer, nobody, quoted } from '../shared/findings.ts';
import { membersOf, textIn } from '../shared/members.ts';
import { type ApiOptions, type ApiResult, callApi } from './api.ts';
import type { TelegramConfig } from './live.ts';

/**
 * The operator's bot. It asks only what disturbs nobody: a second listener of its updates would end the one of this
 * installation.
 */

export interface TelegramDoctorOptions extends Pick<ApiOptions, 'http'> {
  readonly config: TelegramConfig;
}

const noBot = (about: string, result: Exclude<ApiResult, { readonly kind: 'ok' }>, api: string): Finding => {
  if (result.kind !== 'refused') return noAnswer(about, api, result, 'TELEGRAM_API');
  const { code, description } = result;
  const words = `Telegram says ${quoted(description)}.`;
  return code === 401 || code === 404
    ? found('fix', about, words, 'Copy the token of the bot from @BotFather (/mybots), and set TELEGRAM_BOT_TOKEN.')
    : found('cannot_tell', about, words, 'Ask again in some minutes.');
};

export const examineTelegram = async (
  { http, config }: TelegramDoctorOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const { telegramBotToken: token, telegramApi: api } = config;
  if (token === null) {
    const words = 'TELEGRAM_BOT_TOKEN is not set: clients connect by bots of their own.';
    return [
      found('off', 'bot', words, 'Make a bot with @BotFather (/newbot), and set TELEGRAM_BOT_TOKEN to its token.'),
    ];
  }
  const ask = (method: string) => callApi({ http, api }, { token, method, fields: {}, subject: nobody }, signal);
  const me = await ask('getMe');
  if (me.kind !== 'ok') return [noBot('bot', me, api)];
  const { username, can_join_groups: joins, can_read_all_group_messages: readsAll } = membersOf(me.result) ?? {};
  const name = typeof username === 'string' && /^\w{1,64}$/.test(username) ? `@${username}` : 'a bot without a name';
  const webhook = await ask('getWebhookInfo');
  return [
    found('ok', 'bot', `The token is that of ${name}.`),
    joins === false
      ? found('fix', 'groups', `${name} may not be added to groups.`, '@BotFather: /setjoingroups, Enable.')
      : found('ok', 'groups', `${name} may be added to groups.`),
    readsAll === true
      ? found('ok', 'codes in groups', `${name} reads all messages of its groups.`)
      : found(
          'ok',
          'codes in groups',
          `${name} reads the codes of guests where it is an administrator (privacy mode).`,
        ),
    updatesOf(webhook, api),
  ];
};

const updatesOf = (webhook: ApiResult, api: string): Finding => {
  const about = 'updates';
  if (webhook.kind !== 'ok') return noBot(about, webhook, api);
  const url = textIn(webhook.result, 'url') ?? '';
  if (url === '') return found('ok', about, 'No webhook is set: this installation can listen.');
  const host = URL.canParse(url) ? new URL(url).host : 'another program';
  const words = `A webhook of ${quoted(host)} takes the updates: no code of a guest arrives here (409).`;
  const remedy = 'Call deleteWebhook with this token, or give the installation a bot of its own.';
  return found('fix', about, words, remedy);
};
