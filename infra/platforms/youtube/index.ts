import type { AccountSource, Choice } from '#contracts/ports/platform-account.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { membersAt, namesNobody } from '../kit/errors.ts';
import { withoutFigures } from '../kit/figures.ts';
import type { Bound, NetworkParts } from '../kit/network.ts';
import { removalBy } from '../kit/removal.ts';
import { listIn, parsed, textIn } from '../shared/members.ts';
import { accountFigures, postFigures, profileOf } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { scheduler } from './native.ts';
import { comment, publish, setCover } from './publish.ts';
import { isVideoId, reading, tables, textAt } from './tables.ts';

/** A consent of Google is for the one channel that its owner chose on Google's page. */

/** Who consented. OpenID Connect Core, 3.1.3.7: a token that came from Google itself over TLS needs no check of its seal. */
const personIn = (token: string | null): string | null => {
  const [, claims = ''] = (token ?? '').split('.');
  return textIn(parsed(Buffer.from(claims, 'base64url')), 'sub');
};

const offer: OfferAccounts = async (login) => {
  const answer = await login.call(reading('/channels', { part: 'id,snippet', mine: 'true' }));
  if (answer.kind !== 'ok') return answer;
  const channels = listIn(answer.body, 'items').flatMap((one) => {
    const externalId = textIn(one, 'id');
    return externalId === null || !/^UC[\w-]{22}$/.test(externalId) ? [] : [{ externalId, ...profileOf(one) }];
  });
  if (channels.length === 0) return { kind: 'offered', person: null, accounts: [] };
  // Without it nobody knows which other channels the end of this consent would end.
  const person = personIn(textIn(login.said, 'id_token'));
  if (person === null) return namesNobody;
  return { kind: 'offered', person, accounts: channels.map((profile) => ({ profile, consentEndsAt: login.endsAt })) };
};

/** `categoryId` is the one key. Categories that our rules do not take would be refused before a post. */
const choices =
  ({ client, clock }: Bound): AccountSource['choices'] =>
  async (_platform, { id: accountId, externalId }, _key, signal) => {
    const get = (...asked: Parameters<typeof reading>) =>
      client.call({ accountId, targetId: null }, reading(...asked), signal);
    const channels = await get('/channels', { part: 'snippet', id: externalId });
    if (channels.kind !== 'ok') return withoutFigures(channels, clock());
    const country = textAt(channels.body, 'items.snippet.country') ?? '';
    // A channel need not name a country.
    const regionCode = /^[A-Z]{2}$/.test(country) ? country : 'US';
    const answer = await get('/videoCategories', { part: 'snippet', regionCode });
    if (answer.kind !== 'ok') return withoutFigures(answer, clock());
    const rule = rulesOf('youtube').overrides.categoryId;
    const taken = rule?.type === 'enum' ? rule.values : [];
    const found = listIn(answer.body, 'items').flatMap((one): Choice[] => {
      const [value, label] = [textIn(one, 'id') ?? '', textAt(one, 'snippet.title') ?? ''];
      const [isAssignable] = membersAt(one, 'snippet.assignable');
      return isAssignable === true && label !== '' && taken.includes(value) ? [{ value, label, about: null }] : [];
    });
    return { kind: 'choices', choices: found, isCut: false };
  };

export const youtubeNetwork: NetworkParts = {
  ...{ tables, offer },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    afterStep: setCover(bound),
    removePost: removalBy(bound, isVideoId, (id) => ({ method: 'DELETE', path: '/videos', query: { id } })),
    nativeScheduler: () => scheduler(bound),
    // YouTube names no limit. Large videos were seen to take hours.
    processingLimitMs: () => 86_400_000,
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
    choices: choices(bound),
  }),
};
