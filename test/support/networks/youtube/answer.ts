/** What Google answers, with the bodies of its documents. */

export interface Answer {
  readonly status: number;
  /** Absent: the answer has no body. A text is a page. */
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

const problem = (code: number, reason: string, message: string, domain = 'youtube.video', status?: string): Answer => ({
  status: code,
  body: {
    error: { code, message, errors: [{ message, domain, reason }], ...(status === undefined ? {} : { status }) },
  },
});

const spent = 'The request cannot be completed because you have exceeded your quota.';

/** Every error of the facts, by a name of its own. */
export const problems = {
  auth_error: problem(401, 'authError', 'Request had invalid authentication credentials.', 'global', 'UNAUTHENTICATED'),
  no_channel: problem(401, 'youtubeSignupRequired', 'Unauthorized', 'youtube.header'),
  no_scope: problem(
    ...([403, 'insufficientPermissions', 'Request had insufficient authentication scopes.', 'global'] as const),
    'PERMISSION_DENIED',
  ),
  quota: problem(403, 'quotaExceeded', spent, 'youtube.quota'),
  daily_limit: problem(403, 'dailyLimitExceeded', 'Daily Limit Exceeded', 'usageLimits'),
  rate: problem(403, 'rateLimitExceeded', 'Rate Limit Exceeded', 'usageLimits'),
  user_rate: problem(429, 'userRateLimitExceeded', 'User Rate Limit Exceeded', 'usageLimits'),
  upload_limit: problem(400, 'uploadLimitExceeded', 'The user has exceeded the number of videos they may upload.'),
  thumbnail_limit: problem(429, 'uploadRateLimitExceeded', 'The channel has uploaded too many thumbnails recently.'),
  invalid_title: problem(400, 'invalidTitle', 'The request metadata specifies an invalid or empty video title.'),
  invalid_description: problem(
    400,
    'invalidDescription',
    'The request metadata specifies an invalid video description.',
  ),
  invalid_tags: problem(400, 'invalidTags', 'The request metadata specifies invalid video keywords.'),
  invalid_category: problem(
    400,
    'invalidCategoryId',
    'The snippet.categoryId property specifies an invalid category ID.',
  ),
  invalid_publish_at: problem(
    400,
    'invalidPublishAt',
    'The request metadata specifies an invalid scheduled publishing time.',
  ),
  forbidden_privacy: problem(403, 'forbiddenPrivacySetting', 'The request attempts to set an invalid privacy setting.'),
  forbidden: problem(403, 'forbidden', 'The request is not properly authorized.'),
  suspended: problem(403, 'channelSuspended', 'The channel is suspended.', 'youtube.channel'),
  not_configured: problem(
    403,
    'accessNotConfigured',
    'YouTube Data API v3 has not been used in project 1.',
    'usageLimits',
  ),
  comments_disabled: problem(403, 'commentsDisabled', 'The video has disabled comments.', 'youtube.commentThread'),
  comment_too_long: problem(400, 'commentTextTooLong', 'The comment text is too long.', 'youtube.commentThread'),
  comment_not_processed: problem(
    400,
    'processingFailure',
    'The API server failed to process the request.',
    'youtube.commentThread',
  ),
  invalid_image: problem(400, 'invalidImage', 'The provided image content is invalid.', 'youtube.thumbnail'),
  thumbnail_forbidden: problem(
    ...([
      403,
      'forbidden',
      'The authenticated user doesn’t have permissions to upload and set custom video thumbnails.',
    ] as const),
    'youtube.thumbnail',
  ),
  not_found: problem(404, 'videoNotFound', 'The video that you are trying to use cannot be found.'),
  no_report: problem(400, 'badRequest', 'The query is not supported.', 'global'),
  internal: problem(500, 'internalError', 'Internal error encountered.', 'global'),
  unavailable: problem(503, 'backendError', 'The service is currently unavailable.', 'global'),
  gateway_timeout: { status: 504, body: '<html>Gateway Timeout</html>' },
  session_gone: { status: 404, body: 'Not Found' },
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);

/** `message` names what is wrong. */
export const invalid = (message: string): Refusal => new Refusal(problem(400, 'invalidParameter', message, 'global'));

/** Of the token endpoint (RFC 6749, 5.2). */
export const badToken = (status: number, error: string, error_description: string): Refusal =>
  new Refusal({ status, body: { error, error_description } });
