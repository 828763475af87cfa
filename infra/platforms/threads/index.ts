import { metaInbox } from '../inboxes/meta.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { namesNobody } from '../kit/errors.ts';
import type { NetworkParts } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { at, isMediaId } from '../meta/graph.ts';
import { textIn } from '../shared/members.ts';
import { accountFigures, me, postFigures, profileOf } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { comment, publish } from './publish.ts';
import { isGone, tables } from './tables.ts';

/** A login of Threads has one account. */
const offer: OfferAccounts = async ({ call }) => {
  const answer = await call(me);
  if (answer.kind !== 'ok') return answer;
  const externalId = textIn(answer.body, 'id') ?? '';
  const profile = profileOf(answer.body);
  // The id never changes; the username may.
  if (!isMediaId(externalId) || profile.username === null) return namesNobody;
  return {
    kind: 'offered',
    person: null,
    accounts: [{ profile: { externalId, ...profile, username: profile.username } }],
  };
};

export const threadsNetwork = (): NetworkParts => ({
  ...{ tables, offer, inbox: metaInbox },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    // "Delete Posts": a hundred in 24 hours. Replies of others stay.
    removePost: removalBy(bound, isMediaId, (id) => ({ method: 'DELETE', path: at(id) }), isGone),
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
  }),
});
