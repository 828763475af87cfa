/** What X answers, with the bodies of its published samples. */

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

const problem = (status: number, title: string, detail: string, type = 'about:blank'): Answer => ({
  status,
  body: { title, detail, type: type === 'about:blank' ? type : `https://api.x.com/2/problems/${type}`, status },
});

/** Every error of the facts, by a name of its own. */
export const problems = {
  unauthorized: problem(401, 'Unauthorized', 'Unauthorized'),
  credits_depleted: problem(402, 'Payment Required', 'credits depleted', 'credits-depleted'),
  credits: problem(402, 'CreditsDepleted', 'Your enrolled account does not have any credits.', 'credits'),
  duplicate: problem(403, 'Forbidden', 'You are not allowed to create a Tweet with duplicate content.'),
  not_permitted: problem(403, 'Forbidden', 'You are not permitted to perform this action.'),
  reply_refused: problem(403, 'Forbidden', 'Reply to this conversation is not allowed.'),
  quote_refused: problem(403, 'Forbidden', 'You are not permitted to quote this post.'),
  client_forbidden: problem(403, 'Client Forbidden', 'Appropriate level of API access required.', 'client-forbidden'),
  oauth1_permissions: problem(403, 'Forbidden', 'Your client app is not configured.', 'oauth1-permissions'),
  unsupported_authentication: problem(
    ...([403, 'Unsupported Authentication', 'Authenticating with OAuth 2.0 Application-Only is forbidden.'] as const),
    'unsupported-authentication',
  ),
  feature_forbidden: problem(403, 'Forbidden', 'You are not permitted to access this feature.'),
  user_suspended: problem(403, 'User Suspended', 'The user has been suspended.', 'user-suspended'),
  long_video: problem(403, 'Forbidden', 'This user is not allowed to post a video longer than 2 minutes.'),
  not_found: problem(404, 'Not Found Error', 'Could not find tweet.', 'resource-not-found'),
  too_many_requests: problem(429, 'Too Many Requests', 'Too Many Requests'),
  rate_limit_exceeded: problem(429, 'Rate Limit Exceeded', 'Too many requests', 'rate-limit-exceeded'),
  usage_capped: problem(429, 'UsageCapExceeded', 'Usage cap exceeded: Monthly product cap', 'usage-capped'),
  internal: problem(500, 'Internal Server Error', 'Something is broken.'),
  bad_gateway: { status: 502, body: '<html>Bad Gateway</html>' },
  over_capacity: { status: 503, body: { errors: [{ code: 130, message: 'Over capacity' }] } },
  gateway_timeout: { status: 504, body: '' },
  legacy_rate: { status: 403, body: { errors: [{ code: 88, message: 'Rate limit exceeded' }] } },
  legacy_token: { status: 403, body: { errors: [{ code: 89, message: 'Invalid or expired token' }] } },
  legacy_suspended: { status: 403, body: { errors: [{ code: 64, message: 'Your account is suspended' }] } },
  legacy_too_long: { status: 403, body: { errors: [{ code: 186, message: 'Tweet needs to be a bit shorter.' }] } },
  legacy_duplicate: { status: 403, body: { errors: [{ code: 187, message: 'Status is a duplicate.' }] } },
  legacy_automated: {
    ...{ status: 403, body: { errors: [{ code: 226, message: 'This request looks like it might be automated.' }] } },
  },
  legacy_media: { status: 400, body: { errors: [{ code: 324, message: 'The validation of media ids failed.' }] } },
  legacy_media_expired: { status: 400, body: { errors: [{ code: 325, message: 'A media id was not found.' }] } },
  legacy_locked: { status: 403, body: { errors: [{ code: 326, message: 'This account is temporarily locked.' }] } },
  legacy_reply_gone: { status: 403, body: { errors: [{ code: 385, message: 'You attempted to reply to a post.' }] } },
  legacy_reply_limited: { status: 403, body: { errors: [{ code: 433, message: 'The author restricted replies.' }] } },
} as const satisfies Readonly<Record<string, Answer>>;

export type ProblemName = keyof typeof problems;

/** `errors[].message` names what is wrong. */
export const invalidRequest = (message: string): Refusal =>
  new Refusal({
    status: 400,
    body: {
      ...{ errors: [{ message, parameters: {} }], title: 'Invalid Request' },
      detail: 'One or more parameters to your request was invalid.',
      type: 'https://api.x.com/2/problems/invalid-request',
    },
  });

export const refuse = (name: ProblemName): Refusal => new Refusal(problems[name]);
/** Of the token endpoint. */
export const badToken = (error: string, error_description: string): Refusal =>
  new Refusal({ status: 400, body: { error, error_description } });
