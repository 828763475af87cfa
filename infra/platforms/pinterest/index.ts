import { type AccountSource, type Choice, maxChoices } from '#contracts/ports/platform-account.ts';
import type { OfferAccounts } from '../kit/consent.ts';
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
  if (externalId === null) return { kind: 'silent', reason: 'the answer does not say whose account it is' };
  return { kind: 'offered', person: null, accounts: [{ profile: { externalId, ...profileOf(answer.body) } }] };
};

const boardsPerPage = 250;

/** The boards of an account, those of others to which it may pin included: `boardId` is the one key of Pinterest. */
const boards =
  ({ client, clock }: Bound): AccountSource['choices'] =>
  async (_platform, { id: accountId }, _key, signal) => {
    const choices: Choice[] = [];
    let bookmark: string | null = null;
    do {
      const query = { page_size: String(boardsPerPage), ...(bookmark === null ? {} : { bookmark }) };
      const answer = await client.call(
        { accountId, targetId: null },
        { method: 'GET', path: '/boards', query },
        signal,
      );
      if (answer.kind !== 'ok') return withoutFigures(answer, clock());
      const shown = listIn(answer.body, 'items');
      for (const board of shown) {
        const value = textIn(board, 'id') ?? '';
        if (isId(value))
          choices.push({ value, label: textIn(board, 'name') ?? value, about: textIn(board, 'privacy') });
      }
      bookmark = shown.length === 0 ? null : textIn(answer.body, 'bookmark');
    } while (bookmark !== null && choices.length < maxChoices);
    const isCut = bookmark !== null || choices.length > maxChoices;
    return { kind: 'choices', choices: choices.slice(0, maxChoices), isCut };
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
