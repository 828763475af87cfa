import { pause } from '#contracts/base/pause.ts';
import { workspace } from '#domain/workspace.ts';
import {
  beforeFirst,
  type FeedMoment,
  hasNumbered,
  momentOfInstant,
  momentOfNamed,
  namedEvent,
} from '#projections/feed/moments.ts';
import { movesOf } from '#projections/queries/move-clock.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import { AsOfInstant } from '#schemas/http/common.ts';
import { issuesOf } from '#schemas/validator.ts';
import type { Call } from '../call/operation.ts';
import { badParameter } from '../call/refusal.ts';

/** The moment that a call asks about. */

type Asking = Pick<Call, 'deps' | 'principal' | 'workspaceId'>;

const beforeAll = () => badParameter('asOf', 'too_small', beforeFirst);
const renumbered = () => new Unavailable('The feed is being numbered anew.');

/** @throws Refusal 400 for an event that is not there, or that a restore took back */
const byName = async (
  { deps, workspaceId }: Asking,
  named: NonNullable<ReturnType<typeof namedEvent>>,
): Promise<FeedMoment> => {
  const found = await momentOfNamed(deps.pool, workspaceId, named);
  // A restore began an epoch between the two statements.
  if (found === null) throw renumbered();
  if ('wrong' in found) throw badParameter('asOf', found.code, found.wrong);
  return found;
};

/** How long after an instant an event of that instant may still be committed, milliseconds. */
const settleMs = 1_000;
/** How long the feed may be behind the store before a question about just now is refused, milliseconds. */
const catchUpMs = 3_000;
const lookMs = 50;
const never = new AbortController().signal;

const find = async ({ deps, workspaceId }: Asking, instant: string) => {
  const found = await momentOfInstant(deps.pool, workspaceId, instant);
  if (found === null) throw renumbered();
  return found;
};

/** Waits until the feed has every event that the store had when this was called. @throws Unavailable */
const feedReached = async ({ deps }: Asking): Promise<void> => {
  const head = await deps.store.stored.head();
  const until = performance.now() + catchUpMs;
  while (!(await hasNumbered(deps.pool, head))) {
    if (performance.now() > until) throw new Unavailable('The feed is behind: ask for an earlier moment, or again.');
    await pause(lookMs, deps.draining ?? never);
  }
};

/**
 * When it was in real time, which the feed has, that the clock of the workspace showed the instant. One that a move passed over
 * is the moment of the move.
 */
const realInstantOf = async ({ deps, principal, workspaceId }: Asking, instant: string): Promise<string> => {
  if (principal.mode !== 'test') return instant;
  const { events } = await deps.store.load(workspace, workspaceId);
  const asked = Date.parse(instant);
  let real = asked;
  for (const { movedAt, aheadMs } of movesOf(events)) {
    const at = Date.parse(movedAt);
    if (real >= at) real = Math.max(at, asked - aheadMs);
  }
  return new Date(real).toISOString();
};

/** An instant that was answered once has the same answer for ever, short of a restore. */
const byInstant = async (asking: Asking, asked: string): Promise<FeedMoment> => {
  const [wrong] = issuesOf(AsOfInstant, { asOf: asked });
  if (wrong !== undefined) throw badParameter('asOf', wrong.code, wrong.message);
  const instant = await realInstantOf(asking, asked);
  const found = await find(asking, instant);
  const { aheadMs, isFollowed } = found;
  if (aheadMs > 0) throw badParameter('asOf', 'too_large', 'lies in the future');
  const at = new Date(asked).toISOString();
  if (isFollowed) {
    if (found.moment === null) throw beforeAll();
    return { ...found.moment, at };
  }
  if (aheadMs > -settleMs) await pause(settleMs + aheadMs, asking.deps.draining ?? never);
  await feedReached(asking);
  const { moment } = await find(asking, instant);
  if (moment === null) throw beforeAll();
  return { ...moment, at };
};

/**
 * @param asOf an instant, a sequence of the newest epoch, or `<epoch>.<sequence>`
 * @throws Refusal 400; Unavailable while the feed is behind
 */
export const momentOf = (asking: Asking, asOf: string): Promise<FeedMoment> => {
  const named = namedEvent(asOf);
  return named === null ? byInstant(asking, asOf) : byName(asking, named);
};
