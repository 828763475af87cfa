/** Two commands that are both right in one state of any history, and exclude each other: one of them succeeds. */
import assert from 'node:assert/strict';
import fc from 'fast-check';
import { EventStoreError } from '#contracts/ports/event-store.ts';
import { fold, Rejection } from '#domain/decider.ts';
import { type PostCommand, type PostState, post } from '#domain/post/post.ts';
import { type ScheduledTarget, type TargetCommand, type TargetState, target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { PostEvent } from '#schemas/post.ts';
import { deciding } from '#test/support/deciding.ts';
import { commandContext, openDomain } from '#test/support/domain.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';
import { type CommandName, isSent, makers } from './histories/commands.ts';
import { accounts, moves, play, playedUntil } from './histories/moves.ts';
import { type Race, races } from './histories/races.ts';
import { attempt, uuid } from './histories/stream.ts';
import { World } from './histories/world.ts';

const numRuns = Number(process.env.HISTORIES ?? 400);
const { seed } = seeded('races');

interface Met {
  readonly race: Race;
  readonly names: readonly [CommandName, CommandName];
  readonly first: TargetCommand;
  readonly second: TargetCommand;
  readonly now: number;
  readonly events: readonly DecodedEvent[];
}

const isOfKind = ({ only }: Race, { common }: ScheduledTarget, segments: number | null): boolean =>
  only === undefined || (only === 'single' ? segments === null : common.scheduleMode === 'managed');

/** The command that a sender makes of this state, where it has something to do there. */
const right = (world: World, index: number, name: CommandName, state: ScheduledTarget): TargetCommand | null => {
  const sender = world.sender(index, { aheadMinutes: 4_000 });
  if (!isSent(name, state, sender)) return null;
  const command: TargetCommand = makers[name](state, sender);
  const decided = attempt(() => target.decide(command, state));
  return decided instanceof Rejection || decided.length === 0 ? null : command;
};

const after = (command: TargetCommand, state: TargetState, { now }: World): TargetState =>
  fold(
    target,
    target.decide(command, state).map((event, n) => ({
      event,
      fact: {
        ...{ eventId: `won-${n}`, revision: 1_000 + n, occurredAt: new Date(now).toISOString() },
        commandId: 'commandId' in command ? command.commandId : 'won',
      },
    })),
    state,
  );

/** The races that this state of the target allows, each decided both at once and one after the other. */
const racesIn = (world: World, index: number): readonly Met[] => {
  const { state, events } = world.targets[index] ?? { state: { status: 'none' } as const, events: [] };
  if (state.status === 'none') return [];
  const segments = world.accounts[index]?.segments ?? null;
  const possible = races.filter((race) => race.status === state.status && isOfKind(race, state, segments));
  const names = (of: 'first' | 'second') => [...new Set(possible.flatMap((race) => race[of]))];
  const made = (of: 'first' | 'second') => new Map(names(of).map((name) => [name, right(world, index, name, state)]));
  const [winners, losers] = [made('first'), made('second')];
  return possible.flatMap((race) =>
    race.first.flatMap((winner) => {
      const first = winners.get(winner) ?? null;
      if (first === null) return [];
      const left = after(first, state, world);
      return race.second.flatMap((loser): readonly Met[] => {
        const second = losers.get(loser) ?? null;
        if (second === null) return [];
        const again = attempt(() => target.decide(second, left));
        const said = again instanceof Rejection ? again.code : again.length === 0 ? null : 'accepted';
        assert.equal(said, race.code, `${loser} after ${winner} of a ${state.status} target`);
        return [{ race, names: [winner, loser], first, second, now: world.now, events: [...events] }];
      });
    }),
  );
};

suite('races', { drawn: true, costs: 3 }, (t) => {
  /** One of each pair. */
  const met = new Map<string, Met>();
  const wanted = new Set(
    races.flatMap(({ first, second }, n) => [
      ...first.map((one) => `${n} first ${one}`),
      ...second.map((one) => `${n} second ${one}`),
    ]),
  );

  t(
    'in any state, the second of two commands that exclude each other is refused or has nothing left to do',
    async () => {
      const property = fc.property(accounts, moves, (to, all) => {
        const world = new World(to, new Set());
        const seen = new Set<TargetState>();
        for (const one of all) {
          play(world, one);
          for (const [index, { state }] of world.targets.entries()) {
            // Time alone makes more commands right.
            if (seen.has(state) && one.move !== 'neglect' && one.move !== 'wait for') continue;
            seen.add(state);
            for (const pair of racesIn(world, index)) {
              const n = races.indexOf(pair.race);
              const [first, second] = pair.names;
              wanted.delete(`${n} first ${first}`);
              wanted.delete(`${n} second ${second}`);
              const key = `${n} ${first} ${second}`;
              if (!met.has(key)) met.set(key, pair);
            }
          }
        }
      });
      await playedUntil(property, { seed, numRuns }, () => [...wanted]);
      assert.deepEqual([...wanted], [], 'no history came to these races');
    },
  );

  t(
    'in the store, the command that comes second loses by the revision, and is then decided on what the first left',
    async () => {
      const { events: memory, codec, store } = openDomain();
      const id = (n: number): string => uuid(7, n);
      for (const [n, one] of [...met.values()].entries()) {
        const stream = `target-${id(n)}`;
        const stored = await Promise.all(
          one.events.map(async (event) => ({
            ...{ id: uuid(8, n * 1_000 + event.revision), type: event.type, partitionKey: uuid(2, 1) },
            ...(await codec.encode(stream, event, event.metadata)),
          })),
        );
        await memory.append(stream, 'none', stored);
        const loaded = await store.load(target, id(n));
        const send = (command: TargetCommand, redecide: boolean) => {
          const named = 'commandId' in command ? { commandId: command.commandId } : {};
          const context = commandContext({ now: new Date(one.now).toISOString(), ...named });
          return execute(store, target, id(n), command, context, { partitionKey: uuid(2, 1), loaded, redecide });
        };
        await send(one.first, false);
        const what = one.names.join(' | ');
        await assert.rejects(
          send(one.second, false),
          (error) => error instanceof EventStoreError && error.code === 'wrong_expected_revision',
          what,
        );
        const said = await send(one.second, true).catch((error: unknown) => error);
        if (one.race.code === null) assert.deepEqual((said as { appended: unknown }).appended, [], what);
        else assert.equal((said as Rejection).code, one.race.code, what);
      }
    },
  );

  t('a draft is published once, or discarded, or replaced before either', () => {
    const { state } = deciding(post);
    const ids = { targetId: uuid(3, 0), accountId: uuid(4, 0), clientId: uuid(1, 1) };
    const written = { clientId: ids.clientId, createdBy: { type: 'member', id: 'm1' }, body: postBody() };
    const drafted: PostEvent = { type: 'PostDrafted', data: written };
    const plan = { number: 1, targets: [planned(ids)] };
    const schedule = (commandId: string): PostCommand => ({ type: 'Schedule', commandId, ...written, plan });
    const unsettled = [{ targetId: ids.targetId, appliedRevision: 0 }];
    const remove: PostCommand = { type: 'Delete', unsettled };
    const replace: PostCommand = { type: 'ReplaceDraft', body: postBody({ content: 'other' }) };
    const cancel: PostCommand = { type: 'CancelTargets', targetIds: [ids.targetId], reason: 'account_disconnected' };
    const scheduled: PostEvent = { type: 'PostScheduled', data: { ...written, plan } };
    const table: readonly (readonly [readonly PostEvent[], PostCommand, PostCommand, string | null])[] = [
      [[drafted], remove, schedule('b'), 'not_found'],
      [[drafted], remove, replace, 'not_found'],
      [[drafted], remove, remove, null],
      [[drafted], schedule('a'), schedule('b'), 'post_not_draft'],
      [[drafted], schedule('a'), replace, 'post_not_draft'],
      [[], schedule('a'), schedule('b'), 'post_not_draft'],
      [[scheduled], remove, cancel, null],
      [[scheduled], cancel, remove, null],
    ];
    for (const [events, first, second, code] of table) {
      const before: PostState = state(events);
      assert.ok(post.decide(first, before).length > 0 && post.decide(second, before).length > 0);
      const left = state([...events, ...post.decide(first, before)]);
      const said = attempt(() => post.decide(second, left));
      assert.equal(said instanceof Rejection ? said.code : null, code, `${second.type} after ${first.type}`);
      if (!(said instanceof Rejection)) assert.deepEqual(said, []);
    }
  });
});
