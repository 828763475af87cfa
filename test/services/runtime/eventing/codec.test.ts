import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Type } from 'typebox';
import type { Decider } from '#domain/decider.ts';
import { workspace } from '#domain/workspace.ts';
import { EventCodec, InvalidEvent, type StoredBytes } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { type EventCatalogue, eventCatalogue, versioned } from '#schemas/events.ts';
import { grown, withMember } from '#schemas/upcast.ts';
import { commandContext, MemoryDataKeys, openDomain } from '#test/support/domain.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const stream = `client-${randomUUID()}`;
const { workspaceId, actor, now } = commandContext();
const metadata = {
  workspaceId,
  partitionKey: stream,
  actor,
  $correlationId: 'c',
  $causationId: 'c',
  commandId: 'c',
  occurredAt: now,
};
const canary = 'canary-4711';

const storedAs = (
  type: string,
  bytes: { readonly data: Uint8Array; readonly metadata: Uint8Array },
  over: Partial<StoredBytes> = {},
): StoredBytes => ({ stream, id: randomUUID(), type, revision: 0n, position: 7n, ...bytes, ...over });

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

/** Refused as an event nothing may be concluded from, in words that show no value of it. */
const refusedQuietly = (promise: Promise<unknown>, place?: RegExp) =>
  rejects(promise, (error) => {
    ok(error instanceof InvalidEvent, String(error));
    let shown = '';
    for (let one: unknown = error; one instanceof Error; one = one.cause) shown += `${one.message}\n${one.stack}\n`;
    ok(!shown.includes(canary), shown);
    if (place !== undefined) match(error.message, place);
    return true;
  });

suite('codec', (t) => {
  const codec = new EventCodec(new MemoryDataKeys());
  const created = { type: 'ClientCreated', data: clientFields };

  t('reads its own bytes back', async () => {
    const bytes = await codec.encode(stream, created, metadata);
    const decoded = await codec.decode(storedAs('ClientCreated', bytes, { revision: 3n }));
    equal(decoded.revision, 3);
    equal(decoded.position, 7n);
    deepEqual(decoded.data, clientFields);
    deepEqual(decoded.metadata, { ...metadata, schemaVersion: 1 });
  });

  t('refuses to write an invalid event, and the error does not show its values', async () => {
    const write = (data: unknown, type = 'ClientCreated') => codec.encode(stream, { type, data }, metadata);
    await refusedQuietly(write({ ...clientFields, type: canary }), /ClientCreated in client-.*\/type /);
    await refusedQuietly(write({ ...clientFields, name: [canary] }), /\/name /);
    await refusedQuietly(write({ name: canary }), /\/type /);
    await refusedQuietly(write(null));
    await refusedQuietly(write(clientFields, 'ClientRenamed'), /catalogue/);
    await refusedQuietly(codec.encode(`planet-${randomUUID()}`, created, metadata), /catalogue/);
    await refusedQuietly(codec.encode(stream, created, { ...metadata, occurredAt: canary }), /\/occurredAt /);
  });

  t('refuses to read an invalid event', async () => {
    const good = await codec.encode(stream, created, metadata);
    const read = (over: Partial<StoredBytes>) => codec.decode(storedAs('ClientCreated', { ...good, ...over }, over));
    await refusedQuietly(read({ data: json({ ...clientFields, timezone: { [canary]: canary } }) }), /\/timezone /);
    await refusedQuietly(read({ metadata: json({ ...metadata, schemaVersion: canary }) }), /\/schemaVersion /);
    await refusedQuietly(read({ metadata: json({ ...metadata, schemaVersion: 0 }) }));
    await refusedQuietly(read({ type: 'ClientRenamed' }), /catalogue/);
    await refusedQuietly(read({ stream: `planet-${randomUUID()}` }), /catalogue/);
  });

  t('refuses to read a newer version', async () => {
    const { data } = await codec.encode(stream, created, metadata);
    const newer = storedAs('ClientCreated', { data, metadata: json({ ...metadata, schemaVersion: 2 }) });
    await refusedQuietly(codec.decode(newer), /version 2, we know up to 1/);
  });

  t('bytes that are no JSON object are an invalid event', async () => {
    const good = await codec.encode(stream, created, metadata);
    for (const torn of [`"${canary}`, `{"a":"${canary}`, canary, 'null', `["${canary}"]`, '']) {
      await refusedQuietly(codec.decode(storedAs('ClientCreated', { ...good, data: Buffer.from(torn) })));
      await refusedQuietly(codec.decode(storedAs('ClientCreated', { ...good, metadata: Buffer.from(torn) })));
      // With personal members, which are looked at before the schema is.
      await refusedQuietly(
        codec.decode(
          storedAs('AccountConnected', { ...good, data: Buffer.from(torn) }, { stream: `account-${randomUUID()}` }),
        ),
      );
    }
    await refusedQuietly(codec.decode(storedAs('ClientCreated', { ...good, data: Buffer.from([0x22, 0xff, 0x22]) })));
  });
});

