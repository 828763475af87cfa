/** Writes to a key, says so when some of it is on the disk, and goes on until it is killed. */
import { readdir, stat } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { DiskBlobs } from '#infra/blob/disk.ts';
import { Secrets } from '#runtime/identity/secrets.ts';

const [root = '', secretKey = '', key = ''] = process.argv.slice(2);
const store = new DiskBlobs({ root, secrets: new Secrets(secretKey), origin: () => '' });
const some = Buffer.alloc(1 << 20);
const body = new Readable({ read() {} });
const putting = store.put(key, body, { contentType: 'video/mp4', bytes: 1 << 30 });
body.push(some);
body.push(some);
const incoming = path.join(root, '.incoming');
for (let seen = 0; seen === 0; ) {
  await new Promise((resolve) => setTimeout(resolve, 10));
  for (const name of await readdir(incoming).catch(() => [])) seen += (await stat(path.join(incoming, name))).size;
}
process.on('disconnect', () => process.exit());
process.send?.('some of it is written');
await putting;
