import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { ClickHouseError, type ClickHouseSettings } from '@clickhouse/client';
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { type EmbeddedAnalyticsOptions, noteOf, startEmbeddedAnalytics } from '#infra/clickhouse/embedded.ts';
import { joinAnalytics } from '#infra/clickhouse/join.ts';
import { embeddedClickHouse, testClickHouse } from '#test/support/clickhouse.ts';
import { serverFolder } from '#test/support/postgres.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** One with options of its own, in a folder that goes with this file. */
const started = async (options: Partial<EmbeddedAnalyticsOptions> = {}) => {
  const { dataDir: dir, drop } = serverFolder();
  const troubles: string[] = [];
  const embedded = await startEmbeddedAnalytics({ dir, onTrouble: (reason) => troubles.push(reason), ...options });
  afterFile(async () => {
    await embedded.stop();
    await drop();
  });
  return { embedded, dir, troubles };
};

const connected = async (url: string): Promise<Socket> => {
  const socket = connect(Number(new URL(url).port), '127.0.0.1').resume();
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  return socket;
};

/** Closed or reset. */
const closed = (socket: Socket): Promise<void> =>
  new Promise((done) => {
    if (socket.closed) done();
    else socket.once('close', () => done());
  });

const one = async (url: string, query = 'select 1 as n'): Promise<unknown> => {
  const client = openAnalytics({ url });
  try {
    return await (await client.query({ query, format: 'JSONCompactEachRow' })).json();
  } finally {
    await client.close();
  }
};

