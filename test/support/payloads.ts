/**
 * `given(events).when(event).gives({ 'public.type': data })`: the exact public payloads of the event, from its stream
 * as the codec decodes it. Each envelope must fit its schema, hold no unnamed member and no personal value of any given
 * event, and have the same bytes after the client's key is destroyed.
 */

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type TSchema, Type } from 'typebox';
import { envelopeIdOf } from '#domain/ids.ts';
import type { StreamSubject } from '#projections/engine/publisher.ts';
import { envelope, envelopeBytes, needsStream, publicTypesOf, subjectOf } from '#projections/webhooks/types.ts';
import { type DecodedEvent, EventCodec, personalMembers, type StoredBytes } from '#runtime/eventing/codec.ts';
import { eventCatalogue } from '#schemas/events.ts';
import { Envelope, publicEvents } from '#schemas/http/webhook-events.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import { issuesOf } from '#schemas/validator.ts';
import { type Given, stored, TestKeys } from './projecting.ts';

/** Below the size that receivers are advised to accept. */
export const maxBytes = 20_000;

/** The covered pairs: `kind/Event public.type`, and `kind/Event` for events without one. */
export const covered = new Set<string>();
/** Events of one stream that end with an event of the public type, the first that a test gave. */
export const histories = new Map<string, readonly Given[]>();
/** `kind/Event` of given events with all their personal members set. */
export const personal = new Set<string>();

/** The schema, with every object closed. */
export const closed = (schema: TSchema): TSchema => {
  const close = (node: unknown): unknown => {
    if (Array.isArray(node)) return node.map(close);
    if (typeof node !== 'object' || node === null) return node;
    const members = Object.fromEntries(Object.entries(node).map(([name, member]) => [name, close(member)]));
    return 'properties' in members ? { ...members, additionalProperties: false } : members;
  };
  return Type.Unsafe(close(JSON.parse(JSON.stringify(schema))) as TSchema);
};
const schemas = new Map(Object.entries(publicEvents).map(([type, { data }]) => [type, closed(Envelope(type, data))]));

/** The subject of a stream, folded through all of these. */
export const subjectAt = (events: readonly DecodedEvent[]): StreamSubject => {
  const { initial, evolve } = subjectOf(kindOf(events[0]?.stream ?? ''));
  return events.reduce(evolve, initial);
};

const decoded = async (codec: EventCodec, events: readonly Given[]) => {
  const bytes: StoredBytes[] = [];
  const workspaceId = randomUUID();
  for (const [at, event] of events.entries()) {
    bytes.push(await stored(codec, event, { revision: at, position: BigInt(at), workspaceId }));
  }
  return { events: await codec.decodeAll(bytes), again: () => codec.decodeAll(bytes) };
};

const personalValues = ({ stream, type, data }: DecodedEvent): readonly string[] => {
  const members = personalMembers(eventCatalogue[kindOf(stream)]?.[type]?.schema ?? Type.Object({}));
  const values = members.flatMap((member) => (typeof data[member] === 'string' ? [data[member]] : []));
  if (members.length > 0 && values.length === members.length) personal.add(`${kindOf(stream)}/${type}`);
  return values;
};

/** All events of one stream, from the first on. */
export const given = (...before: readonly Given[]) => ({
  when: (event: Given) => ({
    gives: async (expected: Readonly<Record<string, object>>): Promise<void> => {
      const keys = new TestKeys();
      const { events, again } = await decoded(new EventCodec(keys), [...before, event]);
      const last = events.at(-1);
      assert.ok(last !== undefined);
      const kind = kindOf(last.stream);
      const name = `${kind}/${last.type}`;
      const types = publicTypesOf(last, kind);
      assert.deepEqual(types, Object.keys(expected), `${name} is published as`);
      if (types.length === 0) covered.add(name);

      const subject = subjectAt(events);
      const secrets = events.flatMap(personalValues);
      for (const { data } of events) if (typeof data.clientId === 'string') keys.destroy(data.clientId);
      const erased = await again();
      for (const type of types) {
        covered.add(`${name} ${type}`);
        if (!histories.has(type)) histories.set(type, [...before, event]);
        const created: string = last.metadata.occurredAt;
        const made = envelope(type, last, subject);
        assert.deepEqual(made, { id: envelopeIdOf(last.id, type), type, created, data: expected[type] });
        const bytes = envelopeBytes(type, last, subject);
        assert.deepEqual(JSON.parse(bytes.toString()), made);
        assert.deepEqual(issuesOf(schemas.get(type) ?? Type.Never(), made), [], `${type} of ${idOf(last.stream)}`);
        assert.ok(bytes.length < maxBytes, `${type} has ${bytes.length} bytes`);
        for (const secret of secrets) assert.ok(!bytes.includes(secret), `${type} tells ${secret}`);
        if (!needsStream(kind, last.type)) assert.deepEqual(envelopeBytes(type, last, null), bytes);
        const [lastErased] = erased.slice(-1);
        assert.ok(lastErased !== undefined);
        assert.deepEqual(envelopeBytes(type, lastErased, subjectAt(erased)), bytes, `${type} after the erasure`);
      }
    },
  }),
});
