import type { AccountOffer, Login, OfferAccounts } from '../kit/consent.ts';
import type { NotOk } from '../kit/errors.ts';
import { isLeftOut } from '../kit/figures.ts';
import type { NetworkParts } from '../kit/network.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { accountFigures, postFigures } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { comment, publish, removePost } from './publish.ts';
import { isOrganization, reading, tables } from './tables.ts';

/** A login of LinkedIn has a member, and the organizations in which the member has a role. */

/** "Posts API": roles with which a member posts for an organization; the others may look. */
const posting = ['ADMINISTRATOR', 'CONTENT_ADMINISTRATOR', 'DIRECT_SPONSORED_CONTENT_POSTER'];
const looking: Readonly<Record<string, string>> = { CURATOR: 'curator', ANALYST: 'analyst' };

const [perPage, maxPages, perLookUp] = [100, 20, 50];

/** Ids of the organizations in which the member has the role. */
const withRole = async (login: Login, role: string): Promise<readonly string[] | NotOk> => {
  const found: string[] = [];
  for (let page = 0; page < maxPages; page += 1) {
    const query = `q=roleAssignee&role=${role}&state=APPROVED&start=${page * perPage}&count=${perPage}`;
    const answer = await login.call(reading(`/organizationAcls?${query}`, 'FINDER'));
    if (answer.kind !== 'ok') return answer;
    const elements = listIn(answer.body, 'elements');
    found.push(...elements.flatMap((one) => textIn(one, 'organization') ?? []).filter(isOrganization));
    if (elements.length < perPage) break;
  }
  return found;
};

const organizationsOf = async (login: Login): Promise<readonly AccountOffer[] | NotOk> => {
  /** Why it cannot be chosen; null: it can. */
  const obstacles = new Map<string, string | null>();
  for (const role of [...posting, ...Object.keys(looking)]) {
    const found = await withRole(login, role);
    if ('kind' in found) {
      // An app without the product has no such list, and a version may not know a role.
      if (isLeftOut(found)) continue;
      return found;
    }
    const name = looking[role];
    const obstacle = name === undefined ? null : `your role there is ${name}: only an admin or content admin may post`;
    for (const urn of found) if (!obstacles.has(urn)) obstacles.set(urn, obstacle);
  }
  const urns = [...obstacles.keys()];
  const shown = new Map<string, Members>();
  for (let at = 0; at < urns.length; at += perLookUp) {
    const ids = urns.slice(at, at + perLookUp).map((urn) => urn.split(':').at(-1) ?? '');
    const answer = await login.call(reading(`/organizations?ids=List(${ids.join(',')})`, 'BATCH_GET'));
    if (answer.kind !== 'ok') return answer;
    for (const [id, one] of Object.entries(membersOf(answer.body.results) ?? {})) {
      shown.set(`urn:li:organization:${id}`, membersOf(one) ?? {});
    }
  }
  return urns.map((externalId): AccountOffer => {
    const one = shown.get(externalId);
    const [username, displayName] = [textIn(one, 'vanityName') || null, textIn(one, 'localizedName') || null];
    const obstacle = obstacles.get(externalId) ?? null;
    return {
      profile: { externalId, username, displayName, avatarUrl: null },
      ...{ holder: 'organization', consentEndsAt: login.endsAt },
      ...(obstacle === null ? {} : { obstacle }),
    };
  });
};

/** By OpenID Connect, or by the profile of an app that has no product with it. */
const memberOf = async (login: Login): Promise<AccountOffer | NotOk> => {
  const isOpenId = login.scopes.includes('openid');
  const answer = await login.call(reading(isOpenId ? '{login}/userinfo' : '{login}/me'));
  if (answer.kind !== 'ok') return answer;
  const { body } = answer;
  const id = textIn(body, isOpenId ? 'sub' : 'id');
  if (id === null || !/^[\w-]{1,60}$/.test(id)) {
    return { kind: 'silent', reason: 'the answer does not say whose account it is' };
  }
  const names = ['localizedFirstName', 'localizedLastName'].flatMap((name) => textIn(body, name) ?? []);
  const mayPost = login.scopes.includes('w_member_social');
  return {
    profile: {
      ...{ externalId: `urn:li:person:${id}`, username: textIn(body, 'vanityName') || null },
      ...{ displayName: textIn(body, 'name') || names.join(' ') || null, avatarUrl: textIn(body, 'picture') || null },
    },
    ...{ holder: 'person', consentEndsAt: login.endsAt },
    ...(mayPost ? {} : { obstacle: 'posting as a member is not among the permissions' }),
  };
};

export const offer: OfferAccounts = async (login) => {
  const member = await memberOf(login);
  if ('kind' in member) return member;
  const has = (...scopes: readonly string[]) => scopes.some((one) => login.scopes.includes(one));
  const lists = has('w_organization_social') && has('rw_organization_admin', 'r_organization_admin');
  const organizations = lists ? await organizationsOf(login) : [];
  if ('kind' in organizations) return organizations;
  return { kind: 'offered', person: member.profile.externalId, accounts: [member, ...organizations] };
};

export const linkedinNetwork = (): NetworkParts => ({
  ...{ tables, offer },
  methods: (bound) => ({
    // Posts of members are not listed, and the rule is of all accounts of a network.
    listsOwnPosts: () => false,
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    removePost: removePost(bound),
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
  }),
});
