import assert, { deepEqual, equal, ok } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { keyedIdOf } from '#domain/ids.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { archiveClient, changeClient } from '#services/workflows/clients/change.ts';
import { createNamedClient } from '#services/workflows/clients/create.ts';
import { claimName, holderOf, loadName, release } from '#services/workflows/clients/names.ts';
import { claimantOf } from '#test/support/claiming.ts';
import { MemoryEventLog, MemoryEventStore } from '#test/support/event-store/memory.ts';
import { Died, mortal } from '#test/support/mortal-store.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const fieldsOf = (name: string) => ({ ...clientFields, name });

const world = () => {
  const log = new MemoryEventLog();
  const codec = new EventCodec(new TestKeys());
  const workspaceId = randomUUID();
  const time = { now: Date.parse('2026-01-31T08:00:00.000Z') };
  const bare = new DomainStore(new MemoryEventStore(log), codec, 12);
  const waited: number[] = [];
  const claimant = ({ store = bare, ...call }: { store?: DomainStore; key?: string; fingerprint?: string } = {}) =>
    claimantOf({ store, workspaceId, time, waited: (ms) => void waited.push(ms), ...call });
  /** Of a process that dies before its append of that number. */
  const dying = (lives: number) =>
    new DomainStore(
      mortal(new MemoryEventStore(log), lives, async () => undefined),
      codec,
      12,
    );
  /** Of a process before whose first append to a client `rival` runs. */
  const racing = (rival: () => Promise<unknown>) => {
    const events = new MemoryEventStore(log);
    const append = events.append.bind(events);
    let isFirst = true;
    events.append = async (stream, ...rest) => {
      if (isFirst && stream.startsWith('client-')) {
        isFirst = false;
        await rival();
      }
      return append(stream, ...rest);
    };
    return new DomainStore(events, codec, 12);
  };
  const make = async (name: string, by = claimant()) => {
    const key = String(by.context.keyHmac);
    const { events, replayed } = await createNamedClient(by, key, fieldsOf(name));
    return { id: events[0]?.stream.slice('client-'.length) ?? '', events, replayed, by };
  };
  const statusOf = async (name: string) => (await loadName(claimant(), name)).state.status;
  const head = () => log.all.at(-1)?.position;
  return { log, workspaceId, time, waited, claimant, dying, racing, make, statusOf, head };
};
const anyone = () => undefined;
const typesOf = (events: readonly { readonly type: string }[]) => events.map(({ type }) => type);
const taken = { code: 'already_exists', message: 'Another live client of the workspace has this name.' };

