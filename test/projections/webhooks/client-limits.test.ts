import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { isWithin } from '#projections/webhooks/interest.ts';
import { clientOf } from '#projections/webhooks/types.ts';
import { assetEvents } from '#test/support/assets.ts';
import { HandLog } from '#test/support/hand-log.ts';
import type { Given } from '#test/support/projecting.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';
import { WebhookWorld } from '#test/support/webhook-world.ts';

/** An endpoint that is limited to clients gets the events of these clients, on every way that leads to a delivery. */

suite('a webhook endpoint limited to clients', { timeoutMs: 90_000 }, (t) => {
  let world: WebhookWorld;
  t.before(async () => {
    world = await WebhookWorld.open();
  });
  t.after(() => world.close());

  const created = (clientId: string): Given => ({
    stream: `client-${clientId}`,
    type: 'ClientCreated',
    data: clientFields,
  });
  const renamed = (clientId: string, name: string): Given => ({
    stream: `client-${clientId}`,
    type: 'ClientUpdated',
    data: { name },
  });
  const limited = async (workspaceId: string, clientIds: readonly string[] | null): Promise<string> => {
    const id = randomUUID();
    const fields = { url: `https://receiver.example/${id}`, events: ['*'], description: null, keyVersion: 'v1' };
    await world.act(
      id,
      { type: 'Register', ...fields, clientIds: clientIds === null ? null : [...clientIds] },
      { workspaceId },
    );
    return id;
  };
  /** Type and client of each delivery that is not canceled, in the order of the store. */
  const sent = async (endpointId: string) =>
    (await world.deliveries(endpointId)).flatMap(({ type, status, envelope: { data } }) =>
      status === 'canceled' ? [] : [[type, data.clientId ?? data.assetId]],
    );
  const some = () => [randomUUID(), randomUUID(), randomUUID()] as const;

  t('gets events of its clients, never those of others or of none', async () => {
    const [workspaceId, mine, theirs] = some();
    const running = world.dispatch();
    const [one, both, all] = [
      await limited(workspaceId, [mine]),
      await limited(workspaceId, [mine, theirs]),
      await limited(workspaceId, null),
    ];
    await world.settled();
    const member = {
      stream: `workspace-${workspaceId}`,
      type: 'MemberAdded',
      data: { memberId: mine, name: 'A', role: 'viewer' },
    };
    await world.append([created(mine), created(theirs), member], workspaceId);
    const [asset, other, nobodys] = some();
    for (const [id, clientId] of [
      [asset, mine],
      [other, theirs],
      [nobodys, null],
    ] as const) {
      const events = assetEvents(workspaceId, id, 'image', clientId === null ? {} : { clientId });
      await world.store.append(`media-${id}`, -1, events, world.context(workspaceId), `media-${id}`);
    }
    await world.settled();
    const named = (await sent(one)).map(([, id]) => id);
    assert.ok(named.length > 2 && named.every((id) => id === mine || id === asset), `${named}`);
    const ready = async (endpointId: string) => (await sent(endpointId)).filter(([type]) => type === 'media.ready');
    assert.deepEqual(await ready(one), [['media.ready', asset]]);
    assert.deepEqual(await ready(both), [
      ['media.ready', asset],
      ['media.ready', other],
    ]);
    assert.equal((await ready(all)).length, 3);
    const types = async (endpointId: string) => (await sent(endpointId)).map(([type]) => type);
    assert.ok((await types(all)).includes('team.member_added'));
    for (const endpointId of [one, both]) assert.ok(!(await types(endpointId)).includes('team.member_added'));
    await running.stop();
  });

  t('a change of its clients applies from the change on, and events it missed meanwhile are not sent', async () => {
    const [workspaceId, mine, theirs] = some();
    const running = world.dispatch();
    const endpointId = await limited(workspaceId, [mine]);
    await world.settled();
    await world.append([created(mine), created(theirs)], workspaceId);
    await world.settled();
    await world.act(endpointId, { type: 'Update', changes: { clientIds: [theirs] } }, { workspaceId });
    await world.append([renamed(mine, 'a'), renamed(theirs, 'a')], workspaceId);
    await world.settled();
    await world.act(endpointId, { type: 'Update', changes: { clientIds: null } }, { workspaceId });
    await world.append([renamed(mine, 'b'), renamed(theirs, 'b')], workspaceId);
    await world.settled();
    assert.deepEqual(await sent(endpointId), [
      ['client.created', mine],
      ['client.updated', theirs],
      ['client.updated', mine],
      ['client.updated', theirs],
    ]);
    await running.stop();
  });

  t('what a lane mints by the former limit beyond the change is canceled; a later wider limit sends it', async () => {
    const [workspaceId, mine, theirs] = some();
    const endpointId = await limited(workspaceId, [mine, theirs]);
    const begun = world.dispatch();
    await world.settled();
    await begun.stop();
    await world.act(endpointId, { type: 'Update', changes: { clientIds: [mine] } }, { workspaceId });
    await world.append([created(mine), created(theirs)], workspaceId);
    const late = async (): Promise<void> => {
      const hand = new HandLog();
      const running = world.dispatch({ log: hand });
      const records = await world.records();
      // The lane of clients is ahead: its events pass before the change of the endpoint is known.
      for (const topic of ['workspace', 'webhooks']) {
        const lane = `${topic}-${randomUUID()}`;
        const own = records.filter((one) => one.topic === topic);
        await hand.handlers.assigned([lane]);
        await hand.handlers.batch({ lane, records: own, nextOffset: 1n, position: own.at(-1)?.position ?? null });
      }
      // The lanes ask for catch-ups, which are read beside them.
      await world.jobsDone();
      await running.stop();
    };
    await late();
    assert.deepEqual(await sent(endpointId), [['client.created', mine]]);
    await world.act(endpointId, { type: 'Update', changes: { clientIds: [theirs] } }, { workspaceId });
    await world.append([renamed(mine, 'a'), renamed(theirs, 'a')], workspaceId);
    await world.act(endpointId, { type: 'Update', changes: { clientIds: [mine, theirs] } }, { workspaceId });
    await world.append([renamed(mine, 'b'), renamed(theirs, 'b')], workspaceId);
    await late();
    assert.deepEqual((await sent(endpointId)).filter(([type]) => type === 'client.updated').slice(-2), [
      ['client.updated', mine],
      ['client.updated', theirs],
    ]);
  });

  t('a catch-up, a replay and a test keep to the limit', async () => {
    const [workspaceId, mine, theirs] = some();
    const from = new Date().toISOString();
    const running = world.dispatch();
    await world.append([created(mine), created(theirs)], workspaceId);
    const endpointId = await limited(workspaceId, [mine]);
    await world.settled();
    await world.act(endpointId, { type: 'Disable', reason: 'failing', seenRevision: 0 }, { workspaceId });
    await world.append([renamed(mine, 'a'), renamed(theirs, 'a')], workspaceId);
    await world.settled();
    await world.act(endpointId, { type: 'Update', changes: { active: true } }, { workspaceId });
    await world.settled();
    assert.deepEqual(await sent(endpointId), [['client.updated', mine]]);
    const to = new Date(Date.now() + 60_000).toISOString();
    const replay = {
      type: 'RequestReplay',
      commandId: randomUUID(),
      replayId: randomUUID(),
      from,
      to,
      types: ['*'],
    } as const;
    await world.act(endpointId, replay, { workspaceId });
    await world.settled();
    const replayed = (await world.deliveries(endpointId)).filter(({ replayId }) => replayId === replay.replayId);
    assert.deepEqual(
      replayed.map(({ type, envelope: { data } }) => [type, data.clientId]),
      [
        ['client.created', mine],
        ['client.updated', mine],
      ],
    );
    for (const [eventType, clientId] of [
      ['post.created', mine],
      ['team.member_added', null],
    ] as const) {
      const before = new Set((await world.deliveries(endpointId)).map(({ id }) => id));
      await world.act(endpointId, { type: 'RequestTest', commandId: randomUUID(), eventType }, { workspaceId });
      await world.settled();
      const [only] = (await world.deliveries(endpointId)).filter(({ id }) => !before.has(id));
      assert.deepEqual([only?.type, only?.envelope.data.clientId], [eventType, clientId]);
    }
    await running.stop();
  });

  t('an endpoint without a limit gets the events of every client, a limited one those of its clients', () => {
    assert.equal(isWithin(null, null), true);
    assert.equal(isWithin(['a'], null), false);
    assert.equal(isWithin(['a'], 'a'), true);
    assert.equal(isWithin(['a'], 'b'), false);
    const rendered = { id: '', type: 'media.ready', created: '' };
    assert.equal(clientOf({ ...rendered, data: { assetId: 'x' } }, { clientId: 'a' }), 'a');
    assert.equal(clientOf({ ...rendered, data: { clientId: null } }, { clientId: 'a' }), null);
    assert.equal(clientOf({ ...rendered, data: {} }, null), null);
  });
});
