import { contentFor } from '#domain/post/content.ts';
import type { LedgerRow } from '#infra/platforms/sandbox/index.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { PostBody } from '#schemas/post.ts';
import { kindOf } from '#schemas/topics.ts';

/**
 * What reached a network was released before: the post needed no approval for it, or a person approved it. Read from the
 * events themselves, not through the fold that the publisher uses.
 */

type Streams = ReadonlyMap<string, readonly DecodedEvent[]>;

/** A body that a post had, and from which position on it might go out; null: nobody released it. */
interface Written {
  readonly body: PostBody;
  readonly releasedAt: bigint | null;
}

const bodiesOf = (events: readonly DecodedEvent[]): readonly Written[] => {
  const released = new Map<unknown, bigint>();
  for (const { type, data, position } of events) if (type === 'PostReleased') released.set(data.approvalId, position);
  return events.flatMap(({ type, data, position, metadata }, at) => {
    if (type !== 'PostScheduled' && type !== 'PostRevised') return [];
    // The request for its approval is in the same append.
    const next = events[at + 1];
    const asks = next?.type === 'PostSubmittedForApproval' && next.metadata.commandId === metadata.commandId;
    const releasedAt = asks ? (released.get(next.data.approvalId) ?? null) : position;
    return [{ body: data.body as PostBody, releasedAt }];
  });
};

/** The members of a body that a copy takes from its origin. */
const contentOf = (body: PostBody): string => {
  const { content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure } = body;
  return JSON.stringify([content, mediaIds, variants, thread, mediaAltTexts, coverMediaId, coverFrameMs, aiDisclosure]);
};

const before = (bodies: readonly Written[], position: bigint): readonly PostBody[] =>
  bodies.flatMap(({ body, releasedAt }) => (releasedAt !== null && releasedAt < position ? [body] : []));

/** A copy has a content of its origin that was released before the copy was made. */
const ofCopy = (events: readonly DecodedEvent[], streams: Streams): readonly string[] => {
  const scheduled = events.find(({ type }) => type === 'PostScheduled');
  const from = scheduled?.data.recycledFrom as { readonly postId: string } | undefined;
  if (scheduled === undefined || from === undefined) return [];
  const released = before(bodiesOf(streams.get(`post-${from.postId}`) ?? []), scheduled.position).map(contentOf);
  const own = contentOf(scheduled.data.body as PostBody);
  return released.includes(own) ? [] : [`is a copy with a content of ${from.postId} that nobody released`];
};

/** A network's own scheduler is given a new content after the hand-over: the last that it may have been given in this attempt. */
const lastAsked = (events: readonly DecodedEvent[], begun: DecodedEvent): DecodedEvent => {
  const behind = events.slice(events.indexOf(begun) + 1);
  const end = behind.findIndex(({ type }) => type === 'TargetPublishStarted');
  const within = end < 0 ? behind : behind.slice(0, end);
  return within.findLast(({ type, data }) => type === 'TargetUndoRequested' && data.then === 'revise') ?? begun;
};

/** @param ledger each call that created a post */
export const checkReleased = (streams: Streams, ledger: readonly LedgerRow[]): readonly string[] => {
  const violations = [...streams].flatMap(([stream, events]) =>
    kindOf(stream) === 'post' ? ofCopy(events, streams).map((what) => `${stream} ${what}`) : [],
  );
  for (const row of ledger) {
    if (row.outcome !== 'created') continue;
    const events = streams.get(`target-${row.targetId}`) ?? [];
    const begun = events.find(({ type, data }) => type === 'TargetPublishStarted' && data.attempt === row.attempt);
    const postId = events.find(({ type }) => type === 'TargetScheduled')?.data.postId;
    if (begun === undefined || typeof postId !== 'string') {
      violations.push(`the network has ${row.postId} of ${row.targetId}, which began no attempt ${row.attempt}`);
      continue;
    }
    const bodies = before(bodiesOf(streams.get(`post-${postId}`) ?? []), lastAsked(events, begun).position);
    const released = bodies.map((body) => contentFor(body, row.platform).segments[row.segment]?.content);
    if (!released.includes(row.content)) {
      const said = `target ${row.targetId} of post ${postId}`;
      violations.push(`${said} went out with a text that nobody released: ${JSON.stringify(row.content)}`);
    }
  }
  return violations;
};
