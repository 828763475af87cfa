import type { AccountOffer, Login, OfferAccounts, OfferedLogin } from '../kit/consent.ts';
import { type ErrorRow, membersAt, type NetworkAnswer, type NotOk, namesNobody } from '../kit/errors.ts';
import { isLeftOut } from '../kit/figures.ts';
import type { AskedScope, OAuthTable } from '../kit/oauth.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { code, dayMs, isMediaId, metaEnds, pagesBy, reading } from './graph.ts';

/**
 * Facebook Login: one consent of a person, with the pages in which that person has a role and the accounts of Instagram behind
 * them. Each page has a token of its own, which that of the login mints anew.
 */

const token = { method: 'GET', url: '{api}/{version}/oauth/access_token', as: 'query' } as const;
const ofLogin = { access_token: '{login}', appsecret_proof: '{proof}' };

/** "Manually Build a Login Flow", "Long-Lived Tokens": a token of hours, one of 60 days; that of a page has no end. */
export const loginTable = (scopes: Readonly<Record<string, AskedScope>>): OAuthTable => ({
  authorize: '{authorize}/{version}/dialog/oauth',
  authorizeParams: {},
  scopes,
  ...{ separator: ',', pkce: 'none', grant: 'person' },
  client: { id: 'client_id', secret: 'client_secret' },
  exchange: [
    { ...token, params: { code: '{code}', redirect_uri: '{redirect}' } },
    { ...token, params: { grant_type: 'fb_exchange_token', fb_exchange_token: '{token}' } },
  ],
  refresh: null,
  mint: {
    ...{ method: 'GET', url: '{api}/{version}/{account}', as: 'query', isBare: true },
    params: { fields: 'access_token', ...ofLogin },
  },
  seconds: { access: 60 * 86_400, most: 90 * 86_400, refresh: null },
  refreshWindowMs: 10 * dayMs,
  revoke: [{ method: 'DELETE', url: '{api}/{version}/me/permissions', as: 'query', isBare: true, params: ofLogin }],
  ends: metaEnds,
});

/**
 * A page whose token is refused gets another one by that of the login, or the login is over too. Meta says so before it does
 * anything.
 */
export const lapsedByLogin: ErrorRow = { ...code(190, 102), means: 'lapsed', renews: true };

/** What Facebook Login says of a code and of an app that it does not know. */
export const loginRefuses = {
  refusesCode: /verification code|authorization code/i,
  refusesClient: /client secret|validating application|app(?:lication)? (?:id|info)|client_id/i,
};

type Call = Login['call'];

const [perPage, maxCalls] = [100, 60];
/** A guest waits for the list: of more pages than these the choice says that there are others. */
const maxOfLogin = 500;

const instagramFields = 'instagram_business_account{id,username,name,profile_picture_url}';
const pageFields = `id,name,username,access_token,picture{url},${instagramFields}`;

/** All of a list, until no call is left. */
const listed = async (
  call: Call,
  edge: string,
  fields: string,
  visit: (one: Members) => void,
  left: { calls: number },
): Promise<NotOk | null> => {
  const { page, next } = pagesBy((query) => call(reading(edge, query)), { fields }, perPage);
  for (let after: string | null = null; left.calls > 0; ) {
    left.calls -= 1;
    const answer: NetworkAnswer = await page(after);
    if (answer.kind !== 'ok') return answer;
    for (const one of listIn(answer.body, 'data')) visit(one);
    const behind: string | null = next(answer.body);
    if (behind === null || behind === after) return null;
    after = behind;
  }
  return null;
};

type Pages = { readonly found: readonly Members[]; readonly isCut: boolean };

/**
 * Pages of the person, and those of the person's businesses, which the first list lacks where the role comes from the business.
 * Each comes once, with the most that a list says of it.
 */
const pagesOf = async (call: Call, granted: readonly string[]): Promise<Pages | NotOk> => {
  const found = new Map<string, Members>();
  const left = { calls: maxCalls };
  const keep = (page: Members): void => {
    const id = textIn(page, 'id') ?? '';
    const known = found.get(id);
    if (isMediaId(id) && (known === undefined || textIn(known, 'access_token') === null)) {
      found.set(id, { ...known, ...page });
    }
  };
  const own = await listed(call, 'me/accounts', `${pageFields},tasks`, keep, left);
  if (own !== null) return own;
  const businesses: string[] = [];
  if (granted.includes('business_management')) {
    const note = (one: Members): void => {
      const id = textIn(one, 'id') ?? '';
      if (isMediaId(id)) businesses.push(id);
    };
    const refused = await listed(call, 'me/businesses', 'id', note, left);
    if (refused !== null && !isLeftOut(refused)) return refused;
  }
  for (const id of businesses) {
    for (const edge of [`${id}/owned_pages`, `${id}/client_pages`]) {
      const refused = await listed(call, edge, pageFields, keep, left);
      // A role in a business need not show its pages.
      if (refused !== null && !isLeftOut(refused)) return refused;
    }
  }
  const isCut = left.calls === 0 || found.size > maxOfLogin;
  return { found: [...found.values()].slice(0, maxOfLogin), isCut };
};

