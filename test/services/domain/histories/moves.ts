import fc from 'fast-check';
import {
  isBeforeHandOver,
  isHandOverOpen,
  overdueAfterMs,
  type ScheduledTarget,
  type TargetState,
} from '#domain/post-target/target.ts';
import { type CommandName, commandNames, isSent, minuteMs, workOn } from './commands.ts';
import type { Account, World } from './world.ts';

/** What may happen next to a post, and the course of it that ends well. */

type Composed = Parameters<World['compose']>[0];
type Decision = Parameters<World['decide']>[0];
export type Move =
  | { readonly move: 'wait'; readonly minutes: number }
  | { readonly move: 'wait for'; readonly index: number }
  /** The due time is near: too late for the network's own scheduler. */
  | { readonly move: 'draw near'; readonly index: number }
  /** Nobody works the target off until it is overdue. */
  | { readonly move: 'neglect'; readonly index: number }
  /** The network accepts the post, and its answer may be lost; what it says at the end of its limit, if any history says it. */
  | { readonly move: 'accept'; readonly index: number; readonly isLost: boolean; readonly end: CommandName | null }
  /** What a worker does next with the target; 0: what it does when all goes well. */
  | { readonly move: 'work'; readonly index: number; readonly choice: number }
  | {
      readonly move: 'send';
      readonly index: number;
      readonly name: CommandName;
      readonly behind: number;
      readonly aheadMinutes: number;
    }
  /** A caller cancels a target during its hand-over, or after the answer was lost; what a worker does next may follow. */
  | { readonly move: 'withdraw'; readonly index: number; readonly isLost: boolean; readonly choice: number | null }
  /** The answer to a call is lost, and the network says later that it looks at the post. */
  | { readonly move: 'find processing'; readonly index: number }
  /** A person decides about a request, the newest one or an older. */
  | { readonly move: 'decide'; readonly decision: Decision; readonly back: number }
  /** A process carries the newest decisions out on the post. */
  | { readonly move: 'carry out' }
  | { readonly move: 'compose'; readonly command: Composed }
  | { readonly move: 'recycle'; readonly what: Parameters<World['recycle']>[0]; readonly n: number }
  | {
      readonly move: 'cancel';
      readonly indexes: readonly number[];
      readonly reason: 'client_archived' | 'account_disconnected';
    }
  | { readonly move: 'accept revise'; readonly isTimed: boolean; readonly asks: boolean }
  | { readonly move: 'append revise' }
  | { readonly move: 'accept retry'; readonly index: number }
  | { readonly move: 'send retry' }
  | { readonly move: 'fan out'; readonly steps: number }
  | { readonly move: 'record'; readonly count: number; readonly again: number };

/** The networks' own schedulers have the most ways to go. */
const choices: readonly Pick<Account, 'platform' | 'isNative' | 'segments'>[] = [
  { platform: 'instagram', isNative: false, segments: null },
  { platform: 'facebook', isNative: true, segments: null },
  { platform: 'youtube', isNative: true, segments: null },
  { platform: 'x', isNative: false, segments: 2 },
  { platform: 'threads', isNative: false, segments: 3 },
];
const account: fc.Arbitrary<Account> = fc
  .tuple(
    fc.constantFrom(...choices, ...choices.filter(({ isNative }) => isNative)),
    fc.boolean(),
    fc.constantFrom(0, 12, 30, 90, 1_500),
  )
  .map(([choice, wantsComment, dueIn]) => ({
    ...choice,
    wantsComment,
    dueIn: choice.isNative ? 60 + 10 * dueIn : dueIn,
  }));
export const accounts = fc.array(account, { minLength: 1, maxLength: 4 });

const index = fc.nat(11);
const aheadMinutes = fc.constantFrom(1, 20, 90, 3_000);
const always = <const T>(value: T) => fc.constant(value);
const composed = (...commands: readonly Composed[]) =>
  fc.record({ move: always('compose'), command: fc.constantFrom(...commands) });
const sent = (names: readonly CommandName[], behind = fc.constantFrom(0, 0, 0, -1, 1)) =>
  fc.record({ move: always('send'), index, name: fc.constantFrom(...names), behind, aheadMinutes });

