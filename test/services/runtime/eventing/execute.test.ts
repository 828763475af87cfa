import { deepEqual, equal, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { client } from '#domain/client.ts';
import { Rejection } from '#domain/decider.ts';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { commandContext, openDomain } from '#test/support/domain.ts';
import { clientFields } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const create = { type: 'Create', fields: clientFields } as const;
const rename = (name: string) => ({ type: 'Update', changes: { name } }) as const;
const conflict = { code: 'wrong_expected_revision' };

suite('execute', (t) => {
  t('answers with the state that a load after the append gives', async () => {
    const { store } = openDomain();
    const id = randomUUID();
    const done = await execute(store, client, id, create, commandContext());
    const renamed = await execute(store, client, id, rename('Bravo'), commandContext());
    equal(done.revision, 0);
    equal(renamed.appended.length, 1);
    const { appended: _appended, events, ...rest } = renamed;
    const { events: loaded, ...now } = await store.load(client, id);
    deepEqual(rest, now);
    deepEqual(
      events.map(({ id: eventId }) => eventId),
      loaded.map(({ id: eventId }) => eventId),
    );
  });

  t('appends nothing for a repeated command', async () => {
    const { store, events } = openDomain();
    const id = randomUUID();
    await execute(store, client, id, create, commandContext());
    const again = await execute(store, client, id, create, commandContext());
    deepEqual(again.appended, []);
    equal(again.revision, 0);
    equal(events.asked.length, 1);
  });

  t('decides again on events that another process appended meanwhile', async () => {
    const { store } = openDomain();
    const id = randomUUID();
    const stale = await store.load(client, id);
    await execute(store, client, id, create, commandContext());
    await execute(store, client, id, { type: 'Archive' }, commandContext());
    await rejects(execute(store, client, id, rename('B'), commandContext(), { loaded: stale }), { code: 'not_found' });
    // Decided on nothing it is a birth; decided again it is nothing.
    const { appended } = await execute(store, client, id, create, commandContext(), { loaded: stale });
    deepEqual(appended, []);
  });

  t('keeps an invariant among racing callers: one Owner stays', async () => {
    const { store } = openDomain();
    const id = randomUUID();
    const members = Array.from({ length: 20 }, () => randomUUID());
    const [first = ''] = members;
    const owner = { memberId: first, name: 'Ann' };
    await execute(store, workspace, id, { type: 'Create', name: 'N', timezone: 'UTC', owner }, commandContext());
    await Promise.all(
      members
        .slice(1)
        .map((memberId) =>
          execute(store, workspace, id, { type: 'AddMember', memberId, name: 'M', role: 'owner' }, commandContext()),
        ),
    );
    const gone = await Promise.allSettled(
      members.map((memberId) => execute(store, workspace, id, { type: 'RemoveMember', memberId }, commandContext())),
    );
    equal(gone.filter(({ status }) => status === 'rejected').length, 1);
    const { state } = await store.load(workspace, id);
    equal(state.status === 'created' && Object.values(state.members).length, 1);
  });

  t('fails on a conflict where the command names a revision', async () => {
    const { store, events } = openDomain();
    const id = randomUUID();
    await execute(store, client, id, create, commandContext());
    const seen = await store.load(client, id);
    await execute(store, client, id, rename('Bravo'), commandContext());
    const options = { loaded: seen, redecide: false };
    await rejects(execute(store, client, id, rename('Charlie'), commandContext(), options), conflict);
    equal((await events.read(`client-${id}`)).length, 2);
  });

  t('checks the guard on every fold it decides on', async () => {
    const { store } = openDomain();
    const id = randomUUID();
    await execute(store, client, id, create, commandContext());
    const seen = await store.load(client, id);
    await execute(store, client, id, rename('Bravo'), commandContext());
    const revisions: number[] = [];
    const unchanged = execute(store, client, id, rename('Charlie'), commandContext(), {
      loaded: seen,
      guard: ({ revision }) => {
        revisions.push(revision);
        if (revision > 0) throw new Rejection('revision_mismatch', 'It has changed.');
      },
    });
    await rejects(unchanged, { code: 'revision_mismatch' });
    deepEqual(revisions, [0, 1]);
    equal((await store.load(client, id)).revision, 1);
  });

  t('stores its events once when the answer is lost', async () => {
    const { store, events } = openDomain();
    const id = randomUUID();
    events.failNext('reply_lost');
    const { appended } = await execute(store, client, id, create, commandContext());
    equal(appended.length, 1);
    equal((await events.read(`client-${id}`)).length, 1);
  });
});
