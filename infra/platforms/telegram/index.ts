export { TelegramAdapter } from './adapter.ts';
export { newCode, type Posted } from './codes.ts';
export { type CheckedBot, type CheckedChat, checkBot, checkChat } from './connect.ts';
export type { Heard, HeardFigures } from './heard.ts';
export { TelegramInsights } from './insights.ts';
export type { TelegramOptions } from './options.ts';
export { telegramConnector } from './own-bot.ts';
export { type Listener, type ListenLease, type ListenLeases, type ListenOptions, listen } from './poller.ts';
