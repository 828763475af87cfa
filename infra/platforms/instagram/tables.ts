import type { ErrorRow, NetworkAnswer } from '../kit/errors.ts';
import type { AskedScope, OAuthTable } from '../kit/oauth.ts';
import type { DoctorTables, NetworkTables } from '../kit/tables.ts';
import { dayMs, graphTables, hourMs, metaCalls, metaEnds, metaErrors, subcode } from '../meta/graph.ts';
import { lapsedByLogin, loginRefuses, loginTable } from '../meta/login.ts';

/**
 * Instagram by both logins: "Instagram API with Instagram Login" on graph.instagram.com, and "with Facebook Login" on
 * graph.facebook.com, where the account is linked to a page. developers.facebook.com/docs/instagram-platform, Graph API v27.
 */

/** "Error Codes"; the comments name what was seen besides. The subcode says more than the code. */
const errors: readonly ErrorRow[] = [
  // Posts were seen to be out all the same (postiz#1681). Another try within the day makes it worse.
  { ...subcode(2207051), means: 'limited', wait: dayMs, mayBeOut: true },
  // The posts of 24 hours are used up.
  { ...subcode(2207042), means: 'limited', wait: hourMs },
  // The account is restricted, or must pass a check in the app.
  { ...subcode(2207050), means: 'forbidden' },
  // A container that is not ready, or that ended: nothing was published, and the next attempt looks at it or makes another.
  { ...subcode(2207027, 2207006, 2207008, 2207020), means: 'later' },
  // Instagram's own trouble with an upload: another container may meet none.
  { ...subcode(2207032, 2207053, 2207082), means: 'later' },
  { ...subcode(2207001), means: 'down', mayBeOut: true },
  // The server of a file did not give it in time, or not at all.
  { ...subcode(2207003, 2207052), means: 'media' },
  { ...subcode(2207026, 2207077, 2207085, 2207004, 2207005, 2207009), means: 'media' },
  // Words, tags, places, collaborators, frames of a cover, trial reels, shapes of a carousel.
  {
    ...subcode(2207010, 2207018, 2207023, 2207028, 2207035, 2207036, 2207037, 2207040, 2207057, 2207081),
    means: 'content',
  },
  // "Not enough viewers for the media to show insights": nothing that a consent would mend.
  { where: { 'error.code': [10] }, says: /not enough viewers/i, means: 'content' },
  // "Media Posted Before Business Account Conversion".
  { ...subcode(2108006), means: 'content' },
  ...metaErrors,
  { where: { 'error.code': [9, 24, 25, 110] }, means: 'content' },
];

/** Instagram has nothing of that id that the account may see, or not yet. */
export const isGone = (answer: NetworkAnswer): boolean =>
  answer.kind === 'refused' &&
  (answer.row.means === 'gone' || /\/(?:2207006|2207008|2207020)$/.test(answer.failure.platformCode ?? ''));

const why = {
  basic: 'to know whose account it is; for everything else',
  publish: 'to publish, and to ask how many posts are left',
  comments: 'for first comments',
  insights: 'for figures',
};
const [reading, posting] = ['reading your profile', 'posting for you'];

/** "Business Login for Instagram": a code of an hour, a token of an hour, one of 60 days that is renewed itself. */
const oauth: OAuthTable = {
  authorizeParams: {},
  scopes: {
    instagram_business_basic: { why: why.basic, needed: reading },
    instagram_business_content_publish: { why: why.publish, needed: posting },
    instagram_business_manage_comments: { why: why.comments },
    instagram_business_manage_insights: { why: why.insights },
  },
  // The grant is named: Instagram calls us with the person's id for this app, which is not that of the account.
  ...{ separator: ',', pkce: 'none', grant: 'person' },
  client: { id: 'client_id', secret: 'client_secret' },
  exchange: [
    {
      ...{ method: 'POST', url: '{tokens}/oauth/access_token', as: 'form' },
      params: { grant_type: 'authorization_code', code: '{code}', redirect_uri: '{redirect}' },
    },
    {
      ...{ method: 'GET', url: '{api}/access_token', as: 'query', isBare: true },
      params: { grant_type: 'ig_exchange_token', client_secret: '{secret}', access_token: '{token}' },
    },
  ],
  refresh: {
    ...{ method: 'GET', url: '{api}/refresh_access_token', as: 'query', isBare: true, kind: 'extends' },
    // "Refresh a long-lived token": at least 24 hours old, and not expired.
    minAgeMs: dayMs,
    params: { grant_type: 'ig_refresh_token', access_token: '{token}' },
  },
  seconds: { access: 3_600, most: 60 * 86_400, refresh: null },
  // Ten tries, one a day, before the account is lost.
  refreshWindowMs: 10 * dayMs,
  // No call of the API ends a consent: the owner does, in the settings of Instagram.
  revoke: [],
  ends: metaEnds,
};

/** "Instagram API with Facebook Login": the roles of a page that a business gave need the last one. */
const scopesByFacebook: Readonly<Record<string, AskedScope>> = {
  instagram_basic: { why: why.basic, needed: reading },
  instagram_content_publish: { why: why.publish, needed: posting },
  instagram_manage_comments: { why: why.comments },
  instagram_manage_insights: { why: why.insights },
  pages_show_list: { why: 'to list the pages behind which the accounts are', needed: 'listing your pages' },
  pages_read_engagement: { why: 'to act for the account by its page', needed: 'reading your pages' },
  business_management: { why: 'to find accounts behind pages that a business owns' },
};

const doctor: DoctorTables = {
  makeApp: 'Make an app with the use case for Instagram in Meta’s App Dashboard',
  console: 'the settings of Instagram business login in Meta’s App Dashboard',
  refusesCode: /\bcode\b/i,
  refusesClient: /client|app(?:lication)?\b|secret|platform/i,
  clientRemedy: {
    confidential: 'Copy the Instagram app ID and the Instagram app secret (not those of the Meta app) anew.',
    public: 'Instagram has no public clients: set INSTAGRAM_CLIENT_SECRET.',
  },
  redirectName: 'OAuth redirect URIs',
  scopesRemedy: 'Add the permissions to the use case, and have them approved',
  redirectRefused: '"Invalid redirect_uri"',
  calls: metaCalls,
};

const ofBoth = {
  platform: 'instagram',
  headers: { accept: 'application/json' },
  ...{ ...graphTables, errors, buckets: [] },
  makes: [
    { method: 'POST', path: '/:version/:user/media_publish' },
    { method: 'POST', path: '/:version/:id/comments' },
  ],
  // Figures can wait where the app has asked for much; the state of a container and the quota cannot.
  isRead: ({ method, path }) => method === 'GET' && /insights$/.test(path),
  insights: { insightsVersion: 'instagram/1', minIntervalMs: 900_000, maxAheadMs: 300_000 },
} as const satisfies Omit<NetworkTables, 'oauth' | 'doctor'>;

export const tables: NetworkTables = { ...ofBoth, oauth, doctor };

/** The app, its settings and what it may ask are those of Facebook. */
export const tablesByFacebook: NetworkTables = {
  ...ofBoth,
  appOf: 'facebook',
  proof: 'appsecret_proof',
  errors: [lapsedByLogin, ...errors],
  oauth: loginTable(scopesByFacebook),
  doctor: {
    ...{ ...doctor, ...loginRefuses },
    // Facebook calls one address for both networks.
    calls: [],
  },
};
