import type { Credential, CredentialStore, NewCredential } from '#contracts/ports/credentials.ts';
import type { Json } from '#contracts/ports/platform.ts';
import type { Failure } from '#schemas/target.ts';
import { reauth } from '../kit/errors.ts';
import { membersOf, textIn } from '../shared/members.ts';
import { type ApiAsk, type ApiOptions, type ApiResult, callApi, isToken } from './api.ts';
import { oursToMend } from './errors.ts';
import type { TelegramOptions } from './options.ts';

/** The secret of an account: the bot that posts, and the chat it posts to. */

/**
 * The operator's token stands in the configuration alone: once it is rotated there, every chat goes on, and no guest
 * connects anew.
 */
export const secretOf = (token: string | 'operator', chatId: string): NewCredential['secret'] =>
  token === 'operator' ? { operatorBot: true, chatId } : { botToken: token, chatId };

export const isOfOperator = ({ secret }: Credential): boolean => secret.operatorBot === true;

export interface Chat {
  readonly version: number;
  readonly token: string;
  readonly chatId: string;
  readonly isOperators: boolean;
}

const chatForm = /^-?\d{1,16}$/;
export const isChatId = (id: string): boolean => chatForm.test(id);

const none = reauth('there is no bot token and chat of this account');
const noBot = oursToMend('this installation has no bot of Telegram any more (TELEGRAM_BOT_TOKEN)');

type ChatOptions = Pick<TelegramOptions, 'credentials' | 'operatorToken'>;

/** A failure: there is none that can be used. @throws MissingKey */
export const chatOf = async (
  { credentials, operatorToken }: ChatOptions,
  accountId: string,
): Promise<Chat | { readonly failure: Failure }> => {
  const kept = await credentials.read(accountId);
  const secret = membersOf(kept?.secret as Json | undefined) ?? {};
  const chatId = textIn(secret, 'chatId');
  if (kept === null || chatId === null || !isChatId(chatId)) return { failure: none };
  const isOperators = isOfOperator(kept);
  const token = isOperators ? operatorToken : textIn(secret, 'botToken');
  if (isOperators && token === null) return { failure: noBot };
  return token === null || !isToken(token) ? { failure: none } : { version: kept.version, token, chatId, isOperators };
};

/** A call for the chat by its bot. */
export const callFor = async (
  options: ApiOptions,
  { token, isOperators }: Chat,
  ask: Omit<ApiAsk, 'token'>,
  signal: AbortSignal,
): Promise<ApiResult> => {
  const result = await callApi(options, { ...ask, token }, signal);
  return result.kind === 'refused' && isOperators ? { ...result, isOperators } : result;
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
