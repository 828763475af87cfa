import type { ErrorRow } from '../kit/errors.ts';
import { membersAt } from '../kit/errors.ts';
import type { Bucket } from '../kit/limits.ts';
import type { OAuthTable } from '../kit/oauth.ts';
import { insightsBy, type NetworkTables } from '../kit/tables.ts';
import { textIn } from '../shared/members.ts';

/** X, API v2: docs.x.com, OpenAPI 2.167. */

const dayMs = 86_400_000;
const ofPosts = { ofApp: false, resetIs: 'epoch' } as const;
const headersOf = (prefix: string) => ({
  ...{ limit: `${prefix}-limit`, remaining: `${prefix}-remaining`, reset: `${prefix}-reset` },
});

/** Of 15 minutes by the account, of 24 hours by the account and by the app. */
const buckets: readonly Bucket[] = [
  { ...ofPosts, name: 'posts in 15 minutes', seconds: 900, ...headersOf('x-rate-limit') },
  { ...ofPosts, name: 'posts in 24 hours', seconds: 86_400, ...headersOf('x-user-limit-24hour') },
  {
    ...ofPosts,
    name: 'posts of the app in 24 hours',
    seconds: 86_400,
    ...headersOf('x-app-limit-24hour'),
    ofApp: true,
  },
];

/**
 * docs.x.com, "Response codes and errors": X classifies by status, by the end of `type`, by the code of the older form, and
 * otherwise only by its words.
 */
const type = (end: RegExp) => ({ where: { type: end } });
const legacy = (...codes: readonly number[]) => ({ where: { 'errors.code': codes } });

const errors: readonly ErrorRow[] = [
  { status: '5xx', means: 'down' },
  { status: 402, means: 'unpaid', ofApp: true },
  { ...type(/\/problems\/credits(?:-depleted)?$/), means: 'unpaid', ofApp: true },
  { ...type(/\/problems\/usage-capped$/), means: 'limited', ofApp: true },
  { status: 429, means: 'limited' },
  { ...type(/\/problems\/rate-limit-exceeded$/), means: 'limited' },
  { ...legacy(88), means: 'limited' },
  // X says 401 before it does anything.
  { status: 401, means: 'lapsed', renews: true },
  { ...type(/\/problems\/unsupported-authentication$/), means: 'lapsed' },
  { ...type(/\/problems\/user-suspended$/), means: 'lapsed' },
  { ...legacy(64, 89, 326), means: 'lapsed' },
  { says: /account is temporarily locked/i, means: 'lapsed' },
  { ...legacy(187), means: 'duplicate' },
  { says: /duplicate content/i, means: 'duplicate' },
  { ...type(/\/problems\/client-forbidden$/), means: 'permission', ofApp: true },
  { ...type(/\/problems\/oauth1-permissions$/), means: 'permission', ofApp: true },
  { says: /not permitted to access this feature/i, means: 'permission', ofApp: true },
  { ...legacy(433, 226), means: 'permission' },
  { says: /reply to this conversation/i, means: 'permission' },
  { says: /not permitted to quote/i, means: 'permission' },
  { ...legacy(324, 325), means: 'media' },
  { says: /longer than 2 minutes/i, means: 'media' },
  { says: /media id/i, means: 'media' },
  { status: 413, means: 'media' },
  { ...legacy(186, 385), means: 'content' },
  { ...type(/\/problems\/invalid-request$/), means: 'content' },
  { status: 404, means: 'gone' },
  { ...type(/\/problems\/resource-not-found$/), means: 'content' },
  { status: 400, means: 'content' },
  // "You are not permitted to perform this action." covers both; the gate has measured the text before.
  { status: 403, means: 'permission' },
];

const token = { method: 'POST', url: '{api}/2/oauth2/token', as: 'form' } as const;
const revoke = { method: 'POST', url: '{api}/2/oauth2/revoke', as: 'form' } as const;

/** Authorization code with PKCE (docs.x.com, "OAuth 2.0 Authorization Code Flow with PKCE"). */
const oauth: OAuthTable = {
  authorizeParams: {},
  scopes: {
    'tweet.read': { why: 'to find a post whose answer was lost; for figures', needed: 'reading your posts' },
    'tweet.write': { why: 'to publish', needed: 'posting for you' },
    'users.read': { why: 'to know whose account it is', needed: 'reading your profile' },
    'media.write': { why: 'to upload pictures and videos' },
    'offline.access': { why: 'to stay connected for longer than two hours', needed: 'staying connected' },
  },
  ...{ separator: ' ', client: 'basic', pkce: 'base64url', grant: 'account' },
  // A code works for about 30 seconds.
  exchange: [
    {
      ...token,
      params: {
        ...{ grant_type: 'authorization_code', code: '{code}' },
        ...{ redirect_uri: '{redirect}', code_verifier: '{verifier}' },
      },
    },
  ],
  refresh: {
    ...{ ...token, kind: 'rotates', minAgeMs: 0 },
    params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
  },
  // X documents no end of a refresh token; about six months without a use are observed, so it is used before 150 days.
  seconds: { access: 7_200, most: 86_400, refresh: 150 * 86_400 },
  refreshWindowMs: 30 * dayMs,
  revoke: [
    { ...revoke, params: { token: '{refresh}' } },
    { ...revoke, params: { token: '{token}' } },
  ],
  // `invalid_request` may be a mistake of ours as well as the end of the token: its description decides. What is about our
  // app (`invalid_client`, `unauthorized_client`) does not end the account.
  ends: [{ status: 400, says: /^invalid_grant:|^invalid_request: .{0,200}token was invalid/i }],
};

export const tables: NetworkTables = {
  platform: 'x',
  headers: { accept: 'application/json' },
  version: () => ({ version: 'API v2', endsAt: null, source: 'docs.x.com, OpenAPI 2.167 of 2026-08-22' }),
  ...{ oauth, errors, buckets },
  words: ['detail', 'errors.message', 'title'],
  // The end of `type`, else the older code.
  code: (body) => {
    const end = (textIn(body, 'type') ?? '').split('/').at(-1) ?? '';
    if (end !== '' && end !== 'about:blank') return end;
    const code = membersAt(body, 'errors.code').find((one) => typeof one === 'number');
    return code === undefined ? null : String(code);
  },
  makes: [{ method: 'POST', path: '/2/tweets' }],
  // Of posts and people: what X counts and bills. The state of an upload is not.
  isRead: ({ method, path }) => method === 'GET' && !path.startsWith('/2/media/'),
  // Of some 90 midnights these; the one of four weeks is the last within which X tells its owner's figures.
  insights: insightsBy('x/1', [1, 2, 3, 5, 7, 10, 14, 21, 28, 45, 60, 89]),
  doctor: {
    makeApp: 'Make an app in X’s developer console',
    console: 'the User authentication settings of your app in X’s developer console',
    refusesCode: /authorization code/i,
    refusesClient: /client|authorization header/i,
    clientRemedy: {
      confidential:
        'Copy the OAuth 2.0 client id and secret (not the API key) anew. An app of the type "Native App" has no secret.',
      public: 'Check X_CLIENT_ID. An app of the type "Web App" has a secret: set X_CLIENT_SECRET.',
    },
    redirectName: 'Callback URI',
    scopesRemedy: 'Set App permissions to "Read and write"',
    redirectRefused: '"Something went wrong"',
  },
};

/** docs.x.com, "Pricing", August 2026: a post $0.005, a person $0.010. They are counted in reads of posts. */
export const readsOfPerson = 2;
