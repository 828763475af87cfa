import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { client } from '#domain/client.ts';
import { normaliseName } from '#domain/ids.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { archiveClient, changeClient } from '#services/workflows/clients/change.ts';
import { createNamedClient } from '#services/workflows/clients/create.ts';
import type { Claimant } from '#services/workflows/clients/names.ts';
import { claimantOf } from '#test/support/claiming.ts';
import { MemoryEventLog, MemoryEventStore } from '#test/support/event-store/memory.ts';
import { Died, mortal } from '#test/support/mortal-store.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { seeded } from '#test/support/seed.ts';
import { suite } from '#test/support/suite.ts';

const fieldsOf = (name: string) => ({
  name,
  type: 'brand' as const,
  defaultPostMode: 'schedule' as const,
  timezone: null,
  approvalRequired: false,
  rules: {},
  brandVoice: {},
});

suite('the claim on a name', (t) => {
  t('with any races and crashes no two live clients have one name, and a free name can be taken', async () => {
    const random = seeded('claims');
    for (let round = 0; round < 800; round += 1) {
      const log = new MemoryEventLog();
      const workspaceId = randomUUID();
      const names = ['A', 'b', 'C'];
      const codec = new EventCodec(new TestKeys());
      const time = { now: Date.parse('2026-01-31T08:00:00.000Z') };
      const ids = new Set<string>();
      const callerOf = (key: string, fingerprint: string, lives: number): Claimant => {
        const pause = async () => {
          for (let at = random.int(0, 12); at > 0; at -= 1) await Promise.resolve();
          // Time passes for everybody; sometimes long enough for a claim to lapse while its caller is slow.
          time.now += random.next() < 0.12 ? 11_000 : 1;
        };
        const store = new DomainStore(mortal(new MemoryEventStore(log), lives, pause), codec, 12);
        const waited = () => new Promise<void>((done) => setImmediate(done));
        return claimantOf({ store, workspaceId, time, key, fingerprint, waited });
      };
      const act = async (): Promise<void> => {
        const name = random.pick(names);
        const key = random.pick(['k1', 'k2', 'k3', 'k4']);
        const lives = random.next() < 0.2 ? random.int(0, 3) : 100;
        const by = callerOf(key, name, lives);
        const known = [...ids];
        try {
          if (known.length === 0 || random.next() < 0.3) {
            const { events } = await createNamedClient(by, key, fieldsOf(name));
            const id = events[0]?.stream.slice('client-'.length);
            if (id !== undefined) ids.add(id);
          } else if (random.next() < 0.9) {
            await changeClient(by, random.pick(known), { name }, () => undefined);
          } else {
            await archiveClient(by, random.pick(known), () => undefined);
          }
        } catch (error) {
          const code = (error as { code?: string }).code ?? '';
          const expected = ['already_exists', 'client_archived', 'idempotency_key_reused', 'not_found'].includes(code);
          if (!(error instanceof Died) && !expected) throw error;
        }
      };
      for (let wave = 0; wave < 3; wave += 1) await Promise.all(Array.from({ length: 7 }, act));

      const bare = new DomainStore(new MemoryEventStore(log), codec, 12);
      const bearers = async () => {
        const streams = new Set(log.all.map(({ stream }) => stream).filter((stream) => stream.startsWith('client-')));
        const borne: string[] = [];
        for (const stream of streams) {
          const { state } = await bare.load(client, stream.slice('client-'.length));
          if (state.status === 'live') borne.push(normaliseName(state.fields.name));
        }
        return borne.sort();
      };
      const borne = await bearers();
      assert.deepEqual(borne, [...new Set(borne)], `round ${round}`);
      // Nothing is stuck for longer than a lapse.
      time.now += 20_000;
      for (const name of names)
        await createNamedClient(callerOf(randomUUID(), name, 100), randomUUID(), fieldsOf(name));
      assert.deepEqual(await bearers(), ['a', 'b', 'c'], `round ${round}, afterwards`);
    }
  });
});