suite('a client and its name', (t) => {
  t('is created once for a key; another key is answered the client that has the name', async () => {
    const { claimant, make } = world();
    const first = await make('A', claimant({ key: 'k' }));
    deepEqual([typesOf(first.events), first.replayed], [['ClientCreated'], false]);
    await changeClient(claimant(), first.id, { timezone: 'UTC' }, anyone);
    const again = await make('A', claimant({ key: 'k' }));
    deepEqual([again.id, typesOf(again.events), again.replayed], [first.id, ['ClientCreated'], true]);
    equal(again.by.positions.size, 1);
    await assert.rejects(make('B', claimant({ key: 'k', fingerprint: 'other' })), {
      code: 'idempotency_key_reused',
      message: 'This Idempotency-Key was used with another request.',
    });
    const other = await make('a', claimant({ key: 'l' }));
    deepEqual([other.id, typesOf(other.events), other.replayed], [first.id, ['ClientCreated', 'ClientUpdated'], false]);
  });

  t('a name that was claimed for a client nobody made is given to the next caller at once', async () => {
    const { workspaceId, claimant, make, dying, waited, statusOf } = world();
    await assert.rejects(make('A', claimant({ store: dying(1), key: 'k' })), Died);
    equal(await statusOf('A'), 'claimed');
    const second = await make('A');
    deepEqual([second.replayed, waited], [false, []]);
    equal(second.id, keyedIdOf(workspaceId, 'createClient', 'k'));
    // The first caller comes back, and finds the client that was made in its place.
    const first = await make('A', claimant({ key: 'k' }));
    deepEqual([first.id, first.replayed], [second.id, false]);
  });

  t('of two calls with one key one makes the client, and no claim of the other is left', async () => {
    const { claimant, make, racing, statusOf } = world();
    const other = () => make('B', claimant({ key: 'k', fingerprint: 'other' }));
    await assert.rejects(make('A', claimant({ store: racing(other), key: 'k' })), { code: 'idempotency_key_reused' });
    deepEqual([await statusOf('A'), await statusOf('B')], ['free', 'claimed']);
    const same = () => make('C', claimant({ key: 'l' }));
    equal((await make('C', claimant({ store: racing(same), key: 'l' }))).replayed, true);
    equal(await statusOf('C'), 'claimed');
  });

  t('a claim that its client had before is left to lapse: a write of its own may be pending', async () => {
    const { time, claimant, make, dying, racing, statusOf } = world();
    await assert.rejects(make('A', claimant({ store: dying(1), key: 'k' })), Died);
    time.now += 1;
    const other = () => make('B', claimant({ key: 'k', fingerprint: 'other' }));
    await assert.rejects(make('A', claimant({ store: racing(other), key: 'k' })), { code: 'idempotency_key_reused' });
    equal(await statusOf('A'), 'claimed');
  });

  t('a fault of the store at the append of the client is no reason to start over', async () => {
    const { claimant, make, racing } = world();
    const fault = async () => {
      throw new Error('once');
    };
    await assert.rejects(make('A', claimant({ store: racing(fault) })), /once/);
  });

  t('a rename takes the new name and releases the old one', async () => {
    const { claimant, make, statusOf } = world();
    const { id } = await make('A');
    const by = claimant();
    const events = await changeClient(by, id, { name: 'B', timezone: 'UTC' }, anyone);
    deepEqual(typesOf(events), ['ClientCreated', 'ClientUpdated']);
    deepEqual([await statusOf('A'), await statusOf('B')], ['free', 'claimed']);
    await make('A');
    await assert.rejects(changeClient(by, id, { name: 'a' }, anyone), taken);
    equal(await statusOf('B'), 'claimed');
    // Another way to write its own name is no other name.
    deepEqual(typesOf(await changeClient(claimant(), id, { name: 'b' }, anyone)).length, 3);
    equal(await statusOf('B'), 'claimed');
  });

  t('a change of nothing appends nothing, and tells where the client stands', async () => {
    const { log, claimant, make, head } = world();
    const { id } = await make('A');
    const before = log.all.length;
    const by = claimant();
    deepEqual(typesOf(await changeClient(by, id, { name: 'A' }, anyone)), ['ClientCreated']);
    deepEqual([log.all.length, [...by.positions.values()]], [before, [head()]]);
  });

  t('a refused change leaves no claim', async () => {
    const { claimant, make, statusOf } = world();
    const { id } = await make('A');
    const refusing = () => {
      throw new Error('no');
    };
    await assert.rejects(changeClient(claimant(), id, { name: 'B' }, refusing), /no/);
    await assert.rejects(archiveClient(claimant(), id, refusing), /no/);
    deepEqual([await statusOf('A'), await statusOf('B')], ['claimed', 'free']);
  });

  t('an archived client has no name any more, and stays as it is', async () => {
    const { log, claimant, make, statusOf, head } = world();
    const { id } = await make('A');
    deepEqual(typesOf(await archiveClient(claimant(), id, anyone)), ['ClientCreated', 'ClientArchived']);
    equal(await statusOf('A'), 'free');
    const before = log.all.length;
    const by = claimant();
    deepEqual(typesOf(await archiveClient(by, id, anyone)), ['ClientCreated', 'ClientArchived']);
    deepEqual([log.all.length, by.positions.size], [before, 1]);
    equal(typeof head(), 'bigint');
    await assert.rejects(changeClient(claimant(), id, { name: 'B' }, anyone), { code: 'client_archived' });
  });

  t('a rename that died before its append is waited for, and broken once it is old', async () => {
    const { time, claimant, make, dying, waited } = world();
    const { id } = await make('A');
    await assert.rejects(changeClient(claimant({ store: dying(1) }), id, { name: 'B' }, anyone), Died);
    const other = await make('C');
    const began = time.now;
    await changeClient(claimant(), other.id, { name: 'B' }, anyone);
    ok(time.now - began > 10_000 && time.now - began <= 10_100, `waited ${time.now - began} ms`);
    deepEqual(new Set(waited), new Set([100]));
    await assert.rejects(changeClient(claimant({ store: dying(1) }), id, { name: 'D' }, anyone), Died);
    const again = time.now;
    equal((await make('D')).replayed, false);
    ok(time.now - again > 10_000, `waited ${time.now - again} ms`);
    // Its owner keeps the name that it has.
    await assert.rejects(
      make('A').then(({ id: found }) => equal(found, other.id)),
      assert.AssertionError,
    );
    await assert.rejects(changeClient(claimant(), id, { name: 'B' }, anyone), taken);
  });

  t(
    'a holder is doubtful while it is renamed and uncreated before it is made, and old from ten seconds on',
    async () => {
      const { time, claimant, make, dying } = world();
      const { id } = await make('A');
      await assert.rejects(changeClient(claimant({ store: dying(1) }), id, { name: 'B' }, anyone), Died);
      await assert.rejects(make('C', claimant({ store: dying(1) })), Died);
      const kindsOf = async () => {
        const seen: unknown[] = [];
        for (const name of ['A', 'B', 'C', 'D']) {
          const holder = await holderOf(claimant(), name, await loadName(claimant(), name), randomUUID());
          seen.push('old' in holder ? [holder.kind, holder.old] : holder.kind);
        }
        return seen;
      };
      time.now += 10_000;
      deepEqual(await kindsOf(), ['holds', ['doubtful', false], ['uncreated', false], 'free']);
      time.now += 1;
      deepEqual(await kindsOf(), ['holds', ['doubtful', true], ['uncreated', true], 'free']);
      equal((await holderOf(claimant(), 'B', await loadName(claimant(), 'B'), id)).kind, 'free');
    },
  );

  t('a claim that was made again is not released as it was before, and another fault is told', async () => {
    const { time, claimant, dying, make, statusOf } = world();
    const { id } = await make('A');
    const former = await loadName(claimant(), 'A');
    time.now += 1;
    await claimName(claimant(), 'A', id, { kind: 'free' }, former);
    await release(claimant(), 'A', id, former);
    equal(await statusOf('A'), 'claimed');
    const newer = await loadName(claimant(), 'A');
    await assert.rejects(release(claimant({ store: dying(0) }), 'A', id, newer), Died);
    await release(claimant(), 'A', id, newer);
    equal(await statusOf('A'), 'free');
  });
});