suite('the analytics store as its client sees it', { waits: true }, (t) => {
  t('binds parameters and never runs them as SQL', async () => {
    const { client } = await testClickHouse();
    const answer = await client.query({
      query: `select {text:String} as text, {none:Nullable(Int64)} as none, {many:Array(String)} as many,
        {id:UUID} as id, {day:Date} as day`,
      query_params: {
        text: `a\tb\\c'd"\n; drop`,
        none: null,
        many: ["x'y", 'z'],
        id: '0197a000-0000-7000-8000-000000000001',
        day: '2026-02-03',
      },
      format: 'JSONEachRow',
    });
    assert.deepEqual(await answer.json(), [
      {
        text: `a\tb\\c'd"\n; drop`,
        none: null,
        many: ["x'y", 'z'],
        id: '0197a000-0000-7000-8000-000000000001',
        day: '2026-02-03',
      },
    ]);
  });

  t('inserts many rows and few rows alike', async () => {
    const { client } = await testClickHouse();
    const columns = `k UInt32, text String, n Nullable(Int64), day Date, named String default 'unnamed'`;
    await client.command({ query: `create table few (${columns}) engine = MergeTree order by k` });
    await client.command({ query: `create table many (${columns}) engine = MergeTree order by k` });
    const odd = ['', "it's; -- /* \\\\ */", 'a\\tb\\nc', 'ünïcode ✓', '{"a":"b"}', '`"'];
    const rows = Array.from({ length: 4_000 }, (_, k) => `${k}\t${odd[k % 6]}\t${k % 2 ? k : '\\N'}\t2026-02-03`);
    const add = (table: string, lines: readonly string[]) =>
      client.insert({
        table,
        columns: ['k', 'text', 'n', 'day'],
        values: Readable.from([`${lines.join('\n')}\n`], { objectMode: false }),
        format: 'TabSeparated',
      });
    for (let at = 0; at < rows.length; at += 500) await add('few', rows.slice(at, at + 500));
    await add('many', rows);
    assert.ok(rows.join('\n').length > 100_000);
    const reported = async (table: string) =>
      (await client.query({ query: `select * from ${table} order by k`, format: 'JSONEachRow' })).text();
    assert.equal(await reported('many'), await reported('few'));
    await assert.rejects(add('many', [...rows, 'no row']), ClickHouseError);
    assert.equal(await reported('many'), await reported('few'));
  });

  t('keeps null, 0 and the largest integers apart through an insert', async () => {
    const { client } = await testClickHouse();
    await client.command({ query: 'create table t (k UInt8, n Nullable(Int64)) engine = MergeTree order by k' });
    const most = Number.MAX_SAFE_INTEGER;
    await client.insert({
      table: 't',
      columns: ['k', 'n'],
      values: [
        [1, null],
        [2, 0],
        [3, most],
      ],
      format: 'JSONCompactEachRow',
    });
    const rows = await (
      await client.query({ query: 'select n from t order by k', format: 'JSONCompactEachRow' })
    ).json();
    assert.deepEqual(rows, [[null], ['0'], [String(most)]]);
    await client.insert({ table: 't', columns: ['k', 'n'], values: [], format: 'JSONCompactEachRow' });
  });

  t('fails with the error of ClickHouse, and inserts nothing of a bad batch', async () => {
    const { client } = await testClickHouse();
    await client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' });
    const unknown = await client.query({ query: 'select * from nowhere' }).catch((error: unknown) => error);
    assert.ok(unknown instanceof ClickHouseError);
    assert.equal(unknown.type, 'UNKNOWN_TABLE');
    await assert.rejects(
      client.insert({ table: 't', columns: ['k'], values: [[1], ['x']], format: 'JSONCompactEachRow' }),
      ClickHouseError,
    );
    assert.deepEqual(
      await (await client.query({ query: 'select count() as n from t', format: 'JSONEachRow' })).json(),
      [{ n: '0' }],
    );
  });

  t('a setting applies to its statement alone', async () => {
    const { client } = await testClickHouse();
    const threads = async (settings: ClickHouseSettings): Promise<unknown> =>
      (
        await client.query({
          query: `select getSetting('max_block_size') as n`,
          clickhouse_settings: settings,
          format: 'JSONEachRow',
        })
      ).json();
    const before = await threads({});
    assert.deepEqual(await threads({ max_block_size: '777' }), [{ n: 777 }]);
    for (let n = 0; n < 5; n += 1) assert.deepEqual(await threads({}), before);
  });

  t('concurrent statements reach their own databases', async () => {
    const all = await Promise.all([1, 2, 3].map(() => testClickHouse()));
    await Promise.all(
      all.map(({ client }) => client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' })),
    );
    await Promise.all(
      Array.from({ length: 30 }, (_, n) =>
        all[n % 3]?.client.insert({ table: 't', columns: ['k'], values: [[n % 3]], format: 'JSONCompactEachRow' }),
      ),
    );
    for (const [n, { client }] of all.entries()) {
      const rows = await (
        await client.query({ query: 'select k, count() as n from t group by k', format: 'JSONEachRow' })
      ).json();
      assert.deepEqual(rows, [{ k: n, n: '10' }]);
    }
  });
});

suite('the embedded engine', (t) => {
  t('connections to a child that dies before it accepts them are closed', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    const client = openAnalytics({ url: embedded.url });
    await client.query({ query: 'select 1' });
    const port = Number(new URL(embedded.url).port);
    const pid = embedded.pid();
    assert.ok(pid !== null);
    // A stopped child accepts none of them.
    process.kill(pid, 'SIGSTOP');
    const sockets = Array.from({ length: 30 }, () => connect(port, '127.0.0.1').resume());
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    const closed = sockets.map((socket) => once(socket, 'close'));
    process.kill(pid, 'SIGKILL');
    await Promise.all(closed);
    await client.close();
    await remove();
  });

  t('starts with the first connection', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    assert.equal(embedded.pid(), null);
    const client = openAnalytics({ url: embedded.url });
    assert.deepEqual(await (await client.query({ query: 'select 1 as n', format: 'JSONEachRow' })).json(), [{ n: 1 }]);
    assert.notEqual(embedded.pid(), null);
    await client.close();
    await remove();
    assert.equal(embedded.pid(), null);
  });

  t('refuses queries without its password', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    for (const password of ['', 'wrong']) {
      const url = new URL(embedded.url);
      url.password = password;
      const client = openAnalytics({ url: url.href });
      const refused = await client.query({ query: 'select 1' }).catch((error: unknown) => error);
      assert.ok(refused instanceof ClickHouseError);
      assert.equal(refused.type, 'AUTHENTICATION_FAILED');
      await client.close();
    }
    await remove();
  });

  t('after a kill the next connection starts the engine with its data', async () => {
    const { embedded, remove } = await embeddedClickHouse();
    afterFile(remove);
    const client = openAnalytics({ url: embedded.url });
    await client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' });
    await client.insert({ table: 't', columns: ['k'], values: [[7]], format: 'JSONCompactEachRow' });
    for (let n = 0; n < 3; n += 1) {
      process.kill(embedded.pid() ?? assert.fail('it does not run'), 'SIGKILL');
      await until('it died', async () => embedded.pid() === null);
      const rows = await until('an answer', () =>
        client
          .query({ query: 'select k from t', format: 'JSONEachRow' })
          .then((answer) => answer.json())
          .catch(() => null),
      );
      assert.deepEqual(rows, [{ k: 7 }]);
    }
    await client.close();
    await remove();
  });

  t('an unusable folder is reported, and connections are closed', async () => {
    const troubles: string[] = [];
    const embedded = await startEmbeddedAnalytics({ dir: '/dev/null/x', onTrouble: (reason) => troubles.push(reason) });
    afterFile(embedded.stop);
    const client = openAnalytics({ url: embedded.url });
    await assert.rejects(client.query({ query: 'select 1' }));
    const socket = connect(Number(new URL(embedded.url).port), '127.0.0.1');
    socket.resume();
    await closed(socket);
    assert.match(troubles[0] ?? '', /cannot be written/);
    assert.match(troubles[1] ?? '', /does not start/);
    await client.close();
    await embedded.stop();
  });

  for (const [what, execPath] of [
    ['there is no such program', '/nowhere/node'],
    ['the system refuses', '/dev/null/node'],
  ] as const) {
    t(
      `a child that cannot be started (${what}) is reported, its waiting connections are closed, and a later one starts it`,
      async () => {
        const { embedded, troubles } = await started();
        const own = process.execPath;
        process.execPath = execPath;
        try {
          const socket = await connected(embedded.url);
          await closed(socket);
        } finally {
          process.execPath = own;
        }
        assert.match(troubles[0] ?? '', /does not start: spawn/);
        assert.equal(embedded.pid(), null);
        assert.deepEqual(await until('an answer', () => one(embedded.url).catch(() => null)), [[1]]);
        await embedded.stop();
      },
    );
  }

  t('a child that is not ready in time is killed, and the next connection starts another', async () => {
    const { embedded, troubles } = await started({ limits: { readyMs: 3_000 } });
    const socket = await connected(embedded.url);
    const pid = await until('a child', async () => embedded.pid());
    process.kill(pid, 'SIGSTOP');
    await closed(socket);
    assert.match(troubles[0] ?? '', /not ready within 3000 ms/);
    assert.deepEqual(await until('an answer', () => one(embedded.url).catch(() => null)), [[1]]);
    await embedded.stop();
  });

  t('a silent connection without credentials is closed, one with a running query is not', async () => {
    const { embedded } = await started({ limits: { silentMs: 1_000 } });
    await one(embedded.url);
    const working = one(embedded.url, 'select sleepEachRow(1) from numbers(3) settings max_block_size = 1');
    await closed(await connected(embedded.url));
    // Neither half a request nor repeated refused requests keep the connection open.
    for (const said of ['GET / HTTP/1.1\r\nhost: x\r\n', 'GET / HTTP/1.1\r\nhost: x\r\n\r\n']) {
      const socket = await connected(embedded.url);
      socket.write(said);
      socket.on('data', () => socket.write(said));
      await closed(socket);
    }
    assert.deepEqual(await working, [[0], [0], [0]]);
    await embedded.stop();
  });

  t('an idle engine ends, and the next connection starts it with its data', async () => {
    const { embedded, troubles } = await started({ limits: { idleMs: 500 } });
    await one(embedded.url, 'select sleepEachRow(1) from numbers(2) settings max_block_size = 1');
    const client = openAnalytics({ url: embedded.url });
    await client.command({ query: 'create table t (k UInt8) engine = MergeTree order by k' });
    await client.insert({ table: 't', columns: ['k'], values: [[7]], format: 'JSONCompactEachRow' });
    await client.close();
    await until('it ended', async () => embedded.pid() === null);
    assert.deepEqual(await one(embedded.url, 'select k from t'), [[7]]);
    assert.deepEqual(troubles, []);
    await embedded.stop();
  });

  t('a connection that arrives while an idle engine ends is served by the next engine', async () => {
    const { embedded, troubles } = await started({ limits: { idleMs: 1 } });
    const pids = new Set<number | null>();
    for (let n = 0; n < 10; n += 1) {
      assert.deepEqual(await one(embedded.url), [[1]]);
      pids.add(embedded.pid());
    }
    assert.ok(pids.size > 1);
    assert.deepEqual(troubles, []);
    await embedded.stop();
  });

  t('a queued statement whose caller disconnected does not run', async () => {
    const { embedded } = await started();
    await one(embedded.url);
    const { port, username, password, pathname } = new URL(embedded.url);
    const ask = (query: string) => {
      const path = `/?database=${pathname.slice(1)}`;
      const asked = request({ port, host: '127.0.0.1', path, method: 'POST', auth: `${username}:${password}` });
      asked.on('error', () => undefined);
      asked.end(query);
      return asked;
    };
    // The engine handles this request after all earlier ones, which then run or wait.
    const handed = () => assert.rejects(one(embedded.url.replace(password, 'wrong')), ClickHouseError);
    const busy = Array.from({ length: 4 }, () => ask('select sleep(2)'));
    const answered = busy.map((asked) => once(asked, 'response'));
    await Promise.all(busy.map((asked) => once(asked, 'finish')));
    await handed();
    const asked = ask('create table unwanted (k UInt8) engine = MergeTree order by k');
    await once(asked, 'finish');
    await handed();
    asked.destroy();
    await Promise.all(answered);
    assert.deepEqual(await one(embedded.url, 'exists table unwanted'), [[0]]);
    await embedded.stop();
  });
});

