import { deepEqual, equal, notEqual, ok, rejects } from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ClientCommand, client } from '#domain/client.ts';
import { Rejection } from '#domain/decider.ts';
import { keyedIdOf } from '#domain/ids.ts';
import { type TargetState, target } from '#domain/post-target/target.ts';
import { type CommandContext, Unavailable } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import {
  createIdempotently,
  fingerprintOf,
  keyHmacOf,
  type RequestOptions,
  withIdempotencyRecord,
} from '#runtime/eventing/idempotency.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { commandContext, openDomain, secretKey } from '#test/support/domain.ts';
import { clientFields, planned } from '#test/support/samples.ts';
import { suite } from '#test/support/suite.ts';

const callers = Array.from({ length: 20 }, (_, n) => n);
const reused = { code: 'idempotency_key_reused' };
const settled = async <T>(calls: readonly Promise<T>[]) => {
  const results = await Promise.allSettled(calls);
  return {
    won: results.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : [])),
    lost: results.flatMap((one) => (one.status === 'rejected' ? [one.reason] : [])),
  };
};

suite('fingerprints', (t) => {
  const secrets = new Secrets(secretKey(1));
  const asked = { operation: 'createClient', params: {}, query: {}, body: { name: 'Acme', rules: { a: 1, b: 2 } } };
  const { workspaceId } = commandContext();

  t('are the same for the same request, whatever the order of its members', () =>
    equal(
      fingerprintOf(secrets, workspaceId, asked),
      fingerprintOf(secrets, workspaceId, { ...asked, body: { rules: { b: 2, a: 1 }, name: 'Acme' } }),
    ),
  );

  t('differ with any part of the request, and between workspaces', () => {
    const others = [
      { ...asked, operation: 'updateClient' },
      { ...asked, params: { id: '1' } },
      { ...asked, query: { q: '1' } },
      { ...asked, body: { ...asked.body, name: 'Acme ' } },
      { ...asked, body: [asked.body] },
    ].map((one) => fingerprintOf(secrets, workspaceId, one));
    const all = [fingerprintOf(secrets, workspaceId, asked), fingerprintOf(secrets, randomUUID(), asked), ...others];
    equal(new Set(all).size, all.length);
    notEqual(keyHmacOf(secrets, workspaceId, 'k'), keyHmacOf(secrets, randomUUID(), 'k'));
  });

  t('stay the same after a key rotation, and do not show the body', () => {
    const one = secretKey(1);
    const [before, after] = [new Secrets(one), new Secrets(`${secretKey(2)},${one}`)];
    equal(fingerprintOf(after, workspaceId, asked), fingerprintOf(before, workspaceId, asked));
    equal(keyHmacOf(after, workspaceId, 'k'), keyHmacOf(before, workspaceId, 'k'));
    notEqual(fingerprintOf(new Secrets(secretKey(1)), workspaceId, asked), fingerprintOf(before, workspaceId, asked));
  });
});

