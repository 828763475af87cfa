import { deepEqual, equal, match, ok, rejects } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { appendFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import type { EventEraser, EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import { type AccountCommand, account } from '#domain/account.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { type InviteCommand, invite } from '#domain/invite.ts';
import { target } from '#domain/post-target/target.ts';
import { teaminvite } from '#domain/teaminvite.ts';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { EventStoreDbStore } from '#infra/eventstoredb/event-store.ts';
import { fillIndex } from '#infra/eventstoredb/workspace-index.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { WorkspacePositions } from '#infra/postgres/workspace-positions.ts';
import { migrate as migrateReadModels } from '#projections/engine/tables.ts';
import { eraseDue, eraseWorkspace, erasureOf } from '#projections/feed/erasure.ts';
import { numberEvents } from '#projections/feed/number.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { closeWorkspaces } from '#runtime/work/closed-workspaces.ts';
import { PublishingHold } from '#runtime/work/publishing-hold.ts';
import { requireWholeExport } from '#services/admin/audit.ts';
import { deleteWorkspace, restoreWorkspace } from '#services/admin/closing.ts';
import type { Admin, Given } from '#services/admin/context.ts';
import { exportFeed, writeFinalExport } from '#services/admin/move-export.ts';
import { readPassphrase } from '#services/admin/move-folder.ts';
import { importExport, importWorkspace, readExport } from '#services/admin/move-import.ts';
import { contextOf, type Operator } from '#services/workflows/provision.ts';
import { readyAsset } from '#test/support/assets.ts';
import { testClickHouse } from '#test/support/clickhouse.ts';
import { EventStoreDouble } from '#test/support/eventstoredb/double.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { type Numbering, startNumbering } from '#test/support/numbering.ts';
import { preparedDatabase, testDatabase } from '#test/support/postgres.ts';
import { Process, run, start } from '#test/support/processes.ts';
import { planned, postBody } from '#test/support/samples.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { dispatching } from '#test/support/webhooks.ts';

/**
 * A workspace with some of everything is moved: into an installation over Postgres by the operator's command, which dies
 * behind each of its effects, and into one over EventStoreDB.
 */

const secretKey = (): string => `v1:${randomBytes(32).toString('base64')}`;
const quiet = { info: () => undefined, warn: () => undefined };
/** Nothing is under way in these worlds that would have to be waited for. */
const noWait = { quietMs: 0, settleMs: 0 };

/** Its server may end before it does. */
const poolOn = (url: string): pg.Pool => {
  const pool = new pg.Pool({ connectionString: url, max: 4 });
  pool.on('error', () => undefined);
  return pool;
};

interface FeedRow {
  readonly sequence: string;
  readonly event_id: string;
  readonly stream: string;
  readonly at: Date;
  readonly hash: Buffer;
}

const feedOf = async (pool: pg.Pool, workspaceId: string, size: number): Promise<readonly FeedRow[]> => {
  const { rows } = await pool.query<FeedRow>(
    `select sequence, event_id, stream, revision, type, at, client_id, hash from ops.feed_events
     where workspace_id = $1 and sequence <= $2 order by sequence`,
    [workspaceId, size],
  );
  return rows;
};

interface Parts {
  readonly pool: pg.Pool;
  readonly eventStore: EventStore & EventEraser;
  readonly secrets: Secrets;
  readonly blobs: DiskBlobs;
  readonly log?: Log;
}

/** What the commands use of an installation. */
const adminOf = ({ pool, eventStore, secrets, blobs, log }: Parts): Admin & { readonly notes: string[] } => {
  const dataKeys = new PostgresDataKeys({ pool, secrets });
  const codec = new EventCodec(dataKeys);
  const store = new DomainStore(eventStore, codec, 12);
  const notes: string[] = [];
  const actor = { type: 'admin', id: 'test' } as const;
  const operator: Operator = { store, pool, actor, clock: Date.now, positions: new Map() };
  return {
    ...{ operator, store, pool, eventStore, codec, secrets, dataKeys, blobs, log, notes, confirm: null },
    ...{ analytics: null, eraser: eventStore },
    ...{ signal: new AbortController().signal, note: (text: string) => void notes.push(text) },
  } as unknown as Admin & { readonly notes: string[] };
};

const given = (places: readonly string[], flags: Readonly<Record<string, string | true>> = {}): Given => ({
  at: (place) => places[place] ?? '',
  flag: (name) => (typeof flags[name] === 'string' ? flags[name] : undefined),
  has: (name) => flags[name] === true,
});

suite('a workspace moves', { timeoutMs: 240_000 }, (t) => {
  const scratch = mkdtempSync(path.join(tmpdir(), 'move-'));
  afterFile(async () => rmSync(scratch, { recursive: true, force: true }));
  const at = (...names: readonly string[]): string => path.join(scratch, ...names);
  const keyFile = at('passphrase');
  writeFileSync(keyFile, 'correct horse battery staple\n');
  const passphrase = readPassphrase(keyFile);
  const [secretA, secretB] = [secretKey(), secretKey()];

  let origin: World;
  let numbering: Numbering;
  let admin: ReturnType<typeof adminOf>;
  /** Of the origin. */
  const made = {
    clientId: '',
    accountId: '',
    targetId: '',
    waitingId: '',
    webhookId: '',
    inviteId: '',
    mediaId: '',
    kept: '',
  };
  let exported: { readonly events: number; readonly root: string };
  let esdb: Awaited<ReturnType<typeof empty>> & { readonly double: EventStoreDouble };

  const append = (stream: string, events: readonly { type: string; data: unknown }[], key: string) =>
    origin.store.append(stream, -1, events, contextOf(origin.operator, origin.workspaceId), key);

  const fill = async (): Promise<void> => {
    const { owner, operator, store, workspaceId } = origin;
    made.clientId = (await owner.post('/clients', { name: 'Acme', type: 'brand' })).data.id;
    const { clientId } = made;
    made.accountId = crypto.randomUUID();
    const connect: AccountCommand = {
      type: 'Connect',
      ...{ clientId, platform: 'x', externalId: 'x-1', network: 'live', scopes: ['write'] },
      ...{
        username: 'acme',
        displayName: 'Acme Inc',
        avatarUrl: null,
        expiresAt: null,
        timezone: null,
        inviteId: null,
      },
    };
    await execute(store, account, made.accountId, connect, contextOf(operator, workspaceId));
    await origin.pool.query(
      `insert into ops.network_credentials (account_id, workspace_id, client_id, platform, version, sealed)
       values ($1, $2, $3, 'x', 1, '\\x00')`,
      [made.accountId, workspaceId, clientId],
    );
    const hook = await owner.post('/webhooks', { url: 'https://example.com/hook', events: ['*'] });
    made.webhookId = hook.data.id;
    await owner.post(`/webhooks/${made.webhookId}/test`, { eventType: 'post.published' });
    const expiresAt = new Date(Date.now() + 86_400_000).toISOString();
    const open = { expiresAt, keyVersion: 'v1' } as const;
    const toConnect = { type: 'Create', clientId, platforms: ['x'], recipientEmail: 'a@example.com', maxAccounts: 1 };
    const by = () => contextOf(operator, workspaceId);
    await execute(store, invite, crypto.randomUUID(), { ...toConnect, ...open } as InviteCommand, by());
    const inviteId = crypto.randomUUID();
    await execute(
      store,
      teaminvite,
      inviteId,
      {
        ...{ type: 'Create', inviteId, memberId: origin.memberId, email: 'b@example.com', name: 'B', role: 'viewer' },
        ...{ now: new Date().toISOString(), ...open },
      },
      by(),
    );
    const body = Buffer.from('a picture');
    const blobs = origin.deps.blobs;
    made.mediaId = (await readyAsset(store, workspaceId, 'image', { clientId, body, blobs })).id;
    const postId = crypto.randomUUID();
    made.targetId = crypto.randomUUID();
    made.waitingId = crypto.randomUUID();
    const dueAt = new Date(Date.now() + 86_400_000).toISOString();
    const targets = [made.targetId, made.waitingId].map((targetId) =>
      planned({ targetId, accountId: made.accountId, clientId, dueAt }),
    );
    const createdBy = { type: 'apikey', id: 'k' };
    const scheduled = { clientId, createdBy, body: postBody(), plan: { number: 1, targets } };
    await append(`post-${postId}`, [{ type: 'PostScheduled', data: scheduled }], postId);
    for (const one of targets)
      await append(
        `target-${one.targetId}`,
        [
          { type: 'TargetScheduled', data: { ...one, postId, postRevision: 0 } },
          ...(one.targetId === made.targetId
            ? [{ type: 'TargetPublishStarted', data: { attempt: 1, takeover: 0 } }]
            : []),
        ],
        postId,
      );
  };

  t.before(async () => {
    const db = await preparedDatabase();
    const secrets = new Secrets(secretA);
    const keys = poolOn(db.url);
    origin = await startWorld({
      ...{ databaseUrl: db.url, secrets },
      codec: new EventCodec(new PostgresDataKeys({ pool: keys, secrets })),
    });
    afterFile(async () => keys.end());
    numbering = startNumbering(origin);
    const { pool, eventStore, log } = origin;
    admin = adminOf({ pool, eventStore, log, secrets, blobs: origin.deps.blobs as DiskBlobs });
    await fill();
    await origin.settled();
    await numbering.numbered();
  });
  t.after(async () => {
    await numbering?.stop();
    await origin?.close();
  });

  t('an export with --final closes the workspace first, and says what cannot move', async () => {
    const { workspaceId, owner } = origin;
    await rejects(exportFeed(admin, given([], { to: at('none'), workspace: workspaceId, final: true })), /--key-file/);
    writeFileSync(at('short'), 'short');
    const short = given([], { to: at('none'), workspace: workspaceId, final: true, 'key-file': at('short') });
    await rejects(exportFeed(admin, short), /fewer than 16 characters/);
    equal((await owner.get('/clients')).status, 200);
    const env = { DATABASE_URL: origin.db.url, SECRET_KEY: secretA };
    const dies = (point: string) =>
      run('services/admin/main.ts', {
        env: { ...env, POSTLINE_FAULT: point, POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
        args: ['audit', 'export', '--to', at('dead'), '--final', '--key-file', keyFile, '--workspace', workspaceId],
      });
    equal((await dies('export:after-close')).signal, 'SIGKILL');
    // The row alone decides it, for the api and for what publishes.
    await until('the workspace is closed', async () => (await owner.get('/clients')).status === 403, sparing);
    const refused = await owner.get('/clients');
    equal(refused.body.code, 'workspace_closed');
    match(String(refused.body.detail), /was moved to another installation/);
    ok((await new PublishingHold(origin.pool, 'on').of(workspaceId)) !== null);
    const late = origin.store.append(`late-${made.clientId}`, -1, [], contextOf(origin.operator, workspaceId), 'late');
    await rejects(late, /was moved to another installation/);
    mkdirSync(at('export'));
    const final = { folder: at('export'), passphrase, withFiles: true };
    const answer = (await writeFinalExport(admin, workspaceId, final, noWait)) as never as {
      readonly events: number;
      readonly root: string;
      readonly stays: readonly { readonly what: string; readonly count: number }[];
    };
    exported = answer;
    match(admin.notes.join('\n'), /1 targets are in the middle of publishing/);
    deepEqual(
      answer.stays.map(({ what, count }) => [what, count]),
      [
        ['credentials of networks', 1],
        ['secrets of webhooks', 1],
        ['links to connect, to join and to approve', 2],
      ],
    );
    equal((await requireWholeExport(at('export'), {})).root, answer.root);
    made.kept = at('export', 'checkpoint.txt');
    const plain =
      readFileSync(at('export', 'data-keys.json'), 'utf8') + readFileSync(at('export', 'events.ndjson'), 'utf8');
    ok(!plain.includes('Acme Inc'), 'a personal member left in the clear');
  });

  /** An installation that nobody has started. */
  const empty = async (name: string) => {
    const db = await preparedDatabase();
    const pool = poolOn(db.url);
    await migrateReadModels(pool);
    const secrets = new Secrets(secretB);
    const blobs = new DiskBlobs({ root: at(name), secrets, origin: () => 'http://files.test' });
    return { url: db.url, pool, secrets, blobs };
  };

  t(
    'over EventStoreDB: what was changed on its way is refused before anything is written; numbers and root are the same',
    async () => {
      const { workspaceId } = origin;
      const double = await EventStoreDouble.start({});
      const eventStore = new EventStoreDbStore({ url: double.url });
      const parts = await empty('blobs-esdb');
      const other = adminOf({ ...parts, eventStore });
      const changed = (name: string, change: (folder: string) => void): Promise<unknown> => {
        cpSync(at('export'), at(name), { recursive: true });
        change(at(name));
        return readExport(at(name), { passphrase });
      };
      const edit = (file: string) => (folder: string) => appendFileSync(path.join(folder, file), '{}\n');
      await rejects(changed('t1', edit('events.ndjson')), /events\.ndjson is not the file that was exported/);
      await rejects(changed('t2', edit('requests.ndjson')), /requests\.ndjson is not the file/);
      const [file] = readFileSync(at('export', 'blobs.ndjson'), 'utf8')
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line));
      await rejects(changed('t3', edit(`files/${file.sha256}`)), /is not the file that was exported/);
      // Whoever changes the manifest as well lacks the passphrase.
      const both = (folder: string): void => {
        writeFileSync(path.join(folder, 'requests.ndjson'), '{}\n');
        const manifest = JSON.parse(readFileSync(path.join(folder, 'manifest.json'), 'utf8'));
        const empty = 'ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356';
        writeFileSync(
          path.join(folder, 'manifest.json'),
          JSON.stringify({ ...manifest, files: { ...manifest.files, 'requests.ndjson': empty } }),
        );
      };
      await rejects(changed('t4', both), /is not opened by the passphrase/);
      await rejects(readExport(at('export'), { passphrase: Buffer.from('another passphrase') }), /is not opened/);
      equal((await parts.pool.query('select from ops.workspace_moves')).rowCount, 0);
      equal(await eventStore.head(), null);
      const client = new pg.Client({ connectionString: parts.url, application_name: 'publisher' });
      await client.connect();
      const asked = given([at('export')], { 'key-file': keyFile });
      await rejects(importWorkspace(other, asked), /Stop all processes first .*publisher/);
      await client.end();
      const read = await readExport(at('export'), { passphrase });
      const answer = (await importExport(other, read)) as never as { readonly root: string; readonly became: unknown };
      equal(answer.root, exported.root);
      equal((await importExport(other, read)).imported, 'before, from this export');
      const again = { ...read, digest: 'f'.repeat(64) };
      await rejects(importExport(other, again), /came here from another export/);
      const stop = new AbortController();
      const numbers = numberEvents({ store: eventStore, pool: parts.pool, signal: stop.signal, logger: quiet });
      await until('all events are numbered', async () => {
        const { rows } = await parts.pool.query('select size from ops.feed_heads where workspace_id = $1', [
          workspaceId,
        ]);
        return Number(rows[0]?.size ?? 0) > exported.events;
      });
      stop.abort();
      await numbers;
      deepEqual(
        await feedOf(parts.pool, workspaceId, exported.events),
        await feedOf(origin.pool, workspaceId, exported.events),
      );
      await eventStore.close();
      esdb = { ...parts, double };
    },
  );

  t(
    'over EventStoreDB an erasure goes on over each death; nobody reads what a scavenge has still to remove',
    async () => {
      const { workspaceId } = origin;
      const { double, pool, url, secrets, blobs } = esdb;
      const both = [workspaceId, testTwinIdOf(workspaceId)];
      const { rows: epochs } = await pool.query('select epoch from ops.feed_epochs');
      const eventStore = new EventStoreDbStore({ url: double.url, index: new WorkspacePositions(pool) });
      const other = crypto.randomUUID();
      const append = (stream: string) => {
        const metadata = Buffer.from(JSON.stringify({ workspaceId: other, partitionKey: 'p' }));
        const event = {
          id: crypto.randomUUID(),
          type: 'ClientCreated',
          data: Buffer.from('{"name":"Here"}'),
          metadata,
        };
        return eventStore.append(stream, 'none', [{ ...event, partitionKey: 'p', workspaceId: other }]);
      };
      await append(`client-${crypto.randomUUID()}`);
      const before = await eventStore.readAll({ after: null, limit: 1_000 });
      const of = (ids: readonly string[]) =>
        before.filter(({ metadata }) => ids.some((id) => Buffer.from(metadata).includes(id)));
      const [own, size] = [of(both), of([workspaceId]).length];
      ok(size > 15);
      const index = new WorkspacePositions(pool);
      const filled = new AbortController();
      const filling = fillIndex(eventStore, index, { signal: filled.signal, logger: quiet });
      await until('the index is filled', async () => (await index.reached())?.position === before.at(-1)?.position);
      filled.abort();
      await filling;
      const stop = new AbortController();
      const numbers = numberEvents({ store: eventStore, pool, signal: stop.signal, logger: quiet });
      const erasing = {
        ...adminOf({ pool, eventStore, secrets, blobs }),
        clock: Date.now,
      };
      const why: string[] = [];
      const failed = (_id: string, error: unknown): void => void why.push(String(error));
      await closeWorkspaces(pool, both, {
        why: 'deleting',
        by: 'test',
        eraseAt: new Date(Date.now() + 60_000).toISOString(),
      });
      await eraseDue(erasing, failed);
      equal(await erasureOf({ pool }, workspaceId), null, 'its time is not over');
      await pool.query('update ops.closed_workspaces set erase_at = now()');

      // The connection breaks before a deletion and behind one, and then the process dies with half of the streams deleted.
      double.faults.deletes.push('cut_after_commit', 'cut');
      const half: EventEraser = {
        stays: null,
        forget: (id) => eventStore.forget(id),
        erase: async (events) => {
          await eventStore.erase(events.slice(0, 5));
          throw new Error('it died');
        },
      };
      await eraseDue({ ...erasing, eraser: half }, failed);
      deepEqual(new Set(why), new Set(['Error: it died']));
      const deaths = why.length;
      const elsewhere = await pool.connect();
      for (const id of both) await elsewhere.query('select pg_advisory_lock(hashtextextended($1, 0))', [`erase ${id}`]);
      await eraseDue(erasing, failed);
      equal((await erasureOf({ pool }, workspaceId))?.done.includes('events'), false);
      await rejects(eraseWorkspace(erasing, workspaceId), /Another process erases workspace/);
      await elsewhere.query('select pg_advisory_unlock_all()');
      elsewhere.release();
      const args = [url, double.url, secretB, at('blobs-esdb')];
      const env = { POSTLINE_FAULT: 'erase:between-events', POSTLINE_FAULT_SIGNAL: 'SIGKILL' };
      const { signal, output } = await run('test/services/admin/erase-process.ts', { env, args });
      equal(signal, 'SIGKILL', output);
      const undone = await erasureOf({ pool }, workspaceId);
      deepEqual([undone?.receipt, undone?.done.includes('events')], [null, false]);
      await eraseDue(erasing, failed);
      equal(why.length, deaths);
      for (const id of both) {
        const receipt = (await erasureOf({ pool }, id))?.receipt ?? '';
        match(receipt, /\nkeeps in EventStoreDB a tombstone of each stream.* until a scavenge of every node/);
        match(receipt, new RegExp(`^postline/${id}\n`));
      }
      match((await erasureOf({ pool }, workspaceId))?.receipt ?? '', new RegExp(`\nerased ${size} events\n`));
      equal((await pool.query('select from ops.closed_workspaces')).rowCount, 0);
      equal((await pool.query('select from ops.workspace_events where workspace = any($1)', [both])).rowCount, 0);

      // The server has the bytes still. What reads all of the store gets the places alone, and no stream answers.
      ok(double.log.all.some(({ data }) => Buffer.from(data).includes('Acme')));
      const reader = new EventStoreDbStore({ url: double.url, index: new WorkspacePositions(pool) });
      const after = await reader.readAll({ after: null, limit: 1_000 });
      deepEqual(
        after.map(({ id, position }) => [id, position]),
        before.map(({ id, position }) => [id, position]),
      );
      const saying = after.filter(({ type }) => type !== 'Erased');
      deepEqual(
        saying.map(({ id }) => id),
        before.filter((one) => !own.includes(one)).map(({ id }) => id),
      );
      for await (const item of reader.subscribe({ after: null, signal: AbortSignal.timeout(20_000) })) {
        if (item.kind === 'caughtUp') break;
        ok(!Buffer.from(item.event.metadata).includes(workspaceId), item.event.stream);
      }
      deepEqual((await reader.readWorkspace(workspaceId, { after: null, limit: 100 })).events, []);
      for (const stream of new Set(own.map((one) => one.stream))) {
        await rejects(reader.read(stream), { code: 'access_denied' });
        await rejects(append(stream), /was deleted permanently/);
      }
      // Others go on, and the numbering stands at an event that says nothing any more.
      await append(`client-${crypto.randomUUID()}`);
      await until('the other workspace is numbered', async () => {
        const { rows } = await pool.query('select size from ops.feed_heads where workspace_id = $1', [other]);
        return Number(rows[0]?.size) === 2;
      });
      deepEqual((await pool.query('select epoch from ops.feed_epochs')).rows, epochs);
      stop.abort();
      await numbers;
      for (const store of [eventStore, reader]) await store.close();
      await double.stop();
      await pool.end();
    },
  );

  t(
    'over Postgres: the command dies behind each effect, and goes on; then another installation answers the same keys',
    async () => {
      const { workspaceId, liveKey } = origin;
      const db = await testDatabase();
      const env = { DATABASE_URL: db.url, SECRET_KEY: secretB, DATA_DIR: at('data') };
      const imported = (more: Record<string, string> = {}) =>
        run('services/admin/main.ts', {
          env: { ...env, ...more },
          args: ['audit', 'import', at('export'), '--key-file', keyFile, '--json'],
        });
      const dies = async (point: string): Promise<void> => {
        const { signal, output } = await imported({ POSTLINE_FAULT: point, POSTLINE_FAULT_SIGNAL: 'SIGKILL' });
        equal(signal, 'SIGKILL', `${point}: ${output}`);
      };
      for (const point of [
        'import:after-begin',
        'import:after-keys',
        'import:after-file',
        'import:after-append',
        'import:after-events',
        'import:after-settled',
      ]) {
        await dies(point);
      }
      const early = new Process('projections/main.ts', { env });
      equal((await early.exited()).code === 0, false);
      match(early.output(), /import of workspace .* has not ended/);
      const { code, output } = await imported();
      equal(code, 0, output);
      const answer = JSON.parse(output.slice(output.search(/^\{/m)));
      equal(answer.root, exported.root);
      deepEqual(answer.became.map(({ what, count }: { what: string; count: number }) => [what, count]).sort(), [
        ['accounts', 1],
        ['links to connect accounts', 1],
        ['links to join the team', 1],
        ['targets in the middle of publishing', 1],
        ['webhooks', 1],
      ]);

      const secrets = new Secrets(secretB);
      const keys = poolOn(db.url);
      const world = await startWorld({
        ...{ databaseUrl: db.url, secrets },
        codec: new EventCodec(new PostgresDataKeys({ pool: keys, secrets })),
      });
      const numbered = startNumbering(world);
      const dispatched = await dispatching(world);
      try {
        await world.settled();
        await dispatched.settled();
        await numbered.numbered();
        // The numbers, the times and the leaves are those of the origin.
        deepEqual(
          await feedOf(world.pool, workspaceId, exported.events),
          await feedOf(origin.pool, workspaceId, exported.events),
        );
        // The key of the origin works, personal members are read, and nothing goes out.
        const owner = world.callerWith(liveKey.secret);
        const shown = await owner.get(`/accounts/${made.accountId}`);
        equal(shown.status, 200, shown.text);
        deepEqual([shown.data.displayName, shown.data.status], ['Acme Inc', 'reauth_required']);
        ok((await new PublishingHold(world.pool, 'on').of(workspaceId)) !== null);
        const waiting = await world.store.load(target, made.waitingId);
        equal(waiting.state.status, 'pending');
        const open = await world.store.load(target, made.targetId);
        equal(open.state.status, 'outcome_unknown');
        // Of what came with it nothing is delivered again; of what was decided here it is.
        const { rows: sent } = await world.pool.query(
          'select distinct type from ops.webhook_deliveries where workspace_id = $1 order by 1',
          [workspaceId],
        );
        deepEqual(
          sent.map(({ type }) => type),
          ['account.reauth_required', 'invite.revoked', 'target.outcome_unknown'],
        );
        const link = await owner.get(`/webhooks/${made.webhookId}`);
        equal(link.status, 200, link.text);
        // A cursor of the origin goes on, and a checkpoint from there is verified against an export from here.
        const from = `1.${exported.events - 1}`;
        const page = await owner.get(`/events?after=${from}&limit=1`);
        equal(page.status, 200, page.text);
        equal(page.rows[0]?.sequence, exported.events);
        const there = adminOf({ ...world, secrets, blobs: world.deps.blobs as DiskBlobs });
        await exportFeed(there, given([], { to: at('later'), workspace: workspaceId }));
        await requireWholeExport(at('later'), { checkpoint: made.kept });
        const { moves } = JSON.parse(readFileSync(at('later', 'moves.json'), 'utf8'));
        match(moves[0].statement, new RegExp(`\n${exported.events}\n${exported.root.replaceAll('+', '\\+')}\n`));
        writeFileSync(at('later', 'moves.json'), JSON.stringify({ moves: [] }));
        await rejects(requireWholeExport(at('later'), { checkpoint: made.kept }), /not signed by the key/);
      } finally {
        await dispatched.stop();
        await numbered.stop();
        await world.close();
        await keys.end();
      }
    },
  );

  t(
    'the origin opens it again where an operator says that it is nowhere else, and takes no import of its own',
    async () => {
      const { workspaceId, owner } = origin;
      const read = await readExport(at('export'), { passphrase });
      await rejects(importExport(admin, read), /is in this installation already/);
      await rejects(restoreWorkspace(admin, given([workspaceId])), /Nothing was opened/);
      await restoreWorkspace(admin, given([workspaceId], { yes: true }));
      await until('the workspace is open', async () => (await owner.get('/clients')).status === 200, sparing);
      await rejects(restoreWorkspace(admin, given([workspaceId])), /nothing to restore/);
      await closeWorkspaces(origin.pool, [testTwinIdOf(workspaceId)], { why: 'moved', by: 'test', eraseAt: null });
      await restoreWorkspace(admin, given([workspaceId], { yes: true }));
    },
  );

  t('behind its time a process erases a workspace by itself, also where one died over it, and no other', async () => {
    const [due, kept] = [await origin.agency('West Star'), await origin.agency('East Star')];
    for (const [{ workspaceId }, name, days] of [
      [due, 'West Star', '0'],
      [kept, 'East Star', '1'],
    ] as const) {
      await deleteWorkspace(admin, given([workspaceId], { name, days }));
    }
    const env = { DATABASE_URL: origin.db.url, SECRET_KEY: secretA, DATA_DIR: at('data-origin') };
    await numbering.stop();
    const died = new Process('projections/main.ts', {
      env: { ...env, POSTLINE_FAULT: 'erase:between-tables', POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
    });
    equal((await died.exited()).signal, 'SIGKILL', died.output());
    equal((await erasureOf(admin, due.workspaceId))?.receipt, null);
    const running = await start('projections/main.ts', { env });
    const receipts = await until('both are erased', async () => {
      const found = await Promise.all(
        [due.workspaceId, testTwinIdOf(due.workspaceId)].map(
          async (id) => (await erasureOf(admin, id))?.receipt ?? null,
        ),
      );
      return found.every((one) => one !== null) ? found : null;
    });
    match(receipts[0] ?? '', /\nerased \d+ events\n/);
    equal(await erasureOf(admin, kept.workspaceId), null);
    await running.stop();
    numbering = startNumbering(origin);
    const asked = (await deleteWorkspace(admin, given([due.workspaceId]))) as { readonly receipt: string };
    equal(asked.receipt, receipts[0]);
    await restoreWorkspace(admin, given([kept.workspaceId]));
  });

  t('delete can be taken back for a time, then erases all of it, over every death, and signs a receipt', async () => {
    const { workspaceId, owner, pool } = origin;
    const other = await origin.agency('South Star');
    const named = given([workspaceId], { name: 'North Star' });
    await rejects(deleteWorkspace(admin, given([workspaceId], { name: 'South Star' })), /has another name/);
    const closed = (await deleteWorkspace(admin, named)) as { readonly eraseAt: string };
    ok(Math.abs(Date.parse(closed.eraseAt) - Date.now() - 30 * 86_400_000) < 60_000);
    await until('the workspace is closed', async () => (await owner.get('/clients')).status === 403, sparing);
    match(String((await owner.get('/clients')).body.detail), /is to be erased at/);
    ok((await new PublishingHold(pool, 'on').of(testTwinIdOf(workspaceId))) !== null);
    deepEqual(await deleteWorkspace(admin, named), closed);
    await restoreWorkspace(admin, given([workspaceId]));
    await until('the workspace is open', async () => (await owner.get('/clients')).status === 200, sparing);

    await exportFeed(admin, given([], { to: at('last'), workspace: workspaceId }));
    const { client } = await testClickHouse();
    await client.command({
      query: 'create table figures_v1 (workspace_id UUID, n UInt8) engine = MergeTree order by n',
    });
    const values = [workspaceId, other.workspaceId].map((id, n) => ({ workspace_id: id, n }));
    await client.insert({ table: 'figures_v1', values, format: 'JSONEachRow' });
    await pool.query(
      `insert into auth.sessions (id, secret_hash, person_id, workspace_id, device, address, created_at, last_used_at, expires_at)
       values ($1, 'x', $1, $2, 'd', 'a', now(), now(), now())`,
      [crypto.randomUUID(), workspaceId],
    );
    await deleteWorkspace(admin, given([workspaceId], { name: 'North Star', days: '0' }));
    const env = { DATABASE_URL: origin.db.url, SECRET_KEY: secretA, DATA_DIR: at('data-origin') };
    // The command is a process with a folder of its own.
    const files = new DiskBlobs({ root: at('data-origin', 'blobs'), secrets: origin.secrets, origin: () => '' });
    const file = { contentType: 'image/jpeg', bytes: 9 };
    await files.put(`${workspaceId}/${made.mediaId}/original`, Buffer.from('a picture'), file);
    const dies = async (point: string): Promise<void> => {
      const { signal, output } = await run('services/admin/main.ts', {
        env: { ...env, POSTLINE_FAULT: point, POSTLINE_FAULT_SIGNAL: 'SIGKILL' },
        args: ['workspace', 'delete', workspaceId, '--name', 'North Star'],
      });
      equal(signal, 'SIGKILL', `${point}: ${output}`);
    };
    for (const point of ['erase:after-begin', 'erase:before-note', 'erase:between-events', 'erase:between-tables']) {
      await dies(point);
    }
    await rejects(restoreWorkspace(admin, given([workspaceId])), /The erasure of this workspace has begun/);
    const { rows: feed } = await pool.query('select count(*)::int as n from ops.feed_events where workspace_id = $1', [
      workspaceId,
    ]);
    const size = feed[0].n;
    const asked = given([workspaceId], { receipt: at('receipt') });
    const { receipt } = (await deleteWorkspace({ ...admin, analytics: client }, asked)) as {
      readonly receipt: string;
    };
    const figures = await client.query({ query: 'select n from figures_v1', format: 'JSONEachRow' });
    deepEqual(await figures.json(), [{ n: 1 }]);
    match(receipt, /\nerased 1 figures of figures_v1\n/);
    await requireWholeExport(at('last'), { checkpoint: at('receipt') });
    match(receipt, new RegExp(`^postline/${workspaceId}\n${size}\n`));
    match(receipt, /\nerased \d+ events\n/);
    match(receipt, /\nerased 2 data keys\n/);
    match(receipt, /\nerased 1 rows of ops\.network_credentials\n/);
    match(receipt, new RegExp(`\nkeeps ${size} leaves`));
    equal(((await deleteWorkspace(admin, given([workspaceId]))) as { receipt: string }).receipt, receipt);

    // Node alone verifies it.
    const [{ verifier = '' } = {}] = JSON.parse(readFileSync(at('export', 'keys.json'), 'utf8')).keys;
    const verified = (file: string) =>
      spawnSync(process.execPath, [at('export', 'verify-export.mjs'), '--receipt', file, '--key', verifier], {
        encoding: 'utf8',
      });
    const whole = verified(at('receipt'));
    deepEqual([whole.status, /signed by the key/.test(whole.stdout)], [0, true], whole.stderr);
    writeFileSync(at('forged'), receipt.replace(/erased \d+ events/, 'erased 1 events'));
    equal(verified(at('forged')).status, 1);

    // Nothing names it but what is kept, and nothing says what it had.
    const { rows: tables } = await pool.query(
      `select n.nspname as schema, c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where n.nspname in ('ops', 'read', 'auth', 'es') and c.relkind in ('r', 'p') and not c.relispartition`,
    );
    const left: string[] = [];
    for (const { schema, name } of tables) {
      const { rows } = await pool.query(
        `select count(*)::int as n from ${schema}."${name}" t where t::text like any ($1)`,
        [[workspaceId, testTwinIdOf(workspaceId), made.accountId, 'Acme', 'example.com/hook'].map((one) => `%${one}%`)],
      );
      if (rows[0].n > 0) left.push(`${schema}.${name}`);
    }
    deepEqual(
      left.filter((name) => !/^ops\.(feed_|workspace_erasures)/.test(name)),
      [],
    );
    equal((await pool.query('select from auth.sessions')).rowCount, 1);
    equal(await files.head(`${workspaceId}/${made.mediaId}/original`), null);

    // Others go on: consumers and the numbering stand at events that say nothing any more.
    await numbering.stop();
    numbering = startNumbering(origin);
    const { rows: before } = await pool.query('select max(epoch) as epoch from ops.feed_epochs');
    equal((await other.owner.post('/clients', { name: 'Still here', type: 'brand' })).status, 200);
    await origin.settled();
    await numbering.numbered();
    equal((await other.owner.get('/clients')).rows.length, 1);
    deepEqual((await pool.query('select max(epoch) as epoch from ops.feed_epochs')).rows, before);
    await until('the key is unknown', async () => (await owner.get('/clients')).status === 401, sparing);
    const read = await readExport(at('export'), { passphrase });
    await rejects(importExport(admin, read), /was erased in this installation/);
  });
});
