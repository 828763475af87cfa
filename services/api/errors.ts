import type { ErrorCode } from '#domain/codes.ts';
import { mediaFailures } from '#domain/media-failures.ts';
import { failureCodes } from '#domain/platforms/failure-codes.ts';
import { publishFailures } from '#domain/publish-failures.ts';
import { reportFailures } from '#domain/report-failures.ts';

/**
 * Every code a caller may meet, with what it means. Codes are stable and public; each is served under /errors/{code}.
 * Statuses live here and in the problem middleware, nowhere else.
 */

interface Entry {
  readonly status: number;
  readonly title: string;
  /** What happened, and what the caller does about it. */
  readonly about: string;
}

export const errors: Readonly<Record<ErrorCode, Entry>> = {
  invalid_json: {
    status: 400,
    title: 'The body is not JSON',
    about: 'The body must be well-formed JSON in UTF-8, at most 32 levels deep. Nothing was read from it.',
  },
  invalid_parameter: {
    status: 400,
    title: 'A parameter is not valid',
    about:
      'A query parameter is unknown, repeated or has a value that is not allowed; `errors` names it. Unknown parameters are refused so that a misspelt filter does not answer everything.',
  },
  invalid_cursor: {
    status: 400,
    title: 'The cursor is not valid here',
    about:
      'A cursor belongs to one operation, one workspace and one set of filters. Pass `nextCursor` back unchanged, with the same filters, or start again without one.',
  },
  idempotency_key_required: {
    status: 400,
    title: 'Idempotency-Key is required',
    about: 'Send the header Idempotency-Key with a value of your own, unique for what you mean to do once.',
  },
  idempotency_key_invalid: {
    status: 400,
    title: 'Idempotency-Key is not valid',
    about: 'The key is 1 to 255 visible ASCII characters, without spaces.',
  },
  missing_token: {
    status: 401,
    title: 'No token was sent',
    about: 'Send `Authorization: Bearer <token>` with an API key.',
  },
  invalid_token: {
    status: 401,
    title: 'The token is not valid',
    about: 'No such token is known. Check what was copied.',
  },
  token_expired: {
    status: 401,
    title: 'The token has expired',
    about: 'API keys live one year at most; a rotated key works 24 hours more. Use a newer one.',
  },
  token_revoked: {
    status: 401,
    title: 'The token was revoked',
    about: 'The key was revoked, or its member has left the workspace. Create a new one.',
  },
  insufficient_scope: {
    status: 403,
    title: 'The token lacks the scope',
    about: 'The operation needs a scope that this token does not carry; `detail` names it.',
  },
  role_required: {
    status: 403,
    title: 'The member’s role does not allow it',
    about: 'The token carries the scope, but the role of its member does not, or the operation is kept for Owners.',
  },
  upload_url_invalid: {
    status: 403,
    title: 'The presigned address is not valid',
    about:
      'It has expired, was changed, or is for another method. Ask for a fresh one: POST /media/presign with the same Idempotency-Key for an upload, GET /media/{id} for a file.',
  },
  first_party_only: {
    status: 403,
    title: 'Only the console may do this',
    about: 'The operation takes a session of the console, not API keys or OAuth tokens.',
  },
  not_found: {
    status: 404,
    title: 'There is no such thing',
    about:
      'The path is not one of ours, or an id in it is unknown, malformed or belongs to another workspace (test and live data do not see each other).',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed here',
    about: 'The header Allow names the methods of this path.',
  },
  not_acceptable: {
    status: 406,
    title: 'The answer cannot be given in that form',
    about: 'Answers are JSON: Accept must allow application/json.',
  },
  payload_too_large: {
    status: 413,
    title: 'The body is too large',
    about: 'A body may have 1 MiB, a bulk body 16 MiB.',
  },
  too_many_values: {
    status: 413,
    title: 'The body holds too many values',
    about:
      'A body may hold 10,000 JSON values: strings, numbers, booleans and nulls, and the objects and arrays around them. Send less at once.',
  },
  unsupported_media_type: {
    status: 415,
    title: 'The body is in the wrong form',
    about:
      'Send `Content-Type: application/json`, in UTF-8, without Content-Encoding. A presigned upload takes exactly the type that was given to POST /media/presign.',
  },
  malformed_request: {
    status: 400,
    title: 'The request is not HTTP',
    about: 'The request could not be read: a broken line or header, headers over 16 KiB, or a sender that is too slow.',
  },
  upload_mismatch: {
    status: 400,
    title: 'The upload is not what was announced',
    about: 'The body has another length than was given to POST /media/presign, or it broke off. Nothing was kept.',
  },
  post_not_draft: {
    status: 409,
    title: 'The post is not a draft',
    about: 'Only a draft can be replaced or published.',
  },
  target_not_pending: {
    status: 409,
    title: 'The target is no longer pending',
    about: 'It is being published, or it is settled.',
  },
  target_not_retryable: {
    status: 409,
    title: 'The target cannot be retried',
    about: 'Only failed and rate_limited targets can be retried; one with an unknown outcome is settled first.',
  },
  run_not_completed: { status: 409, title: 'The run is not complete', about: 'Wait until the run is completed.' },
  already_exists: {
    status: 409,
    title: 'It exists already',
    about: 'Another live client of the workspace has this name (compared trimmed and without case).',
  },
  too_many_secrets: {
    status: 409,
    title: 'Too many secrets are live',
    about: 'A webhook endpoint has at most five live secrets; wait until an older one has run out.',
  },
  too_many_webhooks: {
    status: 409,
    title: 'The workspace has as many webhook endpoints as it may',
    about:
      'A workspace may have 50 webhook endpoints, or what its installation allows. Delete one that is no longer used, or let one endpoint hear more types. Endpoints beyond a limit that came later go on working.',
  },
  too_many_replays: {
    status: 409,
    title: 'Too many replays are running',
    about: 'At most three replays of a webhook endpoint run at once: wait until one has ended, or cancel one.',
  },
  invite_full: {
    status: 409,
    title: 'The link has connected as many accounts as it may',
    about:
      'A connect link is for `maxAccounts` accounts, 50 unless it was minted for more. Accounts that were connected through it can be connected again. Mint a new link for others.',
  },
  stream_full: {
    status: 409,
    title: 'The resource has been changed too often',
    about:
      'Every change of a resource is kept, at most 2,000 changes or 8 MiB, and this one has reached that limit. Create a new one and go on with it: a new post with the draft’s content, a new webhook endpoint, a new client. The full one still works, and can be published, canceled, turned off, archived or deleted; its secret can be rotated.',
  },
  revision_mismatch: {
    status: 412,
    title: 'It has changed since you read it',
    about: 'If-Match names another revision than the current one. Read it again, then decide.',
  },
  validation_failed: {
    status: 422,
    title: 'The input is not valid',
    about:
      '`errors` names each offending member by JSON Pointer. An unknown id in a body and one of another workspace are told in the same words.',
  },
  idempotency_key_reused: {
    status: 422,
    title: 'The Idempotency-Key was used for another request',
    about: 'A key stands for one method, path, query and body. Use a new key for a new request.',
  },
  schedule_in_past: {
    status: 422,
    title: 'The time is in the past',
    about: 'A target may be due at most 60 seconds ago. `errors` names each account.',
  },
  schedule_too_far: {
    status: 422,
    title: 'The time is too far ahead',
    about: 'A target may be due at most 18 months ahead. `errors` names each account.',
  },
  client_archived: {
    status: 422,
    title: 'The client is archived',
    about: 'An archived client takes no new posts and cannot be changed.',
  },
  account_not_in_client: {
    status: 422,
    title: 'The account belongs to another client',
    about: 'With mode `selection` every account must be the post’s own client’s. `errors` names each.',
  },
  account_disconnected: {
    status: 422,
    title: 'The account is disconnected',
    about: 'Connect it again first. `errors` names each.',
  },
  no_targets: {
    status: 422,
    title: 'The post would go nowhere',
    about: 'The selection names no account: connect one, or widen the filter.',
  },
  media_not_publishable: {
    status: 422,
    title: 'The media cannot be published',
    about: 'Wait until `publishable` is true, or replace the asset.',
  },
  media_in_use: {
    status: 409,
    title: 'The media is needed by a post',
    about:
      'An asset of a draft, or of a post that is not out yet, cannot be deleted; `postIds` names up to ten. Take it out of them, cancel them or wait until they are out.',
  },
  media_not_in_client: {
    status: 422,
    title: 'The media belongs to another client',
    about: 'Media of one client is used in posts of that client only.',
  },
  media_quota_exceeded: {
    status: 422,
    title: 'The workspace has no room for the media',
    about:
      'The files of a workspace and its sandbox, with what was made of them, may take so many bytes; `quotaBytes` and `usedBytes` tell. An upload counts from the moment its address is given, until it has come or the address has expired. What is made of a file that was taken is kept even where it passes the quota; no further file is taken then. Delete what no post needs, or ask the operator for a larger quota.',
  },
  media_not_uploaded: {
    status: 422,
    title: 'The media was not uploaded',
    about: 'PUT the file to the presigned url first.',
  },
  url_not_allowed: {
    status: 422,
    title: 'The url is not allowed',
    about:
      'Only https on port 443 of a public address is used: no private, loopback or link-local one, no user name in it, nothing of this service. A name that has one private address is refused as a whole.',
  },
  unknown_event_type: {
    status: 422,
    title: 'There is no such event type',
    about:
      'A filter takes exact types, `<noun>.*` for all that begin so, and `*`; a test takes one exact type. `errors` names each entry that lets no type through; the contract of events (asyncapi.json) lists them all.',
  },
  thread_not_supported: {
    status: 422,
    title: 'The network has no threads',
    about: 'Give such targets content or media of their own.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    about:
      'Wait for Retry-After seconds. The header RateLimit says what is left. A body of more than 32 KiB, or 330 values, counts as one request more for each 8 KiB, or 80 values.',
  },
  internal: {
    status: 500,
    title: 'Something is broken on our side',
    about: 'Tell us the correlationId. A write may be repeated with the same Idempotency-Key.',
  },
  unavailable: {
    status: 503,
    title: 'The service is away for a moment',
    about:
      'Either nothing was written, or the outcome is learnt by repeating the call with the same Idempotency-Key. Wait for Retry-After seconds.',
  },
};

