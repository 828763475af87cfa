import { deepEqual, equal, ok, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { post } from '#domain/post/post.ts';
import { webhook } from '#domain/webhook.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { type DomainStore, LongStreams, DomainStore as Store } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { maxOptionalBytes, maxOptionalEvents } from '#runtime/eventing/stream-room.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { commandContext, MemoryDataKeys, openDomain } from '#test/support/domain.ts';
import { MemoryEventStore } from '#test/support/event-store/memory.ts';
import { clientFields, postBody } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const full = { code: 'stream_full' };
const registered = {
  type: 'WebhookRegistered',
  data: { url: 'https://hooks.example/in', events: ['*'], description: null, clientIds: null, keyVersion: 'v1' },
};
const tested = { type: 'WebhookTestRequested', data: { eventType: 'webhook.test' } };
const test = (commandId: string) => ({ type: 'RequestTest', commandId, eventType: 'webhook.test' }) as const;

/** An endpoint with so many events. */
const endpoint = async (store: DomainStore, events: number): Promise<string> => {
  const id = randomUUID();
  const stream = `webhook-${id}`;
  await store.append(stream, -1, [registered], commandContext(), stream);
  for (let at = 1; at < events; ) {
    const some = Array.from({ length: Math.min(100, events - at) }, () => tested);
    await store.append(stream, at - 1, some, commandContext(), stream);
    at += some.length;
  }
  return id;
};

/** About 400 KB: a text of its own for each of nine networks. */
const bigBody = (n: number) => {
  const contentOverride = `${n} `.padEnd(45_000, 'lorem ');
  const platforms = ['x', 'threads', 'bluesky', 'linkedin', 'telegram', 'facebook', 'instagram', 'tiktok', 'youtube'];
  const variants = platforms.map((platform) => ({ platform, contentOverride, mediaIdsOverride: null, overrides: {} }));
  return postBody({ variants: variants as never });
};

/** Bytes and events that the store was asked for. */
class CountingStore extends MemoryEventStore {
  read_ = { events: 0, bytes: 0 };
  override async read(...asked: Parameters<MemoryEventStore['read']>) {
    const events = await super.read(...asked);
    this.read_.events += events.length;
    for (const { data } of events) this.read_.bytes += data.length;
    return events;
  }
}
const counting = () => {
  const events = new CountingStore();
  const store = new Store(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
  const cost = async (work: () => Promise<unknown>) => {
    events.read_ = { events: 0, bytes: 0 };
    await work();
    return events.read_;
  };
  return { events, store, cost };
};

suite('long streams', (t) => {
  t('an optional change is refused exactly at the limit of events, however many callers', async () => {
    const { store } = openDomain();
    const id = await endpoint(store, maxOptionalEvents - 1);
    const asked = Array.from({ length: 20 }, () =>
      execute(store, webhook, id, test(randomUUID()), commandContext(), { optional: true }),
    );
    const answers = await Promise.allSettled(asked);
    equal(answers.filter(({ status }) => status === 'fulfilled').length, 1);
    equal((await store.load(webhook, id)).revision, maxOptionalEvents - 1);
    for (const answer of answers) if (answer.status === 'rejected') equal(answer.reason.code, 'stream_full');
  });

  t('an optional change is refused after the event that exceeds the limit of bytes', async () => {
    const { store } = openDomain();
    const id = randomUUID();
    const createdBy = { type: 'member' as const, id: randomUUID() };
    const draft = { type: 'Draft', clientId: randomUUID(), createdBy, body: bigBody(0) } as const;
    await execute(store, post, id, draft, commandContext());
    let accepted = 0;
    const replace = async (n: number) => {
      const command = { type: 'ReplaceDraft', body: bigBody(n) } as const;
      await execute(store, post, id, command, commandContext(), { optional: true });
      accepted += 1;
    };
    await rejects(async () => {
      for (let n = 1; n < 40; n += 1) await replace(n);
    }, full);
    const bytes = (await store.load(post, id)).events.map((one) => one.bytes);
    const all = bytes.reduce((sum, one) => sum + one, 0);
    ok(all >= maxOptionalBytes && all - (bytes.at(-1) ?? 0) < maxOptionalBytes, `${all} bytes`);
    equal(bytes.length, accepted + 1);
    await rejects(replace(99), full);
  });

  t('at the limit a command without events and one that ends the stream succeed', async () => {
    const { store } = openDomain();
    const id = await endpoint(store, maxOptionalEvents);
    const commandId = randomUUID();
    const same = { type: 'Update', changes: { url: registered.data.url } } as const;
    const { appended } = await execute(store, webhook, id, same, commandContext(), { optional: true });
    deepEqual(appended, []);
    await rejects(execute(store, webhook, id, test(commandId), commandContext(), { optional: true }), full);
    await execute(store, webhook, id, { type: 'Delete' }, commandContext());
    equal((await store.load(webhook, id)).state.status, 'deleted');
  });

  t('the next command reads the last cached event and the events after it', async () => {
    const { store, cost } = counting();
    const id = await endpoint(store, 500);
    const first = await cost(() => store.load(webhook, id));
    equal(first.events, 500);
    const next = await cost(async () => {
      await execute(store, webhook, id, test(randomUUID()), commandContext());
      await execute(store, webhook, id, test(randomUUID()), commandContext());
    });
    ok(next.events <= 4, `${next.events} events read`);
    equal((await cost(() => store.load(webhook, id))).events, 2);
    // Short ones are read whole, together with others.
    const short = await endpoint(store, 20);
    await store.load(webhook, short);
    equal((await cost(() => store.load(webhook, short))).events, 20);
  });

  t('the cached state equals the store’s at every revision', async () => {
    const { events, store } = counting();
    const id = await endpoint(store, 300);
    await store.load(webhook, id);
    await execute(store, webhook, id, { type: 'Update', changes: { description: 'b' } }, commandContext());
    await execute(store, webhook, id, { type: 'Update', changes: { active: false } }, commandContext());
    const fresh = new Store(events, new EventCodec(new MemoryDataKeys()), defaultPartitions);
    for (const upTo of [undefined, 0, 299, 300, 301, 999]) {
      const [kept, read] = [await store.load(webhook, id, upTo), await fresh.load(webhook, id, upTo)];
      equal(kept.events.length, upTo === undefined || upTo > 301 ? 302 : upTo + 1);
      deepEqual(kept, read);
    }
    deepEqual(
      await store.readStream(`webhook-${id}`, undefined, 298),
      await fresh.readStream(`webhook-${id}`, undefined, 298),
    );
    const all = await Promise.all(Array.from({ length: 10 }, () => store.load(webhook, id)));
    for (const one of all) equal(one.state, all[0]?.state);
  });

  t('after a restore of the store the cached state is dropped', async () => {
    const [now, before] = [new MemoryEventStore(), new MemoryEventStore()];
    const served = { by: now };
    const switching = new Proxy(now, {
      get: (_target, name) => {
        const value = Reflect.get(served.by, name);
        return typeof value === 'function' ? value.bind(served.by) : value;
      },
    });
    const codec = new EventCodec(new MemoryDataKeys());
    const store = new Store(switching, codec, defaultPartitions);
    const id = await endpoint(store, 300);
    await store.load(webhook, id);
    for (const lasting of [200, 300, 400]) {
      served.by = lasting === 200 ? before : new MemoryEventStore();
      const stream = `webhook-${id}`;
      const other = new Store(served.by, codec, defaultPartitions);
      await other.append(stream, -1, [registered], commandContext(), stream);
      for (let at = 1; at < lasting; at += 1) await other.append(stream, at - 1, [tested], commandContext(), stream);
      const { revision } = await execute(store, webhook, id, test(randomUUID()), commandContext());
      equal(revision, lasting);
    }
  });

  t('streams with personal members are never cached: the next read sees an erasure', async () => {
    const { store, keys } = openDomain();
    const id = randomUUID();
    const clientId = randomUUID();
    const connect = (displayName: string) =>
      ({
        type: 'Connect',
        clientId,
        platform: 'x',
        externalId: 'e',
        network: 'sandbox',
        username: 'ann',
        displayName,
        avatarUrl: null,
        scopes: [],
        expiresAt: null,
        timezone: null,
        inviteId: null,
      }) as const;
    for (let n = 0; n < 120; n += 1) await execute(store, account, id, connect(`Ann ${n}`), commandContext());
    const before = await store.readStream(`account-${id}`);
    ok(before.length >= 100 && before.at(-1)?.data.displayName === 'Ann 119');
    keys.destroy(clientId);
    for (const { data } of await store.readStream(`account-${id}`)) equal(data.displayName ?? null, null);
  });

  t('the cache is bounded, and a workspace displaces its own streams first', async () => {
    const long = new LongStreams();
    const { store } = openDomain();
    const id = randomUUID();
    const stream = `client-${id}`;
    const created = { type: 'ClientCreated', data: clientFields };
    const [template] = await store.append(stream, -1, [created], commandContext(), stream);
    ok(template !== undefined);
    const made = (workspaceId: string, bytes: number) => [
      { ...template, metadata: { ...template.metadata, workspaceId }, bytes },
    ];
    const mib = 1_024 * 1_024;
    long.keep('victim', made('b', 4 * mib));
    for (let n = 0; n < 20; n += 1) long.keep(`hostile-${n}`, made('a', 8 * mib));
    const kept = Array.from({ length: 20 }, (_, n) => long.known(`hostile-${n}`)).filter((one) => one !== null);
    equal(kept.length, 3);
    ok(long.known('victim') !== null);
    long.keep('victim', [...made('b', 4 * mib), ...made('b', 20 * mib)]);
    equal(long.known('victim'), null);
  });
});
