import type { Json } from '#contracts/ports/platform.ts';
import type { Ask } from '../kit/client.ts';
import { type ErrorRow, membersAt } from '../kit/errors.ts';
import type { OAuthTable } from '../kit/oauth.ts';
import { rangeIn } from '../kit/resumable.ts';
import { insightsBy, type MadeBy, type NetworkRequest, type NetworkTables } from '../kit/tables.ts';
import { textIn } from '../shared/members.ts';

/** YouTube, Data API v3 and Analytics API v2: developers.google.com/youtube, its discovery documents of November 2026. */

const dayMs = 86_400_000;

/** `snippet.title`, where it is a text. */
export const textAt = (value: Json | undefined, path: string): string | null => {
  const [found] = membersAt(value, path);
  return typeof found === 'string' ? found : null;
};

export const reading = (path: string, query: Readonly<Record<string, string>>): Ask => ({ method: 'GET', path, query });

export const zone = 'America/Los_Angeles';

const reason = (...reasons: readonly string[]) => ({ where: { 'error.errors.reason': reasons } });

/** "YouTube Data API: Errors"; "Global domain errors"; each method's own table. The first reason of an error tells it. */
const errors: readonly ErrorRow[] = [
  { status: '5xx', means: 'down' },
  // Of the whole project, until midnight in California.
  { ...reason('quotaExceeded', 'dailyLimitExceeded'), means: 'limited', exhausts: true, wait: { nextDayIn: zone } },
  // Of the channel, for a day.
  { ...reason('uploadLimitExceeded', 'uploadRateLimitExceeded'), means: 'limited', wait: dayMs },
  { ...reason('rateLimitExceeded', 'userRateLimitExceeded'), means: 'limited', wait: 60_000 },
  { status: 429, means: 'limited', wait: 60_000 },
  // The Google account has no channel.
  { ...reason('youtubeSignupRequired'), means: 'unpermitted' },
  { status: 401, means: 'lapsed', renews: true },
  { ...reason('insufficientPermissions'), means: 'unpermitted' },
  { ...reason('accessNotConfigured'), means: 'ours', ofApp: true },
  { ...reason('commentsDisabled', 'ineligibleAccount'), means: 'noComment' },
  { ...reason('forbiddenPrivacySetting', 'forbiddenLicenseSetting'), means: 'permission' },
  // Of a comment: "The API server failed to successfully process the request".
  { ...reason('processingFailure'), means: 'later' },
  { ...reason('mediaBodyRequired', 'invalidFilename'), means: 'media' },
  { status: 404, means: 'gone' },
  { status: 409, means: 'later', mayBeOut: true },
  { status: 403, means: 'forbidden' },
  { status: 413, means: 'media' },
  { status: 400, means: 'content' },
];

const auth = 'https://www.googleapis.com/auth';
/** Owners may leave it out. */
export const manageScope = `${auth}/youtube.force-ssl`;

const token = { method: 'POST', url: '{tokens}/token', as: 'form' } as const;
const back = { redirect_uri: '{redirect}', code_verifier: '{verifier}' };
const renewal = { kind: 'keeps', minAgeMs: 0 } as const;
const revoke = { method: 'POST', url: '{tokens}/revoke', as: 'form', isBare: true } as const;

/** developers.google.com/identity, "Using OAuth 2.0 for Web Server Applications". */
const oauth: OAuthTable = {
  // Without `consent` Google gives a refresh token with the first consent alone.
  authorizeParams: { access_type: 'offline', prompt: 'consent', include_granted_scopes: 'true' },
  scopes: {
    openid: { why: 'to know which channels share one login, whose revocation ends all of them' },
    [`${auth}/youtube.upload`]: { why: 'to upload videos and their thumbnails', needed: 'uploading videos' },
    [`${auth}/youtube.readonly`]: { why: 'to know the channel and the fate of a video', needed: 'reading the channel' },
    [manageScope]: { why: 'to comment, and to change or take back a scheduled video' },
    [`${auth}/yt-analytics.readonly`]: { why: 'for watch time, retention and audience' },
  },
  ...{ separator: ' ', client: { id: 'client_id', secret: 'client_secret' }, pkce: 'base64url', grant: 'person' },
  exchange: [{ ...token, params: { grant_type: 'authorization_code', code: '{code}', ...back } }],
  refresh: { ...token, ...renewal, params: { grant_type: 'refresh_token', refresh_token: '{refresh}' } },
  // A consent screen in testing names an end of its refresh tokens; any other has none.
  seconds: { access: 3_600, most: 86_400, refresh: null },
  refreshWindowMs: 600_000,
  // Of either token it ends the whole grant.
  revoke: ['{refresh}', '{token}'].map((own) => ({ ...revoke, params: { token: own } })),
  ends: [{ status: 400, says: /^invalid_grant:/ }],
  revokesNothing: [{ status: 400, says: /^invalid_token:/ }],
};

const isPrivate = (video: Json): boolean => textAt(video, 'status.privacyStatus') === 'private';

/** There is no video before the last byte of its upload. */
const makes: readonly MadeBy[] = [
  { method: 'PUT', path: null, when: ({ headers = {} }) => rangeIn(headers)?.isLast === true },
  { method: 'POST', path: '/videos', when: ({ query = {} }) => query.uploadType !== 'resumable' },
  { method: 'PUT', path: '/videos', when: ({ json }) => json !== undefined && !isPrivate(json as Json) },
  { method: 'POST', path: '/commentThreads' },
  { method: 'POST', path: '/comments' },
];

/** "Quota calculator": an upload is counted apart; a read costs one unit, a change fifty. */
const units = ({ method, path }: NetworkRequest): number | 'budget' => {
  if (path === '{uploads}/videos') return 'budget';
  if (path === '{uploads}/thumbnails/set') return 50;
  if (!path.startsWith('/')) return 0;
  return method === 'GET' ? 1 : 50;
};

export const isVideoId = (id: string): boolean => /^[\w-]{11}$/.test(id);

const source = 'developers.google.com/youtube, November 2026';
const testing = 'While it is Testing, Google ends each connection seven days after its consent, with invalid_grant.';

export const tables: NetworkTables = {
  platform: 'youtube',
  headers: { accept: 'application/json' },
  version: () => ({ version: 'Data API v3, Analytics API v2', endsAt: null, source }),
  ...{ oauth, errors, makes, units, buckets: [] },
  words: ['error.message', 'error_description'],
  code: (body) => textAt(body ?? undefined, 'error.errors.reason') ?? textIn(body, 'error'),
  // The answer to the last part comes when YouTube has put the file together.
  boundaryDeadlineMs: 60_000,
  insights: insightsBy('youtube/1'),
  doctor: {
    makeApp: 'Make an OAuth client of the type Web application in a project of Google Cloud with YouTube’s two APIs',
    console: 'the Google Cloud console (Google Auth Platform, Clients)',
    refusesCode: /malformed auth code|invalid_grant|bad request/i,
    refusesClient: /invalid_client|unauthorized_client|client was not found|unauthorized/i,
    clientRemedy: { confidential: 'Copy the client ID and secret anew.', public: 'Set YOUTUBE_CLIENT_SECRET.' },
    redirectName: 'Authorized redirect URIs',
    scopesRemedy: 'Add the scopes under Data access',
    redirectRefused: '"Error 400: redirect_uri_mismatch"',
    caution: {
      words: `Google does not tell the publishing status of your consent screen. ${testing}`,
      remedy: 'Under Audience, set the publishing status to In production; owners then consent anew.',
    },
  },
};
