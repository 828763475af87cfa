import type { ErrorCode } from '#domain/codes.ts';

/**
 * Every code that a caller may meet, and what it means. Codes are stable and public; GET /errors/{code} serves each.
 * Statuses live here and in the problem middleware, nowhere else.
 */

interface Entry {
  readonly status: number;
  readonly title: string;
  /** What happened, and what the caller can do. */
  readonly about: string;
}

export const errors: Readonly<Record<ErrorCode, Entry>> = {
  invalid_json: {
    status: 400,
    title: 'The body is not JSON',
    about: 'The body must be well-formed JSON in UTF-8, at most 32 levels deep.',
  },
  invalid_parameter: {
    status: 400,
    title: 'A parameter is not valid',
    about:
      'A query parameter is unknown, repeated or has a value that is not allowed; `errors` names it, as `/name`. Unknown parameters are refused, so that a misspelt filter is not answered with the whole list.',
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
    about:
      'Send the header Idempotency-Key with a value of your own: a new one for each new request, the same one when you repeat a request.',
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
    about: 'The service knows no such token. Check that you copied the whole token.',
  },
  token_expired: {
    status: 401,
    title: 'The token has expired',
    about: 'API keys live a year at most, a rotated one 24 hours more, access tokens 15 minutes: refresh those.',
  },
  token_revoked: {
    status: 401,
    title: 'The token was revoked',
    about: 'The key or the access of the app was revoked, or its member has left. Ask for a new one.',
  },
  wrong_audience: {
    status: 401,
    title: 'The access token is for another resource',
    about:
      'An access token works at one resource. Authorize with `resource` set to the address that you call: the root of this API, or the MCP server.',
  },
  insufficient_scope: {
    status: 403,
    title: 'The token lacks the scope',
    about:
      'The operation needs a scope that this token does not carry; `detail` names it. Some scopes cannot be given to an app: they need an API key or a session.',
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
  client_limited: {
    status: 403,
    title: 'The credential is limited to clients',
    about:
      'The key is limited to clients, and the call concerns the whole workspace or an asset of it. Use a key for all clients, or ask for what belongs to one client.',
  },
  sandbox_only: {
    status: 403,
    title: 'Only a test key may do this',
    about:
      'The operation exists in the sandbox alone. A live workspace has real time, and no key of it can move its clock: use a test key of the same agency.',
  },
  workspace_closed: {
    status: 403,
    title: 'The workspace is closed',
    about:
      'Its operator has moved it to another installation, or is about to erase it; `detail` says which. Nothing of it is published, and no call is answered.',
  },
  first_party_only: {
    status: 403,
    title: 'Only the console may do this',
    about: 'The operation takes a session of the console, not API keys or OAuth tokens.',
  },
  not_found: {
    status: 404,
    title: 'The resource does not exist',
    about:
      'The API has no such path, or an id in it is unknown, malformed or belongs to another workspace (a test key does not see live data, nor a live key test data).',
  },
  method_not_allowed: {
    status: 405,
    title: 'The method is not allowed here',
    about: 'The header Allow names the methods of this path.',
  },
  not_acceptable: {
    status: 406,
    title: 'The answer has no such form',
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
    about: 'The request could not be read: a broken line or header, headers over 16 KiB.',
  },
  request_timeout: {
    status: 408,
    title: 'The request came too slowly',
    about:
      'Headers have 15 seconds, a body a minute. The service has done nothing and closes the connection: send the request again.',
  },
  upload_mismatch: {
    status: 400,
    title: 'The upload differs from the announced file',
    about:
      'The body has another length than POST /media/presign was given, or it ended early. The service kept nothing.',
  },
  approval_not_pending: {
    status: 409,
    title: 'The request for approval is not pending',
    about:
      'It was decided or withdrawn before; `approvalStatus` says how it stands, and `decidedBy` and `decidedAt` who decided and when. Of two people who decide at the same time, one decides and the other gets this answer.',
  },
  approval_superseded: {
    status: 409,
    title: 'The approval is superseded',
    about:
      'The post was changed or canceled after the approval was asked for, so the decision has no effect and the request is withdrawn. Read the post: `approvalId` names the newest request.',
  },
  changes_requested: {
    status: 409,
    title: 'An approver asked for changes',
    about:
      'The draft has still the content for which an approver asked for changes: `detail` has the comment, and so has `lastDecision` of the post. Change the draft, or publish it with `acknowledgeDecision: true`.',
  },
  post_not_draft: {
    status: 409,
    title: 'The post is not a draft',
    about: 'Only a draft can be replaced or published.',
  },
  post_not_scheduled: {
    status: 409,
    title: 'The post is not scheduled',
    about: 'A draft has no targets to revise: replace the draft instead. A draft and a canceled post are not recycled.',
  },
  target_not_pending: {
    status: 409,
    title: 'The target is no longer pending',
    about:
      'The publisher has taken the target, or the target is published, failed or canceled. A change of a whole post is refused so when it reaches none of its targets.',
  },
  target_not_retryable: {
    status: 409,
    title: 'The target cannot be retried',
    about:
      'Only `failed` and `rate_limited` targets can be retried; a target with an unknown outcome must be settled first. One whose outcome is unknown since a restore of the service can be retried once the account is confirmed.',
  },
  restore_unconfirmed: {
    status: 409,
    title: 'A person has to look at the account first',
    about:
      'The service was restored from an older copy, and the post is older than that: it may be out, and the network cannot be asked. A person looks at the account, and then calls POST /accounts/{id}/confirm-restored.',
  },
  run_not_completed: { status: 409, title: 'The run is not complete', about: 'Wait until the run is completed.' },
  already_exists: {
    status: 409,
    title: 'The name or the reference is taken',
    about:
      'Another live client of the workspace has this name (compared trimmed and without case), or another post of the client has this `externalRef` (compared exactly): `postId` is that post.',
  },
  too_many_secrets: {
    status: 409,
    title: 'Too many secrets are live',
    about: 'A webhook endpoint has at most five live secrets; wait until an older one has run out.',
  },
  too_many_keys: {
    status: 409,
    title: 'The workspace has too many API keys',
    about:
      'A workspace may have 100 API keys that work, live and test ones together: revoke one that is no longer used.',
  },
  too_many_webhooks: {
    status: 409,
    title: 'The workspace has too many webhook endpoints',
    about:
      'A workspace may have 50 webhook endpoints, unless the installation sets another limit. Delete an endpoint that is no longer used, or let one endpoint subscribe to more types. Endpoints from before a lower limit go on working.',
  },
  too_many_replays: {
    status: 409,
    title: 'Too many replays are running',
    about: 'At most three replays of a webhook endpoint run at once: wait until one has ended, or cancel one.',
  },
  too_many_runs: {
    status: 409,
    title: 'Too many runs of reports wait',
    about:
      'At most 20 runs that callers have asked for wait in a workspace at once, those of its sandbox apart; runs by a schedule do not count. Wait until one has ended: the events `report.run.completed` and `report.run.failed` tell it.',
  },
  invite_full: {
    status: 409,
    title: 'The link has connected too many accounts',
    about:
      'A connect link is for `maxAccounts` accounts, 50 by default. Its accounts can be connected again. Create a new link for other accounts.',
  },
  stream_full: {
    status: 409,
    title: 'The resource has too many changes',
    about:
      'The service keeps every change of a resource, at most 2,000 changes or 8 MiB, and this resource has reached that limit. Create a new one: a post with the content of the draft, a webhook endpoint, a client. The full resource still works: it can be published, canceled, turned off, archived or deleted, and its secret can be rotated.',
  },
  history_too_long: {
    status: 409,
    title: 'The history has too many events',
    about:
      'One call reads at most 100,000 events of one thing, or 20,000 of a post with its targets and requests for approval, and there are more. Of a post read the history of its requests for approval and the timelines of its targets.',
  },
  event_taken_back: {
    status: 410,
    title: 'A restore took the event back',
    about:
      'The number is of an epoch that a restore has ended, and lies behind the last event that it kept: another event may have the number now, and no proof is about the one that was meant. Count it as lost, keep the note that you have of it, and ask with the cursor of an event of the newest epoch.',
  },
  revision_mismatch: {
    status: 412,
    title: 'The resource has changed since you read it',
    about: 'If-Match names another revision than the current one. Read the resource again, then decide.',
  },
  validation_failed: {
    status: 422,
    title: 'The input is not valid',
    about:
      '`errors` has one entry for each offending member, at most 20: `path` is a JSON Pointer to it, `code` is stable, `message` is for a person. Where a network refuses a target, the entry names its `accountId`, and the `mediaId` of a file at fault. An unknown id in a body and an id of another workspace get the same entry.',
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
  cadence_exceeded: {
    status: 422,
    title: 'An account would publish too often',
    about:
      'The workspace, or the network, lets each account publish only so often; `errors` names each account at fault. GET /accounts/{id}/cadence shows its limits and `nextFreeAt`, the earliest time with room. Choose another time for these accounts.',
  },
  client_archived: {
    status: 422,
    title: 'The client is archived',
    about: 'An archived client takes no new posts and cannot be changed.',
  },
  platform_not_available: {
    status: 422,
    title: 'None of the networks can be connected yet',
    about:
      'A live connect link needs at least one network on which a person can connect an account here. A test key mints links whose accounts are of the sandbox network.',
  },
  account_not_in_client: {
    status: 422,
    title: 'The account belongs to another client',
    about:
      'With mode `selection` every account must belong to the client of the post. `errors` names each that does not.',
  },
  account_disconnected: {
    status: 422,
    title: 'The account is disconnected',
    about:
      'Connect the account again first. Where several accounts are named, `errors` names each that is disconnected.',
  },
  account_reauth_required: {
    status: 422,
    title: 'The account must be connected again',
    about:
      'The network refuses the authorization of the account, so it tells nothing of it; `detail` has its reason. A person must connect the account again.',
  },
  no_targets: {
    status: 422,
    title: 'The post has no targets',
    about: 'The selection holds no connected account: connect one, or widen the selection.',
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
      'An asset of a draft, or of a post that is not published yet, cannot be deleted; `postIds` names up to ten such posts. Remove the asset from them, cancel them or wait until they are published.',
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
      'The files of a workspace and its sandbox, renditions included, may take `quotaBytes` bytes; they take `usedBytes`. An upload counts from the moment its address is given until the file arrives or the address expires. Renditions of an accepted file are kept even where they pass the quota; then no further file is accepted. Delete assets that no post needs, or ask the operator for a larger quota.',
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
      'The service calls only https on port 443 of a public address: no private, loopback or link-local address, no user name in the url, and not this service itself. A name with one private address among several is refused. An operator may name addresses of their own network that are allowed all the same (`PRIVATE_TARGETS`).',
  },
  unknown_event_type: {
    status: 422,
    title: 'There is no such event type',
    about:
      'A filter takes exact types, `<noun>.*` for all types of a noun, and `*`; a test takes one exact type. `errors` names each entry that matches no type; asyncapi.json lists all types.',
  },
  thread_not_supported: {
    status: 422,
    title: 'The network has no threads',
    about: 'Some targets are on networks without threads: give those targets content or media of their own.',
  },
  quota_exceeded: {
    status: 429,
    title: 'The quota has no room',
    about:
      'The workspace may publish only so many targets in one month of its zone, and this would be more; GET /quota shows what is left. `resetsAt` in the body is when the next month begins: no `Retry-After` is sent, so tell this code from `rate_limited` before you wait. Canceled and failed targets give their places back.',
  },
  rate_limited: {
    status: 429,
    title: 'Too many requests',
    about:
      'Wait for Retry-After seconds. The header RateLimit says what is left to the credential, or to its workspace where that ran out. A body of more than 32 KiB, or 330 values, counts as one request more for each 8 KiB, or 80 values.',
  },
  internal: {
    status: 500,
    title: 'The service failed',
    about:
      'This is a fault of the service: report the `correlationId`. You may repeat a write with the same Idempotency-Key.',
  },
  unavailable: {
    status: 503,
    title: 'The service is temporarily unavailable',
    about:
      'A store behind the service, or the network that the call asks, did not answer. Wait for Retry-After seconds, then repeat the call with the same Idempotency-Key: what was written is not written twice.',
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
