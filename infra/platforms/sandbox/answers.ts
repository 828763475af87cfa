/** The sandbox's answers when it does not publish, with each network's own codes. */
import { type FailureCode, failureCodes } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import type { NetworkRefusal } from './imitation.ts';
import { imitations } from './imitations.ts';

const ours: Readonly<
  Record<NetworkRefusal, Pick<Failure, 'category' | 'retryable' | 'actor'> & { code: FailureCode }>
> = {
  rate_limit: { category: 'rate_limited', code: 'network_rate_limited', retryable: true, actor: 'platform' },
  token_death: { category: 'reauth_required', code: 'reauth_required', retryable: true, actor: 'user' },
  reject: { category: 'invalid_content', code: 'content_rejected', retryable: false, actor: 'user' },
  duplicate: { category: 'duplicate', code: 'duplicate_content', retryable: false, actor: 'user' },
};

const words: Readonly<Record<NetworkRefusal, string>> = {
  rate_limit: 'Too many requests',
  token_death: 'The access token is no longer valid',
  reject: 'The content was rejected',
  duplicate: 'The content is a duplicate',
};

export const refused = (platform: Platform, name: NetworkRefusal): Failure => ({
  ...ours[name],
  message: failureCodes[ours[name].code],
  platformCode: imitations[platform].refusals[name],
  platformMessage: words[name],
  mediaId: null,
});

/** The connection lacks the permission to comment. */
export const commentForbidden = (platformCode: string): Failure => ({
  ...plain('permission', 'comment_not_permitted', false, 'user', '403 Forbidden'),
  platformCode,
});

/** The account may set no cover. */
export const coverForbidden = (platformCode: string): Failure => ({
  ...plain('permission', 'cover_not_permitted', false, 'user', '403 Forbidden'),
  platformCode,
});

/** One of the files is at fault. */
export const mediaRefused = (platform: Platform, mediaId: string, said: string): Failure => ({
  ...refused(platform, 'reject'),
  platformMessage: said,
  mediaId,
});

const plain = (
  category: Failure['category'],
  code: FailureCode,
  retryable: boolean,
  actor: Failure['actor'],
  platformMessage: string | null,
): Failure => ({
  category,
  code,
  message: failureCodes[code],
  platformCode: null,
  platformMessage,
  retryable,
  actor,
  mediaId: null,
});

/** The network no longer answers the version of its API that was asked for. */
export const versionEnded = (version: string): Failure => ({
  ...plain('permission', 'api_version_ended', true, 'service', `Requested version ${version} is not active`),
  platformCode: '426',
});

/** Only the operator can prove that the addresses of files are the operator's: the post waits. */
export const addressUnproven = (platformCode: string): Failure => ({
  ...plain('transient', 'network_down', true, 'service', 'The ownership of the address is not verified'),
  platformCode,
});

/** The network's own scheduler refuses: a time outside of its window, or to delete a post that is (nearly) published. */
export const schedulerRefused = (platform: Platform, name: 'outside_window' | 'too_late'): Failure => ({
  ...(name === 'outside_window'
    ? plain('invalid_content', 'outside_native_window', true, 'platform', 'The scheduled time is invalid')
    : plain('permission', 'undo_too_late', false, 'platform', 'The post can no longer be deleted')),
  platformCode: imitations[platform].scheduler?.refusals[name] ?? null,
});

/** The network's own scheduler could not publish a post at its time. */
export const schedulerFailed = () =>
  plain('unknown', 'native_publish_failed', true, 'platform', 'The scheduled post could not be published');

export const down = (said: string) => plain('platform_down', 'network_down', true, 'platform', said);
export const stillProcessing = () => plain('transient', 'processing_timeout', true, 'platform', null);
export const contentChanged = () => plain('invalid_content', 'content_changed', false, 'user', null);
export const unknown = (said: string) => plain('unknown', 'outcome_unknown', false, 'platform', said);
