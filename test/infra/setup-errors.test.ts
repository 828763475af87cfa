/** Adapters that are not there, as an operator meets them: one line with the setting and the address, and no password. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createServer as createTcp, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { SetupError } from '#contracts/ports/setup-error.ts';
import { openAdapters } from '#infra/adapters.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { addressOf } from '#infra/setup-errors.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { freePort } from '#test/support/port.ts';
import { testDatabase } from '#test/support/postgres.ts';
import { run, start } from '#test/support/processes.ts';
import { afterFile, suite } from '#test/support/suite.ts';

const SECRET_KEY = `v1:${randomBytes(32).toString('base64')}`;
const password = 'hunter2-very-secret';
const s3 = { S3_ACCESS_KEY_ID: 'someone', S3_SECRET_ACCESS_KEY: password };

suite('errors of dependencies at the start', { timeoutMs: 120_000, waits: true }, (t) => {
  let url = '';
  let dead = 0;
  let dir = '';
  t.before(async () => {
    url = (await testDatabase()).url;
    dead = await freePort();
    dir = mkdtempSync(path.join(tmpdir(), 'postline-adapters-'));
  });
  t.after(() => rmSync(dir, { recursive: true, force: true }));

  const open = (env: Readonly<Record<string, string>>) =>
    openAdapters({
      name: 'test',
      config: readConfig({ DATABASE_URL: url, PORT: '1', ...env }),
      secrets: new Secrets(SECRET_KEY),
    });
  const refused = (env: Readonly<Record<string, string>>, words: RegExp): Promise<void> =>
    assert.rejects(open(env), (error) => {
      assert.ok(error instanceof SetupError, String(error));
      assert.match(error.message, words);
      assert.ok(!error.message.includes(password), error.message);
      return true;
    });
  const silent = async (env: Readonly<Record<string, string>>): Promise<readonly string[]> => {
    const adapters = await open(env);
    try {
      return await adapters.silent();
    } finally {
      await adapters.close();
    }
  };

  t('an address is shown without user, password and options', () => {
    assert.equal(addressOf(`postgresql://me:${password}@db:5432/x?sslkey=y`), 'postgresql://db:5432/x');
    assert.equal(addressOf('nonsense'), 'its address');
    assert.equal(addressOf(`esdb://me:${password}@a:2113,b:2113?tls=false`), 'esdb://a:2113,b:2113');
  });

  t('Postgres: no connection, unknown user, unknown database', async () => {
    const me = `me:${password}`;
    const at = new URL(url);
    await refused(
      { DATABASE_URL: `postgresql://${me}@127.0.0.1:${dead}/x` },
      new RegExp(`^DATABASE_URL: Postgres at postgresql://127.0.0.1:${dead}/x takes no connection.*ECONNREFUSED`),
    );
    await refused(
      { DATABASE_URL: `postgresql://${me}@nowhere.invalid/x` },
      /^DATABASE_URL: Postgres at postgresql:\/\/nowhere\.invalid\/x has a host name that does not resolve/,
    );
    await refused(
      { DATABASE_URL: `postgresql://${me}@${at.host}/x` },
      /^DATABASE_URL: .* refuses user or password.*28P01/,
    );
    at.pathname = '/missing';
    await refused({ DATABASE_URL: at.href }, /^DATABASE_URL: .*\/missing has no such database.*3D000/);
  });

  t('Kafka: no broker answers', async () => {
    await refused(
      { KAFKA_BROKERS: `127.0.0.1:${dead}` },
      new RegExp(`^KAFKA_BROKERS: Kafka at 127.0.0.1:${dead} .*correct the address`),
    );
  });

  t('EventStoreDB: no connection', async () => {
    await refused(
      { ESDB_URL: `esdb://me:${password}@127.0.0.1:${dead}?tls=false`, KAFKA_BROKERS: `127.0.0.1:${dead}` },
      new RegExp(`^ESDB_URL: EventStoreDB at esdb://127.0.0.1:${dead} .*correct the address`),
    );
  });

  t('S3 and ClickHouse: the process names them and starts without them', async () => {
    const lines = await silent({
      ...s3,
      S3_ENDPOINT: `http://127.0.0.1:${dead}`,
      CLICKHOUSE_URL: `http://me:${password}@127.0.0.1:${dead}/figures`,
    });
    assert.equal(lines.length, 2, lines.join('\n'));
    assert.match(lines[0] ?? '', /^S3_ENDPOINT: S3 at http:\/\/127\.0\.0\.1:\d+\/ takes no connection.*ECONNREFUSED/);
    assert.match(lines[1] ?? '', /^CLICKHOUSE_URL: ClickHouse at http:\S+\/figures takes no connection.*ECONNREFUSED/);
    assert.ok(!lines.join().includes(password));
    assert.deepEqual(await silent({}), []);
  });

  t('S3 and ClickHouse: a server that hangs or refuses is named too', async () => {
    const sockets = new Set<Socket>();
    const hangs = createTcp((socket) => void sockets.add(socket)).listen(0, '127.0.0.1');
    const stranger = createServer((_request, response) => response.writeHead(403).end('no')).listen(0, '127.0.0.1');
    afterFile(() => {
      for (const one of sockets) one.destroy();
      hangs.close();
      stranger.close();
    });
    await Promise.all([once(hangs, 'listening'), once(stranger, 'listening')]);
    const portOf = (server: { address(): unknown }): number => (server.address() as { port: number }).port;
    const began = performance.now();
    const lines = await silent({
      ...s3,
      S3_ENDPOINT: `http://127.0.0.1:${portOf(stranger)}`,
      CLICKHOUSE_URL: `http://127.0.0.1:${portOf(hangs)}/x`,
    });
    assert.ok(performance.now() - began < 15_000, 'it has a deadline');
    assert.match(lines[0] ?? '', /^S3_ENDPOINT: .*refuses user or password.*403/);
    assert.match(lines[1] ?? '', /^CLICKHOUSE_URL: .*correct the address/);
  });

  t('FFMPEG_PATH: no program, not ffmpeg, or a program that never ends', async () => {
    const text = path.join(dir, 'text');
    writeFileSync(text, 'no program');
    const other = path.join(dir, 'other');
    writeFileSync(other, '#!/bin/sh\necho something else\n');
    chmodSync(other, 0o755);
    for (const [file, words] of [
      [path.join(dir, 'missing'), /is not a program that can be run/],
      [text, /is not a program that can be run/],
      [other, /is not ffmpeg/],
    ] as const) {
      await assert.rejects(findBinaries(file), (error) => {
        assert.ok(error instanceof SetupError, String(error));
        assert.ok(error.message.startsWith(`FFMPEG_PATH: ${file} `), error.message);
        assert.match(error.message, words);
        return true;
      });
    }
  });

  t('processes end with code 2 and the message, or log the message and continue', async () => {
    const env = { DATABASE_URL: url, SECRET_KEY, PORT: '0' };
    const [media, publisher] = await Promise.all([
      run('services/media/main.ts', { env: { ...env, FFMPEG_PATH: path.join(dir, 'missing') } }),
      run('services/publisher/main.ts', { env: { ...env, DATABASE_URL: `postgresql://127.0.0.1:${dead}/x` } }),
    ]);
    assert.deepEqual([media.code, publisher.code], [2, 2], media.output + publisher.output);
    assert.match(media.output, /^media: FFMPEG_PATH: \S+missing is not a program/m);
    assert.match(publisher.output, /^publisher: DATABASE_URL: Postgres at /m);
    const [api, sender] = await Promise.all([
      start('services/api/main.ts', { env: { ...env, CLICKHOUSE_URL: `http://me:${password}@127.0.0.1:${dead}/x` } }),
      start('services/publisher/main.ts', { env: { ...env, ...s3, S3_ENDPOINT: `http://127.0.0.1:${dead}` } }),
    ]);
    await sender.saying(/"msg":"S3_ENDPOINT: S3 at http:\/\/127\.0\.0\.1:\d+\/ takes no connection/);
    assert.equal((await sender.stop()).code, 0);
    await api.saying(/"msg":"CLICKHOUSE_URL: ClickHouse at http:\/\/127\.0\.0\.1:\d+\/x takes no connection/);
    assert.ok(!api.output().includes(password));
    assert.equal((await api.stop()).code, 0);
  });
});