/** By how often one of them comes. */
const weighted: readonly (readonly [weight: number, fc.Arbitrary<Move>])[] = [
  [100, fc.record({ move: always('work'), index, choice: always(0) })],
  [90, fc.record({ move: always('work'), index, choice: fc.constantFrom(0, 1, 2, 3, 4, 5, 6) })],
  [50, sent(commandNames)],
  [40, sent(['reschedule', 'retry'])],
  [3, sent(['cancel'])],
  [
    16,
    fc.record({
      ...{ move: always('withdraw'), index, isLost: fc.boolean() },
      choice: fc.constantFrom(null, 0, 1, 2, 3, 4, 5, 6),
    }),
  ],
  [16, fc.record({ move: always('find processing'), index })],
  [12, sent(['lapse place'])],
  [36, sent(['accepted', 'not shown', 'look', 'settle failed', 'settle processing'])],
  [24, fc.record({ move: always('wait'), minutes: fc.constantFrom(0, 1, 6, 16, 80) })],
  [24, fc.record({ move: always('wait for'), index })],
  [12, fc.record({ move: always('draw near'), index })],
  [10, fc.record({ move: always('neglect'), index })],
  [
    24,
    fc.record({
      ...{ move: always('accept'), index, isLost: fc.constantFrom(false, false, true) },
      end: fc.constantFrom(null, null, 'not shown', 'not shown', 'settle failed', 'settle published'),
    }),
  ],
  [
    8,
    fc.record({
      ...{ move: always('decide'), back: fc.constantFrom(0, 0, 0, 1) },
      decision: fc.constantFrom('Release', 'Release', 'Release', 'Reject', 'ReturnToDraft'),
    }),
  ],
  [12, always({ move: 'carry out' })],
  [2, composed('draft', 'replace', 'lapse', 'abandon')],
  [2, composed('schedule', 'submit', 'delete')],
  [2, composed('join', 'leave')],
  [
    10,
    fc.record({
      ...{ move: always('recycle'), n: fc.constantFrom(1, 2, 3, 4) },
      what: fc.constantFrom('set', 'set', 'clear', 'stop', 'plan', 'record', 'record', 'fail'),
    }),
  ],
  [
    3,
    fc.record({
      ...{ move: always('cancel'), indexes: fc.uniqueArray(fc.nat(3), { maxLength: 4 }) },
      reason: fc.constantFrom('client_archived', 'account_disconnected'),
    }),
  ],
  [12, fc.record({ move: always('accept revise'), isTimed: fc.boolean(), asks: fc.boolean() })],
  [14, always({ move: 'append revise' })],
  [12, fc.record({ move: always('accept retry'), index })],
  [12, always({ move: 'send retry' })],
  [30, fc.record({ move: always('fan out'), steps: fc.constantFrom(0, 1, 2, 3, 99) })],
  [30, fc.record({ move: always('record'), count: fc.nat(6), again: fc.nat(4) })],
];
const move = fc.oneof(...weighted.map(([weight, arbitrary]) => ({ weight, arbitrary })));

const compose = (command: Composed): Move => ({ move: 'compose', command });
const scheduled: readonly Move[] = [compose('schedule'), { move: 'fan out', steps: 99 }];
const recycle = (what: Parameters<World['recycle']>[0]): Move => ({ move: 'recycle', what, n: 1 });
const returned: Move = { move: 'decide', decision: 'ReturnToDraft', back: 0 };
const worked = (choice: number): Move => ({ move: 'work', index: 0, choice });
/** Where its network has a scheduler, the first target is handed over, and gets another content there. */
const revisedAtNetwork: readonly Move[] = [
  ...[...scheduled, worked(0), worked(0), worked(0)],
  ...[{ move: 'accept revise', isTimed: false, asks: false } as const, { move: 'append revise' } as const],
  ...[{ move: 'fan out', steps: 99 } as const, worked(2)],
];
const begin = fc.oneof(
  { weight: 5, arbitrary: fc.constant(scheduled) },
  { weight: 2, arbitrary: fc.constant<readonly Move[]>([compose('submit'), { move: 'fan out', steps: 99 }]) },
  fc.constant<readonly Move[]>([compose('draft'), compose('submit')]),
  fc.constantFrom<readonly Move[]>(
    [compose('schedule')],
    [compose('draft'), compose('replace'), ...scheduled],
    [compose('lapse'), compose('draft'), compose('lapse'), compose('delete'), compose('lapse')],
    [compose('abandon'), compose('draft'), compose('abandon'), compose('delete'), compose('abandon')],
    [compose('draft')],
    revisedAtNetwork,
    [compose('submit'), recycle('set'), returned, { move: 'carry out' }, recycle('clear')],
    [compose('draft'), compose('join'), compose('leave'), compose('schedule'), compose('join'), compose('leave')],
    [],
  ),
);
export const moves: fc.Arbitrary<readonly Move[]> = fc
  .tuple(begin, fc.array(move, { minLength: 20, maxLength: 140, size: 'max' }))
  .map(([first, rest]) => [...first, ...rest]);

/** Rounds of histories, until nothing is left that one of them must meet. */
const maxSamples = 10;

/**
 * Plays histories, as many again while something is `left` that they must meet: what one of hundreds meets, a fixed number
 * of them misses by chance.
 */
