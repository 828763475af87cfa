import { type AccountSource, maxChoices } from '#contracts/ports/platform-account.ts';
import { linkedinInbox } from '../inboxes/linkedin.ts';
import type { AccountOffer, Login, OfferAccounts } from '../kit/consent.ts';
import { type NotOk, namesNobody } from '../kit/errors.ts';
import { inParts, isLeftOut, withoutFigures } from '../kit/figures.ts';
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

const [perPage, perLookUp] = [100, 50];
/** A guest waits for the list: of more organizations than these the page says that there are others. */
const maxOfLogin = 500;

type Call = Login['call'];
type Organization = AccountOffer['profile'] & { readonly role: string };
/** `isCut`: the member has a role in more than these. */
type Organizations = { readonly found: readonly Organization[]; readonly isCut: boolean };

const none: Organizations = { found: [], isCut: false };

/** Those in which the member has one of these roles, each with the first. Where LinkedIn refuses all roles, its refusal. */
const organizationsOf = async (call: Call, among: readonly string[], max: number): Promise<Organizations | NotOk> => {
  const roles = new Map<string, string>();
  const refused: NotOk[] = [];
  let pages = among.length + Math.ceil(max / perPage);
  let isCut = false;
  for (const role of among) {
    for (let start = 0, isLast = false; !isLast; start += perPage) {
      isCut ||= pages === 0 || roles.size > max;
      if (isCut) break;
      pages -= 1;
      const query = `q=roleAssignee&role=${role}&state=APPROVED&start=${start}&count=${perPage}`;
      const answer = await call(reading(`/organizationAcls?${query}`, 'FINDER'));
      // A version may not know a role.
      if (answer.kind !== 'ok' && !isLeftOut(answer)) return answer;
      if (answer.kind !== 'ok') refused.push(answer);
      const elements = answer.kind === 'ok' ? listIn(answer.body, 'elements') : [];
      const urns = elements.flatMap((one) => textIn(one, 'organization') ?? []).filter(isOrganization);
      for (const urn of urns) if (!roles.has(urn)) roles.set(urn, role);
      isLast = elements.length < perPage;
    }
  }
  const [refusal] = refused;
  if (refusal !== undefined && refused.length === among.length) return refusal;
  const all = [...roles].slice(0, max);
  const ids = all.map(([urn]) => urn.split(':').at(-1) ?? '');
  const look = (some: readonly string[]) => call(reading(`/organizations?ids=List(${some.join(',')})`, 'BATCH_GET'));
  const parts = await inParts(ids, perLookUp, look);
  if ('kind' in parts) return parts;
  const shown: Members = Object.assign({}, ...parts.map(({ body }) => membersOf(body.results)));
  const found = all.map(([externalId, role], at) => {
    const one = shown[ids[at] ?? ''];
    const [username, displayName] = [textIn(one, 'vanityName') || null, textIn(one, 'localizedName') || null];
    return { externalId, role, username, displayName, avatarUrl: null };
  });
  return { found, isCut: isCut || roles.size > max };
};

/** By OpenID Connect, or by the profile of an app that has no product with it. */
const memberOf = async (login: Login): Promise<AccountOffer | NotOk> => {
  const isOpenId = login.scopes.includes('openid');
  const answer = await login.call(reading(isOpenId ? '{login}/userinfo' : '{login}/me'));
  if (answer.kind !== 'ok') return answer;
  const { body } = answer;
  const id = textIn(body, isOpenId ? 'sub' : 'id');
  if (id === null || !/^[\w-]{1,60}$/.test(id)) return namesNobody;
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
  const listed = lists ? await organizationsOf(login.call, [...posting, ...Object.keys(looking)], maxOfLogin) : none;
  // An app without the product has no such list.
  if ('kind' in listed && !isLeftOut(listed)) return listed;
  const { found, isCut } = 'kind' in listed ? none : listed;
  const pages = found.map(({ role, ...profile }): AccountOffer => {
    const obstacle = `your role there is ${looking[role]}: only an admin or content admin may post`;
    const page = { profile, holder: 'organization', consentEndsAt: login.endsAt } as const;
    return looking[role] === undefined ? page : { ...page, obstacle };
  });
  return { kind: 'offered', person: member.profile.externalId, accounts: [member, ...pages], isCut };
};

/** `organization` is the one key of LinkedIn. */
const choices =
  ({ client, clock }: Bound): AccountSource['choices'] =>
  async (_platform, { id: accountId }, _key, signal) => {
    const call: Call = (ask) => client.call({ accountId, targetId: null }, ask, signal);
    const listed = await organizationsOf(call, posting, maxChoices);
    if ('kind' in listed) return withoutFigures(listed, clock());
    const { found, isCut } = listed;
    const of = ({ externalId: value, displayName, role: about }: Organization) => ({
      ...{ value, label: displayName ?? value, about },
    });
    return { kind: 'choices', choices: found.map(of), isCut };
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
