import { type Static, Type } from 'typebox';
import type { Warning } from '#schemas/http/common.ts';
import type { Cuts } from './cuts.ts';
import { Nullable } from './words.ts';

/** What an answer to a model says beside the result: problems and warnings. */

export const Notice = Type.Object({
  code: Type.String(),
  message: Type.String(),
  platform: Nullable(Type.String()),
  accountId: Nullable(Type.String()),
});
export type Notice = Static<typeof Notice>;

export const maxNotices = 20;

/** The member of a body as the argument of a tool. */
const argumentOf = (path: string): string =>
  path.replace('/overrides/', '/settings/').replace('Override', '').replace('/mediaAltTexts', '/altTexts');

export const noticeOf = ({
  code,
  path = '',
  message,
  willFail = false,
  platform = null,
  accountId = null,
}: Pick<Warning, 'code' | 'message'> & {
  readonly path?: string;
  readonly willFail?: boolean;
  readonly platform?: string | null;
  readonly accountId?: string | null;
}): Notice => ({
  code,
  message: `${willFail ? 'It would fail: ' : ''}${path === '' ? '' : `${argumentOf(path)} `}${message}`,
  platform,
  accountId,
});

const noticeLine = ({ code, message, platform }: Notice): string =>
  `- ${platform === null ? '' : `${platform}: `}${message} (${code})`;

export const noticeLines = (cuts: Cuts, title: string, notices: readonly Notice[], of: string): readonly string[] =>
  notices.length === 0 ? [] : [title, ...cuts.rows(of, notices, 8).map(noticeLine)];
