import { tiktokInbox } from '../inboxes/tiktok.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { namesNobody } from '../kit/errors.ts';
import type { NetworkParts } from '../kit/network.ts';
import { textIn } from '../shared/members.ts';
import { choices, facts } from './creator.ts';
import { accountFigures, me, postFigures, profileOf, userIn } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { publish } from './publish.ts';
import { tables } from './tables.ts';

/** A login of TikTok has one account, whose id is of this app alone. */
const offer: OfferAccounts = async ({ call }) => {
  const answer = await call(me());
  if (answer.kind !== 'ok') return answer;
  const user = userIn(answer);
  const externalId = textIn(user, 'open_id') ?? '';
  if (externalId === '') return namesNobody;
  return { kind: 'offered', person: null, accounts: [{ profile: { externalId, ...profileOf(user) } }] };
};

/** Moderation was seen to take hours; a private post has an end within minutes too, as "Get Post Status" says. */
const processingLimitMs = 3 * 86_400_000;

/** TikTok's API deletes no posts. */
export const tiktokNetwork: NetworkParts = {
  ...{ tables, offer },
  inbox: (secret, clientKey) => tiktokInbox({ clientKey, secret }),
  methods: (bound) => ({
    processingLimitMs: () => processingLimitMs,
    // Said of a video alone, whose last part can come for an hour: of pictures `absent` is never said.
    absenceIsProof: () => true,
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
    choices: choices(bound),
    facts: facts(bound),
  }),
};
