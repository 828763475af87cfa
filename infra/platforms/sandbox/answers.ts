/** What the sandbox says when it does not publish, in each network's own codes. */
import type { FailureCode } from '#domain/platforms/index.ts';
import { failureCodes } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';

type Refusal = 'rate_limit' | 'token_death' | 'reject' | 'duplicate';

const platformCodes: Readonly<Record<Platform, Readonly<Record<Refusal, string>>>> = {
  x: {
    rate_limit: '429 rate-limit-exceeded',
    token_death: '401 Unauthorized',
    reject: '403 not permitted to perform this action',
    duplicate: '403 duplicate content',
  },
  instagram: { rate_limit: '9/2207042', token_death: '190/460', reject: '36004/2207010', duplicate: '506' },
  tiktok: {
    rate_limit: 'spam_risk_too_many_posts',
    token_death: 'access_token_invalid',
    reject: 'invalid_params',
    duplicate: 'spam_risk',
  },
  youtube: {
    rate_limit: 'rateLimitExceeded',
    token_death: 'invalid_grant',
    reject: 'invalidVideoMetadata',
    duplicate: 'duplicate',
  },
  facebook: { rate_limit: '80001', token_death: '190/460', reject: '100', duplicate: '506' },
  linkedin: { rate_limit: '429/101', token_death: '401/65601', reject: 'PARAM_INVALID', duplicate: '422' },
  threads: { rate_limit: '613', token_death: '190/463', reject: '100', duplicate: '506' },
  pinterest: { rate_limit: '429/8', token_death: '401/2', reject: '400/1', duplicate: '400/1' },
  bluesky: {
    rate_limit: 'RateLimitExceeded',
    token_death: 'InvalidToken',
    reject: 'InvalidRequest',
    duplicate: 'InvalidRequest',
  },
  telegram: { rate_limit: '429', token_death: '401', reject: '400', duplicate: '400' },
};

const ours: Readonly<Record<Refusal, Pick<Failure, 'category' | 'retryable' | 'actor'> & { code: FailureCode }>> = {
  rate_limit: { category: 'rate_limited', code: 'network_rate_limited', retryable: true, actor: 'platform' },
  token_death: { category: 'reauth_required', code: 'reauth_required', retryable: true, actor: 'user' },
  reject: { category: 'invalid_content', code: 'content_rejected', retryable: false, actor: 'user' },
  duplicate: { category: 'duplicate', code: 'duplicate_content', retryable: false, actor: 'user' },
};

const words: Readonly<Record<Refusal, string>> = {
  rate_limit: 'Too many requests',
  token_death: 'The access token is no longer valid',
  reject: 'The content was rejected',
  duplicate: 'The content is a duplicate',
};

export const refused = (platform: Platform, name: Refusal): Failure => ({
  ...ours[name],
  message: failureCodes[ours[name].code],
  platformCode: platformCodes[platform][name],
  platformMessage: words[name],
  mediaId: null,
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

export const down = (said: string) => plain('platform_down', 'network_down', true, 'platform', said);
export const stillProcessing = () => plain('transient', 'processing_timeout', true, 'platform', null);
export const contentChanged = () => plain('invalid_content', 'content_changed', false, 'user', null);
export const unknown = (said: string) => plain('unknown', 'outcome_unknown', false, 'platform', said);
