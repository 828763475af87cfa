import { metaInbox } from '../inboxes/meta.ts';
import type { NetworkParts } from '../kit/network.ts';
import { offerOfLogin } from '../meta/login.ts';
import { accountFigures, postFigures } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { scheduler } from './native.ts';
import { comment, publish, removePost, setCover } from './publish.ts';
import { tables } from './tables.ts';

/** Pages of Facebook; profiles and groups take no posts of apps. */
export const facebookNetwork: NetworkParts = {
  ...{ tables, offer: offerOfLogin, inbox: metaInbox },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    afterStep: setCover(bound),
    removePost: removePost(bound),
    nativeScheduler: () => scheduler(bound),
    // Facebook names no limit; videos were seen to take an hour.
    processingLimitMs: () => 86_400_000,
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
  }),
};
