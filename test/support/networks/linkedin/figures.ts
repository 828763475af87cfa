import { type Answer, invalid, refuse } from './answer.ts';
import { requireRole } from './consent.ts';
import { accessOf, emptyOf, queryOf, type Request, versioned } from './request.ts';
import type { Access, State } from './state.ts';
import { oneOf, urn } from './strict.ts';

/**
 * learn.microsoft.com/linkedin, "Organization Access Control", "Organization Lookup", "Organization Share Statistics", "Page
 * Statistics", "Follower Statistics", "Network Size", "Social Metadata", "Video Analytics", "Member Post Statistics", "Member
 * Follower Statistics".
 */

const roles = [
  ...['ADMINISTRATOR', 'DIRECT_SPONSORED_CONTENT_POSTER', 'RECRUITING_POSTER', 'LEAD_CAPTURE_ADMINISTRATOR'],
  ...['LEAD_GEN_FORMS_MANAGER', 'ANALYST', 'CURATOR', 'CONTENT_ADMINISTRATOR'],
];
const dayMs = 86_400_000;
const postUrn = urn('share', 'ugcPost');
const adminScopes = ['rw_organization_admin', 'r_organization_admin'] as const;

const read = (state: State, request: Request, method: string | null, ...anyOf: readonly string[]): Access => {
  versioned(state, request, method);
  emptyOf(request);
  return accessOf(state, request, ...anyOf);
};

const elementsOf = (elements: readonly unknown[], start = 0, count = 10): Answer => ({
  status: 200,
  body: { paging: { start, count, links: [] }, elements: elements.slice(start, start + count) },
});

export const organizationAcls = (state: State, request: Request): Answer => {
  const { personId } = read(state, request, 'FINDER', ...adminScopes);
  const asked = queryOf(request, { q: 'text', 'role?': 'text', 'state?': 'text', 'start?': 'text', 'count?': 'text' });
  if (asked.q !== 'roleAssignee') throw invalid('q must be roleAssignee');
  if (asked.role !== undefined) oneOf(...roles)(asked.role, 'role');
  oneOf('APPROVED', 'REQUESTED', 'REJECTED', 'REVOKED')(asked.state ?? 'APPROVED', 'state');
  const all = [...(state.people.get(personId)?.roles ?? [])].flatMap(([id, own]) =>
    own
      .filter((role) => asked.role === undefined || role === asked.role)
      .map((role) => ({
        ...{ role, organization: `urn:li:organization:${id}`, roleAssignee: `urn:li:person:${personId}` },
        state: 'APPROVED',
      })),
  );
  const shown = (asked.state ?? 'APPROVED') === 'APPROVED' ? all : [];
  return elementsOf(shown, Number(asked.start ?? 0), Number(asked.count ?? 10));
};

export const organizations = (state: State, request: Request): Answer => {
  read(state, request, 'BATCH_GET!', ...adminScopes);
  const ids = (queryOf(request, { ids: 'list' }).ids ?? '').split(',');
  const found = ids.flatMap((id) => {
    if (!/^\d+$/.test(id)) throw invalid('ids are numbers');
    const one = state.organizations.get(id);
    const { name: localizedName = '', vanityName = '' } = one ?? {};
    return one === undefined
      ? []
      : [[id, { id: Number(id), localizedName, vanityName, $URN: `urn:li:organization:${id}` }]];
  });
  return { status: 200, body: { results: Object.fromEntries(found), statuses: {}, errors: {} } };
};

/** What people did with a post by now; a new one has nothing. */
const activityOf = (state: State, id: string): number => {
  const post = state.post(id);
  return post === null ? 0 : Math.floor((state.now() - post.at) / 60_000);
};

