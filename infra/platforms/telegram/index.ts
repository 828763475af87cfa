export { TelegramAdapter } from './adapter.ts';
export { newCode } from './codes.ts';
export { checkBot, checkChat } from './connect.ts';
export { TelegramInsights } from './insights.ts';
export { TelegramListener, type TelegramListenerOptions } from './listener.ts';
export { liveTelegram, type TelegramConfig } from './live.ts';
export { type OperatorBotOptions, operatorConnector } from './operator-bot.ts';
export type { TelegramOptions } from './options.ts';
export { ownBotConnector } from './own-bot.ts';
