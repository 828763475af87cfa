/** What Threads answers, with the bodies of its documents and of reports of production. */

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

const error = (code: number, message: string, more: object = {}, status = 400, type = 'OAuthException'): Answer => ({
  status,
  body: { error: { message, type, code, ...more, fbtrace_id: 'T' } },
});

const notFound = 'The requested resource does not exist';

export const problems = {
  token_expired: error(190, 'Error validating access token: Session has expired on Monday, 01-Sep-26.', {
    error_subcode: 463,
  }),
  token_invalid: error(190, 'Invalid OAuth access token - Cannot parse access token'),
  no_session: error(102, 'The session has been invalidated'),
  no_permission: error(10, 'Application does not have permission for this action'),
  permission_of_scope: error(200, 'Permissions error'),
  no_capability: error(3, 'Application does not have the capability to make this API call.'),
  user_restricted: error(200, 'The user is restricted', { error_subcode: 4279013 }),
  action_blocked: error(4, 'Action is blocked', { error_subcode: 2207051 }),
  app_limited: error(4, 'Application request limit reached'),
  user_limited: error(17, 'User request limit reached'),
  page_limited: error(32, 'Page request limit reached'),
  calls_limited: error(613, 'Calls to this api have exceeded the rate limit.'),
  too_many_requests: error(613, 'Calls to this api have exceeded the rate limit.', {}, 429),
  posts_limited: error(9, 'Application limit reached', { error_subcode: 2207042 }),
  media_not_found: error(24, notFound, {
    ...{ error_subcode: 4279009, is_transient: false, error_user_title: 'Media Not Found' },
    error_user_msg: 'The media with id cannot be found.',
  }),
  not_there: error(24, notFound),
  object_missing: error(
    ...([100, "Unsupported get request. Object with ID '1' does not exist", { error_subcode: 33 }, 400] as const),
    'THApiException',
  ),
  children_invalid: error(24, 'Carousel child items are invalid or expired', { error_subcode: 4279004 }),
  media_not_fetched: error(1, 'The media could not be fetched from this URI.', { error_subcode: 2207052 }),
  text_too_long: error(100, 'Param text must be at most 500 characters long.', {}, 400, 'THApiException'),
  links_exceeded: error(100, 'THREADS_API__LINK_LIMIT_EXCEEDED', {}, 400, 'THApiException'),
  feature_missing: error(100, 'THREADS_API__FEATURE_NOT_AVAILABLE', {}, 400, 'THApiException'),
  demographics_missing: error(801, 'The account has fewer than 100 followers'),
  unknown_error: error(1, 'An unknown error occurred'),
  service_down: error(2, 'Service temporarily unavailable'),
  transient: error(368, 'Please retry', { is_transient: true }),
  internal: error(2, 'Service temporarily unavailable', { is_transient: true }, 500),
  bad_gateway: { status: 502, body: '<html>Bad Gateway</html>' },
  unavailable: { status: 503, body: '' },
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);

/** What a parameter breaks. */
export const invalid = (message: string): Refusal => new Refusal(error(100, message, {}, 400, 'THApiException'));

/** Of the endpoint that takes a code. */
export const badCode = (error_message: string): Refusal =>
  new Refusal({ status: 400, body: { error_type: 'OAuthException', code: 400, error_message } });
