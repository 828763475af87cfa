export { TelegramAdapter } from './adapter.ts';
export { TelegramInsights } from './insights.ts';
export type { TelegramOptions } from './options.ts';
