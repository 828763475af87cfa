import type { ErrorRow, NetworkAnswer } from '../kit/errors.ts';
import type { OAuthTable } from '../kit/oauth.ts';
import type { NetworkTables } from '../kit/tables.ts';
import { code, dayMs, hourMs, metaEnds, metaErrors, metaUsage, metaWords, subcode } from '../meta/graph.ts';

/** Threads API v1.0: developers.facebook.com/docs/threads, and what its answers were seen to mean. */

/** The subcode says more than the code. */
const errors: readonly ErrorRow[] = [
  { ...subcode(4279013), means: 'forbidden' },
  // Threads does not have what the call is about, or not yet.
  { ...subcode(4279009), means: 'later' },
  // Children of a carousel that ended, and a file that its server did not give to Threads.
  { ...subcode(4279004, 2207052), means: 'media' },
  // An action that Threads takes for spam: another try within the day makes it worse. Posts were seen to be out all the same.
  { ...subcode(2207051), means: 'limited', wait: dayMs, mayBeOut: true },
  // The quota of posts, as Instagram names it; Threads documents no code of its own.
  { ...subcode(2207042), means: 'limited', wait: hourMs },
  { ...code(24), means: 'later' },
  { ...code(801), means: 'content' },
  ...metaErrors,
];

/** Of what was made a moment ago it may still come up. */
export const isNotFound = (answer: NetworkAnswer): boolean =>
  answer.kind === 'refused' && answer.failure.platformCode?.endsWith('/4279009') === true;

/** Threads has nothing of that id that the account may see. */
export const isGone = (answer: NetworkAnswer): boolean =>
  isNotFound(answer) || (answer.kind === 'refused' && answer.row.means === 'gone');

/** Authorization code, then a token of an hour, then one of 60 days, which is renewed itself ("Get Access Tokens"). */
const oauth: OAuthTable = {
  authorizeParams: {},
  scopes: {
    threads_basic: { why: 'to know whose account it is; for everything else', needed: 'reading your profile' },
    threads_content_publish: { why: 'to publish, and to ask how many posts are left', needed: 'posting for you' },
    threads_manage_replies: { why: 'for threads and first comments, and to ask how many replies are left' },
    threads_read_replies: { why: 'to find a reply whose answer was lost' },
    threads_manage_insights: { why: 'for figures' },
    threads_delete: { why: 'to delete the post of `network check`' },
  },
  ...{ separator: ',', pkce: 'none', grant: 'account' },
  client: { id: 'client_id', secret: 'client_secret' },
  exchange: [
    {
      ...{ method: 'POST', url: '{api}/oauth/access_token', as: 'form' },
      params: { grant_type: 'authorization_code', code: '{code}', redirect_uri: '{redirect}' },
    },
    {
      ...{ method: 'GET', url: '{api}/access_token', as: 'query', isBare: true },
      params: { grant_type: 'th_exchange_token', client_secret: '{secret}', access_token: '{token}' },
    },
  ],
  refresh: {
    ...{ method: 'GET', url: '{api}/refresh_access_token', as: 'query', isBare: true, kind: 'extends' },
    // "Refresh a Long-Lived Token": at least 24 hours old, and not expired.
    minAgeMs: dayMs,
    params: { grant_type: 'th_refresh_token', access_token: '{token}' },
  },
  seconds: { access: 3_600, most: 60 * 86_400, refresh: null },
  // Ten tries, one a day, before the account is lost.
  refreshWindowMs: 10 * dayMs,
  // No call of the API ends a consent: the owner does, in the settings of Threads.
  revoke: [],
  ends: metaEnds,
};

export const tables: NetworkTables = {
  platform: 'threads',
  headers: { accept: 'application/json' },
  version: (set) => ({
    version: `Threads API ${set ?? 'v1.0'}`,
    endsAt: null,
    source: 'developers.facebook.com/docs/threads/changelog, August 2026: it has one version',
  }),
  ...{ oauth, errors, buckets: [] },
  ...metaWords,
  usage: metaUsage,
  makes: [
    { method: 'POST', path: '/:version/:user/threads_publish' },
    {
      ...{ method: 'POST', path: '/:version/:user/threads' },
      when: ({ fields, query }) => (fields?.auto_publish_text ?? query?.auto_publish_text) !== undefined,
    },
  ],
  // Figures can wait where the app has asked for much; the state of a container and the quota cannot.
  isRead: ({ method, path }) => method === 'GET' && /insights$/.test(path),
  insights: { insightsVersion: 'threads/1', minIntervalMs: 900_000, maxAheadMs: 300_000 },
  doctor: {
    makeApp: 'Make an app with the use case "Access the Threads API" in Meta’s App Dashboard',
    console: 'the settings of the use case Threads in Meta’s App Dashboard',
    refusesCode: /\bcode\b/i,
    refusesClient: /client|app(?:lication)?\b|secret/i,
    clientRemedy: {
      confidential: 'Copy the Threads app ID and the Threads app secret (not those of the Meta app) anew.',
      public: 'Threads has no public clients: set THREADS_CLIENT_SECRET.',
    },
    redirectName: 'Redirect Callback URLs',
    scopesRemedy: 'Add the permissions to the use case, and have them approved',
    redirectRefused: 'A page about a blocked URL',
    calls: [
      { topic: 'deauthorize', name: 'Uninstall Callback URL' },
      { topic: 'delete', name: 'Delete Callback URL' },
    ],
  },
};
