import { deepEqual, equal, match, notDeepEqual, ok, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { account } from '#domain/account.ts';
import { openPersonal, personalMembers, sealPersonal } from '#runtime/eventing/codec.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { accountEvents } from '#schemas/account.ts';
import { clientEvents } from '#schemas/client.ts';
import { commandContext, MemoryDataKeys, openDomain } from '#test/support/domain.ts';
import { suite } from '#test/support/suite.ts';

const connect = (clientId: string, over: { displayName?: string | null } = {}) =>
  ({
    type: 'Connect',
    clientId,
    platform: 'x',
    externalId: '42',
    network: 'sandbox',
    username: 'Zoë.\u{1f98a}',
    displayName: 'Zoë of Acme',
    avatarUrl: null,
    scopes: [],
    expiresAt: null,
    timezone: null,
    inviteId: null,
    ...over,
  }) as const;

const connected = async (over: { displayName?: string | null } = {}) => {
  const domain = openDomain();
  const clientId = randomUUID();
  const id = randomUUID();
  const { appended } = await execute(domain.store, account, id, connect(clientId, over), commandContext());
  const [stored] = await domain.events.read(`account-${id}`);
  if (stored === undefined) throw new Error('nothing was stored');
  return { ...domain, clientId, id, appended, stored, data: JSON.parse(Buffer.from(stored.data).toString()) };
};

suite('personal members', (t) => {
  t('are marked in the schema', () => {
    deepEqual(personalMembers(accountEvents.AccountConnected), ['username', 'displayName']);
    deepEqual(personalMembers(clientEvents.ClientCreated), []);
  });

  t('are encrypted in the stored bytes and decrypted on reading', async () => {
    const { store, id, stored, data, appended } = await connected();
    for (const bytes of [stored.data, stored.metadata]) {
      const text = Buffer.from(bytes).toString();
      ok(!text.includes('Zoë') && !text.includes('of Acme'), text);
      // Nor in a form that anybody could undo.
      for (const sealed of text.matchAll(/[A-Za-z0-9+/=]{16,}/g))
        ok(!Buffer.from(sealed[0], 'base64').includes('of Acme'));
    }
    match(data.username.$sealed, /^[A-Za-z0-9+/]+=*$/);
    equal(data.externalId, '42');
    const { events } = await store.load(account, id);
    equal(events[0]?.data.username, 'Zoë.\u{1f98a}');
    equal(events[0]?.data.displayName, 'Zoë of Acme');
    deepEqual(events[0]?.data, appended[0]?.data);
  });

  t('are null where they were null', async () => {
    const { data, store, id } = await connected({ displayName: null });
    equal(data.displayName, null);
    equal((await store.load(account, id)).events[0]?.data.displayName, null);
  });

  t('read as null for ever once the key is destroyed, and are written as null', async () => {
    const { keys, clientId, store, id, events } = await connected();
    keys.destroy(clientId);
    const { state, events: read } = await store.load(account, id);
    ok(state.status === 'connected' && state.username === null);
    equal(read[0]?.data.displayName, null);
    await execute(store, account, id, connect(clientId), commandContext());
    const [, second] = await events.read(`account-${id}`);
    const data = JSON.parse(Buffer.from(second?.data ?? []).toString());
    equal(data.username, null);
    equal(data.displayName, null);
  });

  t('are an error, never null, when the key is missing', async () => {
    const { keys, clientId, store, id } = await connected();
    keys.lose(clientId);
    await rejects(store.load(account, id), /no data key/);
  });

  t('do not decrypt in another stream, event or member, or once altered', async () => {
    const { codec, stored, data } = await connected();
    const decode = (changed: unknown, over: { stream?: string; type?: string } = {}) =>
      codec.decode({ ...stored, data: Buffer.from(JSON.stringify(changed)), ...over });
    await decode(data);
    const unauthentic = /authenticate/;
    await rejects(decode({ ...data, displayName: data.username }), unauthentic);
    await rejects(decode(data, { stream: `account-${randomUUID()}` }), unauthentic);
    await rejects(decode(data, { type: 'AccountReauthorized' }), unauthentic);
    const bytes = Buffer.from(data.username.$sealed, 'base64');
    for (const at of [0, 12, bytes.length - 1]) {
      const altered = Buffer.from(bytes);
      altered[at] = (altered[at] ?? 0) ^ 1;
      await rejects(decode({ ...data, username: { $sealed: altered.toString('base64') } }), unauthentic);
    }
    await rejects(decode({ ...data, username: { $sealed: '' } }));
    await rejects(decode({ ...data, clientId: randomUUID() }), /no data key/);
  });

  t('need the id of their client', async () => {
    const keys = new MemoryDataKeys();
    await rejects(sealPersonal(keys, 's', 'T', ['name'], { name: 'Ann' }), /clientId/);
    await rejects(openPersonal(keys, 's', 'T', ['name'], { name: { $sealed: 'AA==' } }), /clientId/);
    deepEqual(await sealPersonal(keys, 's', 'T', ['name'], { name: null }), { name: null });
  });

  t('are encrypted once an append: a repeat after a lost answer has the same bytes', async () => {
    const { events, store } = openDomain();
    const clientId = randomUUID();
    const id = randomUUID();
    events.failNext('reply_lost');
    await execute(store, account, id, connect(clientId), commandContext());
    const [first, repeat, ...others] = events.asked;
    equal(others.length, 0);
    deepEqual(repeat, first);
    equal((await events.read(`account-${id}`)).length, 1);
    await execute(store, account, randomUUID(), connect(clientId), commandContext());
    notDeepEqual(events.asked.at(-1)?.events[0]?.data, first?.events[0]?.data);
  });
});
