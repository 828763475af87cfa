/**
 * A large file through the api to a folder, beside the least that Node can do: a server that pipes the request into a
 * file. Ours has the file on the disk when it answers (fsync); the bare one is measured without and with fsync.
 */
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createWriteStream } from 'node:fs';
import { mkdtemp, open, readFile, rm } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { testDatabase } from '../support/postgres.ts';
import { start } from '../support/processes.ts';
import { runCleanups } from '../support/suite.ts';
import { type BenchRow, spread } from './row.ts';

const piece = randomBytes(1 << 20);
const megabytes = (quick: boolean): number => (quick ? 256 : 1024);

/** Seconds. All pieces are the same buffer, so that the sender costs little. */
const send = async (url: string, headers: Readonly<Record<string, string>>, pieces: number): Promise<number> => {
  const from = performance.now();
  const sent = request(url, { method: 'PUT', headers });
  const answered = once(sent, 'response');
  await pipeline(Readable.from(Array.from({ length: pieces }, () => piece)), sent);
  const [response] = await answered;
  response.resume();
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`the upload was answered with ${response.statusCode}`);
  return (performance.now() - from) / 1000;
};

/** Kilobytes. */
const memoryOf = async (pid: number, what: 'VmRSS' | 'VmHWM'): Promise<number> =>
  Number(new RegExp(`${what}:\\s+(\\d+)`).exec(await readFile(`/proc/${pid}/status`, 'utf8'))?.[1]);

const bareServer = async (folder: string): Promise<void> => {
  const server = createServer(async (asked, answer) => {
    const file = path.join(folder, 'bare');
    await pipeline(asked, createWriteStream(file, { highWaterMark: 1 << 20 }));
    if (asked.url === '/sync') {
      const handle = await open(file);
      await handle.sync();
      await handle.close();
    }
    answer.end();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  process.on('disconnect', () => process.exit());
  process.send?.((server.address() as AddressInfo).port);
};

export const upload = async ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> => {
  const folder = await mkdtemp(path.join(tmpdir(), 'bench-upload-'));
  const child = fork(import.meta.filename, ['--bare', folder], { execArgv: [] });
  try {
    const [port] = await once(child, 'message');
    const bare = `http://127.0.0.1:${port}`;
    const key = `v1:${randomBytes(32).toString('base64')}`;
    const { url: DATABASE_URL } = await testDatabase();
    const env = { DATABASE_URL, SECRET_KEY: key, PORT: '0', BLOB_DIR: folder, LOG_LEVEL: 'info' };
    const api = await start('services/api/main.ts', { env });
    const blobs = new DiskBlobs({ root: folder, secrets: new Secrets(key), origin: () => api.url('') });
    const pieces = megabytes(quick);
    const bytes = pieces << 20;
    const ours = async (): Promise<number> => {
      const expiresAt = new Date(Date.now() + 3_600_000);
      const { url, headers } = await blobs.presignPut('bench/upload/file', {
        contentType: 'video/mp4',
        bytes,
        expiresAt,
      });
      return send(url, headers, pieces);
    };
    const plain = (at: string) => send(`${bare}${at}`, { 'content-length': String(bytes) }, pieces);
    const before = await memoryOf(api.pid, 'VmRSS');
    const speeds: Readonly<Record<'ours' | 'bare' | 'synced', number[]>> = { ours: [], bare: [], synced: [] };
    const rounds = quick ? 3 : 5;
    // In turns, each beginning once: the order must not matter.
    for (let round = 0; round < rounds; round += 1) {
      const turns = [
        async () => speeds.ours.push(pieces / (await ours())),
        async () => speeds.bare.push(pieces / (await plain('/'))),
        async () => speeds.synced.push(pieces / (await plain('/sync'))),
      ];
      for (let turn = 0; turn < turns.length; turn += 1) await turns[(round + turn) % turns.length]?.();
    }
    const grown = ((await memoryOf(api.pid, 'VmHWM')) - before) / 1024;
    await api.stop();
    const [mine, limit, synced] = [spread(speeds.ours), spread(speeds.bare), spread(speeds.synced)];
    const range = ({ min, max }: { readonly min: number; readonly max: number }) =>
      `${Math.round(min)}–${Math.round(max)}`;
    return [
      {
        name: `upload of ${pieces} MiB to the folder`,
        unit: 'MB/s',
        ours: mine.median,
        limit: limit.median,
        ratio: (mine.median / limit.median).toFixed(2),
        goal: '≥ 0.6 of limit',
        ok: mine.median >= 0.6 * limit.median,
        note: `ours ${range(mine)} with fsync; bare ${range(limit)} without, ${Math.round(synced.median)} (${range(synced)}) with fsync`,
      },
      {
        name: 'memory of the api meanwhile',
        unit: 'MB more',
        ours: grown,
        goal: '≤ 64',
        ok: grown <= 64,
      },
    ];
  } finally {
    child.kill();
    await runCleanups();
    await rm(folder, { recursive: true, force: true });
  }
};

if (process.argv[2] === '--bare') await bareServer(process.argv[3] ?? '');
