import assert from 'node:assert/strict';
import { type Decider, type Fact, fold, Rejection } from '#domain/decider.ts';

/**
 * `given(events).when(command).then(events)` for one decider. `then` decides twice: on the state after the first
 * decision the same command must yield nothing, unless the test states another result.
 */

/** An event as a test writes it: the rest of the fact is generated, its revision by its place. */
export type Given<Event> = Event & { readonly commandId?: string; readonly at?: string };

interface Then<Event> {
  /** `again`: the result of the repeated command where it is not empty: other events, or a refusal's code. */
  then(expected: readonly Event[], options?: { readonly again?: readonly Event[] | string }): void;
  /** `saying`: what the caller must be able to read, in the sentence that comes with the code or in its list of errors. */
  refused(code: string, saying?: string): void;
}

export const deciding = <State, Command, Event extends { readonly type: string; readonly data: unknown }>(
  decider: Decider<State, Command, Event>,
) => {
  const folded = (events: readonly Given<Event>[]): State =>
    fold(
      decider,
      events.map((one, revision): { event: Event; fact: Fact } => ({
        event: one,
        fact: {
          eventId: `event-${revision}`,
          revision,
          commandId: one.commandId ?? `command-${revision}`,
          occurredAt: one.at ?? '2026-01-01T00:00:00.000Z',
        },
      })),
    );
  const refusalOf = (
    command: Command,
    state: State,
  ): { readonly code: string } & Pick<Rejection, 'message' | 'errors'> => {
    try {
      decider.decide(command, state);
    } catch (error) {
      if (!(error instanceof Rejection)) throw error;
      assert.match(error.message, /^[A-Z].*\.$/, 'a refusal says why in a sentence');
      return error;
    }
    return { code: 'not refused', message: '', errors: [] };
  };
  assert.match(decider.kind, /^[a-z]+$/, 'a stream is named after its kind');
  return {
    state: folded,
    given: (events: readonly Given<Event>[]) => ({
      when: (command: Command): Then<Event> => ({
        then: (expected, { again = [] } = {}) => {
          const decided = decider.decide(command, folded(events));
          assert.deepEqual(decided, expected);
          // Repeated with the id it came with, as a caller's repeat does.
          const commandId = (command as { readonly commandId?: string }).commandId;
          const named = commandId === undefined ? {} : { commandId };
          const after = folded([...events, ...decided.map((one) => ({ ...one, ...named }))]);
          if (typeof again === 'string') assert.equal(refusalOf(command, after).code, again);
          else assert.deepEqual(decider.decide(command, after), again, 'the command was repeated');
        },
        refused: (code, saying = '') => {
          const refusal = refusalOf(command, folded(events));
          assert.equal(refusal.code, code);
          const said = [
            refusal.message,
            ...refusal.errors.flatMap(({ path, code: why, message }) => [`${path} ${message}`, `${path} ${why}`]),
          ].join('\n');
          assert.ok(said.includes(saying), `"${said}" does not say "${saying}"`);
        },
      }),
    }),
  };
};
