import type { Ask, JsonWithFiles } from '../kit/client.ts';
import type { ErrorRow } from '../kit/errors.ts';
import type { OAuthTable } from '../kit/oauth.ts';
import type { NetworkRequest, NetworkTables } from '../kit/tables.ts';
import { membersOf, textIn } from '../shared/members.ts';

/** TikTok, Content Posting API, Display API and Login Kit v2: developers.tiktok.com, read on 2026-11-05. */

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];

/** Ids are integers of 64 bits. */
export const isPostId = (id: string): boolean => /^\d{1,30}$/.test(id);
/** `v_pub_file~v2-1.7440000000000000001` */
export const isPublishId = (id: string): boolean => /^[a-z][\w~.-]{0,199}$/i.test(id);

export const posting = (path: string, json?: JsonWithFiles, query?: Ask['query']): Ask => ({
  ...{ method: 'POST', path, headers: { 'content-type': 'application/json; charset=UTF-8' } },
  ...(json === undefined ? {} : { json }),
  ...(query === undefined ? {} : { query }),
});

const code = (...codes: readonly string[]) => ({ where: { 'error.code': codes } });

/** "Error handling" of each call. Some limits come with 200 from "Query Creator Info", so the code decides, and not the status. */
const errors: readonly ErrorRow[] = [
  // TikTok says it before it does anything.
  { ...code('access_token_invalid'), means: 'lapsed', renews: true },
  { ...code('scope_not_authorized', 'scope_permission_missed'), means: 'unpermitted' },
  { ...code('rate_limit_exceeded'), means: 'limited', wait: minuteMs },
  // Posts of the last 24 hours: one of them leaves the window at any time.
  { ...code('spam_risk_too_many_posts'), means: 'limited', wait: 4 * hourMs },
  { ...code('spam_risk_too_many_pending_share'), means: 'limited', wait: dayMs },
  // Accounts that have posted today may go on: the app does not rest.
  { ...code('reached_active_user_cap'), means: 'limited', wait: { nextDayIn: 'UTC' } },
  { ...code('spam_risk_user_banned_from_posting'), means: 'forbidden' },
  { ...code('unaudited_client_can_only_post_to_private_accounts'), means: 'forbidden' },
  // The operator proves the address, and the post waits.
  { ...code('url_ownership_unverified'), means: 'ours' },
  { ...code('invalid_publish_id', 'token_not_authorized_for_specified_publish_id'), means: 'gone' },
  { ...code('privacy_level_option_mismatch', 'app_version_check_failed'), means: 'content' },
  { ...code('invalid_param', 'invalid_params', 'spam_risk', 'spam_risk_text'), means: 'content' },
  { ...code('invalid_file_upload'), means: 'media' },
  { ...code('internal_error'), means: 'down' },
  { status: '5xx', means: 'down' },
  { status: 408, means: 'down' },
  { status: 429, means: 'limited', wait: minuteMs },
  { status: 413, means: 'media' },
  { status: 403, means: 'permission' },
];

const token = { method: 'POST', url: '{api}/oauth/token/', as: 'form' } as const;

/** "Login Kit for Web", "User Access Token Management", "Scopes". */
const oauth: OAuthTable = {
  authorizeParams: {},
  scopes: {
    'user.info.basic': { why: 'to know whose account it is', needed: 'reading your profile' },
    'user.info.profile': { why: 'to show the username, and for links to posts', needed: 'reading your username' },
    'user.info.stats': { why: 'for the figures of the account', needed: 'reading your followers' },
    'video.publish': { why: 'to publish, and to ask what the account may post', needed: 'posting for you' },
    'video.list': {
      why: 'for the figures of public posts, and to find one whose answer was lost',
      needed: 'your posts',
    },
  },
  // The challenge is the hexadecimal SHA-256 of the verifier, and not base64url as in RFC 7636.
  ...{ separator: ',', client: { id: 'client_key', secret: 'client_secret' }, pkce: 'hex', grant: 'account' },
  exchange: [
    {
      ...token,
      params: {
        ...{ grant_type: 'authorization_code', code: '{code}', redirect_uri: '{redirect}' },
        code_verifier: '{verifier}',
      },
    },
  ],
  refresh: {
    ...{ ...token, kind: 'rotates', minAgeMs: 0 },
    params: { grant_type: 'refresh_token', refresh_token: '{refresh}' },
  },
  // Two hours and 180 days since November 2026, a day and a year before: the answers say which.
  seconds: { access: 7_200, most: 86_400, refresh: 180 * 86_400 },
  refreshWindowMs: 30 * dayMs,
  revoke: [{ method: 'POST', url: '{api}/oauth/revoke/', as: 'form', params: { token: '{token}' } }],
  // `invalid_client` is about our client, and ends no account.
  ends: [400, 401].map((status) => ({
    status,
    says: /^invalid_grant\b|^access_token_invalid\b|refresh.?token.{0,40}\b(?:invalid|expired|revoked)/i,
  })),
};

/** `bytes 0-9999999/20000000`: the part with which the file ends. */
const isLastPart = ({ headers }: NetworkRequest): boolean => {
  const [, last, total] = /^bytes \d+-(\d+)\/(\d+)$/.exec(headers?.['content-range'] ?? '') ?? [];
  return last === undefined || Number(last) + 1 >= Number(total);
};

export const contentInit = '/post/publish/content/init/';

export const tables: NetworkTables = {
  platform: 'tiktok',
  headers: { accept: 'application/json' },
  version: () => ({ version: 'API v2', endsAt: null, source: 'developers.tiktok.com, changelog of November 2026' }),
  ...{ oauth, errors },
  // No header says how much of a limit is left.
  buckets: [],
  words: ['error.message'],
  code: (body) => textIn(membersOf(body?.error), 'code'),
  isRefusal: ({ error }) => (textIn(error, 'code') ?? 'ok') !== 'ok',
  isRead: ({ path }) => !path.startsWith('/post/'),
  makes: [
    // TikTok fetches the pictures of a call, and publishes them.
    { method: 'POST', path: contentInit.replace(/\/$/, '') },
    // It publishes a video once it has all of it.
    { method: 'PUT', path: null, when: isLastPart },
  ],
  // The last part of a file has up to 20 MB.
  boundaryDeadlineMs: 60_000,
  insights: { insightsVersion: 'tiktok/1', minIntervalMs: 900_000, maxAheadMs: 300_000 },
  doctor: {
    makeApp: 'Connect an app at developers.tiktok.com',
    console: '"Manage apps" at developers.tiktok.com',
    refusesCode: /authorization code|\bcode\b.{0,40}\b(?:expired|invalid)/i,
    refusesClient: /client.?key|client.?secret|invalid_client/i,
    clientRemedy: {
      confidential: 'Copy the Client key and the Client secret anew.',
      public: 'An app for the web has a secret: set TIKTOK_CLIENT_SECRET.',
    },
    redirectName: 'Redirect URI of Login Kit, for Web',
    scopesRemedy: 'Add Login Kit, the Content Posting API with Direct Post and these scopes',
    redirectRefused: 'A page that says "redirect_uri"',
    calls: [{ topic: null, name: 'Callback URL of Webhooks' }],
  },
};
