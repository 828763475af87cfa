import { type AccountSource, type Choice, maxChoices } from '#contracts/ports/platform-account.ts';
import type { OfferAccounts } from '../kit/consent.ts';
import { namesNobody } from '../kit/errors.ts';
import { withoutFigures } from '../kit/figures.ts';
import type { Bound, NetworkParts } from '../kit/network.ts';
import { listIn, textIn } from '../shared/members.ts';
import { accountFigures, me, postFigures, profileOf } from './figures.ts';
import { findPosts, isId, reconcile } from './pin.ts';
import { publish, removePost } from './publish.ts';
import { tables } from './tables.ts';

/** A login of Pinterest has one account. */
const offer: OfferAccounts = async ({ call }) => {
  const answer = await call(me);
  if (answer.kind !== 'ok') return answer;
  const externalId = textIn(answer.body, 'id');
  if (externalId === null) return namesNobody;
  return { kind: 'offered', person: null, accounts: [{ profile: { externalId, ...profileOf(answer.body) } }] };
};

const boardsPerPage = 250;
/** Pages may be short. */
const maxPages = 20;

/** The boards of an account, those of others to which it may pin included: `boardId` is the one key of Pinterest. */
const boards =
  ({ client, clock }: Bound): AccountSource['choices'] =>
  async (_platform, { id: accountId }, _key, signal) => {
    const choices = new Map<string, Choice>();
    const seen = new Set<string>();
    let bookmark: string | null = null;
    do {
      const query = { page_size: String(boardsPerPage), ...(bookmark === null ? {} : { bookmark }) };
      const ask = { method: 'GET', path: '/boards', query } as const;
      const answer = await client.call({ accountId, targetId: null }, ask, signal);
      if (answer.kind !== 'ok') return withoutFigures(answer, clock());
      const shown = listIn(answer.body, 'items');
      for (const board of shown) {
        const value = textIn(board, 'id') ?? '';
        const label = textIn(board, 'name') ?? value;
        if (isId(value)) choices.set(value, { value, label, about: textIn(board, 'privacy') });
      }
      bookmark = shown.length === 0 ? null : textIn(answer.body, 'bookmark');
      // One that comes again leads round in a circle.
      if (bookmark === null || seen.has(bookmark)) break;
      seen.add(bookmark);
    } while (seen.size < maxPages && choices.size < maxChoices);
    const isCut = bookmark !== null || choices.size > maxChoices;
    return { kind: 'choices', choices: [...choices.values()].slice(0, maxChoices), isCut };
  };

export const pinterestNetwork: NetworkParts = {
  ...{ tables, offer },
  methods: (bound) => ({
    publish: publish(bound),
    reconcile: reconcile(bound),
    findPosts: findPosts(bound),
    removePost: removePost(bound),
    fetchPostInsights: postFigures(bound),
    fetchAccountInsights: accountFigures(bound),
    choices: boards(bound),
  }),
};
