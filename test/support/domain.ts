/** The write side over the in-memory store: streams, keys and a context, for tests of one module. */

import { randomBytes, randomUUID } from 'node:crypto';
import { MissingKey } from '#contracts/ports/data-keys.ts';
import type { AppendResult, EventToAppend, ExpectedRevision } from '#contracts/ports/event-store.ts';
import { type DataKeys, EventCodec } from '#runtime/eventing/codec.ts';
import { type CommandContext, DomainStore, uuidv7 } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';

/** Keys in memory, with the rules of the real ones: a destroyed key is null, a missing one is a fault. */
export class MemoryDataKeys implements DataKeys {
  readonly #keys = new Map<string, Buffer | null>();

  async forWriting(clientId: string): Promise<Buffer | null> {
    const known = this.#keys.get(clientId);
    if (known !== undefined) return known;
    const made = randomBytes(32);
    this.#keys.set(clientId, made);
    return made;
  }

  async forReading(clientId: string): Promise<Buffer | null> {
    const known = this.#keys.get(clientId);
    if (known === undefined) throw new MissingKey(`there is no data key of client ${clientId}`);
    return known;
  }

  destroy(clientId: string): void {
    this.#keys.set(clientId, null);
  }

  /** As after a restore without the table: not the same as destroyed. */
  lose(clientId: string): void {
    this.#keys.delete(clientId);
  }
}

/** Records every append, also those whose answer it lost. */
export class RecordingEventStore extends MemoryEventStore {
  readonly asked: {
    readonly stream: string;
    readonly expected: ExpectedRevision;
    readonly events: readonly EventToAppend[];
  }[] = [];

  override append(stream: string, expected: ExpectedRevision, events: readonly EventToAppend[]): Promise<AppendResult> {
    this.asked.push({ stream, expected, events });
    return super.append(stream, expected, events);
  }
}

export const secretKey = (version = 1): string => `v${version}:${randomBytes(32).toString('base64')}`;

export const openDomain = () => {
  const events = new RecordingEventStore();
  const keys = new MemoryDataKeys();
  const codec = new EventCodec(keys);
  const store = new DomainStore(events, codec, defaultPartitions);
  return { events, keys, codec, store, secrets: new Secrets(secretKey()) };
};

export const commandContext = (over: Partial<CommandContext> = {}): CommandContext => ({
  workspaceId: '11111111-1111-4111-8111-111111111111',
  actor: { type: 'service', id: 'test' },
  correlationId: randomUUID(),
  causationId: randomUUID(),
  commandId: uuidv7(),
  now: '2026-01-01T00:00:00.000Z',
  ...over,
});