export const shareStatistics = (state: State, request: Request): Answer => {
  const { personId } = read(state, request, 'FINDER', 'rw_organization_admin');
  const asked = queryOf(request, { q: 'text', organizationalEntity: 'text', 'shares?': 'list', 'ugcPosts?': 'list' });
  if (asked.q !== 'organizationalEntity') throw invalid('q must be organizationalEntity');
  const organizationalEntity = asked.organizationalEntity ?? '';
  requireRole(state, personId, organizationalEntity, 'ADMINISTRATOR');
  const elements = (['share', 'ugcPost'] as const).flatMap((kind) =>
    (asked[`${kind}s`]?.split(',') ?? []).flatMap((id) => {
      urn(kind)(id, kind);
      const views = activityOf(state, id);
      // A post without any activity is left out, and one of another organization too.
      if (views === 0 || state.post(id)?.author !== organizationalEntity) return [];
      const totalShareStatistics = {
        ...{ impressionCount: views * 10, uniqueImpressionsCount: views * 6, clickCount: views, likeCount: views },
        ...{ commentCount: state.comments.filter(({ post }) => post === id).length, shareCount: 0, engagement: 0.06 },
      };
      return [{ organizationalEntity, [kind]: id, totalShareStatistics }];
    }),
  );
  return elementsOf(elements);
};

export const socialMetadata = (state: State, request: Request): Answer => {
  read(state, request, 'BATCH_GET!', 'r_organization_social');
  const ids = (queryOf(request, { ids: 'list' }).ids ?? '').split(',');
  const results = ids.flatMap((id) => {
    postUrn(id, 'ids');
    if (state.post(id) === null) return [];
    const count = activityOf(state, id);
    const reactionSummaries = count === 0 ? {} : { LIKE: { reactionType: 'LIKE', count } };
    return [
      [id, { reactionSummaries, commentSummary: { count: 0, topLevelCount: 0 }, commentsState: 'OPEN', entity: id }],
    ];
  });
  return { status: 200, body: { results: Object.fromEntries(results), statuses: {}, errors: {} } };
};

export const videoAnalytics = (state: State, request: Request): Answer => {
  const { personId } = read(state, request, 'FINDER', 'r_organization_social');
  const asked = queryOf(request, { q: 'text', entity: 'text', type: 'text', aggregation: 'text' });
  if (asked.q !== 'entity') throw invalid('q must be entity');
  oneOf('VIDEO_VIEW', 'VIEWER', 'TIME_WATCHED', 'TIME_WATCHED_FOR_VIDEO_VIEWS')(asked.type, 'type');
  oneOf('DAY', 'WEEK', 'MONTH', 'ALL')(asked.aggregation, 'aggregation');
  const entity = asked.entity ?? '';
  urn('ugcPost')(entity, 'entity');
  const post = state.post(entity);
  if (post === null) throw refuse('not_found');
  requireRole(state, personId, post.author, 'ADMINISTRATOR', 'CONTENT_ADMINISTRATOR');
  const views = activityOf(state, entity);
  const value = asked.type === 'TIME_WATCHED' ? views * 7_000 : views;
  return elementsOf([{ entity, statisticsType: asked.type, value, timeRange: { start: 0, end: state.now() } }]);
};

export const networkSize = (state: State, request: Request, id: string): Answer => {
  read(state, request, null);
  if (queryOf(request, { edgeType: 'text' }).edgeType !== 'COMPANY_FOLLOWED_BY_MEMBER') throw invalid('edgeType');
  urn('organization')(id, 'id');
  const found = state.organizations.get(id.split(':').at(-1) ?? '');
  if (found === undefined) throw refuse('not_found');
  return { status: 200, body: { firstDegreeSize: found.followers } };
};

const intervals = /^\(timeRange:\(start:(\d{13}),end:(\d{13})\),timeGranularityType:DAY\)$/;

