import { randomUUID } from 'node:crypto';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { integerIn, type Members, parsed, textIn } from '../shared/members.ts';
import { type FormFile, multipart } from './multipart.ts';
import { cloud, type TelegramOptions } from './options.ts';

/** Calls of the Bot API (core.telegram.org/bots/api, "Making requests"). The address holds the token. */

export interface ApiAsk {
  readonly token: string;
  readonly method: string;
  readonly fields: Members;
  readonly files?: readonly FormFile[];
  readonly subject: NetworkCall['subject'];
  readonly onSent?: (bytes: number) => void;
  /** The answer holds words of strangers, such as codes. */
  readonly isSecret?: true;
}

export interface Refused {
  readonly kind: 'refused';
  /** `error_code`, which is the status too. */
  readonly code: number;
  readonly description: string;
  /** Seconds; null: it names none. */
  readonly retryAfter: number | null;
  /** Null: the chat was not upgraded. */
  readonly migrateTo: string | null;
  /** The call was made with the operator's token, which an account's owner cannot mend. */
  readonly isOperators?: true;
}

export type ApiResult =
  | { readonly kind: 'ok'; readonly result: Json; readonly date: string | null }
  | Refused
  | { readonly kind: 'unsent'; readonly reason: string }
  | { readonly kind: 'silent'; readonly reason: string };

/** `{bot id}:{secret}`, whose members need no escape in an address. */
const tokenForm = /^\d{1,20}:[\w-]{1,200}$/;
export const isToken = (token: string): boolean => tokenForm.test(token);

const fieldText = (value: Json): string => (typeof value === 'string' ? value : JSON.stringify(value));

const bodyOf = ({ fields, files = [] }: ApiAsk, separator: () => string) => {
  if (files.length === 0) return { contentType: 'application/json', body: [Buffer.from(JSON.stringify(fields))] };
  const texts = Object.entries(fields).map(([name, value]) => [name, fieldText(value)] as const);
  return multipart(texts, files, separator());
};

const secondsOf = (said: number | string | null | undefined): number | null => {
  const seconds = Number(said ?? Number.NaN);
  return Number.isFinite(seconds) && seconds >= 0 ? seconds : null;
};

export const callApi = async (
  { http, api = cloud, separator = () => `postline-${randomUUID()}` }: ApiOptions,
  ask: ApiAsk,
  signal: AbortSignal,
): Promise<ApiResult> => {
  const { token, method, subject, onSent, isSecret } = ask;
  if (!isToken(token)) {
    return { kind: 'refused', code: 401, description: 'not a bot token', retryAfter: null, migrateTo: null };
  }
  const { contentType, body } = bodyOf(ask, separator);
  const result = await http.send(
    {
      method: 'POST',
      url: `${api}/bot${token}/${method}`,
      shownPath: `/bot…/${method}`,
      headers: { accept: 'application/json', 'content-type': contentType },
      body,
      subject,
      ...(onSent === undefined ? {} : { onSent }),
      ...(isSecret === undefined ? {} : { isSecret }),
    },
    signal,
  );
  if (result.kind !== 'answered') return result;
  const { status, headers } = result;
  const data = parsed(result.body);
  if (status === 200 && data?.ok === true && data.result !== undefined) {
    return { kind: 'ok', result: data.result, date: headers.date ?? null };
  }
  // A success that says nothing, or a page of something in between.
  if (status < 400) return { kind: 'silent', reason: 'bad_response' };
  const parameters = data?.parameters;
  const migrateTo = integerIn(parameters, 'migrate_to_chat_id');
  return {
    kind: 'refused',
    code: integerIn(data, 'error_code') ?? status,
    description: textIn(data, 'description') ?? '',
    retryAfter: secondsOf(integerIn(parameters, 'retry_after')) ?? secondsOf(headers['retry-after']),
    migrateTo: migrateTo === null ? null : String(migrateTo),
  };
};

export type ApiOptions = Pick<TelegramOptions, 'http' | 'api' | 'separator'>;
