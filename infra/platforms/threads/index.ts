import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { metaInbox } from '../inboxes/meta.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { beforeBoundary, isNoPost, namesNobody } from '../kit/errors.ts';
import type { Bound, NetworkParts } from '../kit/network.ts';
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

const removePost =
  ({ client, clock }: Bound): NonNullable<PlatformAdapter['removePost']> =>
  async ({ account, externalId }, signal) => {
    const subject = { accountId: account.id, targetId: null };
    if (!isMediaId(externalId)) return isNoPost;
    const answer = await client.call(subject, { method: 'DELETE', path: at(externalId) }, signal);
    if (answer.kind === 'ok' || isGone(answer)) return { kind: 'removed' };
    return { kind: 'not_removed', failure: beforeBoundary(answer, clock()).failure };
  };

export const threadsNetwork = (): NetworkParts => ({
  ...{ tables, offer, inbox: metaInbox },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    removePost: removePost(bound),
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
  }),
});
