import { setTimeout as delay } from 'node:timers/promises';
import { workspace } from '#domain/workspace.ts';
import { type MadeDue, type Moved, moveClock, movesOf } from '#projections/queries/move-clock.ts';
import type { Loaded } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { believedMs } from '#runtime/work/sandbox-clocks.ts';
import { SandboxClock, SandboxClockMove } from '#schemas/http/sandbox-clock.ts';
import { maxAheadMs } from '#schemas/workspace.ts';
import { type Call, operation, type Tag } from '../call/operation.ts';
import { invalid, Refusal } from '../call/refusal.ts';

/** The clock of a sandbox workspace. Both operations go by its stream: the row that all others go by may be behind it. */

const sandboxTag: Tag = {
  place: 15,
  name: 'sandbox',
  noun: 'sandbox clock',
  about: 'The clock of the sandbox.',
  realTime: true,
};

const dayMs = 86_400_000;
const exampleMs = Date.parse('2026-01-31T08:00:00.000Z');
const exampleMove = {
  from: '2026-03-01T08:00:00.000Z',
  ...{ targets: 1, recycles: 1, accounts: 1, reports: 0, deliveries: 2 },
};

type Asking = Pick<Call, 'deps' | 'principal' | 'workspaceId'>;
type Home = Pick<Loaded<ReturnType<typeof workspace.evolve>>, 'state' | 'events'>;

const aheadOf = ({ state }: Home): number => (state.status === 'created' ? state.aheadMs : 0);

const iso = (ms: number): string => new Date(ms).toISOString();

const shown = (realMs: number, aheadMs: number, lastMove: MadeDue | null) => ({
  object: 'sandbox_clock' as const,
  ...{ now: iso(realMs + aheadMs), realNow: iso(realMs), latest: iso(realMs + maxAheadMs) },
  lastMove,
});

/** Carries out in the rows what the stream has; null: the clock was never moved. */
const carryOut = async ({ deps, workspaceId }: Asking, { events }: Home): Promise<Moved | null> => {
  const move = movesOf(events).at(-1);
  return move === undefined ? null : moveClock(deps.pool, { workspaceId, ...move });
};

/** Every process has forgotten what it knew before the rows changed: its next look at the clock shows the move. */
const untilKnown = (): Promise<void> => delay(believedMs);

export const getSandboxClock = operation({
  id: 'getSandboxClock',
  method: 'GET',
  path: '/sandbox/clock',
  tag: sandboxTag,
  summary: 'Get the clock of the workspace',
  description:
    'In the sandbox of a test key it is real time until it is moved, and runs on from where it was moved to.',
  scope: 'agency.read',
  limited: 'open',
  idempotent: 'none',
  cost: 1,
  answer: SandboxClock,
  codes: [],
  example: { data: shown(exampleMs, 30 * dayMs, exampleMove) },
  handle: async (call) => {
    const loaded = await call.deps.store.load(workspace, call.workspaceId);
    const moved = await carryOut(call, loaded);
    // A call that died between the event and the rows left them behind.
    if (moved?.isNew === true) await untilKnown();
    return { data: shown(call.deps.clock(), aheadOf(loaded), moved?.due ?? null) };
  },
});

export const moveSandboxClock = operation({
  id: 'moveSandboxClock',
  method: 'POST',
  path: '/sandbox/clock',
  tag: sandboxTag,
  summary: 'Move the clock of the sandbox ahead',
  description:
    'Gives the sandbox workspace of a test key a later time, for all its keys and for no other workspace: what is due by then goes out at once. It never goes back. What one move makes due is done at its end: move day by day where each day counts. What leaves the sandbox keeps real time, as events do in `occurredAt`; the guide on the sandbox says what goes by which.',
  scope: 'posts.compose',
  role: 'manager',
  limited: 'refused',
  idempotent: 'accepted',
  cost: 10,
  body: SandboxClockMove,
  answer: SandboxClock,
  codes: ['sandbox_only'],
  example: { body: { to: iso(exampleMs + 30 * dayMs) }, data: shown(exampleMs, 30 * dayMs, exampleMove) },
  handle: async (call) => {
    const { deps, principal, workspaceId, body, realNow, positions } = call;
    if (principal.mode !== 'test') {
      throw new Refusal('sandbox_only', 'A live workspace has real time. A test key moves the clock of its sandbox.');
    }
    const before = await deps.store.load(workspace, workspaceId);
    await carryOut(call, before);
    const accept = async () => {
      const [real, to] = [Date.parse(realNow), Date.parse(body.to)];
      const from = real + aheadOf(before);
      if (to <= from)
        throw invalid('/to', 'out_of_range', `must be later than ${iso(from)}: the clock never goes back`);
      if (to > real + maxAheadMs) {
        throw invalid('/to', 'out_of_range', `must not be later than ${iso(real + maxAheadMs)}`);
      }
      return { aheadMs: to - real };
    };
    const { result, replayed } = await call.once(accept, async ({ aheadMs }, context) => {
      const command = { type: 'MoveSandboxClock', aheadMs } as const;
      const moved = await execute(deps.store, workspace, workspaceId, command, context, { positions });
      faultPoint('sandbox:after-move');
      const carriedOut = await carryOut(call, moved);
      await untilKnown();
      return shown(deps.clock(), aheadOf(moved), carriedOut?.due ?? null);
    });
    return { data: result, replayed };
  },
});
