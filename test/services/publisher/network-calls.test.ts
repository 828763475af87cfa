/** What networks answered is kept beside the target, without its secrets, and never in the way of the publish. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NetworkCall } from '#contracts/ports/network-http.ts';
import type { PlatformAdapter, PublishRequest, PublishSteps } from '#contracts/ports/platform.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import type { SeenCall } from '#runtime/egress/seen-call.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Registry } from '#runtime/process/metrics.ts';
import { topicOf } from '#schemas/events.ts';
import { maxKeptCalls } from '#schemas/targetcalls.ts';
import { NetworkCalls } from '#services/publisher/network-calls.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { type Account, PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const secret = `secret-${randomUUID()}`;

suite('calls of networks', (t) => {
  let world: PublishingWorld;
  let account: Account;
  let origin = '';
  let answer: RequestListener = (_, response) => void response.end();
  const server = createServer((request, response) => answer(request, response));

  t.before(async () => {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    world = await PublishingWorld.open((await preparedDatabase()).url);
    account = await world.connect(await world.client(), 'x');
  });
  t.after(async () => {
    await world.close();
    server.closeAllConnections();
    server.close();
  });

  const keeping = (store: Pick<DomainStore, 'append' | 'load' | 'loadState'> = world.store) => {
    const registry = new Registry();
    const calls = new NetworkCalls({ store: store as DomainStore, now: Date.now, logger: world.logger, registry });
    const counted = async (): Promise<Readonly<Record<string, number>>> => {
      const shown = await registry.getMetricsAsJSON();
      const figures = shown.flatMap(
        ({ values }) => values as readonly { labels: { reason?: string }; value: number }[],
      );
      return Object.fromEntries(figures.map(({ labels, value }) => [labels.reason ?? 'kept', value]));
    };
    const guard = new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] });
    return { calls, counted, http: new GuardedNetworkHttp(guard, { report: calls.report }) };
  };
  const kept = async (targetId: string) =>
    (await world.store.readStream(`targetcalls-${targetId}`)).map(({ data }) => data as Record<string, unknown>);
  const context = () => world.context();
  const watched = (targetId: string, workspaceId = world.workspaceId) => ({
    ...{ targetId, workspaceId, clientId: account.clientId, attempt: () => 1, context },
  });
  const seen = (targetId: string | null, over: Partial<SeenCall> = {}): SeenCall => ({
    ...{ accountId: account.id, targetId, method: 'POST', host: 'x.example', path: '/2/tweets', headers: {} },
    ...{ bodySha256: null, outcome: 'answered', status: 201, reason: null, answer: '{}', durationMs: 5, ...over },
  });
  const adapter = (send: (call: Partial<NetworkCall>, request: PublishRequest) => Promise<unknown>) => {
    const publish = async (request: PublishRequest, steps: PublishSteps) => {
      const signal = await steps.boundary({});
      void signal;
      await send({}, request);
      const publishedAt = new Date().toISOString();
      return { kind: 'published', externalId: 'e', permalink: null, publishedAt } as const;
    };
    const one: PlatformAdapter = {
      ...{ boundaryDeadlineMs: 4_000, settleWindowMs: () => 60_000, absenceIsProof: () => false },
      ...{ listsOwnPosts: () => false, publish, reconcile: async () => ({ kind: 'absent' }) },
      comment: async () => ({ kind: 'posted', externalId: 'c' }),
    };
    return one;
  };

  t('of a publish stand in their order in the stream of the target, without what lets anybody in', async () => {
    const { calls, counted, http } = keeping();
    const send = async (
      path: string,
      body: string,
      request: PublishRequest,
      targetId: string | null = request.targetId,
    ) =>
      http.send(
        {
          ...{ method: 'POST', url: `${origin}${path}`, headers: { authorization: `Bearer ${secret}` } },
          ...{ body: [Buffer.from(body)], subject: { accountId: request.account.id, targetId } },
        },
        AbortSignal.timeout(3_000),
      );
    answer = (request, response) => {
      request.resume();
      request.on('end', () => {
        if (request.url?.includes('append') === true) response.writeHead(204).end();
        else
          response
            .writeHead(201)
            .end(JSON.stringify({ access_token: `${secret}\\/more`, said: `no ${secret}`, by: 'Ann' }));
      });
    };
    const publisher = world.publisher(
      {},
      {
        calls,
        adapterOf: () =>
          adapter(async (_, request) => {
            await send('/oauth', 'refresh', request, null);
            for (const piece of ['one', 'two', 'three']) await send('/append?token=1', piece, request);
            await send('/2/tweets', '{"text":"hello"}', request);
          }),
      },
    );
    const [targetId = ''] = (await world.schedule([account])).targetIds;
    await world.all([targetId], 'published');
    await publisher.stop();
    const events = await kept(targetId);
    assert.deepEqual(
      events.map((one) => [one.path, one.status, one.calls, one.attempt, one.clientId, one.bodySha256 === null]),
      [
        ['/append?token=…', 204, 3, 1, account.clientId, true],
        ['/2/tweets', 201, 1, 1, account.clientId, false],
      ],
    );
    assert.match(String(events[1]?.answer), /"by":"Ann"/);
    assert.deepEqual((await counted()).kept, 4);
    assert.ok(!JSON.stringify(events).includes(secret));
    const stored = await world.eventStore.read(`targetcalls-${targetId}`);
    const bytes = Buffer.concat(stored.map(({ data }) => Buffer.from(data))).toString();
    assert.ok(!bytes.includes('Ann') && bytes.includes('$sealed'), 'the answer is sealed with the key of the client');
    assert.equal(topicOf(`targetcalls-${targetId}`), null);
  });

  t('come to a second attempt’s stream behind those of the first, whoever wrote them', async () => {
    const targetId = randomUUID();
    for (const attempt of [1, 1, 2]) {
      const { calls } = keeping();
      const end = calls.watch({ ...watched(targetId), attempt: () => attempt });
      calls.report(seen(targetId, { path: `/${attempt}` }));
      end();
      await calls.close();
    }
    assert.deepEqual(
      (await kept(targetId)).map(({ path, attempt }) => [path, attempt]),
      [
        ['/1', 1],
        ['/1', 1],
        ['/2', 2],
      ],
    );
  });

  t('are kept up to a bound, and counted beyond it', async () => {
    const { calls, counted } = keeping();
    const targetId = randomUUID();
    const end = calls.watch(watched(targetId));
    for (let n = 0; n < maxKeptCalls + 50; n += 1) calls.report(seen(targetId, { path: `/${n}` }));
    end();
    await calls.close();
    assert.equal((await kept(targetId)).length, maxKeptCalls);
    assert.deepEqual(await counted(), { kept: maxKeptCalls, target_full: 50 });
  });

  t('of no target, or after the work on it, are not kept; the latter are counted', async () => {
    const { calls, counted } = keeping();
    const targetId = randomUUID();
    calls.report(seen(null));
    calls.report(seen(targetId));
    assert.deepEqual(await counted(), { kept: 0, late: 1 });
    const end = calls.watch(watched(targetId));
    calls.report(seen(targetId));
    end();
    await until('the call is written', async () => (await kept(targetId)).length === 1 || null);
    await calls.close();
    calls.report(seen(targetId));
    assert.deepEqual(await counted(), { kept: 1, late: 2 });
  });

  t('that a store does not take are counted, and the post is published all the same', async () => {
    const { calls, counted } = keeping({
      ...{ load: world.store.load.bind(world.store), loadState: world.store.loadState.bind(world.store) },
      append: async () => {
        throw new Error('the disk is full');
      },
    });
    const publisher = world.publisher(
      {},
      { calls, adapterOf: () => adapter(async (_, { targetId }) => calls.report(seen(targetId))) },
    );
    const [targetId = ''] = (await world.schedule([account])).targetIds;
    await world.all([targetId], 'published');
    await publisher.stop();
    assert.deepEqual([await counted(), await kept(targetId)], [{ kept: 0, store: 1 }, []]);
  });

  t('of a burst are appended together, after it; a share that fills up does not wait', async () => {
    const sizes: number[] = [];
    const { calls } = keeping({
      ...{ load: world.store.load.bind(world.store), loadState: world.store.loadState.bind(world.store) },
      append: ((...args: Parameters<DomainStore['append']>) => {
        sizes.push(args[2].length);
        return world.store.append(...args);
      }) as DomainStore['append'],
    });
    const ends = [...Array(50).keys()].map(() => calls.watch(watched(randomUUID())));
    const targetId = randomUUID();
    ends.push(calls.watch(watched(targetId)));
    for (const path of ['/a', '/b', '/c']) {
      calls.report(seen(targetId, { path }));
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(sizes, []);
    await until('they are appended', () => sizes.length > 0);
    assert.deepEqual(sizes, [3]);
    const crowding = [...Array(300).keys()].map((n) => seen(targetId, { path: `/${n}` }));
    for (const one of crowding) calls.report(one);
    const next = randomUUID();
    ends.push(calls.watch(watched(next)));
    calls.report(seen(next));
    await until('the next is appended', () => sizes.length > 1);
    // On a busy machine those that gather have followed by now.
    assert.deepEqual(sizes.slice(0, 2), [3, 1], 'before those that gather');
    for (const end of ends) end();
    await calls.close();
  });

  t('wait in a queue of which no workspace gets more than its share', async () => {
    const waiting: (() => void)[] = [];
    const { calls, counted } = keeping({
      ...{ load: world.store.load.bind(world.store), loadState: world.store.loadState.bind(world.store) },
      append: () => new Promise((_, reject) => waiting.push(() => reject(new Error('over')))),
    });
    const report = (workspaceId: string, times: number): (() => void) => {
      const targetId = randomUUID();
      const end = calls.watch(watched(targetId, workspaceId));
      for (let n = 0; n < times; n += 1) calls.report(seen(targetId, { path: `/${n}` }));
      return end;
    };
    const ends = [report(randomUUID(), 501)];
    assert.deepEqual(await counted(), { kept: 0, workspace_full: 1 });
    for (let n = 0; n < 3; n += 1) ends.push(report(randomUUID(), 500));
    ends.push(report(randomUUID(), 1));
    assert.deepEqual(await counted(), { kept: 0, workspace_full: 1, process_full: 1 });
    for (const end of ends) end();
    const closed = calls.close();
    let isClosed = false;
    void closed.then(() => (isClosed = true));
    while (!isClosed) {
      for (const go of waiting.splice(0)) go();
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.deepEqual(await counted(), { kept: 0, workspace_full: 1, process_full: 1, store: 2_000 });
  });
});
