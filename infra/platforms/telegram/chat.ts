import type { CredentialStore } from '#contracts/ports/credentials.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { textIn } from '../shared/members.ts';
import { isToken } from './api.ts';

/** The secret of an account: the bot that posts, and the chat it posts to. */
export interface Chat {
  readonly version: number;
  readonly token: string;
  readonly chatId: string;
}

const chatForm = /^-?\d{1,16}$/;
export const isChatId = (id: string): boolean => chatForm.test(id);

/** Null: there is none that can be used. @throws MissingKey */
export const chatOf = async (credentials: CredentialStore, accountId: string): Promise<Chat | null> => {
  const kept = await credentials.read(accountId);
  if (kept === null) return null;
  const token = textIn(kept.secret as Json, 'botToken');
  const chatId = textIn(kept.secret as Json, 'chatId');
  if (token === null || chatId === null || !isToken(token) || !isChatId(chatId)) return null;
  return { version: kept.version, token, chatId };
};

/** A group that became a supergroup has another id from then on. */
export const moveChat = async (
  credentials: CredentialStore,
  accountId: string,
  { version }: Chat,
  to: string,
  signal: AbortSignal,
): Promise<void> => {
  await credentials.refresh(
    accountId,
    version,
    async ({ secret, expiresAt }) => ({
      kind: 'refreshed',
      credential: { secret: { ...secret, chatId: to }, expiresAt },
    }),
    signal,
  );
};
