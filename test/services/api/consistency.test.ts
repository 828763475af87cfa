import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { type ApiServer, startServer } from '#services/api/server.ts';
import { composer } from '#test/support/composing.ts';
import { type Answered, type Caller, callerOf, startWorld, type World } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

suite('reading one’s own writes', (t) => {
  let world: World;
  let second: ApiServer;
  let elsewhere: Caller;
  let id: string;
  t.before(async () => {
    world = await startWorld();
    second = await startServer(world.deps, { host: '127.0.0.1', port: 0 });
    elsewhere = callerOf(() => `http://127.0.0.1:${second.port}/v1`, world.owner.token);
    id = (await world.owner.post('/clients', { name: 'Fresh', type: 'brand' })).data.id;
  });
  t.after(async () => {
    await second.stop(500);
    await world.close();
  });

  const change = async (round: number) => {
    const answer = await world.owner.patch(`/clients/${id}`, { rules: { round } });
    assert.equal(answer.status, 200);
    return answer;
  };

  t('through the same process, without a token', async () => {
    for (let round = 0; round < 25; round += 1) {
      const { data } = await change(round);
      assert.deepEqual((await world.owner.get(`/clients/${id}`)).data, data);
    }
  });

  t('through another process, with the token; lists too', async () => {
    for (let round = 100; round < 125; round += 1) {
      const { data, headers } = await change(round);
      const token = { 'x-consistency-token': headers.get('x-consistency-token') ?? '' };
      assert.deepEqual((await elsewhere.get(`/clients/${id}`, { headers: token })).data, data);
      assert.deepEqual((await elsewhere.get('/clients', { headers: token })).rows, [data]);
    }
  });

  t('through another process, with the token of a repeat: the answer that was lost had one too', async () => {
    const one = await composer(world, ['x'], { by: world.tester });
    const far = callerOf(() => `http://127.0.0.1:${second.port}/v1`, world.tester.token);
    const repeated = async (path: string, body: unknown): Promise<Answered> => {
      const key = randomUUID();
      await world.tester.post(path, body, { key });
      const again = await world.tester.post(path, body, { key });
      assert.equal(again.headers.get('idempotent-replayed'), 'true', path);
      assert.ok(again.headers.get('x-consistency-token'), path);
      return again;
    };
    const seen = async (path: string, { headers, data }: Answered): Promise<void> => {
      const token = { 'x-consistency-token': headers.get('x-consistency-token') ?? '' };
      assert.deepEqual((await far.get(`${path}/${data.id}`, { headers: token })).data, data);
    };
    for (let round = 0; round < 10; round += 1) {
      await seen('/clients', await repeated('/clients', { name: `Repeated ${round}`, type: 'brand' }));
      const draft = await repeated('/posts', one.body({ saveDraft: true }));
      await seen('/posts', draft);
      await repeated(`/posts/${draft.data.id}/publish`, {});
      const post = await world.tester.post('/posts', one.body());
      const [target] = post.data.targets as { id: string }[];
      await seen('/post-targets', await repeated(`/post-targets/${target?.id}/cancel`, undefined));
    }
    await repeated(`/clients/${one.clientId}/connect-invites`, { platforms: ['x'] });
  });

  t('with the token of a repeated deletion, which stores nothing itself', async () => {
    const one = await composer(world, ['x'], { by: world.tester });
    const draft = await world.tester.post('/posts', one.body({ saveDraft: true }));
    const post = await world.tester.post('/posts', one.body());
    const client = await world.tester.post('/clients', { name: 'Leaving', type: 'brand' });
    for (const path of [`/posts/${draft.data.id}`, `/posts/${post.data.id}`, `/clients/${client.data.id}`]) {
      assert.equal((await world.tester.delete(path)).status, 200, path);
      const again = await world.tester.delete(path);
      assert.equal(again.status, 200, path);
      assert.ok(again.headers.get('x-consistency-token'), path);
    }
  });

  t('an existing resource is never 404, whichever process reads it', async () => {
    for (let round = 0; round < 25; round += 1) {
      const made = await world.owner.post('/clients', { name: `Fresh ${round}`, type: 'brand' });
      const read = await elsewhere.get(`/clients/${made.data.id}`);
      assert.ok(read.status === 200 || read.status === 503, read.text);
    }
  });
});
