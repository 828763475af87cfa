import type { ErrorRow } from '../kit/errors.ts';
import type { OAuthTable } from '../kit/oauth.ts';
import type { NetworkTables } from '../kit/tables.ts';
import { integerIn } from '../shared/members.ts';

/** Pinterest, API v5: developers.pinterest.com, and its OpenAPI description 5.23.0 of December 2025. */

const dayMs = 86_400_000;

/**
 * Pinterest's codes are small numbers that mean different things at different calls, and some answers repeat the status as
 * the code: status, code and words decide together.
 */
const code = (...codes: readonly number[]) => ({ where: { code: codes } });

const errors: readonly ErrorRow[] = [
  { status: '5xx', means: 'down' },
  { status: 408, means: 'down', mayBeOut: true },
  { status: 429, means: 'limited', wait: 60_000 },
  // An app with trial access: only the operator can ask for more.
  { status: 403, ...code(29), says: /trial access/i, means: 'permission', ofApp: true },
  { status: 401, says: /restricted feature/i, means: 'permission', ofApp: true },
  { status: 401, ...code(3), says: /permission|scope/i, means: 'unpermitted' },
  // Pinterest says 401 before it does anything.
  { status: 401, means: 'lapsed', renews: true },
  { says: /\bboard\b.{0,40}\bnot found/i, means: 'content' },
  { status: 404, ...code(40), means: 'content' },
  { status: 404, means: 'gone' },
  // Pinterest fetches pictures by their address within the call; the next attempt sends them along.
  { status: 400, says: /could not fetch|unable to (?:reach|fetch|download)/i, means: 'later' },
  { status: 400, says: /\bmedia\b.{0,60}\b(?:not ready|processing|registered)\b/i, means: 'later' },
  { says: /width\/height ratio|image.{0,20}too small|format of the image|not a valid image/i, means: 'media' },
  { status: 413, means: 'media' },
  { status: 400, means: 'content' },
  { status: 409, means: 'content' },
  { says: /\bspam\b|\bblocked\b|(?:not|n['’]t) allow/i, means: 'content' },
  { status: 403, means: 'permission' },
];

const token = { method: 'POST', url: '{api}/oauth/token', as: 'form' } as const;
const revoke = { method: 'POST', url: '{api}/oauth/token/revoke', as: 'form' } as const;

/** "Set up authentication and authorization": authorization code with the client's secret. */
const oauth: OAuthTable = {
  authorizeParams: {},
  scopes: {
    'user_accounts:read': { why: 'to know whose account it is; for figures', needed: 'reading your profile' },
    'boards:read': { why: 'to offer the boards', needed: 'seeing your boards' },
    'boards:write': { why: 'which Pinterest wants for each pin', needed: 'adding to your boards' },
    'pins:read': { why: 'to find a pin whose answer was lost; for figures', needed: 'reading your pins' },
    'pins:write': { why: 'to publish', needed: 'posting for you' },
  },
  ...{ separator: ',', client: 'basic', pkce: 'none', grant: 'account' },
  exchange: [
    {
      ...token,
      params: {
        ...{ grant_type: 'authorization_code', code: '{code}', redirect_uri: '{redirect}' },
        // Apps made before 2025-09-25 must ask for refresh tokens without a last day; newer ones have no others.
        continuous_refresh: 'true',
      },
    },
  ],
  refresh: {
    ...{ ...token, kind: 'rotates', minAgeMs: 0 },
    params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
  },
  seconds: { access: 30 * 86_400, most: 30 * 86_400, refresh: 60 * 86_400 },
  // At an age of 25 days, before the access token ends.
  refreshWindowMs: 35 * dayMs,
  revoke: [
    { ...revoke, params: { token: '{refresh}', token_type_hint: 'refresh_token' } },
    { ...revoke, params: { token: '{token}', token_type_hint: 'access_token' } },
  ],
  // "Revoke a token" takes tokens of system users alone.
  revokesNothing: [{ status: 403, says: /not permitted/i }],
  // "Authentication failed." is about our client, and ends no account; a request without a good refresh token neither.
  ends: [400, 401].map((status) => ({
    status,
    says: /authorization grant is invalid|(?:invalid|expired|revoked) refresh.?token\b|refresh.?token (?:is |was |has (?:been )?)?(?:invalid|expired|revoked)/i,
  })),
};

export const tables: NetworkTables = {
  platform: 'pinterest',
  headers: { accept: 'application/json' },
  version: () => ({
    ...{ version: 'API v5', endsAt: null },
    source: 'github.com/pinterest/api-description, 5.23.0 of December 2025',
  }),
  ...{ oauth, errors },
  // "Rate limits": with standard access by the minute and the account, with trial access by the day and the app.
  buckets: [
    {
      ...{ policy: 'x-ratelimit-limit', remaining: 'x-ratelimit-remaining', reset: 'x-ratelimit-reset' },
      ...{ resetIs: 'seconds', names: { 60: 'calls in a minute', 86400: 'calls of the app in a day' } },
      ofApp: [86_400],
    },
  ],
  words: ['message'],
  code: (body) => integerIn(body ?? undefined, 'code')?.toString() ?? null,
  makes: [{ method: 'POST', path: '/pins' }],
  // Pictures travel within the call, or are fetched by Pinterest.
  boundaryDeadlineMs: 30_000,
  insights: { insightsVersion: 'pinterest/1', minIntervalMs: 900_000, maxAheadMs: 300_000 },
  doctor: {
    makeApp: 'Connect an app at developers.pinterest.com',
    console: '"Manage" of your app at developers.pinterest.com/apps',
    refusesCode: /authorization grant is invalid|authorization code/i,
    refusesClient: /authentication failed|client/i,
    clientRemedy: {
      confidential: 'Copy the App ID and the App secret key anew.',
      public: 'Pinterest knows no app without a secret: set PINTEREST_CLIENT_SECRET.',
    },
    redirectName: 'Redirect URIs',
    scopesRemedy: 'Ask Pinterest for Standard access',
    redirectRefused: 'A page without "Give access"',
  },
};
