import type { ErrorRow } from '../kit/errors.ts';
import { insightsBy, type MadeBy, type NetworkRequest, type NetworkTables } from '../kit/tables.ts';
import { code, graphTables, hourMs, metaCalls, metaErrors, subcode } from '../meta/graph.ts';
import { lapsedByLogin, loginRefuses, loginTable } from '../meta/login.ts';

/** Facebook Pages, Graph API v27.0: developers.facebook.com, "Pages API", "Video API", "Reels Publishing", November 2026. */

/** Id of a post: that of the page, and its own. A story has the latter alone. */
export const isPostId = (id: string): boolean => /^(?:\d{1,20}_)?\d{1,20}$/.test(id);

/** "Error Codes" of the Graph API and of the Video API; what editors saw in production. The subcode says more than the code. */
const errors: readonly ErrorRow[] = [
  lapsedByLogin,
  // "Posting too fast": another try soon makes it worse.
  { ...subcode(1390008), means: 'limited', wait: hourMs },
  // The page or its person must prove who they are, at Facebook.
  { ...subcode(1404078, 4854002, 1404006, 1404112), means: 'forbidden' },
  { ...subcode(1346003, 1404102), means: 'permission' },
  { ...subcode(1366051), means: 'duplicate' },
  { ...subcode(1366046, 2069019, 1363040, 1363127, 1363128, 1363129), means: 'media' },
  { ...code(324), means: 'media' },
  { ...subcode(1363047, 1609010), means: 'later' },
  { ...code(389, 6000), means: 'later' },
  // Of the server that takes files.
  { where: { 'debug_info.retriable': /^true$/ }, means: 'later' },
  { where: { 'debug_info.type': ['ProcessingFailedError'] }, means: 'media' },
  { where: { 'debug_info.type': /./ }, means: 'later' },
  { ...code(100), says: /no permission to publish/i, means: 'unpermitted' },
  ...metaErrors,
];

export const commentScope = 'pages_manage_engagement';
const forInstagram = 'for Instagram, in the same consent';

/** "Permissions Reference". Those of Instagram are asked for where FACEBOOK_SCOPES names them. */
const oauth = loginTable({
  pages_show_list: { why: 'to list the pages of a person', needed: 'the list of your pages' },
  pages_manage_posts: { why: 'to publish, and to change or take back a scheduled post', needed: 'posting as a page' },
  pages_read_engagement: { why: 'to find a post whose answer was lost', needed: 'reading the posts of a page' },
  [commentScope]: { why: 'for first comments and figures of videos' },
  pages_read_user_content: { why: 'to count comments and reactions' },
  read_insights: { why: 'for figures' },
  business_management: { why: 'for pages in which a person has a role by a business alone' },
  instagram_basic: { why: forInstagram },
  instagram_content_publish: { why: forInstagram },
  instagram_manage_comments: { why: forInstagram },
  instagram_manage_insights: { why: forInstagram },
});

const isFinish = ({ query = {} }: NetworkRequest): boolean => !['start', 'transfer'].includes(query.upload_phase ?? '');

const isChange = (names: readonly string[]): boolean =>
  names.length > 0 && names.every((name) => ['scheduled_publish_time', 'message', 'description'].includes(name));

/** A file is invisible until it is finished, and a photo that is not published until a post names it. */
const makes: readonly MadeBy[] = [
  { method: 'POST', path: '/:version/:page/feed' },
  { method: 'POST', path: '/:version/:page/photos', when: ({ query = {} }) => query.published !== 'false' },
  { method: 'POST', path: '/:version/:page/videos', when: isFinish },
  { method: 'POST', path: '/:version/:page/video_reels', when: isFinish },
  { method: 'POST', path: '/:version/:page/video_stories', when: isFinish },
  { method: 'POST', path: '/:version/:page/photo_stories' },
  { method: 'POST', path: '/:version/:post/comments' },
  // A change of a scheduled post shows nothing: it is looked at before.
  { method: 'POST', path: '/:version/:post', when: ({ fields = {} }) => !isChange(Object.keys(fields)) },
];

export const tables: NetworkTables = {
  platform: 'facebook',
  headers: { accept: 'application/json' },
  ...graphTables,
  ...{ oauth, errors, makes, buckets: [], proof: 'appsecret_proof' },
  words: [...graphTables.words, 'debug_info.message'],
  // Figures can wait where the app has asked for much; the state of a post cannot.
  isRead: ({ method, path }) => method === 'GET' && /insights$/.test(path),
  // A cover goes with the call.
  boundaryDeadlineMs: 30_000,
  insights: insightsBy('facebook/1'),
  doctor: {
    makeApp: 'Make an app with the use case "Manage everything on your Page" in Meta’s App Dashboard',
    console: 'Meta’s App Dashboard',
    ...loginRefuses,
    clientRemedy: {
      confidential: 'Copy the app ID and the app secret anew (App settings, Basic).',
      public: 'Facebook has no public clients: set FACEBOOK_CLIENT_SECRET.',
    },
    redirectName: 'Valid OAuth Redirect URIs of Facebook Login',
    scopesRemedy: 'Add the permissions to the use case and have them approved, or name fewer in FACEBOOK_SCOPES',
    redirectRefused: 'A page that says "URL blocked"',
    calls: metaCalls,
  },
};