suite('joining the engine of a folder', (t) => {
  t('a running engine is joined and keeps running; an ending engine does not delete the note of another', async () => {
    const { embedded, dir } = await started();
    const joined = await joinAnalytics(dir);
    assert.equal(joined.url, embedded.url);
    await joined.stop();
    assert.deepEqual(await one(embedded.url), [[1]]);
    // The note of an earlier engine of the folder.
    writeFileSync(noteOf(dir), 'http://postline:older@127.0.0.1:1/postline');
    await embedded.stop();
    assert.match(readFileSync(noteOf(dir), 'utf8'), /older/);
  });

  t('a foreign program on the port of a dead engine does not receive the password', async () => {
    const { dataDir: dir, drop } = serverFolder();
    afterFile(drop);
    const received: string[] = [];
    const stranger = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', (data) => {
        received.push(data.toString());
        socket.end('HTTP/1.1 200 OK\r\ncontent-length: 64\r\n\r\n'.padEnd(128, 'a'));
      });
    });
    stranger.listen(0, '127.0.0.1');
    await once(stranger, 'listening');
    const { port } = stranger.address() as AddressInfo;
    const noted = `http://postline:s3cret@127.0.0.1:${port}/postline`;
    for (const note of [noted, '', 'nothing']) {
      writeFileSync(noteOf(dir), note);
      const joined = await joinAnalytics(dir);
      assert.notEqual(joined.url, noted);
      assert.deepEqual(await one(joined.url), [[1]]);
      await joined.stop();
    }
    assert.ok(received.length > 0);
    const secrets = ['s3cret', Buffer.from('postline:s3cret').toString('base64')];
    assert.ok(received.every((said) => secrets.every((secret) => !said.includes(secret))));
    stranger.close();
  });
});