/** Why the person may not post as the page; null: nothing is in the way. A business does not name the tasks. */
const obstacleOf = (page: Members): string | null => {
  if (textIn(page, 'access_token') === null) return 'Facebook gives no access to this page: you have no role there';
  const tasks = membersAt(page, 'tasks').map(String);
  const mayPost = page.tasks === undefined || tasks.includes('CREATE_CONTENT') || tasks.includes('MANAGE');
  return mayPost ? null : 'your role there may not create content';
};

export const profileOfPage = (page: Members) => ({
  username: textIn(page, 'username') || null,
  displayName: textIn(page, 'name') || null,
  avatarUrl: textIn(membersOf(page.picture)?.data, 'url') || null,
});

export const profileOfInstagram = (user: Members) => ({
  username: textIn(user, 'username') || null,
  displayName: textIn(user, 'name') || null,
  avatarUrl: textIn(user, 'profile_picture_url') || null,
});

/** Without these nothing is posted to an account of Instagram: "Instagram API with Facebook Login", permissions. */
const postsNeed = ['instagram_basic', 'instagram_content_publish', 'pages_read_engagement'];

/** Why the consent does not reach it; null: nothing is missing. */
const lackOf = (granted: readonly string[]): string | null => {
  const missing = postsNeed.filter((one) => !granted.includes(one));
  return missing.length === 0 ? null : `Facebook gave no permission for ${missing.join(', ')}`;
};

/**
 * The page, and the account of Instagram behind it: what of the two the granted permissions let us post to. An account of
 * Instagram for which some permissions are missing is shown with them; for which none was granted, it was not asked for.
 */
const offersOf = (page: Members, granted: readonly string[]): readonly AccountOffer[] => {
  const id = textIn(page, 'id') ?? '';
  const accessToken = textIn(page, 'access_token');
  const obstacle = obstacleOf(page);
  const shared = {
    ...(accessToken === null ? {} : { own: { token: accessToken, until: null } }),
    ...(obstacle === null ? {} : { obstacle }),
  };
  const ofPage: AccountOffer = {
    ...{ platform: 'facebook', holder: 'page', ...shared },
    profile: { externalId: id, ...profileOfPage(page) },
  };
  const lack = lackOf(granted);
  const one = membersOf(page.instagram_business_account);
  const externalId = textIn(one ?? {}, 'id') ?? '';
  const ofInstagram: AccountOffer = {
    ...{ platform: 'instagram', ...shared, ...(lack === null ? {} : { obstacle: lack }) },
    profile: { externalId, ...profileOfInstagram(one ?? {}) },
    // The token is that of the page: a new one is asked for by its id.
    kept: { account: id },
  };
  return [
    ...(granted.includes('pages_manage_posts') ? [ofPage] : []),
    ...(granted.some((one) => one.startsWith('instagram_')) && isMediaId(externalId) ? [ofInstagram] : []),
  ];
};

/** Of one consent: pages of Facebook and accounts of Instagram, whichever of the two was asked for. */
export const offerOfLogin: OfferAccounts = async ({ call }): Promise<OfferedLogin | NotOk> => {
  const who = await call(reading('me', { fields: 'id' }));
  if (who.kind !== 'ok') return who;
  const person = textIn(who.body, 'id') ?? '';
  if (!isMediaId(person)) return namesNobody;
  const permissions = await call(reading('me/permissions', {}));
  if (permissions.kind !== 'ok') return permissions;
  const granted = listIn(permissions.body, 'data').flatMap((one) =>
    textIn(one, 'status') === 'granted' ? [textIn(one, 'permission') ?? ''] : [],
  );
  const pages = await pagesOf(call, granted);
  if ('kind' in pages) return pages;
  const accounts = pages.found.flatMap((page) => offersOf(page, granted));
  return { kind: 'offered', person, granted, accounts, isCut: pages.isCut };
};
