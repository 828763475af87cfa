/** What Instagram answers, with the bodies of its documents ("Error Codes") and of reports of production. */

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
  body: { error: { message, type: 'OAuthException', code, ...more, fbtrace_id: 'A1b2' } },
});
const sub = (code: number, error_subcode: number, message: string, more: object = {}): Answer =>
  error(code, message, { error_subcode, is_transient: false, ...more });

export const problems = {
  token_expired: sub(190, 463, 'Error validating access token: Session has expired on Monday, 01-Sep-26.'),
  token_invalid: error(190, 'Invalid OAuth access token - Cannot parse access token'),
  password_changed: sub(190, 460, 'Error validating access token: The session has been invalidated.'),
  checkpoint: sub(
    190,
    459,
    'Error validating access token: You cannot access the app till you log in to www.facebook.com',
  ),
  no_session: error(102, 'The session has been invalidated', {}, 401),
  no_publish: error(10, '(#10) Requires instagram_content_publish permission'),
  no_permission: error(10, '(#10) Application does not have permission for this action'),
  permission_of_scope: error(200, '(#200) Permissions error', {}, 403),
  no_capability: error(3, '(#3) Application does not have the capability to make this API call.'),
  account_restricted: sub(25, 2207050, 'The Instagram account is restricted.'),
  policy_block: error(368, 'The action attempted has been deemed abusive or is otherwise disallowed'),
  action_blocked: error(4, 'Application request limit reached', {
    ...{ error_subcode: 2207051, is_transient: true, error_user_title: 'Action is blocked' },
  }),
  app_limited: error(4, '(#4) Application request limit reached'),
  user_limited: sub(17, 2446079, '(#17) User request limit reached'),
  calls_limited: error(613, '(#613) Calls to this api have exceeded the rate limit.'),
  account_limited: error(80002, '(#80002) There have been too many calls to this Instagram account. Wait a bit.'),
  too_many_requests: error(80002, '(#80002) There have been too many calls.', {}, 429),
  posts_limited: sub(9, 2207042, 'Application request limit reached', {
    error_user_title: 'You reached maximum number of posts that is allowed to be published by Content Publishing API',
  }),
  object_missing: sub(
    100,
    33,
    "Unsupported get request. Object with ID '17' does not exist, cannot be loaded due to missing permissions",
  ),
  container_missing: sub(24, 2207006, 'The media builder with this creation id does not exist or has been expired.'),
  not_ready: sub(9007, 2207027, 'Media ID is not available'),
  download_timeout: sub(-2, 2207003, 'It takes too long to download the media.'),
  media_not_fetched: sub(9004, 2207052, 'Only photo or video can be accepted as media type.', {
    error_user_title: 'Media download has failed. The media URI does not meet our requirements.',
  }),
  image_too_large: sub(36000, 2207004, 'The image size is too large.'),
  image_format: sub(36001, 2207005, 'The image format is not supported.'),
  image_ratio: sub(36003, 2207009, 'The aspect ratio is not supported.'),
  video_format: sub(352, 2207026, 'The video format is not supported.'),
  caption_too_long: sub(36004, 2207010, 'The caption was too long.'),
  collaborator_invalid: sub(110, 2207018, 'The user id or username in collaborators is invalid'),
  carousel_size: sub(100, 2207028, 'Your post won’t work as a carousel.'),
  thumb_offset: sub(1, 2207057, 'Thumbnail offset must be greater than or equal to 0 and less than the video duration'),
  upload_failed: sub(-1, 2207053, 'An unknown error occurred'),
  duplicate: error(506, '(#506) Duplicate status message'),
  unknown_error: error(1, 'An unknown error occurred'),
  media_publish_failed: sub(-1, 2207001, 'Instagram server error. Try again.'),
  service_down: error(2, 'Service temporarily unavailable'),
  transient: error(-1, 'Please retry', { is_transient: true }),
  internal: error(2, 'An unexpected error has occurred. Please retry your request later.', { is_transient: true }, 500),
  bad_gateway: { status: 502, body: '<html>Bad Gateway</html>' },
  unavailable: { status: 503, body: '' },
} as const satisfies Readonly<Record<string, Answer>>;

/** Of figures alone. */
export const ofFigures = {
  few_viewers: error(10, '(#10) Not enough viewers for the media to show insights'),
  before_conversion: sub(100, 2108006, 'Media Posted Before Business Account Conversion'),
  few_followers: error(100, '(#100) Not enough users to show insights'),
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);

/** What a parameter breaks. */
export const invalid = (message: string): Refusal => new Refusal(error(100, `(#100) ${message}`));

/** Of the endpoint of Instagram that takes a code. */
export const badCode = (error_message: string): Refusal =>
  new Refusal({ status: 400, body: { error_type: 'OAuthException', code: 400, error_message } });

/** Of the endpoint of Facebook. */
export const badExchange = (message: string, code = 100): Refusal => new Refusal(error(code, message));
