/** What TikTok answers, with the bodies of its documents. */

export interface Answer {
  readonly status: number;
  readonly body: unknown;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown by a rule that a request breaks. */
export class Refusal extends Error {
  readonly answer: Answer;

  constructor(answer: Answer) {
    super(JSON.stringify(answer.body));
    this.answer = answer;
  }
}

const log_id = '20261121A';

export const fine = (data: object): Answer => ({
  status: 200,
  body: { data, error: { code: 'ok', message: '', log_id } },
});

const error = (status: number, code: string, message: string): Answer => ({
  status,
  body: { data: {}, error: { code, message, log_id } },
});

/** Every error of the documents, by its own name. */
export const problems = {
  access_token_invalid: error(401, 'access_token_invalid', 'The access token is invalid or not found in the request.'),
  scope_not_authorized: error(401, 'scope_not_authorized', 'The user did not authorize the scope required.'),
  scope_permission_missed: error(400, 'scope_permission_missed', 'Additional permission is required for some fields.'),
  rate_limit_exceeded: error(429, 'rate_limit_exceeded', 'The API rate limit was exceeded. Please try again later.'),
  spam_risk_too_many_posts: error(403, 'spam_risk_too_many_posts', 'The daily post cap from the API is reached.'),
  spam_risk_too_many_pending_share: error(
    403,
    'spam_risk_too_many_pending_share',
    'There may be at most 5 pending shares.',
  ),
  spam_risk_user_banned_from_posting: error(
    403,
    'spam_risk_user_banned_from_posting',
    'The user is banned from posting.',
  ),
  spam_risk: error(403, 'spam_risk', 'The post is at risk of being spam.'),
  reached_active_user_cap: error(
    403,
    'reached_active_user_cap',
    'The daily quota for active publishing users is reached.',
  ),
  unaudited_client_can_only_post_to_private_accounts: error(
    ...([
      403,
      'unaudited_client_can_only_post_to_private_accounts',
      'Please review our integration guidelines.',
    ] as const),
  ),
  url_ownership_unverified: error(
    403,
    'url_ownership_unverified',
    'Please review our URL ownership verification rules.',
  ),
  privacy_level_option_mismatch: error(403, 'privacy_level_option_mismatch', ''),
  invalid_param: error(400, 'invalid_param', 'The request post info is empty or incorrect'),
  invalid_params: error(400, 'invalid_params', 'One or more fields in request is invalid.'),
  invalid_file_upload: error(400, 'invalid_file_upload', 'The file does not meet the specifications.'),
  app_version_check_failed: error(400, 'app_version_check_failed', 'The app of the user is too old.'),
  invalid_publish_id: error(400, 'invalid_publish_id', 'The publish_id does not exist'),
  token_not_authorized_for_specified_publish_id: error(
    ...([400, 'token_not_authorized_for_specified_publish_id', 'The publish_id is of another user.'] as const),
  ),
  internal_error: error(500, 'internal_error', 'Something went wrong. Please try again later.'),
  unavailable: { status: 503, body: '' },
  bad_gateway: { status: 502, body: '<html>Bad Gateway</html>' },
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

/** "Query Creator Info" answers a limit of posts with 200: "the API call succeeded, and the user cannot post". */
export const withStatus = (name: ProblemName, status: number): Answer => ({ ...problems[name], status });

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);
export const invalid = (message: string, code = 'invalid_params'): Refusal => new Refusal(error(400, code, message));

/** The endpoints of tokens have errors of their own form. */
export const badToken = (name: string, error_description: string): Refusal =>
  new Refusal({ status: 400, body: { error: name, error_description, log_id } });

/** Servers that take files answer without a body. */
export const ofFiles = (status: number, headers: Readonly<Record<string, string>> = {}): Answer => ({
  status,
  body: '',
  headers,
});

const mark = 'int64:';

/** An id as TikTok writes it in a status: a bare integer of 64 bits. */
export const int64 = (id: string): string => `${mark}${id}`;
export const textOf = (body: unknown): string =>
  JSON.stringify(body).replaceAll(new RegExp(`"${mark}(\\d+)"`, 'g'), '$1');
