import { deepEqual, equal, match, notDeepEqual, ok, rejects, throws } from 'node:assert/strict';
import { createPublicKey, randomUUID, verify } from 'node:crypto';
import { once } from 'node:events';
import { setImmediate } from 'node:timers/promises';
import type { EventStore, RecordedEvent } from '#contracts/ports/event-store.ts';
import { emptyFrontier, isConsistent, isIncluded, leafOf, rootOf, withLeaf } from '#domain/tree.ts';
import { makeShape } from '#projections/engine/rebuild.ts';
import { rotateFeedKey } from '#projections/feed/sign.ts';
import { feedUses, noteFeedUse } from '#projections/feed/uses.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { restored } from '#runtime/work/restores.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { refused } from '#test/support/composing.ts';
import { type Caller, startWorld, type World } from '#test/support/http.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { TestKeys } from '#test/support/projecting.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { withMembers } from '#test/support/with-members.ts';
import { builds } from '../../projections/shape-builds.ts';

/** The feed of a workspace over REST, as auditors read it. */

interface Event {
  readonly sequence: number;
  readonly cursor: string;
  readonly id: string;
  readonly stream: string;
  readonly revision: number;
  readonly type: string;
  readonly clientId: string | null;
  readonly schemaVersion: number | null;
  readonly occurredAt: string | null;
  readonly actor: { readonly type: string; readonly id: string } | null;
  readonly correlationId: string | null;
  readonly causationId: string | null;
  readonly commandId: string | null;
  readonly data: Readonly<Record<string, unknown>> | null;
  readonly stored?: { readonly data: string; readonly metadata: string; readonly hash: string };
  readonly expired: boolean;
}

interface Checkpoint {
  readonly epoch: number;
  readonly size: number;
  readonly root: string;
  readonly kept: number | null;
  readonly note: string;
}

const bytes = (base64: string): Buffer => Buffer.from(base64, 'base64');

/** Whether one of the public keys made the note, as a verifier of signed notes asks. */
const isSigned = (note: string, verifiers: readonly string[]): boolean => {
  const [body = '', line = ''] = note.split('\n\n');
  const signature = bytes(line.trim().split(' ')[2] ?? '');
  return verifiers.some((verifier) => {
    const [, id = '', key = ''] = /^[^+]+\+([0-9a-f]{8})\+(.+)$/.exec(verifier) ?? [];
    if (signature.subarray(0, 4).toString('hex') !== id) return false;
    const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), bytes(key).subarray(1)]);
    const publicKey = createPublicKey({ key: der, format: 'der', type: 'spki' });
    return verify(null, Buffer.from(`${body}\n`), publicKey, signature.subarray(4));
  });
};

/** What an event of the feed says, and what the store says of the event that has this place. */
const shownOf = (one: Event) => [
  ...[one.sequence, one.id, one.stream, one.revision, one.type, one.schemaVersion, one.occurredAt],
  ...[one.actor, one.correlationId, one.causationId, one.commandId],
];
const storedOf = ({ id, stream, revision, type, metadata }: RecordedEvent, at: number) => {
  const said = JSON.parse(Buffer.from(metadata).toString());
  return [
    ...[at + 1, id, stream, Number(revision), type, said.schemaVersion, said.occurredAt],
    ...[said.actor, said.$correlationId, said.$causationId, said.commandId],
  ];
};

/** @throws where the feed lacks an event of the store, or says another thing of it */
const holdAll = (events: readonly Event[], stored: readonly RecordedEvent[]): void =>
  deepEqual(events.map(shownOf), stored.map(storedOf));

