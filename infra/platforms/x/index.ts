import type { OfferAccounts } from '../kit/consent.ts';
import { namesNobody } from '../kit/errors.ts';
import type { NetworkParts } from '../kit/network.ts';
import { textIn } from '../shared/members.ts';
import { callsFor, type FieldsName } from './fields.ts';
import { accountFigures, me, postFigures } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import type { MediaSettings } from './media.ts';
import { comment, publish, removePost } from './publish.ts';
import { tables } from './tables.ts';

/** A login of X has one account. */
export const offer: OfferAccounts = async ({ call, workspaceId }) => {
  const answer = await call(me(workspaceId, false));
  if (answer.kind !== 'ok') return answer;
  const { data } = answer.body;
  // The id never changes; the username may.
  const [externalId, username] = [textIn(data, 'id'), textIn(data, 'username')];
  if (externalId === null || username === null) return namesNobody;
  const [displayName, avatarUrl] = [textIn(data, 'name') || null, textIn(data, 'profile_image_url') || null];
  return { kind: 'offered', person: null, accounts: [{ profile: { externalId, username, displayName, avatarUrl } }] };
};

export interface XSettings extends MediaSettings {
  /**
   * The name that is tried first: the OpenAPI document says `post.fields`, the changelog and the guides `tweet.fields`.
   * Default `tweet.fields`.
   */
  readonly fieldsName?: FieldsName;
}

export const xNetwork = (settings: XSettings = {}): NetworkParts => ({
  ...{ tables, offer },
  methods: (bound) => {
    const callFor = callsFor(bound.client, settings.fieldsName ?? 'tweet.fields');
    return {
      publish: publish(bound, settings),
      reconcile: reconcile(bound, callFor),
      findPosts: findPosts(bound, callFor),
      comment: comment(bound),
      removePost: removePost(bound),
      fetchPostInsights: postFigures(bound, callFor),
      fetchAccountInsights: accountFigures(bound),
    };
  },
});