export const playedUntil = async <Ts>(
  property: fc.IRawProperty<Ts>,
  { seed, numRuns }: { readonly seed: number; readonly numRuns: number },
  left: () => readonly string[],
): Promise<void> => {
  for (let sample = 0; sample === 0 || (sample < maxSamples && left().length > 0); sample += 1) {
    await fc.assert(property, { seed: seed + sample, numRuns });
  }
};

/** Tells the target the command, if anybody sends it now. */
const tell = (
  world: World,
  at: number,
  name: CommandName,
  more: { behind?: number; aheadMinutes?: number } = {},
): void => {
  const state = world.targets[at]?.state;
  if (state === undefined || state.status === 'none') return;
  if (isSent(name, state, world.sender(at))) world.tell(at, name, more);
};

const stateOf = (world: World, at: number): TargetState => world.targets[at]?.state ?? { status: 'none' };

export const play = (world: World, one: Move): void => {
  const at = 'index' in one ? one.index % world.targets.length : 0;
  const state = stateOf(world, at);
  switch (one.move) {
    case 'wait':
      world.now += one.minutes * minuteMs;
      break;
    case 'wait for':
      world.waitFor(at);
      break;
    case 'draw near':
      if (state.status !== 'none') world.now = Math.max(world.now, Date.parse(state.common.dueAt) - 5 * minuteMs);
      break;
    case 'neglect':
      world.waitFor(at);
      world.now += overdueAfterMs;
      tell(world, at, 'overdue');
      break;
    case 'accept':
      world.waitFor(at);
      for (const name of ['start', 'boundary'] as const) tell(world, at, name);
      for (const name of one.isLost ? (['unknown', 'settle processing'] as const) : (['accepted'] as const))
        tell(world, at, name);
      if (one.end === null) break;
      world.waitFor(at);
      tell(world, at, one.end);
      break;
    case 'work': {
      if (one.choice === 0 && state.status !== 'handed_to_platform' && state.status !== 'processing') world.waitFor(at);
      const name = workOn(state, world.now)[one.choice];
      if (name !== undefined) tell(world, at, name);
      break;
    }
    case 'send':
      // A revise of one target follows from a revise of its post.
      if (one.name !== 'revise') tell(world, at, one.name, one);
      break;
    case 'withdraw': {
      if (isBeforeHandOver(state)) tell(world, at, 'boundary');
      if (!isHandOverOpen(stateOf(world, at))) break;
      if (one.isLost) tell(world, at, 'unknown');
      tell(world, at, 'cancel');
      const name = one.choice === null ? undefined : workOn(stateOf(world, at), world.now)[one.choice];
      if (name !== undefined) tell(world, at, name);
      break;
    }
    case 'find processing': {
      if (state.status === 'pending') world.waitFor(at);
      const due: readonly CommandName[] = state.status === 'pending' ? ['start', 'boundary'] : ['boundary'];
      if (state.status === 'pending' || state.status === 'publishing') {
        for (const name of [...due, 'unknown', 'settle processing'] as const) tell(world, at, name);
      }
      break;
    }
    case 'decide':
      world.decide(one.decision, one.back);
      break;
    case 'carry out':
      world.carryOut();
      break;
    case 'compose':
      world.compose(one.command);
      break;
    case 'recycle':
      world.recycle(one.what, one.n);
      break;
    case 'cancel':
      world.cancel(one.indexes, one.reason);
      break;
    case 'accept revise':
      world.acceptRevise(one.isTimed, one.asks);
      break;
    case 'append revise':
      world.appendRevise();
      break;
    case 'accept retry':
      world.acceptRetry(at);
      break;
    case 'send retry':
      world.sendRetry();
      break;
    case 'fan out':
      world.fanOut(one.steps);
      break;
    case 'record':
      world.recordOutcomes(one.count, one.again);
  }
};

const isOver = (state: World['targets'][number]['state']): boolean =>
  state.status === 'none' ||
  state.status === 'failed' ||
  state.status === 'canceled' ||
  (state.status === 'published' && state.firstComment === null && state.afterSteps.length === 0);

/** Rounds in which any target comes to its end when all goes well: some for each segment of a thread. */
const maxRounds = 40;

/** From now on all goes well. */
export const finish = (world: World): void => {
  world.fanOut();
  for (let round = 0; round < maxRounds; round += 1) {
    const open = [...world.targets.keys()].filter((n) => !isOver(world.targets[n]?.state as ScheduledTarget));
    if (open.length === 0) break;
    for (const n of open) {
      world.waitFor(n);
      const state = world.targets[n]?.state;
      if (state?.status === 'awaiting_approval') world.approve();
      if (state?.status === 'published') world.now += minuteMs;
      for (const name of workOn(state ?? { status: 'none' }, world.now).slice(0, state?.status === 'pending' ? 2 : 1)) {
        if (world.targets[n]?.state.status === state?.status) world.tell(n, name);
      }
    }
    world.recordOutcomes();
  }
  world.fanOut();
  world.recordOutcomes();
};
