import type { ErrorCode } from '#domain/codes.ts';
import { limitCodesOf } from '../call/access.ts';
import type { Operation } from '../call/operation.ts';

/** The codes with which any operation of this form may refuse. */
export const codesOf = ({
  limited,
  body,
  scope,
  idempotent,
  query,
  list,
  params,
  codes,
  ifMatch,
  method,
  role,
  firstParty,
}: Operation): readonly ErrorCode[] => {
  const paged = list === true && query !== undefined;
  const all: readonly ErrorCode[] = [
    'invalid_parameter',
    'malformed_request',
    ...(body === undefined ? [] : (['invalid_json'] as const)),
    ...(paged ? (['invalid_cursor'] as const) : []),
    ...(idempotent === 'required' ? (['idempotency_key_required'] as const) : []),
    ...(idempotent === 'none' ? [] : (['idempotency_key_invalid', 'idempotency_key_reused'] as const)),
    'missing_token',
    'invalid_token',
    'token_expired',
    'token_revoked',
    'wrong_audience',
    'workspace_closed',
    'insufficient_scope',
    ...(scope === null && role === undefined ? [] : (['role_required'] as const)),
    ...(firstParty === true ? (['first_party_only'] as const) : []),
    ...limitCodesOf(limited),
    ...(params === undefined ? [] : (['not_found'] as const)),
    'not_found',
    'not_acceptable',
    'request_timeout',
    ...(body === undefined ? [] : (['payload_too_large', 'too_many_values', 'unsupported_media_type'] as const)),
    ...(ifMatch === true && method !== 'GET' ? (['revision_mismatch'] as const) : []),
    'validation_failed',
    ...codes,
    'rate_limited',
    'internal',
    'unavailable',
  ];
  return [...new Set(all)];
};