export type Category = 'request' | 'auth' | 'permission' | 'conflict' | 'limit' | 'internal';

export const categoryOf = (status: number): Category => {
  if (status === 401) return 'auth';
  if (status === 403) return 'permission';
  if (status === 409 || status === 412) return 'conflict';
  if (status === 429) return 'limit';
  return status >= 500 ? 'internal' : 'request';
};

export const isErrorCode = (code: string): code is ErrorCode => Object.hasOwn(errors, code);

/** A page of the catalogue. `status` is null for what a target, an asset or a run fails with: no answer carries it as its code. */
export interface ErrorPage {
  readonly code: string;
  readonly status: number | null;
  readonly category: Category | 'media' | 'target' | 'report';
  readonly title: string;
  readonly about: string;
}

const aboutFailures: Readonly<Record<string, string>> = {
  ...Object.fromEntries(publishFailures.map(({ code, message }) => [code, message])),
  ...failureCodes,
};

const ofMedia: readonly ErrorPage[] = Object.entries(mediaFailures).map(([code, about]) => ({
  code,
  status: null,
  category: 'media',
  title: 'A media asset, or one of its renditions, failed',
  about,
}));

const ofTarget: readonly ErrorPage[] = Object.entries(aboutFailures)
  .filter(([code]) => !isErrorCode(code) && !Object.hasOwn(mediaFailures, code))
  .map(([code, about]) => ({
    code,
    status: null,
    category: 'target',
    title: 'A target failed, or was refused by the gate',
    about,
  }));

const ofReports: readonly ErrorPage[] = Object.entries(reportFailures).map(([code, about]) => ({
  code,
  status: null,
  category: 'report',
  title: 'A run of a report failed',
  about,
}));

/** The whole catalogue, in the order of the table above. */
export const errorPages: readonly ErrorPage[] = [
  ...Object.entries(errors).map(([code, entry]) => ({ code, category: categoryOf(entry.status), ...entry })),
  ...ofTarget,
  ...ofMedia,
  ...ofReports,
];
