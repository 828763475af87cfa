import { metaInbox } from '../inboxes/meta.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { namesNobody } from '../kit/errors.ts';
import type { Bound, NetworkMethods, NetworkParts } from '../kit/network.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { offerOfLogin, profileOfInstagram } from '../meta/login.ts';
import { listIn, textIn } from '../shared/members.ts';
import { accountFigures, postFigures } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { comment, publish, removePost } from './publish.ts';
import { tables, tablesByFacebook } from './tables.ts';

/**
 * A login of Instagram has one account. `user_id` names it in paths and to Facebook; `id` is the person's for this app alone, by
 * which Instagram says who took the consent back.
 */
const offer: OfferAccounts = async ({ call }) => {
  const fields = 'id,user_id,username,name,account_type,profile_picture_url';
  const answer = await call({ method: 'GET', path: at('me'), query: { fields } });
  if (answer.kind !== 'ok') return answer;
  const [one = answer.body] = listIn(answer.body, 'data');
  const [person, externalId] = [textIn(one, 'id'), textIn(one, 'user_id') ?? ''];
  const profile = profileOfInstagram(one);
  if (!isMediaId(externalId) || profile.username === null) return namesNobody;
  const isPersonal = textIn(one, 'account_type') === 'PERSONAL';
  const obstacle = 'a personal account: make it a business or creator account in the settings of Instagram';
  return {
    kind: 'offered',
    person: person ?? externalId,
    accounts: [{ profile: { externalId, ...profile }, ...(isPersonal ? { obstacle } : {}) }],
  };
};

const methodsOf = (bound: Bound): NetworkMethods => ({
  publish: publish(bound),
  reconcile: reconcile(bound),
  findPosts: findPosts(bound),
  comment: comment(bound),
  fetchPostInsights: postFigures(bound),
  fetchAccountInsights: accountFigures(bound),
});

/** Accounts of pages: a page has a token beside that of the login. */
const byFacebook: NetworkParts = {
  ...{ tables: tablesByFacebook, offer: offerOfLogin },
  takes: (secret) => textIn(secret, 'loginToken') !== null,
  methods: (bound) => ({ ...methodsOf(bound), removePost: removePost(bound) }),
};

export const instagramNetwork: NetworkParts = {
  ...{ tables, offer, inbox: metaInbox, alsoBy: byFacebook },
  takes: (secret) => textIn(secret, 'loginToken') === null,
  methods: methodsOf,
};
