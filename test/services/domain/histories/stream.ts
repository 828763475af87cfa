import assert from 'node:assert/strict';
import { type Decider, type Fact, Rejection } from '#domain/decider.ts';
import { applyEvent, type Model, type Row } from '#projections/engine/model.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';

/** A stream of one decider: its state is kept event by event, as a process keeps it, and its row as a projection does. */

interface Command {
  readonly type: string;
  readonly commandId?: string;
}
interface Event {
  readonly type: string;
  readonly data: unknown;
}

const workspaceId = '11111111-1111-4111-8111-111111111111';
export const uuid = (kind: number, n: number): string =>
  `${String(kind).padStart(8, '0')}-0000-4000-8000-${String(n).padStart(12, '0')}`;

/** A decider or a fold that changes what it was given then throws. */
const frozen = <T>(value: T): T => {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  Object.freeze(value);
  for (const one of Object.values(value)) frozen(one);
  return value;
};

/** Repeated as they are, these say something new: a worker records one step more, a claim lapses once more. */
const repeatable = new Set(['Checkpoint', 'LapseExternalRefClaim', 'Abandon', 'LapsePlace']);

export class Stream<State extends { readonly status: string }, C extends Command, E extends Event, Own extends object> {
  readonly name: string;
  readonly events: DecodedEvent[] = [];
  readonly decider: Decider<State, C, E>;
  readonly #model: Model<Own>;
  readonly #arrows: Readonly<Record<string, readonly string[]>>;
  readonly #walked: Set<string>;
  readonly #id: string;
  #state: State;
  #row: Row<Own> | null = null;

  /** @param walked gets every arrow that the stream takes */
  constructor(
    decider: Decider<State, C, E>,
    model: Model<Own>,
    id: string,
    arrows: Readonly<Record<string, readonly string[]>>,
    walked: Set<string>,
  ) {
    this.decider = decider;
    this.#model = model;
    this.#id = id;
    this.name = `${decider.kind}-${id}`;
    this.#arrows = arrows;
    this.#walked = walked;
    this.#state = frozen(decider.initial);
  }

  get state(): State {
    return this.#state;
  }

  get row(): Row<Own> | null {
    return this.#row;
  }

  get revision(): number {
    return this.events.length - 1;
  }

  /** @returns the refusal, or the events that were appended */
  send(command: C, now: string): Rejection | readonly DecodedEvent[] {
    const decided = this.#decide(command);
    if (decided instanceof Rejection) return decided;
    const { commandId = `by-${this.name}-${this.events.length}` } = command;
    const appended = decided.map((event) => this.append(event, { commandId, now }));
    if (!repeatable.has(command.type)) {
      const again = this.#decide(command);
      assert.deepEqual(again instanceof Rejection ? [] : again, [], `${command.type} was repeated`);
    }
    return appended;
  }

  /** Decides twice: the same state and command give the same events. */
  #decide(command: C): Rejection | readonly E[] {
    const once = attempt(() => this.decider.decide(command, this.#state));
    const twice = attempt(() => this.decider.decide(command, this.#state));
    if (once instanceof Rejection) {
      assert.ok(
        twice instanceof Rejection && twice.code === once.code,
        'a refusal that depends on more than the state',
      );
    } else assert.deepEqual(twice, once);
    return once;
  }

  /** As a projector does it: a cold column is loaded for few events, and keeps its value unless the fold sets it. */
  #applied(event: DecodedEvent): Row<Own> | null {
    const { cold, warmedBy } = this.#model;
    const before = this.#row;
    if (before === null || warmedBy.includes(event.type)) return applyEvent(this.#model, this.#id, before, event);
    const cool = Object.fromEntries(Object.entries(before).filter(([name]) => !cold.includes(name))) as Row<Own>;
    const after: Row<Own> | null = applyEvent(this.#model, this.#id, cool, event);
    const kept = cold.map((name) => [name, after?.[name as keyof Own] ?? before[name as keyof Own]]);
    return after && { ...after, ...Object.fromEntries(kept) };
  }

  append({ type, data }: E, { commandId, now }: { readonly commandId: string; readonly now: string }): DecodedEvent {
    const stored: DecodedEvent = frozen({
      ...{ stream: this.name, id: uuid(9, this.events.length), type, data: data as Record<string, unknown> },
      metadata: {
        ...{ workspaceId, partitionKey: this.name, actor: { type: 'service', id: 'test' }, commandId, occurredAt: now },
        ...{ $correlationId: commandId, $causationId: commandId, schemaVersion: 1 },
      },
      ...{ revision: this.events.length, position: 0n, bytes: 0 },
    } as const);
    const fact: Fact = { eventId: stored.id, revision: stored.revision, commandId, occurredAt: now };
    const from = this.#state.status;
    this.#state = frozen(this.decider.evolve(this.#state, { type, data } as E, fact));
    const arrow = `${from} → ${this.#state.status}`;
    assert.ok(this.#arrows[type]?.includes(arrow), `${type}: ${arrow} is not drawn`);
    this.#walked.add(`${type}: ${arrow}`);
    this.#row = this.#applied(stored);
    this.events.push(stored);
    return stored;
  }
}

export const attempt = <T>(work: () => T): T | Rejection => {
  try {
    return work();
  } catch (error) {
    if (error instanceof Rejection) return error;
    throw error;
  }
};
