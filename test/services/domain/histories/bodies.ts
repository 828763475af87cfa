import assert from 'node:assert/strict';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { PostBody } from '#schemas/post.ts';

/** What was released of a post and what is requested, read from its events alone. */

export const contentOf = ({ data }: DecodedEvent): string => (data.body as PostBody).content;

/** Texts in the order of their release: none without an approval where one was asked for in the same append. */
export const releasedOf = (events: readonly DecodedEvent[]): readonly string[] => {
  const released: string[] = [];
  const asked = new Map<unknown, string>();
  for (const [at, event] of events.entries()) {
    const next = events[at + 1];
    if (event.type === 'PostReleased') released.push(asked.get(event.data.approvalId) ?? '');
    if (event.type !== 'PostScheduled' && event.type !== 'PostRevised') continue;
    if (next?.type === 'PostSubmittedForApproval') asked.set(next.data.approvalId, contentOf(event));
    else released.push(contentOf(event));
  }
  return released;
};

/** What reaches the ledger of a network was released before. */
export const checkReleased = (events: readonly DecodedEvent[], postRevision: number): void => {
  const content = contentOf(events[postRevision] as DecodedEvent);
  assert.ok(releasedOf(events).includes(content), `"${content}" goes out, and was never released`);
};

const isRejection = ({ type, data }: DecodedEvent): boolean =>
  type === 'PostTargetsChanged' && (data.change as { readonly reason: string }).reason === 'approval_rejected';

/** The text of the newest request, until it is released or rejected; null: there is none. */
export const requestedOf = (events: readonly DecodedEvent[]): string | null => {
  const at = events.findLastIndex(({ type }) => type === 'PostSubmittedForApproval');
  const [before, ...after] = events.slice(at - 1);
  if (at < 0 || before === undefined || after.some((one) => one.type === 'PostReleased' || isRejection(one)))
    return null;
  return contentOf(before);
};
