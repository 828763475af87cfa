/** What Pinterest answers, with the bodies of its published samples and of reports of users. */

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

const error = (status: number, code: number, message: string): Answer => ({ status, body: { code, message } });

/** Every error of the facts, by a name of its own. */
export const problems = {
  unauthorized: error(401, 2, 'Authentication failed.'),
  authorization_failed: error(401, 3, 'Authorization failed.'),
  scope_missing: error(401, 3, 'Your token does not have sufficient permissions for this resource.'),
  restricted_feature: error(401, 3, 'Your application does not have access to this restricted feature.'),
  trial_access: error(403, 29, 'Apps with Trial access may not create Pins in production. Use API Sandbox instead.'),
  not_permitted: error(403, 29, 'You are not permitted to access that resource.'),
  forbidden: error(403, 403, 'Not authorized to access board or Pin.'),
  board_not_found: error(404, 40, 'Board not found.'),
  board_not_found_by_status: error(404, 404, 'Board not found.'),
  pin_not_found: error(404, 50, 'Pin not found.'),
  pin_not_found_by_status: error(404, 404, 'Pin not found.'),
  media_not_found: error(404, 404, 'Media upload not found.'),
  too_many_requests: error(429, 8, 'You have exceeded your rate limit. Try again later.'),
  invalid: error(400, 1, "Invalid request: 'x' does not match the pattern"),
  image_unreachable: error(400, 1, 'Sorry we could not fetch the image.'),
  url_unreachable: error(400, 1, 'Unable to reach the URL. Please check the URL is correct and try again.'),
  ratios: error(400, 1, 'Images must have the same width/height ratios.'),
  image_format: error(400, 1, 'The format of the image is not supported.'),
  image_small: error(403, 1, 'Your image is too small. Please choose a larger image and try again.'),
  media_not_ready: error(400, 1, 'The media upload is still processing.'),
  media_failed: error(400, 1, 'The media upload failed.'),
  link_blocked: error(400, 1, 'Sorry! We blocked this link because it may lead to spam.'),
  site_refuses: error(403, 1, "Sorry, this site doesn't allow you to save Pins."),
  conflict: error(409, 409, 'The resource exists.'),
  timeout: error(408, 408, 'Request timeout.'),
  internal: error(500, 12, 'Something went wrong on our end. Sorry about that.'),
  bad_gateway: { status: 502, body: '<html>Bad Gateway</html>' },
  unavailable: error(503, 503, 'Service unavailable.'),
  gateway_timeout: { status: 504, body: '' },
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);
export const invalidRequest = (message: string): Refusal => new Refusal(error(400, 1, `Invalid request: ${message}`));
/** Of the token endpoint, for a code or a refresh token (pinterest-python-sdk#114). */
export const badGrant = (): Refusal => new Refusal(error(401, 283, 'The authorization grant is invalid'));