suite('creation under an idempotency key', (t) => {
  const world = () => {
    const domain = openDomain();
    const { store, secrets } = domain;
    const call = (key: string, name: string, command?: () => Promise<ClientCommand>) => {
      const { workspaceId } = commandContext();
      const asked = { operation: 'createClient', params: {}, query: {}, body: { name } };
      return createIdempotently({
        store,
        decider: client,
        operation: 'createClient',
        key,
        context: commandContext({
          keyHmac: keyHmacOf(secrets, workspaceId, key),
          fingerprint: fingerprintOf(secrets, workspaceId, asked),
        }),
        positions: new Map(),
        command:
          command ?? (async (): Promise<ClientCommand> => ({ type: 'Create', fields: { ...clientFields, name } })),
      });
    };
    return { ...domain, call };
  };

  t('twenty callers at once create one stream and get one answer', async () => {
    const { call, events } = world();
    const born = await Promise.all(callers.map(() => call('k', 'Acme')));
    equal(born.filter(({ replayed }) => !replayed).length, 1);
    const [first] = born;
    equal(first?.id, keyedIdOf(commandContext().workspaceId, 'createClient', 'k'));
    for (const one of born) {
      equal(one.id, first?.id);
      deepEqual(one.state, first?.state);
      deepEqual(
        one.events.map(({ position: _position, ...event }) => event),
        first?.events.map(({ position: _position, ...event }) => event),
      );
      equal(one.other, false);
    }
    equal((await events.readAll({ after: null, limit: 100 })).length, 1);
  });

  t('of twenty different requests under one key one creates the stream, the others are refused', async () => {
    const { call, events } = world();
    const { won, lost } = await settled(callers.map((n) => call('k', `Client ${n}`)));
    equal(won.length, 1);
    equal(lost.length, 19);
    for (const error of lost) ok(error instanceof Rejection && error.code === reused.code);
    equal((await events.readAll({ after: null, limit: 100 })).length, 1);
  });

  t('a repeat is answered from the first event, whatever happened since', async () => {
    const { call, store } = world();
    const { id, state } = await call('k', 'Acme');
    await execute(store, client, id, { type: 'Update', changes: { name: 'Bravo' } }, commandContext());
    const again = await call('k', 'Acme', () => Promise.reject(new Error('nothing is decided twice')));
    deepEqual(again.state, state);
    equal(again.events.length, 1);
    equal(again.replayed, true);
  });

  t('a refusal stores nothing: the key is free for any request', async () => {
    const { call, events } = world();
    const refusal = () => Promise.reject(new Rejection('client_archived', 'No.'));
    await rejects(call('k', 'Acme', refusal), { code: 'client_archived' });
    equal(await events.head(), null);
    equal((await call('k', 'Another')).replayed, false);
  });

  t('after an outage of the store a repeat under the key succeeds', async () => {
    const { call, events } = world();
    for (let n = 0; n < 6; n += 1) events.failNext(n === 5 ? 'reply_lost' : 'unavailable');
    await rejects(call('k', 'Acme'), (error) => error instanceof Unavailable);
    const again = await call('k', 'Acme');
    equal(again.replayed, true);
    equal((await events.readAll({ after: null, limit: 10 })).length, 1);
  });

  t('a key is valid within one operation and workspace: elsewhere it creates another stream', async () => {
    const { call, store, secrets } = world();
    const { id } = await call('k', 'Acme');
    const workspaceId = randomUUID();
    const elsewhere = await createIdempotently({
      store,
      decider: client,
      operation: 'createClient',
      key: 'k',
      context: commandContext({ workspaceId, keyHmac: keyHmacOf(secrets, workspaceId, 'k'), fingerprint: 'f' }),
      positions: new Map(),
      command: async (): Promise<ClientCommand> => ({ type: 'Create', fields: clientFields }),
    });
    notEqual(elsewhere.id, id);
    equal(elsewhere.replayed, false);
  });

  t('a stream created under another key is answered in its current state', async () => {
    const { call, store } = world();
    const id = keyedIdOf(commandContext().workspaceId, 'createClient', 'k');
    const other = commandContext({ keyHmac: 'another', fingerprint: 'f' });
    await execute(store, client, id, { type: 'Create', fields: clientFields }, other);
    await execute(store, client, id, { type: 'Archive' }, commandContext());
    const { other: isOther, replayed, events, state } = await call('k', 'Acme');
    equal(isOther, true);
    equal(replayed, false);
    equal(events.length, 2);
    equal(state.status, 'archived');
  });
});