export const pageStatistics = (state: State, request: Request): Answer => {
  const { personId } = read(state, request, 'FINDER', ...adminScopes);
  const asked = queryOf(request, { q: 'text', organization: 'text', 'timeIntervals?': 'record' });
  if (asked.q !== 'organization') throw invalid('q must be organization');
  const organization = asked.organization ?? '';
  requireRole(state, personId, organization, 'ADMINISTRATOR');
  const found = intervals.exec(asked.timeIntervals ?? '');
  if (found === null) throw invalid('timeIntervals');
  const [start, end] = [Number(found[1]), Number(found[2])];
  if (start % dayMs !== 0 || end % dayMs !== 0 || start >= end) throw invalid('timeIntervals: whole days');
  const elements = Array.from({ length: (end - start) / dayMs }, (_, at) => ({
    organization,
    timeRange: { start: start + at * dayMs, end: start + (at + 1) * dayMs },
    totalPageStatistics: { views: { allPageViews: { pageViews: 40 + at, uniquePageViews: 20 } }, clicks: {} },
  }));
  return elementsOf(elements);
};

export const followerStatistics = (state: State, request: Request): Answer => {
  const { personId } = read(state, request, 'FINDER', ...adminScopes);
  const asked = queryOf(request, { q: 'text', organizationalEntity: 'text' });
  if (asked.q !== 'organizationalEntity') throw invalid('q must be organizationalEntity');
  requireRole(state, personId, asked.organizationalEntity ?? '', 'ADMINISTRATOR');
  const followerCounts = { organicFollowerCount: 200, paidFollowerCount: 5 };
  return elementsOf([
    {
      organizationalEntity: asked.organizationalEntity,
      followerCountsByGeoCountry: [{ geo: 'urn:li:geo:101282230', followerCounts }],
      followerCountsBySeniority: [{ seniority: 'urn:li:seniority:4', followerCounts }],
    },
  ]);
};

const memberMetrics = [
  ...['IMPRESSION', 'MEMBERS_REACHED', 'RESHARE', 'REACTION', 'COMMENT', 'POST_SAVE', 'POST_SEND', 'LINK_CLICKS'],
  ...['PREMIUM_CTA_CLICKS', 'FOLLOWER_GAINED_FROM_CONTENT', 'PROFILE_VIEW_FROM_CONTENT'],
];

export const memberPosts =
  (metrics: readonly string[]) =>
  (state: State, request: Request): Answer => {
    const { personId } = read(state, request, 'FINDER', 'r_member_postAnalytics');
    const asked = queryOf(request, { q: 'text', entity: 'record', queryType: 'text', aggregation: 'text' });
    if (asked.q !== 'entity' || asked.aggregation !== 'TOTAL') throw invalid('q is entity, aggregation is TOTAL');
    const queryType = asked.queryType ?? '';
    oneOf(...metrics.filter((one) => !state.unknownMetrics.has(one)))(queryType, 'queryType');
    const [, kind, encoded = ''] = /^\((share|ugc):([^:()]+)\)$/.exec(asked.entity ?? '') ?? [];
    const id = decodeURIComponent(encoded);
    urn(kind === 'ugc' ? 'ugcPost' : 'share')(id, 'entity');
    const post = state.post(id);
    if (post === null) throw refuse('not_found');
    if (post.author !== `urn:li:person:${personId}`) throw refuse('access_denied');
    const count = activityOf(state, id) * (queryType === 'VIDEO_WATCH_TIME' ? 60_000 : 1);
    return elementsOf([{ count, metricType: queryType, targetEntity: { [kind ?? '']: id } }]);
  };

export const memberPostAnalytics = memberPosts(memberMetrics);
export const memberVideoAnalytics = memberPosts(['VIDEO_PLAY', 'VIDEO_WATCH_TIME', 'VIDEO_VIEWER']);

export const memberFollowers = (state: State, request: Request): Answer => {
  const { personId } = read(state, request, 'FINDER', 'r_member_profileAnalytics');
  if (queryOf(request, { q: 'text' }).q !== 'me') throw invalid('q must be me');
  return elementsOf([{ memberFollowersCount: state.people.get(personId)?.followers ?? 0 }]);
};