suite('upcast', (t) => {
  const definition = eventCatalogue.workspace?.WorkspaceProfileChanged;
  const second: EventCatalogue = {
    ...eventCatalogue,
    workspace: {
      ...eventCatalogue.workspace,
      WorkspaceProfileChanged: {
        version: 2,
        schema: Type.Object({ profile: Type.Object({ name: Type.String(), timezone: Type.String() }) }),
        upcasts: [({ name, timezone }) => ({ profile: { name, timezone } })],
      },
    },
  };
  /** A build that knows version 2 of one event. */
  type Event =
    | { type: 'WorkspaceCreated' | 'MemberAdded'; data: unknown }
    | { type: 'WorkspaceProfileChanged'; data: { profile: { name: string; timezone: string } } };
  const later: Decider<string[], { name: string }, Event> = {
    kind: 'workspace',
    initial: [],
    decide: ({ name }) => [{ type: 'WorkspaceProfileChanged', data: { profile: { name, timezone: 'UTC' } } }],
    evolve: (names, event) => (event.type === 'WorkspaceProfileChanged' ? [...names, event.data.profile.name] : names),
  };

  t('reads a stream of both versions as one of the newer', async () => {
    equal(definition?.version, 1);
    const { events, keys, store } = openDomain();
    const id = randomUUID();
    const memberId = randomUUID();
    const owner = { memberId, name: 'Ann' };
    await execute(store, workspace, id, { type: 'Create', name: 'One', timezone: 'UTC', owner }, commandContext());
    const change = { type: 'ChangeProfile', name: 'Two', timezone: 'UTC' } as const;
    await execute(store, workspace, id, change, commandContext());

    const upgraded = new DomainStore(events, new EventCodec(keys, second), 12);
    deepEqual((await upgraded.load(later, id)).state, ['Two']);
    const { appended } = await execute(upgraded, later, id, { name: 'Three' }, commandContext());
    equal(appended[0]?.metadata.schemaVersion, 2);
    const { state, events: read } = await upgraded.load(later, id);
    deepEqual(state, ['Two', 'Three']);
    // The metadata tells the version that is on disk.
    deepEqual(
      read.map(({ metadata: { schemaVersion } }) => schemaVersion),
      [1, 1, 1, 2],
    );
    // The build before it stops there: it never guesses.
    await refusedQuietly(store.load(workspace, id), /version 2, we know up to 1/);
  });

  t('applies the upcast of every version between', async () => {
    const third: EventCatalogue = {
      workspace: {
        WorkspaceProfileChanged: {
          version: 3,
          schema: Type.Object({ names: Type.Array(Type.String()) }),
          upcasts: [({ name }) => ({ names: name }), ({ names }) => ({ names: [names] })],
        },
      },
    };
    const codec = new EventCodec(new MemoryDataKeys(), third);
    const read = (schemaVersion: number, data: unknown) =>
      codec.decode(
        storedAs(
          'WorkspaceProfileChanged',
          { data: json(data), metadata: json({ ...metadata, schemaVersion }) },
          { stream: 'workspace-1' },
        ),
      );
    deepEqual((await read(1, { name: 'a' })).data, { names: ['a'] });
    deepEqual((await read(2, { names: 'a' })).data, { names: ['a'] });
    deepEqual((await read(3, { names: ['a'] })).data, { names: ['a'] });
  });

  t('data that an older version can say are written in that version', async () => {
    const parcelEvents = {
      ParcelReturned: Type.Object({ reason: Type.Enum(['refused', 'unknown', 'damaged']) }),
      ParcelSent: Type.Object({ to: Type.String(), via: Type.Union([Type.String(), Type.Null()]) }),
      ParcelWeighed: Type.Object({ grams: Type.Integer() }),
    };
    const catalogue: EventCatalogue = {
      parcel: versioned(parcelEvents, {
        ParcelReturned: [
          grown(({ reason }) => reason === 'unknown' || reason === 'damaged'),
          grown(({ reason }) => reason === 'damaged'),
        ],
        ParcelSent: [withMember('via')],
        ParcelWeighed: [({ kilos }) => ({ grams: Number(kilos) * 1_000 })],
      }),
    };
    const codec = new EventCodec(new MemoryDataKeys(), catalogue);
    const written = async (type: string, data: unknown) => {
      const bytes = await codec.encode('parcel-1', { type, data }, metadata);
      const { schemaVersion } = JSON.parse(Buffer.from(bytes.metadata).toString());
      equal(codec.versionOf('parcel-1', type, data), schemaVersion);
      const read = await codec.decode(storedAs(type, bytes, { stream: 'parcel-1' }));
      deepEqual(read.data, data);
      return schemaVersion;
    };
    equal(await written('ParcelReturned', { reason: 'refused' }), 1);
    equal(await written('ParcelReturned', { reason: 'unknown' }), 2);
    equal(await written('ParcelReturned', { reason: 'damaged' }), 3);
    equal(await written('ParcelSent', { to: 'Ann', via: null }), 1);
    equal(await written('ParcelSent', { to: 'Ann', via: 'Bob' }), 2);
    equal(await written('ParcelWeighed', { grams: 1 }), 2, 'an upcast without `needed` is always needed');

    const old = { data: json({ to: 'Ann' }), metadata: json({ ...metadata, schemaVersion: 1 }) };
    const read = await codec.decode(storedAs('ParcelSent', old, { stream: 'parcel-1' }));
    deepEqual(read.data, { to: 'Ann', via: null });
  });

  t('the result of an upcast must fit its schema', async () => {
    const wrong: EventCatalogue = {
      workspace: {
        WorkspaceProfileChanged: {
          version: 2,
          schema: Type.Object({ name: Type.String() }),
          upcasts: [({ name }) => ({ name: { [String(name)]: name } })],
        },
      },
    };
    const codec = new EventCodec(new MemoryDataKeys(), wrong);
    const bytes = { data: json({ name: canary }), metadata: json({ ...metadata, schemaVersion: 1 }) };
    await refusedQuietly(
      codec.decode(storedAs('WorkspaceProfileChanged', bytes, { stream: 'workspace-1' })),
      /\/name /,
    );
  });
});
