import { deepEqual, equal, notEqual } from 'node:assert/strict';
import { client } from '#domain/client.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedBy, causedByNewest, derivedFrom, serviceContext } from '#runtime/eventing/service-context.ts';
import { commandContext, openDomain } from '#test/support/domain.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const now = Date.parse('2026-03-01T10:00:00.000Z');

suite('the context of a command that a worker issues', (t) => {
  t('names the worker and the event that it follows from', async () => {
    const { store } = openDomain();
    const id = uuidv7();
    const given = commandContext();
    const { appended } = await execute(store, client, id, { type: 'Create', fields: clientFields }, given);
    const [event] = appended;
    if (event === undefined) throw new Error('nothing was appended');
    const { commandId, ...context } = serviceContext('media', causedBy(event), now);
    deepEqual(context, {
      workspaceId: given.workspaceId,
      actor: { type: 'service', id: 'media' },
      correlationId: given.correlationId,
      causationId: event.id,
      now: '2026-03-01T10:00:00.000Z',
    });
    notEqual(serviceContext('media', causedBy(event), now).commandId, commandId);
    equal(derivedFrom(event).causeEventId, event.id);
    deepEqual(causedByNewest(appended, given.workspaceId, id), causedBy(event));
  });

  t('names the id itself where no event is the cause', () => {
    deepEqual(causedByNewest([], 'w', 'asset'), { workspaceId: 'w', correlationId: 'asset', causationId: 'asset' });
  });
});
