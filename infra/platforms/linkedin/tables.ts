import type { Ask } from '../kit/client.ts';
import type { ErrorRow } from '../kit/errors.ts';
import { membersAt } from '../kit/errors.ts';
import type { OAuthTable } from '../kit/oauth.ts';
import { insightsBy, type NetworkTables } from '../kit/tables.ts';

/** LinkedIn, Community Management API: learn.microsoft.com/linkedin. */

const code = (...codes: readonly string[]) => ({ where: { code: codes } });
const utcDay = { wait: { nextDayIn: 'UTC' } } as const;

/** learn.microsoft.com/linkedin, "Error handling", "Rate limiting", "Versioning"; github.com/gitroomhq/postiz-app, issue 408. */
const errors: readonly ErrorRow[] = [
  { status: '5xx', means: 'down' },
  // No post is at fault: the operator sets a newer version.
  { status: 426, means: 'sunset', ofApp: true },
  { ...code('NONEXISTENT_VERSION', 'VERSION_MISSING'), means: 'sunset', ofApp: true },
  { status: 401, where: { serviceErrorCode: [65601] }, means: 'lapsed' },
  // LinkedIn says 401 before it does anything.
  { status: 401, means: 'lapsed', renews: true },
  // Days end at midnight of UTC. A limit is of one resource, so the app does not rest as a whole.
  { status: 429, says: /\bDAY\b/i, means: 'limited', ...utcDay },
  { status: 429, means: 'limited', wait: 120_000 },
  { where: { 'errorDetails.inputErrors.code': ['DUPLICATE_POST'] }, means: 'duplicate' },
  { status: 422, says: /duplicate/i, means: 'duplicate' },
  // "Retry": nobody knows whether the first call was carried out.
  { status: 409, means: 'later', mayBeOut: true },
  // A post that is a moment old is not known everywhere.
  { status: 404, says: /from domain authorization endpoint/i, means: 'later' },
  { says: /unable to obtain activity/i, means: 'later' },
  { status: 404, means: 'gone' },
  { status: 403, means: 'forbidden' },
  { ...code('MEDIA_ASSET_PROCESSING_FAILED'), means: 'media' },
  { ...code('MEDIA_ASSET_WAITING_UPLOAD', 'EXPIRED_UPLOAD_URL'), means: 'later' },
  { says: /asset.{0,80}(?:waiting.?upload|processing)/i, means: 'later' },
  { status: 413, means: 'media' },
  { status: 400, means: 'content' },
];

const token = { method: 'POST', url: '{tokens}/accessToken', as: 'form' } as const;

/** learn.microsoft.com/linkedin, "Authorization code flow", "Refresh tokens". */
const oauth: OAuthTable = {
  authorizeParams: {},
  scopes: {
    openid: { why: 'to know whose account it is' },
    profile: { why: 'to show the name and picture of a member' },
    r_basicprofile: { why: 'to know whose account it is, of an app without Sign In with LinkedIn' },
    w_member_social: { why: 'to publish and comment as a member' },
    w_organization_social: { why: 'to publish and comment as an organization' },
    r_organization_social: { why: 'to find a post of an organization whose answer was lost; for its reactions' },
    rw_organization_admin: { why: 'to list the organizations of a login; for their figures' },
    r_organization_admin: { why: 'to list the organizations of a login; for their figures, without changing a page' },
    r_member_postAnalytics: { why: 'for figures of a member’s posts' },
    r_member_profileAnalytics: { why: 'for the followers of a member' },
  },
  pageErrors: {
    declined: ['user_cancelled_login', 'user_cancelled_authorize'],
    scopes: ['unauthorized_scope_error'],
  },
  ...{ separator: ' ', client: { id: 'client_id', secret: 'client_secret' }, pkce: 'none', grant: 'person' },
  exchange: [{ ...token, params: { grant_type: 'authorization_code', code: '{code}', redirect_uri: '{redirect}' } }],
  // Its end is 365 days after the consent, however often it is used; apps without a programme get none.
  refresh: {
    ...{ ...token, kind: 'keeps', minAgeMs: 0 },
    params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
  },
  // Each answer names both ends.
  seconds: { access: 60 * 86_400, most: 60 * 86_400, refresh: null },
  // An access token without a refresh token works until its end: it may not count as lapsed before.
  refreshWindowMs: 600_000,
  revoke: [],
  ends: [
    { status: 400, says: /^invalid_grant:|^invalid_request: .{0,200}refresh token.{0,80}(?:invalid|expired|revoked)/i },
  ],
};

/** Of `202608` the 15th, a year later. Null: of another form. */
const endOf = (version: string): string | null =>
  /^20\d\d(?:0[1-9]|1[0-2])/.test(version) ? `${Number(version.slice(0, 4)) + 1}-${version.slice(4, 6)}-15` : null;

/** LinkedIn's ids of posts. */
export const isPostId = (id: string): boolean => /^urn:li:(?:share|ugcPost):\d{1,25}$/.test(id);
export const isOrganization = (externalId: string): boolean => /^urn:li:organization:\d{1,25}$/.test(externalId);

/** As a name in a path and as a value of a query. The punctuation of Rest.li around it stays as it is. */
export const enc = encodeURIComponent;

/** @param method that of Rest.li, where it is not plain */
export const reading = (path: string, method?: 'BATCH_GET' | 'FINDER'): Ask => ({
  ...{ method: 'GET', path, headers: method === undefined ? {} : { 'x-restli-method': method } },
});

export const tables: NetworkTables = {
  platform: 'linkedin',
  headers: { accept: 'application/json', 'linkedin-version': '{version}', 'x-restli-protocol-version': '2.0.0' },
  version: (set) => ({
    ...{ version: `LinkedIn-Version ${set ?? 'of nobody'}`, endsAt: endOf(set ?? '') },
    source: 'learn.microsoft.com/linkedin, "Versioning": each version lives for a year; LINKEDIN_VERSION sets another',
  }),
  // LinkedIn tells its limits in no header.
  ...{ oauth, errors, buckets: [] },
  words: ['message', 'errorDetails.inputErrors.description'],
  code: (body) => {
    const [ofInput] = membersAt(body, 'errorDetails.inputErrors.code');
    const own = body?.code ?? ofInput ?? body?.serviceErrorCode;
    return own === undefined ? null : String(own);
  },
  makes: [
    { method: 'POST', path: '/posts' },
    // A change of a post.
    { method: 'POST', path: '/posts/:id' },
    { method: 'POST', path: '/socialActions/:id/comments' },
  ],
  // Figures of one post of a member cost nine calls, and a member of a new app has a hundred a day.
  insights: insightsBy('linkedin/1', [1, 2, 3, 5, 7, 14, 28, 60, 89]),
  doctor: {
    makeApp: 'Make an app in LinkedIn’s developer portal',
    console: 'the Auth tab of your app in LinkedIn’s developer portal',
    refusesCode: /authorization code/i,
    refusesClient: /client/i,
    clientRemedy: {
      confidential: 'Copy the Client ID and the Primary Client Secret anew.',
      public: 'Set LINKEDIN_CLIENT_SECRET: LinkedIn has no public clients.',
    },
    redirectName: 'Authorized redirect URLs',
    scopesRemedy: 'Ask for the product that has them, or name in LINKEDIN_SCOPES only those that the app has',
    redirectRefused: '"The redirect_uri does not match the registered value"',
    calls: [{ topic: null, name: 'the Webhooks tab, if your app has one' }],
  },
};
