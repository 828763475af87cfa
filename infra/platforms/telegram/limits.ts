import type { NetworkCall } from '#contracts/ports/network-http.ts';
import { postingWindows } from '#domain/platforms/posting-windows.ts';
import type { ApiResult } from './api.ts';
import type { TelegramOptions } from './options.ts';

/**
 * Telegram tells no figures, only how long a chat must wait (`retry_after`): until then the window of its documents is
 * full, and the chat's other posts need not be refused one by one.
 */
export const tellLimits = (
  { onLimits, clock }: Pick<TelegramOptions, 'onLimits' | 'clock'>,
  { accountId }: NetworkCall['subject'],
  result: ApiResult,
): void => {
  if (result.kind !== 'refused' || result.code !== 429 || result.retryAfter === null) return;
  const resetsAt = new Date(clock() + Math.min(result.retryAfter, 86_400) * 1_000).toISOString();
  onLimits?.(
    accountId,
    postingWindows.telegram.map((one) => ({ ...one, used: one.limit, resetsAt })),
  );
};
