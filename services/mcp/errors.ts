import type { ErrorCode } from '#domain/codes.ts';
import { errors } from '#services/api/call/errors.ts';
import type { ProblemAnswer } from '#services/api/call/problems.ts';

/** A refusal in words for a model: what happened, what to do, and the code. Never what happened inside of the server. */

/** What to do, where the catalogue speaks of REST. The rest is said by the catalogue itself. */
const advice: Partial<Readonly<Record<ErrorCode, string>>> = {
  not_found:
    'Check the id: use one that a find_… tool answered with this credential. The sandbox does not see live data, nor the reverse.',
  insufficient_scope: 'Ask the person to connect again and allow this, or to use a key that has the scope.',
  role_required: 'The person behind this credential may not do this. Ask an Owner or a Manager of the workspace.',
  first_party_only: 'No tool does this: API keys, the team and apps have pages in the console, for a person.',
  client_limited:
    'This key is limited to some clients. Name one of them with clientId, or ask for a key for all clients.',
  validation_failed: 'Correct what is named above and call again. preview_post shows all problems of a post at once.',
  invalid_parameter: 'Correct the argument that is named above and call again.',
  invalid_cursor: 'Start again without a cursor, or send nextCursor with the same arguments as before.',
  idempotency_key_reused: 'This idempotencyKey was used for a call with other arguments. Send a new one.',
  rate_limited: 'Wait as long as it says, then call again with the same arguments.',
  unavailable:
    'The service cannot answer now. Call again in some seconds with the same arguments and the same idempotencyKey: nothing is done twice then.',
  internal: 'The service failed. Tell the person the correlation id if it happens again.',
  post_not_draft: 'Only a draft can be changed or published so. Use revise_post, reschedule or cancel for this post.',
  post_not_scheduled:
    'Nothing of it waits any more: revise_post changes drafts and what is not out. post_status says how it stands.',
  target_not_pending:
    'What is published, on its way or canceled cannot be moved, changed or canceled. post_status says how each target stands.',
  target_not_retryable: 'Only what failed or was rate-limited can be tried again. post_status says where it stands.',
  restore_unconfirmed:
    'Ask the person to look at the account. Only if they say that this post is not out: call confirm_account, then this again.',
  approval_not_pending: 'Somebody decided already, or it was withdrawn. pending_approvals lists what still waits.',
  changes_requested:
    'Tell the person the comment, and change the draft with revise_post. Only if the person wants the same content again: call publish_draft with acknowledgeDecision true.',
  approval_superseded: 'The post was changed after this request. pending_approvals has the new one.',
  schedule_in_past: 'Choose a time in the future, or publish at once.',
  schedule_too_far: 'Choose a time within the next 18 months.',
  no_targets: 'No account fits. find_accounts lists those of the client; connect_link connects new ones.',
  account_disconnected:
    'Its holder must connect the account again, through connect_link. Leave it out to post without it.',
  account_reauth_required:
    'Its holder must connect the account again, through connect_link. Until then its network tells nothing of it.',
  account_not_in_client: 'Use accounts of this client: find_accounts with clientId lists them.',
  media_not_publishable: 'Wait until media_status says publishable, or use another file.',
  url_not_allowed: 'Use a public https address of the file itself.',
  cadence_exceeded:
    'Choose another time for these accounts: find_accounts with limits true says how often each may publish.',
  quota_exceeded:
    'The month has no room left, until resetsAt: whoami shows the quota. Canceled targets give their places back.',
  too_many_runs: 'Wait until list_reports shows that some have ended. It has the files of those that have.',
  run_not_completed: 'Ask list_reports again in some seconds.',
  media_not_uploaded: 'Its upload was not finished. import_media takes the file from its address instead.',
  already_exists: 'The post that has this reference is named above: use it, or choose another externalRef.',
  revision_mismatch: 'It was changed meanwhile. Read it again, then repeat your change.',
};

/** At most: a model needs the first few to correct the rest. */
const maxIssuesShown = 8;

/** Ids beside a problem that the next call needs. */
const besides = [
  'postId',
  'postIds',
  'resetsAt',
  'approvalId',
  'approvalStatus',
  'decidedAt',
  'usedBytes',
  'quotaBytes',
] as const;

export const wordsOf = (problem: ProblemAnswer, correlationId: string): string => {
  const { code, detail, errors: issues, extra, headers } = problem;
  const { title, about } = errors[code];
  const shown = issues
    .slice(0, maxIssuesShown)
    .map(({ path, message, code: one }) => `- ${path === '' ? 'the arguments' : path}: ${message} (${one})`);
  const beside = besides
    .filter((name) => extra[name] !== undefined)
    .map((name) => `${name}: ${JSON.stringify(extra[name])}`);
  const wait = headers['Retry-After'];
  return [
    detail === null || detail.replace(/\.$/, '') === title ? `${title}.` : `${title}. ${detail}`,
    ...shown,
    ...(issues.length > maxIssuesShown ? [`- … and ${issues.length - maxIssuesShown} more`] : []),
    ...beside,
    `What to do: ${advice[code] ?? about}`,
    ...(wait === undefined ? [] : [`Wait ${wait} s before the next call.`]),
    `(code: ${code}, correlation id: ${correlationId})`,
  ].join('\n');
};
