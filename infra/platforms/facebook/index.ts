import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import { metaInbox } from '../inboxes/meta.ts';
import type { Ask } from '../kit/client.ts';
import { behindCover, commentTooLate, failureOf } from '../kit/errors.ts';
import type { Bound, NetworkParts } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { subjectOf, wholeOf } from '../kit/upload.ts';
import { at, isMediaId, reading } from '../meta/graph.ts';
import { offerOfLogin } from '../meta/login.ts';
import { accountFigures, postFigures } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { scheduler } from './native.ts';
import { filesOf } from './post.ts';
import { comment, publish } from './publish.ts';
import { isPostId, tables } from './tables.ts';

/** "Video Thumbnails": the preferred one is shown, so a second call shows the same picture. */
const setCover =
  (bound: Bound): NonNullable<PlatformAdapter['afterStep']> =>
  async (request, signal) => {
    if (signal.aborted) return commentTooLate;
    const { client, clock } = bound;
    const { cover, externalId } = request;
    const subject = subjectOf(request);
    const fields = 'attachments{media_type,target{id}}';
    const shown = await client.call(subject, reading(externalId, { fields }), signal);
    if (shown.kind !== 'ok') return behindCover(shown, clock());
    const video = filesOf(shown.body).find(isMediaId);
    if (video === undefined) {
      return { kind: 'failed', failure: failureOf('gone', null, 'the post shows no video that could have a cover') };
    }
    const ask: Ask = {
      ...{ method: 'POST', path: at(`${video}/thumbnails`), query: { is_preferred: 'true' } },
      form: { fields: {}, name: 'source', type: cover.contentType, file: await wholeOf(cover) },
    };
    const answer = await client.call(subject, ask, signal);
    return answer.kind === 'ok' ? { kind: 'done' } : behindCover(answer, clock());
  };

/** Pages of Facebook; profiles and groups take no posts of apps. */
export const facebookNetwork: NetworkParts = {
  ...{ tables, offer: offerOfLogin, inbox: metaInbox },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    afterStep: setCover(bound),
    removePost: removalBy(bound, isPostId, (id) => ({ method: 'DELETE', path: at(id) })),
    nativeScheduler: () => scheduler(bound),
    // Facebook names no limit; videos were seen to take an hour.
    processingLimitMs: () => 86_400_000,
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
  }),
};
