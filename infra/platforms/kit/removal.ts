import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { Ask } from './client.ts';
import { beforeBoundary, isNoPost, type NetworkAnswer } from './errors.ts';
import type { Bound } from './network.ts';

/** Takes a post away by one call, which may be made again: one that the network does not have is removed. */

const isGone = (answer: NetworkAnswer): boolean => answer.kind === 'refused' && answer.row.means === 'gone';

/** @param askOf the call, of the id of a post @param isMissing whether a refusal says that there is no such post */
export const removalBy =
  (
    { client, clock }: Bound,
    isId: (id: string) => boolean,
    askOf: (id: string) => Ask,
    isMissing = isGone,
  ): NonNullable<PlatformAdapter['removePost']> =>
  async ({ account, externalId }, signal) => {
    if (!isId(externalId)) return isNoPost;
    const answer = await client.call({ accountId: account.id, targetId: null }, askOf(externalId), signal);
    if (answer.kind === 'ok' || isMissing(answer)) return { kind: 'removed' };
    return { kind: 'not_removed', failure: beforeBoundary(answer, clock()).failure };
  };
