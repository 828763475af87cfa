/** What LinkedIn answers, with the bodies of its published samples. */

export interface Answer {
  readonly status: number;
  /** Absent: the answer has no body. */
  readonly body?: unknown;
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

const problem = (status: number, code: string | null, message: string, more: object = {}): Answer => ({
  status,
  body: { status, ...(code === null ? {} : { code }), message, ...more },
});
const throttled = (message: string): Answer => problem(429, 'TOO_MANY_REQUESTS', message, { serviceErrorCode: 101 });

/** Every error of the facts, by a name of its own. */
export const problems = {
  token_invalid: problem(401, 'INVALID_ACCESS_TOKEN', 'Invalid access token', { serviceErrorCode: 65600 }),
  token_revoked: problem(401, 'REVOKED_ACCESS_TOKEN', 'The token used in the request has been revoked by the user', {
    serviceErrorCode: 65601,
  }),
  token_expired: problem(401, 'EXPIRED_ACCESS_TOKEN', 'The token used in the request has expired', {
    serviceErrorCode: 65602,
  }),
  token_empty: problem(401, 'EMPTY_ACCESS_TOKEN', 'Empty oauth2 access token'),
  access_denied: problem(
    ...([403, 'ACCESS_DENIED', 'Not enough permissions to access: partnerApiPostsExternal.CREATE.20260801'] as const),
    { serviceErrorCode: 100 },
  ),
  video_forbidden: problem(
    ...([
      403,
      null,
      'Accessing this video resource is forbidden. Please check your permissions for this resource',
    ] as const),
  ),
  urn_type: problem(400, 'INVALID_URN_TYPE', 'urn:li:fish:1 is of no type that this field takes'),
  urn_id: problem(400, 'INVALID_URN_ID', 'urn:li:person:?? has no id'),
  missing_field: problem(400, 'MISSING_FIELD', 'commentary is required'),
  invalid_value: problem(400, 'INVALID_VALUE_FOR_FIELD', 'visibility has no such value'),
  too_long: problem(400, 'FIELD_LENGTH_TOO_LONG', 'commentary has at most 3000 characters'),
  param_invalid: problem(400, 'PARAM_INVALID', 'Invalid param. Please see errorDetails for more information.', {
    errorDetails: { inputErrors: [{ description: 'no such member', code: 'PARAM_INVALID' }] },
  }),
  media_failed: problem(400, 'MEDIA_ASSET_PROCESSING_FAILED', 'The processing of urn:li:video:C5 failed'),
  media_waiting: problem(
    400,
    'MEDIA_ASSET_WAITING_UPLOAD',
    'The media asset urn:li:video:C5 is waiting for its upload',
  ),
  media_processing: problem(400, null, 'The media asset urn:li:video:C5 is in the state PROCESSING'),
  upload_expired: problem(400, 'EXPIRED_UPLOAD_URL', 'The upload URL has expired'),
  not_found: problem(404, 'NOT_FOUND', 'Could not find entity'),
  not_everywhere: problem(
    404,
    null,
    'java.util.concurrent.ExecutionException: RestLiServiceException [HTTP Status:404]: Received error for urn:li:share:1 from domain authorization endpoint: 404',
  ),
  no_activity: problem(400, null, 'Unable to obtain activity for urn:li:share:1'),
  conflict: problem(409, 'CONFLICT', '409 Conflict: retry the request'),
  duplicate: problem(422, null, 'Content is a duplicate of urn:li:share:7240000000000000001', {
    errorDetails: { inputErrors: [{ description: 'Content is a duplicate', code: 'DUPLICATE_POST' }] },
  }),
  duplicate_bare: problem(422, null, 'Content is a duplicate of urn:li:share:7240000000000000001'),
  unprocessable: problem(422, null, 'The field author cannot be processed'),
  version_ended: problem(426, 'NONEXISTENT_VERSION', 'Requested version 20240101 is not active'),
  version_missing: problem(400, 'VERSION_MISSING', 'A version must be present. Please specify a version'),
  app_day: throttled('Resource level throttle APPLICATION DAY limit for calls to this resource is reached.'),
  member_day: throttled('Resource level throttle MEMBER DAY limit for calls to this resource is reached.'),
  comment_throttled: throttled('Comment create throttled'),
  burst: throttled('Too many requests'),
  internal: problem(500, null, 'Internal Server Error'),
  bad_gateway: { status: 502, body: '<html>Bad Gateway</html>' },
  unavailable: problem(503, null, 'Service Unavailable'),
  gateway_timeout: { status: 504, body: '' },
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);

/** `message` names what is wrong. */
export const invalid = (message: string, code = 'PARAM_INVALID'): Refusal => new Refusal(problem(400, code, message));

/** Of the token endpoint (RFC 6749, 5.2). */
export const badToken = (status: number, error: string, error_description: string): Refusal =>
  new Refusal({ status, body: { error, error_description } });
