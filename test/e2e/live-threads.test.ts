/**
 * An account of Threads over separate processes and a strict Threads: connected by its link, a carousel whose files Threads
 * fetches from our address, a first comment, a thread with a container that Threads loses, an answer that is lost. What is
 * out is read from the network, not from us.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openPool } from '#infra/postgres/pool.ts';
import { Guest } from '#test/support/guest.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { gradient } from '#test/support/media/pictures.ts';
import { type Person, problems, startThreads, type ThreadsNetwork } from '#test/support/networks/threads/index.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';

const mains = ['projections', 'services/publisher', 'services/outcomes', 'services/media'].map(
  (one) => `${one}/main.ts`,
);
const publish = 'POST /:id/threads_publish';

suite('an account of threads, over separate processes', { timeoutMs: 180_000 }, (t) => {
  const processes: Process[] = [];
  let env: Record<string, string>;
  let network: ThreadsNetwork;
  let person: Person;
  let api: Process;
  let http: Caller;
  let clientId = '';
  const guest = new Guest(() => api.url(''));

  const launch = async (main: string): Promise<Process> => {
    const one = await start(main, { env });
    processes.push(one);
    return one;
  };
  const admin = async (...args: string[]): Promise<Readonly<Record<string, string>>> => {
    const { code, output } = await run('services/admin/main.ts', { env, args: [...args, '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').at(-1) ?? '');
  };
  /** The target of a post, once it is as wanted. */
  const targetOf = async (
    more: Readonly<Record<string, unknown>>,
    isDone: (target: Record<string, unknown>) => boolean,
  ) => {
    const composed = await http.post('/posts', {
      ...{ clientId, targets: { mode: 'group', clientId }, schedule: { type: 'now' }, ...more },
    });
    assert.equal(composed.status, 200, composed.text);
    return until(
      'the target',
      async () => {
        const { targets } = (await http.get(`/posts/${composed.data.id}`)).data;
        const [one] = targets as readonly Record<string, unknown>[];
        assert.notEqual(one?.status, 'failed', JSON.stringify(one));
        return one !== undefined && isDone(one) ? one : null;
      },
      { ...sparing, withinMs: 60_000 },
    );
  };
  const isOut = ({ status }: Record<string, unknown>): boolean => status === 'published';
  /** What the network has, in the order in which it came: text, parent, files. */
  const postsOf = (from: number) =>
    network.state.posts.slice(from).map(({ text, parent, files }) => [text, parent, files.map(({ type }) => type)]);

  t.before(async () => {
    const own = await freePort();
    const base = `http://127.0.0.1:${own}`;
    network = await startThreads({ redirectUri: `${base}/connect/callback` });
    network.state.processing.IMAGE = 0;
    person = network.person();
    const { url } = await preparedDatabase();
    const { clientId: app, clientSecret } = network.state.app;
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`, PORT: '0' },
      ...{ DATA_DIR: dataFolder().dataDir, DATABASE_POOL: '4', LEASE_TTL_MS: '2000' },
      ...timesEnv({ sweepIntervalMs: 300, deferDelaysMs: [300, 300, 300], reconcileDelaysMs: [0, 500, 1_000] }),
      ...{ PRIVATE_TARGETS: new URL(network.origin).host, CONSOLE_URL: base, BASE_URL: `${base}/v1` },
      ...{ THREADS_API: network.origin, THREADS_AUTHORIZE: `${network.origin}/oauth/authorize` },
      ...{ THREADS_CLIENT_ID: app, THREADS_CLIENT_SECRET: clientSecret },
    };
    api = await start('services/api/main.ts', { env: { ...env, PORT: String(own) } });
    processes.push(api);
    await Promise.all(mains.map(launch));
    await admin('workspace', 'create', '--name', 'Café');
    const { secret = '' } = await admin('key', 'create', '--mode', 'live');
    http = callerOf(() => api.url('/v1'), secret);
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
  });
  t.after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    network?.close();
  });

  t('is connected by its link', async () => {
    const made = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['threads'] });
    assert.equal(made.status, 200, made.text);
    const link = new URL(String(made.data.url)).pathname;
    const page = new URL(await guest.sent(link, { platform: 'threads', way: 'consent', timezone: '' }));
    page.searchParams.set('as', person.id);
    const answer = await fetch(page, { redirect: 'manual' });
    const back = new URL(answer.headers.get('location') ?? '');
    const done = await guest.get(back.pathname + back.search);
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await until('the account', async () => {
      const { rows } = await http.get(`/accounts?clientId=${clientId}`);
      return rows.length > 0 && rows;
    });
    assert.deepEqual([account?.status, account?.externalId], ['connected', person.id]);
  });

  t('posts a carousel, whose files Threads fetches, and comments on it', async () => {
    const picture = async (altText: string): Promise<string> => {
      const body = await gradient(640, 480).jpeg().toBuffer();
      const offer = await uploaded(http, { fileName: `${altText}.jpg`, contentType: 'image/jpeg', body });
      const assetId = String(offer.data.assetId);
      assert.equal((await http.post('/media', { assetId, altText })).status, 200);
      await until('the picture', async () => (await http.get(`/media/${assetId}`)).data.publishable === true, sparing);
      return assetId;
    };
    const mediaIds = [await picture('A cup'), await picture('A plate')];
    const overrides = { replyControl: 'mentioned_only', firstComment: 'And a word below.' };
    const target = await targetOf(
      { content: 'Fresh rolls', mediaIds, variants: [{ platform: 'threads', overrides }] },
      isOut,
    );
    await until('the comment', () => network.state.posts.length > 1, sparing);
    const [post] = network.state.posts;
    assert.deepEqual(postsOf(0), [
      ['Fresh rolls', null, ['IMAGE', 'IMAGE']],
      ['And a word below.', post?.id, []],
    ]);
    assert.deepEqual(
      [post?.personId, post?.replyControl, post?.files.map(({ altText }) => altText)],
      [person.id, 'mentioned_only', ['A cup', 'A plate']],
    );
    assert.ok(network.state.fetched.every((address) => address.startsWith(`${env.BASE_URL?.replace('/v1', '')}/`)));
    assert.deepEqual(
      [target.externalId, target.permalink],
      [post?.id, `https://www.threads.com/@${person.username}/post/${post?.code}`],
    );
  });

  t('posts a thread, one post after the other, also where Threads loses a container', async () => {
    const from = network.state.posts.length;
    network.script({ route: publish, says: 'Second', times: 2, then: { answer: problems.media_not_found } });
    const segments = ['First of three', 'Second of three', 'Third of three'].map((content) => ({
      content,
      mediaIds: [],
    }));
    await targetOf({ content: 'First of three', thread: { segments } }, isOut);
    const [first, second] = network.state.posts.slice(from);
    assert.deepEqual(postsOf(from), [
      ['First of three', null, []],
      ['Second of three', first?.id, []],
      ['Third of three', second?.id, []],
    ]);
    const containers = [...network.state.containers.values()].filter(({ params }) => params.text === 'Second of three');
    assert.equal(containers.length, 3);
  });

  t('an answer that is lost is found on the network, and nothing is out twice', async () => {
    const from = network.state.posts.length;
    network.script({ route: publish, says: 'Lost', then: 'drop_after' });
    const target = await targetOf({ content: 'Lost and found' }, isOut);
    assert.deepEqual(postsOf(from), [['Lost and found', null, []]]);
    assert.equal(target.externalId, network.state.posts.at(-1)?.id);
    assert.equal(network.state.publishes.filter(({ postId }) => postId === target.externalId).length, 1);
  });

  t(
    'an operator checks it with a file of the machine, which Threads fetches from our address, and which ends',
    async () => {
      const [account] = (await http.get(`/accounts?clientId=${clientId}`)).rows;
      const folder = mkdtempSync(path.join(tmpdir(), 'postline-check-'));
      try {
        const file = path.join(folder, 'cup.jpg');
        writeFileSync(file, await gradient(640, 480).jpeg().toBuffer());
        const settings = ['--media', file, '--set', 'replyControl=mentioned_only'];
        const said = await admin('network', 'check', 'threads', '--account', String(account?.id), '--yes', ...settings);
        const post = network.state.posts.at(-1);
        assert.ok(post !== undefined);
        assert.deepEqual([post.files.map(({ type }) => type), post.replyControl], [['IMAGE'], 'mentioned_only']);
        assert.ok(network.state.deleted.has(post.id));
        assert.match(String(said.published), new RegExp(`/post/${post.code}$`));
        const gone = await fetch(network.state.fetched.at(-1) ?? '');
        assert.equal(gone.status, 404, 'the address has ended');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  t('a disconnected account leaves no token behind', async () => {
    const [account] = (await http.get(`/accounts?clientId=${clientId}`)).rows;
    assert.equal((await http.post(`/accounts/${account?.id}/disconnect`, {})).status, 200);
    const pool = openPool({ url: env.DATABASE_URL ?? '' });
    await until('its credentials are destroyed', async () => {
      const { rowCount } = await pool.query('select 1 from ops.network_credentials');
      return rowCount === 0;
    });
    await pool.end();
  });
});
