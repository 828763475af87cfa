import type { AccountSource, Choice } from '#contracts/ports/platform-account.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { namesNobody } from '../kit/errors.ts';
import { withoutFigures } from '../kit/figures.ts';
import type { Bound, NetworkParts } from '../kit/network.ts';
import { listIn, membersOf, parsed, textIn } from '../shared/members.ts';
import { accountFigures, postFigures, profileOf } from './figures.ts';
import { findPosts, reconcile } from './find.ts';
import { scheduler } from './native.ts';
import { afterStep, comment, publish, removePost } from './publish.ts';
import { tables } from './tables.ts';

/** A consent of Google is for the one channel that its owner chose on Google's page. */

/** Who consented. OpenID Connect Core, 3.1.3.7: a token that came from Google itself over TLS needs no check of its seal. */
const personIn = (token: string | null): string | null => {
  const [, claims = ''] = (token ?? '').split('.');
  return textIn(parsed(Buffer.from(claims, 'base64url')), 'sub');
};

const offer: OfferAccounts = async (login) => {
  const answer = await login.call({ method: 'GET', path: '/channels', query: { part: 'id,snippet', mine: 'true' } });
  if (answer.kind !== 'ok') return answer;
  const channels = listIn(answer.body, 'items').flatMap((one) => {
    const externalId = textIn(one, 'id');
    return externalId === null || !/^UC[\w-]{22}$/.test(externalId) ? [] : [{ externalId, ...profileOf(one) }];
  });
  const [first] = channels;
  if (first === undefined) return { kind: 'offered', person: null, accounts: [] };
  // Without it nobody knows which other channels the end of this consent would end.
  const person = personIn(textIn(login.said, 'id_token'));
  if (person === null) return namesNobody;
  const accounts = channels.map((profile) => ({ profile, consentEndsAt: login.endsAt }));
  return { kind: 'offered', person, accounts };
};

/** Where the channel names no country. */
const usualRegion = 'US';

/** `categoryId` is the one key. Categories that our rules do not take would be refused before a post. */
const choices =
  ({ client, clock }: Bound): AccountSource['choices'] =>
  async (_platform, { id: accountId, externalId }, _key, signal) => {
    const get = (path: string, query: Readonly<Record<string, string>>) =>
      client.call({ accountId, targetId: null }, { method: 'GET', path, query }, signal);
    const channels = await get('/channels', { part: 'snippet', id: externalId });
    if (channels.kind !== 'ok') return withoutFigures(channels, clock());
    const country = textIn(membersOf(listIn(channels.body, 'items')[0]?.snippet), 'country') ?? '';
    const regionCode = /^[A-Z]{2}$/.test(country) ? country : usualRegion;
    const answer = await get('/videoCategories', { part: 'snippet', regionCode });
    if (answer.kind !== 'ok') return withoutFigures(answer, clock());
    const rule = rulesOf('youtube').overrides.categoryId;
    const taken = rule?.type === 'enum' ? rule.values : [];
    const found = listIn(answer.body, 'items').flatMap((one): Choice[] => {
      const [value, snippet] = [textIn(one, 'id') ?? '', membersOf(one.snippet)];
      const label = textIn(snippet, 'title') ?? '';
      return snippet?.assignable === true && label !== '' && taken.includes(value)
        ? [{ value, label, about: null }]
        : [];
    });
    return { kind: 'choices', choices: found, isCut: false };
  };

/** YouTube names no limit. Large videos were seen to take hours. */
const processingLimitMs = 24 * 3_600_000;

export const youtubeNetwork: NetworkParts = {
  ...{ tables, offer },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    comment: comment(bound),
    afterStep: afterStep(bound),
    removePost: removePost(bound),
    nativeScheduler: () => scheduler(bound),
    processingLimitMs: () => processingLimitMs,
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
    choices: choices(bound),
  }),
};
