/** What the Graph API answers, with the bodies of its documents and of reports of production. */

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

const error = (code: number, message: string, more: object = {}, status = 400): Answer => ({
  status,
  body: { error: { message, type: 'OAuthException', code, ...more, fbtrace_id: 'A' } },
});

const session =
  'Error validating access token: The session has been invalidated because the user changed their password or Facebook has changed the session for security reasons.';

export const problems = {
  token_ended: error(190, 'Error validating access token: Session has expired on Monday, 01-Sep-26.', {
    error_subcode: 463,
  }),
  token_invalid: error(190, 'Invalid OAuth access token - Cannot parse access token', {}, 401),
  app_removed: error(190, 'Error validating access token: The user has not authorized application 1.', {
    error_subcode: 458,
  }),
  checkpoint: error(
    190,
    'You cannot access the app till you log in to www.facebook.com and follow the instructions given.',
    {
      error_subcode: 459,
    },
  ),
  password_changed: error(190, session, { error_subcode: 460 }),
  unconfirmed: error(190, 'Sessions for the user are not allowed because the user is not a confirmed user.', {
    error_subcode: 464,
  }),
  role_lost: error(190, 'The user does not have the necessary permissions on this page.', { error_subcode: 492 }),
  no_session: error(102, 'Session key invalid or no longer valid'),
  no_proof: error(100, 'API calls from the server require an appsecret_proof argument', {}, 400),
  no_permission: error(10, '(#10) This endpoint requires the pages_read_user_content permission'),
  permission_of_scope: error(200, '(#200) Requires pages_manage_engagement permission to manage the object'),
  no_capability: error(3, '(#3) Application does not have the capability to make this API call.'),
  no_permission_for_video: error(100, '(#100) No permission to publish the video'),
  page_authorization: error(200, 'Page Publishing Authorization Required', { error_subcode: 1404078 }),
  confirm_identity: error(200, 'Confirm your identity', { error_subcode: 4854002 }),
  security_check: error(368, 'Security check required', { error_subcode: 1404006 }),
  account_limited: error(368, 'Your account is restricted right now', { error_subcode: 1404112 }),
  community_standards: error(368, 'This goes against our community standards', { error_subcode: 1404102 }),
  abusive: error(368, 'The action attempted has been deemed abusive or is otherwise disallowed', {
    error_subcode: 1346003,
  }),
  blocked: error(368, 'The action attempted has been deemed abusive or is otherwise disallowed'),
  app_limited: error(4, '(#4) Application request limit reached'),
  user_limited: error(17, '(#17) User request limit reached'),
  page_limited: error(32, '(#32) Page request limit reached'),
  calls_limited: error(613, '(#613) Calls to this api have exceeded the rate limit.'),
  pages_limited: error(
    80001,
    '(#80001) There have been too many calls to this Page account. Wait a bit and try again.',
  ),
  instagram_limited: error(80002, '(#80002) There have been too many calls to this Instagram account.'),
  too_fast: error(368, 'It looks like you were misusing this feature by going too fast.', { error_subcode: 1390008 }),
  duplicate: error(506, '(#506) Duplicate status message'),
  photos_posted: error(100, 'These photos were already posted.', { error_subcode: 1366051 }),
  photo_unreadable: error(100, 'Invalid parameter', {
    ...{ error_subcode: 1366046, is_transient: false, error_user_title: "Can't Read Files" },
    error_user_msg: 'Your photos couldn’t be uploaded. Photos should be smaller than 4 MB and saved as JPG, PNG.',
  }),
  file_missing: error(324, '(#324) Missing or invalid image file'),
  video_ratio: error(100, 'The aspect ratio is not supported', { error_subcode: 1363040 }),
  link_refused: error(100, 'Invalid parameter', {
    error_subcode: 1609005,
    error_user_msg: 'The link could not be read.',
  }),
  fetch_failed: error(6000, '(#6000) There was a problem uploading your video file.'),
  unavailable_soon: error(100, 'Temporarily unavailable', { error_subcode: 1363047 }),
  object_missing: error(
    100,
    "Unsupported get request. Object with ID '1' does not exist, cannot be loaded due to missing permissions, or does not support this operation.",
    { error_subcode: 33 },
  ),
  metric_invalid: error(100, '(#100) The value must be a valid insights metric'),
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
export const invalid = (message: string): Refusal => new Refusal(error(100, `(#100) ${message}`));

/** Of the endpoint that gives tokens. */
export const badToken = (code: number, message: string): Refusal => new Refusal(error(code, message));

/** Of the server that takes files. */
export const badUpload = (type: string, message: string, retriable = false): Refusal =>
  new Refusal({ status: 400, body: { debug_info: { retriable, type, message } } });
