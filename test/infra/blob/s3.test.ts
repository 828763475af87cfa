import { equal, ok, rejects } from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { inspect } from 'node:util';
import { ask, blobStoreSuite } from '#contracts/ports/blob-store.suite.ts';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { S3Blobs } from '#infra/blob/s3.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { freePort } from '#test/support/port.ts';
import { type S3Server, s3Missing, s3Server } from '#test/support/s3.ts';
import { suite } from '#test/support/suite.ts';
import { front } from './front.ts';

const missing = await s3Missing();
const secrets = new Secrets(`v1:${randomBytes(32).toString('base64')}`);
const options = { secrets, origin: () => 'http://127.0.0.1', bucket: `postline-${randomUUID()}`, region: 'us-east-1' };

suite('blob store on S3', { timeoutMs: 120_000 }, (t) => {
  if (missing !== null) return t.skip('passes the suite of the blob store', missing);
  let server: S3Server;
  const opened: S3Blobs[] = [];
  const storeWith = (more: Partial<ConstructorParameters<typeof S3Blobs>[0]> = {}): S3Blobs => {
    const store = new S3Blobs({ ...options, ...server, publicEndpoint: server.endpoint, ...more });
    opened.push(store);
    return store;
  };
  blobStoreSuite(t, async () => {
    server = await s3Server();
    process.stdout.write(`(S3: ${server.source}) `);
    return {
      open: async () => storeWith(),
      close: async () => {
        await Promise.all(opened.map((one) => one.close()));
        await server.stop();
      },
    };
  });

  t('signs URLs with the public endpoint and calls the server through the internal one', async () => {
    const publicEndpoint = server.endpoint.replace('127.0.0.1', 'localhost');
    const store = storeWith({ publicEndpoint });
    const key = `${randomUUID()}/a/upload`;
    const expiresAt = new Date(Date.now() + 60_000);
    const { url, headers } = await store.presignPut(key, { contentType: 'image/png', bytes: 1, expiresAt });
    ok(url.startsWith(`${publicEndpoint}/`), url);
    ok(!url.includes(server.secretAccessKey));
    equal((await ask('PUT', url, { headers, body: 'x' })).status, 200);
    equal(
      (await ask('GET', await store.presignGet(key, { contentType: 'image/png', expiresAt }))).body.toString(),
      'x',
    );
  });

  t('TikTok fetches pictures that lie in S3 from the host of the api alone, without a redirect', async () => {
    let store: S3Blobs | null = null;
    const api = await front(() => store ?? storeWith());
    const tiktok = await tiktokWorld();
    try {
      store = storeWith({ origin: () => api.origin });
      const lent = store;
      const prefix = `${api.origin}/blobs/`;
      tiktok.network.state.proven.push(prefix);
      const pictures = await Promise.all(
        ['image/jpeg', 'image/webp'].map(async (contentType) => {
          const key = `${randomUUID()}/a/upload`;
          const own = { contentType, expiresAt: new Date(Date.now() + 60_000) };
          await lent.put(key, Buffer.alloc(500), { contentType, bytes: 500 });
          const url = (_ms: number, host?: 'any' | 'own') =>
            host === 'own' ? lent.presignOwn(key, own) : lent.presignGet(key, own);
          return tiktok.files.picture({ contentType, url });
        }),
      );
      const { outcome } = await tiktok.publish(tiktok.request(await tiktok.account(), { media: pictures }));
      ok(outcome.kind === 'accepted' || outcome.kind === 'published', JSON.stringify(outcome));
      const [post] = tiktok.network.state.posts;
      equal(post?.failReason, null, 'TikTok had the pictures');
      equal(post?.photos.length, 2);
      ok(
        post?.photos.every((one) => one.startsWith(prefix)),
        String(post?.photos),
      );
    } finally {
      tiktok.close();
      await api.close();
    }
  });

  t('several processes that start at once make the bucket once', async () => {
    const bucket = `postline-${randomUUID()}`;
    await Promise.all([1, 2, 3, 4].map(() => storeWith({ bucket }).ping()));
    await storeWith({ bucket }).ping();
  });

  t('a server without an answer is unavailable; wrong keys are refused; no error shows a key', async () => {
    const away = storeWith({ endpoint: `http://127.0.0.1:${await freePort()}` });
    await rejects(away.ping(), { code: 'unavailable' });
    await rejects(away.head('a/b/c'), { code: 'unavailable' });
    const wrong = storeWith({ secretAccessKey: 'not-the-secret' });
    await rejects(wrong.head('a/b/c'), (error: unknown) => {
      ok(error instanceof BlobError);
      equal(error.code, 'refused');
      ok(!inspect(error, { depth: 8 }).includes('not-the-secret'));
      return true;
    });
  });
});
