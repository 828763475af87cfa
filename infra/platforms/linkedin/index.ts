import { type AccountSource, maxChoices } from '#contracts/ports/platform-account.ts';
import { linkedinInbox } from '../inboxes/linkedin.ts';
import type { AccountOffer, Login, OfferAccounts } from '../kit/consent.ts';
import type { NotOk } from '../kit/errors.ts';
import { isLeftOut, withoutFigures } from '../kit/figures.ts';
import type { Bound, NetworkParts } from '../kit/network.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { accountFigures, postFigures } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { comment, publish, removePost } from './publish.ts';
import { isOrganization, reading, tables } from './tables.ts';

/** A login of LinkedIn has a member, and the organizations in which the member has a role. */

/** "Posts API": roles with which a member posts for an organization; the others may look. */
const posting = ['ADMINISTRATOR', 'CONTENT_ADMINISTRATOR', 'DIRECT_SPONSORED_CONTENT_POSTER'];
const looking: Readonly<Record<string, string>> = { CURATOR: 'curator', ANALYST: 'analyst' };

const [perPage, maxPages, perLookUp] = [100, 21, 50];

type Call = Login['call'];

/** Ids of the organizations in which the member has the role. */
const withRole = async (call: Call, role: string): Promise<readonly string[] | NotOk> => {
  const found: string[] = [];
  for (let page = 0; page < maxPages; page += 1) {
    const query = `q=roleAssignee&role=${role}&state=APPROVED&start=${page * perPage}&count=${perPage}`;
    const answer = await call(reading(`/organizationAcls?${query}`, 'FINDER'));
    if (answer.kind !== 'ok') return answer;
    const elements = listIn(answer.body, 'elements');
    found.push(...elements.flatMap((one) => textIn(one, 'organization') ?? []).filter(isOrganization));
    if (elements.length < perPage) break;
  }
  return found;
};

type Organization = AccountOffer['profile'] & { readonly role: string };

/** Those in which the member has one of these roles, each with the first. Where LinkedIn refuses all roles, its refusal. */
const organizationsOf = async (call: Call, among: readonly string[]): Promise<readonly Organization[] | NotOk> => {
  const roles = new Map<string, string>();
  const refused: NotOk[] = [];
  for (const role of among) {
    const found = await withRole(call, role);
    // A version may not know a role.
    if ('kind' in found && !isLeftOut(found)) return found;
    if ('kind' in found) refused.push(found);
    else for (const urn of found) if (!roles.has(urn)) roles.set(urn, role);
  }
  const [refusal] = refused;
  if (refusal !== undefined && refused.length === among.length) return refusal;
  const urns = [...roles.keys()];
  const shown = new Map<string, Members>();
  for (let at = 0; at < urns.length; at += perLookUp) {
    const ids = urns.slice(at, at + perLookUp).map((urn) => urn.split(':').at(-1) ?? '');
    const answer = await call(reading(`/organizations?ids=List(${ids.join(',')})`, 'BATCH_GET'));
    if (answer.kind !== 'ok') return answer;
    for (const [id, one] of Object.entries(membersOf(answer.body.results) ?? {})) {
      shown.set(`urn:li:organization:${id}`, membersOf(one) ?? {});
    }
  }
  return [...roles].map(([externalId, role]) => {
    const one = shown.get(externalId);
    const [username, displayName] = [textIn(one, 'vanityName') || null, textIn(one, 'localizedName') || null];
    return { externalId, role, username, displayName, avatarUrl: null };
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
  const found = lists ? await organizationsOf(login.call, [...posting, ...Object.keys(looking)]) : [];
  // An app without the product has no such list.
  if ('kind' in found && !isLeftOut(found)) return found;
  const pages = ('kind' in found ? [] : found).map(({ role, ...profile }): AccountOffer => {
    const obstacle = `your role there is ${looking[role]}: only an admin or content admin may post`;
    const page = { profile, holder: 'organization', consentEndsAt: login.endsAt } as const;
    return looking[role] === undefined ? page : { ...page, obstacle };
  });
  return { kind: 'offered', person: member.profile.externalId, accounts: [member, ...pages] };
};

/** `organization` is the one key of LinkedIn. */
const choices =
  ({ client, clock }: Bound): AccountSource['choices'] =>
  async (_platform, { id: accountId }, _key, signal) => {
    const found = await organizationsOf((ask) => client.call({ accountId, targetId: null }, ask, signal), posting);
    if ('kind' in found) return withoutFigures(found, clock());
    const all = found.map(({ externalId: value, displayName, role: about }) => ({
      value,
      label: displayName ?? value,
      about,
    }));
    return { kind: 'choices', choices: all.slice(0, maxChoices), isCut: all.length > maxChoices };
  };

export const linkedinNetwork = (): NetworkParts => ({
  ...{ tables, offer, inbox: linkedinInbox },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    removePost: removePost(bound),
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
    choices: choices(bound),
  }),
});
