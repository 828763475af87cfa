import type { ConnectCodes } from '#contracts/ports/connect-codes.ts';
import type { PushedPosts } from '#contracts/ports/pushed-posts.ts';
import { TelegramAdapter } from './adapter.ts';
import { TelegramInsights } from './insights.ts';
import { TelegramListener } from './listener.ts';
import { operatorConnector } from './operator-bot.ts';
import type { TelegramOptions } from './options.ts';
import { ownBotConnector } from './own-bot.ts';

/** Telegram, with the operator's bot where there is one, and with bots of the guests' own. */

export interface TelegramConfig {
  /** Null: the operator has no bot. */
  readonly telegramBotToken: string | null;
  readonly telegramApi: string;
}

export const liveTelegram = (
  shared: Omit<TelegramOptions, 'operatorToken' | 'api' | 'pushed'> & {
    readonly codes: ConnectCodes;
    readonly pushed: PushedPosts;
  },
  { telegramBotToken: operatorToken, telegramApi: api }: TelegramConfig,
) => {
  const { http, codes, pushed } = shared;
  const options = { ...shared, api, operatorToken };
  const ownBot = ownBotConnector({ http, api });
  const each = { adapter: new TelegramAdapter(options), source: new TelegramInsights(options) };
  if (operatorToken === null) return { ...each, connectors: [ownBot] };
  const ofBot = { http, api, token: operatorToken, codes };
  return {
    ...each,
    connectors: [operatorConnector(ofBot), ownBot],
    listener: new TelegramListener({ ...ofBot, pushed }),
  };
};
