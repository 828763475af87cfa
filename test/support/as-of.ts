/** Answers of now and answers about then, made comparable, and what tests of the past do to a world. */
import { target } from '#domain/post-target/target.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { tomorrow } from './composing.ts';
import type { Answered, World } from './http.ts';

/** What may differ from the answer of then: the last characters of a secret, and when a network was last asked. */
const comparable = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value), (name, member) => (name === 'secretHint' || name === 'checkedAt' ? null : member));

/** Status and data of an answer, without what may differ later. */
export const shownOf = ({ status, body }: Answered): unknown =>
  comparable(status === 200 ? [status, body.data, body.page?.hasMore] : [status, body.code]);

/** Path and query of the same question about the past. */
export const pastOf = (path: string, asOf: number | string): string =>
  `${path}${path.includes('?') ? '&' : '?'}asOf=${encodeURIComponent(asOf)}`;

/** As the publisher records it, of a target that is still to go out. */
export const publishTarget = async (
  { store, operator }: World,
  workspaceId: string,
  targetId: string,
  postId: string,
): Promise<void> => {
  const { state, revision } = await store.load(target, targetId);
  if (state.status !== 'pending') return;
  const claim = { attempt: 1, takeover: 0 };
  const events = [
    { type: 'TargetPublishStarted', data: claim },
    { type: 'TargetPublished', data: { ...claim, externalId: 'x-1', permalink: null, publishedAt: tomorrow() } },
  ];
  await store.append(`target-${targetId}`, revision, events, contextOf(operator, workspaceId), postId);
};