suite('requests under an idempotency key', (t) => {
  /** A failed target that a call retries: the fold keeps the commands it has applied. */
  const world = async () => {
    const domain = openDomain();
    const { store } = domain;
    const targetId = randomUUID();
    const partitionKey = randomUUID();
    const plan = planned({ targetId, accountId: randomUUID(), clientId: randomUUID() });
    const schedule = { type: 'Schedule', planned: plan, postId: partitionKey, postRevision: 0 } as const;
    await execute(store, target, targetId, schedule, commandContext(), { partitionKey });
    const dueAts: string[] = [];
    let decided = 0;
    const effects = async ({ dueAt }: { readonly dueAt: string }, context: CommandContext) => {
      dueAts.push(dueAt);
      const { commandId } = context;
      const command = {
        type: 'Reschedule',
        now: '2026-01-01T00:00:00.000Z',
        commandId,
        dueAt,
        scheduledLocal: null,
        jitterSeconds: 0,
      } as const;
      return (await execute(store, target, targetId, command, context, { partitionKey })).state.status;
    };
    const call = (
      body: string,
      over: Partial<RequestOptions<{ readonly dueAt: string }, TargetState['status']>> = {},
    ) =>
      withIdempotencyRecord({
        store,
        operation: 'reschedulePostTarget',
        key: 'k',
        fingerprint: body,
        context: commandContext(),
        accept: async () => {
          decided += 1;
          return { dueAt: new Date(Date.UTC(2027, 0, 1, 0, decided)).toISOString() };
        },
        effects,
        ...over,
      });
    const stream = () => store.readStream(`target-${targetId}`);
    const requests = () =>
      store.readStream(`request-${keyedIdOf(commandContext().workspaceId, 'reschedulePostTarget', 'k')}`);
    const types = async () => (await requests()).map(({ type }) => type);
    return { call, effects, dueAts, stream, requests, types };
  };

  t('twenty callers at once carry out one decision once', async () => {
    const { call, dueAts, stream, types } = await world();
    const results = await Promise.all(callers.map(() => call('body')));
    for (const { result } of results) equal(result, 'pending');
    equal(new Set(dueAts).size, 1);
    deepEqual(
      (await stream()).map(({ type }) => type),
      ['TargetScheduled', 'TargetRescheduled'],
    );
    deepEqual(await types(), ['RequestAccepted', 'RequestCompleted']);
  });

  t('twenty different requests under one key: one is carried out', async () => {
    const { call, stream } = await world();
    const { won, lost } = await settled(callers.map((n) => call(`body ${n}`)));
    equal(won.length, 1);
    for (const error of lost) ok(error instanceof Rejection && error.code === reused.code);
    equal((await stream()).length, 2);
  });

  t('its events carry the id of the accepted request', async () => {
    const { call, stream, requests } = await world();
    await call('body');
    equal((await stream())[1]?.metadata.commandId, (await requests())[0]?.id);
  });

  t('a repeat is answered with the first result and has no effect', async () => {
    const { call, stream } = await world();
    const never = () => Promise.reject(new Error('nothing is done twice'));
    equal((await call('body')).replayed, false);
    deepEqual(await call('body', { accept: never, effects: never }), { result: 'pending', replayed: true });
    await rejects(call('another body', { accept: never, effects: never }), reused);
    equal((await stream()).length, 2);
  });

  t('the first completed caller determines the answer of all', async () => {
    const { call } = await world();
    const gate = Promise.withResolvers<void>();
    const slow = call('body', {
      effects: async () => {
        await gate.promise;
        return 'failed';
      },
    });
    equal((await call('body')).result, 'pending');
    gate.resolve();
    equal((await slow).result, 'pending');
  });

  t('a caller that is refused after another one succeeded gets the result of the other', async () => {
    const { call, types } = await world();
    const gate = Promise.withResolvers<void>();
    const slow = call('body', {
      effects: async () => {
        await gate.promise;
        throw new Rejection('client_archived', 'By now it is.');
      },
    });
    equal((await call('body')).result, 'pending');
    gate.resolve();
    deepEqual(await slow, { result: 'pending', replayed: true });
    deepEqual(await types(), ['RequestAccepted', 'RequestCompleted']);
  });

  t('a caller that the effect of its own key refuses gets the answer of that effect', async () => {
    for (const completes of [true, false]) {
      const { call, effects, stream, types } = await world();
      const broken = new Error('broken off');
      const slow = call('body', {
        accept: async () => {
          // Another caller under the key is accepted and carried out between this call's two reads.
          const first = call(
            'body',
            completes ? {} : { effects: (...given) => effects(...given).then(() => Promise.reject(broken)) },
          );
          if (completes) await first;
          else await rejects(first, broken);
          throw new Rejection('revision_mismatch', 'By now it has another revision.');
        },
      });
      equal((await slow).result, 'pending');
      deepEqual(await types(), ['RequestAccepted', 'RequestCompleted']);
      equal((await stream()).length, 2);
    }
  });

  t('a refusal before acceptance does not free a key that another caller holds', async () => {
    const { call, types } = await world();
    const [begun, gate] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const first = call('body', {
      effects: async () => {
        begun.resolve();
        await gate.promise;
        return 'pending';
      },
    });
    const refusal = () => Promise.reject(new Rejection('revision_mismatch', 'It has another revision.'));
    const second = call('body', { accept: () => begun.promise.then(refusal), effects: refusal });
    await rejects(second, { code: 'revision_mismatch' });
    gate.resolve();
    equal((await first).result, 'pending');
    deepEqual(await types(), ['RequestAccepted', 'RequestCompleted']);
    await rejects(call('another body'), reused);
  });

  t('after a failure between acceptance and completion a repeat continues the accepted request', async () => {
    const { call, effects, dueAts, stream, types } = await world();
    const broken = new Error('broken off');
    await rejects(call('body', { effects: () => Promise.reject(broken) }), broken);
    deepEqual(await types(), ['RequestAccepted']);
    const made = call('body', { effects: (...given) => effects(...given).then(() => Promise.reject(broken)) });
    await rejects(made, broken);
    deepEqual(await types(), ['RequestAccepted']);
    deepEqual(await call('body'), { result: 'pending', replayed: true });
    deepEqual(await types(), ['RequestAccepted', 'RequestCompleted']);
    equal(dueAts.length, 2);
    equal(new Set(dueAts).size, 1);
    deepEqual(
      (await stream()).map(({ type }) => type),
      ['TargetScheduled', 'TargetRescheduled'],
    );
  });

  t('a refusal frees the key, for any request', async () => {
    const { call, stream, types } = await world();
    const refusal = () => Promise.reject(new Rejection('target_not_pending', 'No.'));
    await rejects(call('body', { accept: refusal }), { code: 'target_not_pending' });
    deepEqual(await types(), []);
    await rejects(call('body', { effects: refusal }), { code: 'target_not_pending' });
    deepEqual(await types(), ['RequestAccepted', 'RequestCompleted']);
    equal((await call('another body')).result, 'pending');
    equal((await stream()).length, 2);
  });

  t('without a key no request is recorded', async () => {
    const { call, stream, types } = await world();
    for (const expected of [2, 3]) {
      equal((await call('body', { key: null })).replayed, false);
      equal((await stream()).length, expected);
    }
    deepEqual(await types(), []);
  });
});