suite('the feed over REST', { timeoutMs: 120_000 }, (t) => {
  let world: World;
  const stopped = new AbortController();
  let numbering: Numbering;
  const keys = new TestKeys();
  t.before(async () => {
    world = await startWorld({ codec: new EventCodec(keys), deps: { draining: stopped.signal } });
    numbering = startNumbering(world);
  });
  t.after(async () => {
    stopped.abort();
    await numbering?.stop();
    await world?.close();
  });

  const numbered = () => numbering.numbered();
  const newClient = async (caller: Caller, name: string): Promise<string> => {
    const made = await caller.post('/clients', { name: `${name} ${randomUUID()}`, type: 'brand' });
    equal(made.status, 200, made.text);
    return made.data.id;
  };
  const read = async (caller: Caller, query = '') => {
    const answer = await caller.get(`/events${query}`);
    equal(answer.status, 200, answer.text);
    return { events: answer.rows as unknown as readonly Event[], page: answer.body.page };
  };
  const all = async (caller: Caller, query = 'limit=500'): Promise<readonly Event[]> => {
    const found: Event[] = [];
    for (let after = ''; ; ) {
      const { events, page } = await read(caller, `?${query}${after}`);
      found.push(...events);
      if (page?.hasMore !== true) return found;
      after = `&after=${page.nextCursor}`;
    }
  };
  const ofStore = async (workspaceId: string): Promise<readonly RecordedEvent[]> => {
    const found: RecordedEvent[] = [];
    for (let after: bigint | null = null; ; ) {
      const page = await world.eventStore.readWorkspace(workspaceId, { after, limit: 10_000 });
      found.push(...page.events.filter(({ stream }) => !stream.startsWith('request-')));
      if (page.isEnd) return found;
      after = page.next;
    }
  };

  t('has every event of the workspace in the order of the store, and no other one', async () => {
    const mine = await world.agency();
    const other = await world.agency();
    for (const name of ['A', 'B', 'C']) {
      await newClient(mine.owner, name);
      await newClient(other.owner, name);
    }
    await numbered();
    for (const { owner, workspaceId } of [mine, other]) {
      const events = await all(owner, 'limit=2');
      const stored = await ofStore(workspaceId);
      deepEqual(
        events.map(({ id }) => id),
        stored.map(({ id }) => id),
      );
      deepEqual(
        events.map(({ sequence }) => sequence),
        events.map((_, at) => at + 1),
      );
      deepEqual(
        events.map(({ stream, revision }) => `${stream} ${revision}`),
        stored.map((one) => `${one.stream} ${one.revision}`),
      );
    }
    const [first] = await all(mine.tester);
    ok(first === undefined || first.sequence === 1, 'a test key reads the sandbox twin');
  });

  t('beside several writers has each event once, who did it by what and why; who drops one is found out', async () => {
    const { owner, workspaceId, memberId } = await world.agency();
    const manager = await world.keyOf(workspaceId, await world.memberOf(workspaceId, 'manager'));
    const other = await world.keyOf(workspaceId, memberId);
    const writers = [owner, manager.caller, other.caller];
    let left = writers.length;
    const written = writers.map(async (by, n) => {
      for (let made = 0; made < 6; made += 1) {
        const id = await newClient(by, `Of writer ${n}`);
        equal((await by.patch(`/clients/${id}`, { name: `Renamed ${randomUUID()}` })).status, 200);
      }
      left -= 1;
    });
    const follow = async (query: string): Promise<readonly Event[]> => {
      const found: Event[] = [];
      for (let after = '1.0'; ; ) {
        const isOver = left === 0;
        if (isOver) await numbered();
        const { events, page } = await read(owner, `?${query}&after=${after}`);
        found.push(...events);
        if (isOver && page?.hasMore !== true) return found;
        after = String(page?.nextCursor);
      }
    };
    const [bySeven, awaited, created] = await Promise.all([
      ...['limit=7', 'limit=3&wait=1', 'limit=5&types=ClientCreated'].map(follow),
      ...written,
    ]);
    const stored = await ofStore(workspaceId);
    ok(stored.length > 36);
    for (const events of [bySeven, awaited]) holdAll(events ?? [], stored);
    deepEqual(
      created?.map(({ id }) => id),
      stored.filter(({ type }) => type === 'ClientCreated').map(({ id }) => id),
    );
    const found = bySeven ?? [];
    const actors = new Set(found.map(({ actor }) => `${actor?.type} ${actor?.id}`));
    for (const { id } of [manager, other]) ok(actors.has(`apikey ${id}`), [...actors].join());
    const commands = Map.groupBy(found, ({ commandId }) => commandId);
    ok([...commands.values()].every((of) => new Set(of.map(({ correlationId }) => correlationId)).size === 1));

    const hashes = (await all(owner, 'form=stored&limit=11')).map(({ stored: one }) => bytes(one?.hash ?? ''));
    const [{ root } = { root: '' }] = (await owner.get('/events/checkpoints')).rows as unknown as readonly Checkpoint[];
    const rootOver = (leaves: readonly Buffer[]) =>
      rootOf(leaves.reduce((tree, leaf) => withLeaf(tree, leaf), emptyFrontier)).toString('base64');
    equal(rootOver(hashes), root);
    for (const at of [0, 9, found.length - 1]) {
      throws(() => holdAll(found.toSpliced(at, 1), stored), `event ${at + 1} is dropped`);
      notDeepEqual(rootOver(hashes.toSpliced(at, 1)), root);
    }
  });

  t('answers a cursor on an empty page too, and goes on behind it', async () => {
    const { owner } = await world.agency();
    await numbered();
    const { page } = await read(owner, '?limit=500');
    const empty = await read(owner, `?after=${page?.nextCursor}`);
    deepEqual(empty.events, []);
    equal(empty.page?.nextCursor, page?.nextCursor);
    await newClient(owner, 'Later');
    await numbered();
    const { events } = await read(owner, `?after=${empty.page?.nextCursor}`);
    ok(events.some(({ type }) => type === 'ClientCreated'));
  });

  t('waits for an event', async () => {
    const { owner } = await world.agency();
    await numbered();
    const { page } = await read(owner, '?limit=500');
    const waiting = read(owner, `?after=${page?.nextCursor}&wait=15`);
    await newClient(owner, 'Awaited');
    const { events } = await waiting;
    ok(events.length > 0);
  });

  t('filters by type, stream and client', async () => {
    const { owner } = await world.agency();
    const [one, two] = [await newClient(owner, 'One'), await newClient(owner, 'Two')];
    await numbered();
    const created = await all(owner, 'types=ClientCreated');
    deepEqual(
      created.map(({ stream }) => stream),
      [`client-${one}`, `client-${two}`],
    );
    deepEqual(
      (await all(owner, `stream=client-${two}`)).map(({ clientId }) => clientId),
      [two],
    );
    const ofOne = await all(owner, `clientId=${one}`);
    ok(ofOne.length >= 2 && ofOne.every(({ clientId }) => clientId === one));
    deepEqual(await all(owner, 'types=CampaignCreated,PostDrafted'), []);
    refused(await owner.get('/events?types=NothingOfThisName'), 400, 'invalid_parameter', ['/types']);
  });

  t('shows a key that is limited to clients their events alone, and no proof', async () => {
    const { owner, workspaceId, memberId } = await world.agency();
    const [one, two] = [await newClient(owner, 'One'), await newClient(owner, 'Two')];
    const { caller } = await world.keyOf(workspaceId, memberId, { clientIds: [one] });
    await numbered();
    const seen = await all(caller);
    ok(seen.length > 0 && seen.every(({ clientId }) => clientId === one), JSON.stringify(seen));
    ok(!JSON.stringify(seen).includes(two));
    deepEqual(await all(caller, `clientId=${two}`), []);
    deepEqual(await all(caller, `stream=client-${two}`), []);
    for (const path of ['/events/checkpoints', '/events/1/proof', '/events/checkpoints/1/growth', '/events/keys']) {
      refused(await caller.get(path), 403, 'client_limited', []);
    }
  });

  t('asks for the scope, which the Owner alone carries', async () => {
    const { workspaceId, memberId } = await world.agency();
    const without = await world.keyOf(workspaceId, memberId, { scopes: ['posts.read'] });
    const manager = await world.keyOf(workspaceId, await world.memberOf(workspaceId, 'manager'));
    for (const path of [
      '/events',
      '/events/checkpoints',
      '/events/1/proof',
      '/events/checkpoints/1/growth',
      '/events/keys',
    ]) {
      refused(await without.caller.get(path), 403, 'insufficient_scope', []);
      refused(await manager.caller.get(path), 403, 'role_required', []);
    }
  });

  t('proves each event, and that the feed only grew, against notes that its public keys made', async () => {
    const { owner, workspaceId } = await world.agency();
    await newClient(owner, 'One');
    await numbered();
    const keys = async () =>
      ((await owner.get('/events/keys')).data as unknown as { keys: { verifier: string }[] }).keys.map(
        ({ verifier }) => verifier,
      );
    const [kept] = (await owner.get('/events/checkpoints')).rows as unknown as readonly Checkpoint[];
    ok(kept !== undefined && isSigned(kept.note, await keys()));
    equal(kept.kept, null);
    match(kept.note, new RegExp(`^postline/${workspaceId}\n${kept.size}\n`));
    await newClient(owner, 'Two');
    await rotateFeedKey(world.pool, world.secrets);
    await numbered();
    const stored = await ofStore(workspaceId);
    for (const [index, event] of stored.entries()) {
      const { data } = await owner.get(`/events/${index % 2 === 0 ? '1.' : ''}${index + 1}/proof`);
      const { hash, proof, checkpoint } = data as unknown as { hash: string; proof: string[]; checkpoint: Checkpoint };
      deepEqual([data.id, data.cursor], [event.id, `1.${index + 1}`]);
      equal(hash, leafOf(event).toString('base64'));
      ok(isSigned(checkpoint.note, await keys()));
      const place = { leaf: bytes(hash), index, size: checkpoint.size, root: bytes(checkpoint.root) };
      ok(isIncluded(proof.map(bytes), place));
    }
    const { data } = await owner.get(`/events/checkpoints/${kept.size}/growth`);
    const {
      former: from,
      checkpoint: to,
      proof,
    } = data as unknown as {
      former: Checkpoint;
      checkpoint: Checkpoint;
      proof: string[];
    };
    equal(from.note, kept.note);
    equal(to.size, stored.length);
    const sized = ({ size, root }: Checkpoint) => ({ size, root: bytes(root) });
    ok(isConsistent(proof.map(bytes), sized(from), sized(to)));
    equal((await owner.get(`/events/${stored.length + 1}/proof`)).status, 404);
    refused(await owner.get(`/events/checkpoints/${stored.length + 1}/growth`), 404, 'not_found', []);
    for (const path of ['2.1/proof', 'checkpoints/2.1/growth']) {
      refused(await owner.get(`/events/${path}`), 404, 'not_found', []);
    }
    const published = await fetch(`${world.origin()}/.well-known/postline-feed-keys.json`);
    deepEqual(
      ((await published.json()) as { keys: { verifier: string }[] }).keys.map(({ verifier }) => verifier),
      await keys(),
    );
  });

  t('shows events as stored, with the leaf that a proof covers', async () => {
    const { owner, workspaceId } = await world.agency();
    await newClient(owner, 'One');
    await numbered();
    const events = await all(owner, 'form=stored');
    const stored = await ofStore(workspaceId);
    deepEqual(
      events.map((one) => one.stored?.hash),
      stored.map((one) => leafOf(one).toString('base64')),
    );
    deepEqual(
      events.map((one) => one.stored?.data),
      stored.map(({ data }) => Buffer.from(data).toString()),
    );
    ok(events.every(({ data }) => data === null));
  });

  t('comes in lines, at most two answers of a workspace at once', async () => {
    const { owner } = await world.agency();
    await newClient(owner, 'One');
    await numbered();
    const pages = await all(owner);
    const headers = { authorization: `Bearer ${owner.token}`, accept: 'application/x-ndjson' };
    const ask = (signal?: AbortSignal) =>
      fetch(`${world.origin()}/v1/events`, { headers, ...(signal === undefined ? {} : { signal }) });
    // Callers that leave before they are answered, or while they are, hold nothing.
    for (let left = 0; left < 12; left += 1) {
      const leaving = new AbortController();
      const asked = ask(leaving.signal).catch(() => undefined);
      for (let turn = 0; turn < left * 4; turn += 1) await setImmediate();
      leaving.abort();
      await asked;
    }
    await until('an answer in lines', async () => {
      const { status, body } = await ask();
      await body?.cancel();
      return status === 200;
    });
    const answer = await ask();
    equal(answer.headers.get('content-type'), 'application/x-ndjson');
    const lines = (await answer.text())
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    deepEqual(lines, pages);
    const again = await Promise.all([ask(), ask()]);
    for (const one of again) equal((await one.text()).trim().split('\n').length, pages.length);
  });

  t('each use is recorded with its credential, filter and range', async () => {
    const { owner, workspaceId, liveKey, memberId } = await world.agency();
    await numbered();
    const events = await all(owner);
    await all(owner);
    await all(owner, 'types=ClientCreated');
    const uses = await feedUses(world.pool, workspaceId, 10);
    deepEqual(
      uses.map(({ credential }) => credential),
      [`apikey ${liveKey.id}`, `apikey ${liveKey.id}`],
    );
    const whole = uses.find(({ asked }) => !asked.includes('types'));
    equal(whole?.times, 2);
    deepEqual(whole?.range, [1, events.length]);
    deepEqual(await all(owner), events, 'no use is a part of the feed');
    await owner.get('/events/1/proof');
    await owner.get(`/members/${memberId}/history`);
    const [proof, history] = ['getEventProof', 'getMemberHistory'].map((id) => ({ operation: id }));
    const asked = (await feedUses(world.pool, workspaceId, 10)).map((one) => one.asked);
    ok(asked.includes(JSON.stringify({ ...proof, sequence: '1' })), asked.join());
    ok(asked.includes(JSON.stringify({ ...history, id: memberId })), asked.join());
  });

  t('a credential that asks a thousand things in an hour takes two hundred rows and one', async () => {
    const workspaceId = randomUUID();
    const note = (asked: string) =>
      noteFeedUse(world.pool, { workspaceId, credential: 'apikey 1', asked, range: null });
    for (let at = 0; at < 230; at += 1) await note(`thing ${at}`);
    await note('thing 3');
    const uses = await feedUses(world.pool, workspaceId, 1_000);
    equal(uses.length, 201);
    equal(uses.find(({ asked }) => asked === 'others')?.times, 30);
    equal(uses.find(({ asked }) => asked === 'thing 3')?.times, 2);
  });

  let large: Awaited<ReturnType<World['agency']>>;
  t('a page of large events ends early, and the next one goes on', async () => {
    large = await world.agency();
    const { owner, workspaceId, memberId } = large;
    const metadata = Buffer.from(
      JSON.stringify({
        ...{ workspaceId, partitionKey: 'p', actor: { type: 'member', id: memberId }, commandId: 'c' },
        ...{ $correlationId: 'c', $causationId: 'c', occurredAt: '2026-01-31T08:00:00.000Z', schemaVersion: 1 },
      }),
    );
    const long = { long: 'x'.repeat(400_000) };
    const streams = [`post-${randomUUID()}`, `post-${randomUUID()}`] as const;
    for (let at = 0; at < 30; at += 1) {
      const [stream, revision] = [streams[at % 2] as string, BigInt(Math.floor(at / 2))];
      const event = { id: randomUUID(), type: 'PostDrafted', data: Buffer.from(JSON.stringify(long)), metadata };
      await world.eventStore.append(stream, revision === 0n ? 'none' : revision - 1n, [
        { ...event, partitionKey: 'p', workspaceId },
      ]);
    }
    await numbered();
    for (const query of ['', `&stream=${streams[0]}`]) {
      const first = await read(owner, `?limit=500&form=stored${query}`);
      if (query === '') deepEqual([first.events.length < 30, first.page?.hasMore], [true, true]);
      const whole = await all(owner, `limit=500&form=stored${query}`);
      const wanted = (await ofStore(workspaceId)).filter(({ stream }) => query === '' || stream === streams[0]);
      deepEqual(
        whole.map(({ id }) => id),
        wanted.map(({ id }) => id),
      );
    }
  });

  t('who takes no lines keeps its place, and a third answer in lines is told to come later', async () => {
    const { owner } = large;
    const headers = { authorization: `Bearer ${owner.token}`, accept: 'application/x-ndjson' };
    const ask = () => fetch(`${world.origin()}/v1/events?form=stored`, { headers });
    const slow = await Promise.all([ask(), ask()]);
    deepEqual(
      slow.map(({ status }) => status),
      [200, 200],
    );
    const third = await ask();
    deepEqual([third.status, third.headers.get('retry-after')], [503, '5']);
    equal((await read(owner, '?limit=1')).events.length, 1, 'pages have no part in it');
    for (const one of slow) await one.body?.cancel();
    await until('a place is free again', async () => {
      const { status, body } = await ask();
      await body?.cancel();
      return status === 200;
    });
  });

  t('an erased client reads as null, and the proofs stay', async () => {
    const { owner, workspaceId } = await world.agency();
    const clientId = randomUUID();
    const connected = {
      clientId,
      platform: 'x',
      network: 'sandbox',
      externalId: 'e',
      username: 'ada',
      displayName: 'Ada',
    };
    const accountId = randomUUID();
    await world.store.append(
      `account-${accountId}`,
      -1,
      [
        {
          type: 'AccountConnected',
          data: { ...connected, avatarUrl: null, scopes: [], expiresAt: null, timezone: null, inviteId: null },
        },
      ],
      contextOf(world.operator, workspaceId),
      `account-${accountId}`,
    );
    await numbered();
    const before = await all(owner, `stream=account-${accountId}`);
    equal(before[0]?.data?.username, 'ada');
    const [kept] = (await owner.get('/events/checkpoints')).rows as unknown as readonly Checkpoint[];
    keys.destroy(clientId);
    const [after] = await all(owner, `stream=account-${accountId}`);
    deepEqual([after?.data?.username, after?.data?.displayName, after?.expired], [null, null, false]);
    const [now] = (await owner.get('/events/checkpoints')).rows as unknown as readonly Checkpoint[];
    equal(now?.note, kept?.note);
  });

  t('shows how far each reader is with the events of the workspace, and what is rebuilt', async () => {
    const { owner } = await world.agency();
    await newClient(owner, 'Here');
    await numbered();
    const { page } = await read(owner, '?limit=500');
    const list = async () => {
      const answer = await owner.get('/projections');
      equal(answer.status, 200, answer.text);
      return answer.rows as unknown as readonly {
        readonly name: string;
        readonly kind: string;
        readonly position: string;
        readonly eventsBehind: number;
        readonly lagSeconds: number;
        readonly rebuilding: Readonly<Record<string, unknown>> | null;
      }[];
    };
    const of = async (name: string) => (await list()).find((one) => one.name === name);
    const names = ['workspaces', 'clients', 'posts', 'approvals', 'media', 'webhooks', 'reports', 'campaigns'];
    deepEqual(
      (await list()).map(({ name, kind }) => [name, kind]),
      [...names.map((name) => [name, 'read_model']), ['webhook_dispatch', 'webhook_dispatch'], ['feed', 'feed']],
    );
    const end = String(page?.nextCursor);
    await until('all read models have all of it', async () => {
      const states = await list();
      return names.every((name) => states.find((one) => one.name === name)?.position === end);
    });
    deepEqual(await of('clients'), {
      ...{ name: 'clients', object: 'projection', kind: 'read_model' },
      ...{ position: end, eventsBehind: 0, lagSeconds: 0, rebuilding: null },
    });
    // No dispatcher runs here: nothing of the workspace was seen by one.
    const waits = await of('webhook_dispatch');
    ok(waits !== undefined && waits.eventsBehind > 0 && waits.lagSeconds >= 0);
    match(waits?.position ?? '', /^\d+\.\d+$/);

    // An epoch of the lane that nobody owns: the read model stands still, and says so.
    const held = await world.pool.connect();
    await held.query('begin');
    await held.query(`select from ops.consumer_positions where consumer_group = 'projection-clients-v1' for update`);
    try {
      equal((await owner.post('/clients', { name: `Late ${randomUUID()}`, type: 'brand' })).status, 200);
      await numbered();
      const late = await of('clients');
      ok(late !== undefined && late.eventsBehind > 0 && late.lagSeconds > 0, JSON.stringify(late));
      const newest = (await read(owner, `?after=${end}&limit=500`)).page?.nextCursor;
      equal((await of('feed'))?.position, newest);
      ok(late?.position !== newest, 'the event that waits is behind its position');
    } finally {
      await held.query('rollback');
      held.release();
    }
    await until('it has caught up', async () => (await of('clients'))?.eventsBehind === 0);

    // A build whose campaigns have another shape makes its tables, page by page as the test lets it.
    const [newer] = builds.newer;
    const make = (opened: Promise<unknown>, signal: AbortSignal) => {
      let pages = 0;
      const readAll: EventStore['readAll'] = async (options) => {
        pages += 1;
        if (pages > 1) await opened;
        return world.eventStore.readAll({ ...options, limit: 100 });
      };
      const { pool, log, codec, eventStore } = world;
      const logger = createLogger('test', 'silent');
      return makeShape({ pool, log, codec, logger, signal, store: withMembers(eventStore, { readAll }) }, newer);
    };
    const dies = new AbortController();
    const dying = make(once(dies.signal, 'abort'), dies.signal);
    // Where the test fails before it asks for it.
    dying.catch(() => undefined);
    // However this ends, the tables are let go.
    using _end = { [Symbol.dispose]: () => dies.abort() };
    const reading = await until('the new shape is read', async () => {
      const found = (await of('campaigns'))?.rebuilding;
      if (found?.readTo === null) equal(found.progress, 0, 'nothing is read yet');
      return Number(found?.progress ?? 0) > 0 ? found : null;
    });
    deepEqual([reading.reason, reading.phase], ['shape_changed', 'reading']);
    ok(Number(reading.progress) < 1 && Date.parse(String(reading.readTo)) > 0, JSON.stringify(reading));
    const served = await of('campaigns');
    deepEqual([served?.eventsBehind, (await of('media'))?.rebuilding], [0, null], 'its former rows are served');
    dies.abort();
    await rejects(dying);
    const { reason, since } = reading;
    const left = (await of('campaigns'))?.rebuilding;
    deepEqual([left?.reason, left?.since, left?.phase], [reason, since, 'interrupted']);
    const stop = await make(Promise.resolve(), AbortSignal.timeout(60_000));
    equal((await of('campaigns'))?.rebuilding, null);
    await stop?.();
  });

  t('refuses a cursor that a restore took back, and says where to read on', async () => {
    const { owner } = await world.agency();
    await newClient(owner, 'Before');
    await numbered();
    const { page } = await read(owner, '?limit=500');
    const [, size] = String(page?.nextCursor).split('.');
    await restored(world.pool, new Date().toISOString(), 'ada');
    await newClient(owner, 'After');
    await numbered();
    // All of it was kept, so the cursor of the former epoch goes on.
    const { events } = await read(owner, `?after=${page?.nextCursor}`);
    ok(events.length > 0 && events[0]?.sequence === Number(size) + 1);
    const lost = await owner.get(`/events?after=1.${Number(size) + 1}`);
    refused(lost, 400, 'invalid_cursor', []);
    match(lost.text, new RegExp(`read on after 2\\.${size}`));
    const [signed] = (await owner.get('/events/checkpoints')).rows as unknown as readonly Checkpoint[];
    deepEqual([signed?.epoch, signed?.kept], [2, Number(size)]);
    match(signed?.note ?? '', new RegExp(`\nepoch 2\nkept ${size}\nsigned `));
    refused(await owner.get('/events?after=2.900000'), 400, 'invalid_cursor', []);
    refused(await owner.get('/events?after=soon'), 400, 'invalid_parameter', ['/after']);
  });

  t('who waits is answered when the process drains, with a cursor to go on behind', async () => {
    const { owner } = await world.agency();
    await numbered();
    const { page } = await read(owner, '?limit=500');
    const began = performance.now();
    const waiting = read(owner, `?after=${page?.nextCursor}&wait=15`);
    stopped.abort();
    const answered = await waiting;
    deepEqual([answered.events, answered.page?.nextCursor], [[], page?.nextCursor]);
    ok(performance.now() - began < 10_000);
  });
});
