/**
 * Accounts of LinkedIn from their connect link to their posts, over separate processes and a strict LinkedIn: the guest
 * chooses a profile and a page, each posts once with its comment, and a version that ends stops the queue.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { Guest } from '#test/support/guest.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { type LinkedInNetwork, startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import type { Person } from '#test/support/networks/linkedin/state.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { until } from '#test/support/until.ts';

suite('accounts of linkedin, over separate processes', { timeoutMs: 120_000 }, (t) => {
  const processes: Process[] = [];
  let env: Record<string, string>;
  let network: LinkedInNetwork;
  let person: Person;
  let api: Process;
  let publisher: Process;
  let http: Caller;
  let clientId = '';
  let page = '';
  const guest = new Guest(() => api.url(''));

  const launch = async (main: string, more: Readonly<Record<string, string>> = {}): Promise<Process> => {
    const one = await start(main, { env: { ...env, ...more } });
    processes.push(one);
    return one;
  };
  const admin = async (...args: string[]): Promise<Readonly<Record<string, string>>> => {
    const { code, output } = await run('services/admin/main.ts', { env, args: [...args, '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').at(-1) ?? '');
  };
  const composed = async (content: string, variants: readonly object[] = []) => {
    const made = await http.post('/posts', {
      ...{ clientId, content, variants, targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
    });
    assert.equal(made.status, 200, made.text);
    return String(made.data.id);
  };
  const targetsOf = async (id: string) =>
    (await http.get(`/posts/${id}`)).data.targets as readonly Record<string, unknown>[];

  t.before(async () => {
    const own = await freePort();
    const base = `http://127.0.0.1:${own}`;
    network = await startLinkedIn({ redirectUri: `${base}/connect/callback` });
    person = network.person('Ada Lovelace');
    page = network.organization(person).id;
    const { url } = await preparedDatabase();
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`, PORT: '0' },
      ...{ DATA_DIR: dataFolder().dataDir, DATABASE_POOL: '4', LEASE_TTL_MS: '2000' },
      ...timesEnv({ sweepIntervalMs: 300 }),
      ...{ PRIVATE_TARGETS: new URL(network.origin).host, CONSOLE_URL: base, ...network.env },
    };
    api = await launch('services/api/main.ts', { PORT: String(own) });
    [publisher] = (await Promise.all(
      ['services/publisher/main.ts', 'projections/main.ts', 'services/outcomes/main.ts'].map((main) => launch(main)),
    )) as [Process];
    await admin('workspace', 'create', '--name', 'Café');
    const { secret = '' } = await admin('key', 'create', '--mode', 'live');
    http = callerOf(() => api.url('/v1'), secret);
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
  });
  t.after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    network?.close();
  });

  t('a guest chooses a profile and a page', async () => {
    const made = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['linkedin'], maxAccounts: 2 });
    assert.equal(made.status, 200, made.text);
    const link = new URL(String(made.data.url)).pathname;
    const away = await guest.sent(link, { platform: 'linkedin', way: 'consent', timezone: '' });
    const allowed = await fetch(`${away}&as=${person.id}`, { redirect: 'manual' });
    assert.equal(allowed.status, 302, await allowed.text());
    const choice = (await guest.get(allowed.headers.get('location') ?? '')).next ?? '';
    assert.equal(
      await guest.sent(choice, [
        ['account', '0'],
        ['account', '1'],
      ]),
      link,
    );
    const all = await until('both accounts', async () => {
      const { rows } = await http.get(`/accounts?clientId=${clientId}`);
      return rows.length === 2 && rows;
    });
    assert.deepEqual(
      all.map(({ externalId }) => externalId).toSorted(),
      [`urn:li:organization:${page}`, `urn:li:person:${person.id}`].toSorted(),
    );
  });

  t('each posts once, whole, with its comment', async () => {
    const content = 'Fresh rolls (from 7:00) [daily] #breakfast_1';
    const id = await composed(content, [
      {
        platform: 'linkedin',
        overrides: { visibility: 'PUBLIC', firstComment: 'Where (map): https://example.com/a_b' },
      },
    ]);
    const targets = await until('both are published', async () => {
      const all = await targetsOf(id);
      return all.length === 2 && all.every(({ status }) => status === 'published') && all;
    });
    await until('both comments are there', () => network.state.comments.length === 2);
    const { posts, comments, creates } = network.state;
    assert.deepEqual(
      posts.map(({ author }) => author).toSorted(),
      [`urn:li:organization:${page}`, `urn:li:person:${person.id}`].toSorted(),
    );
    for (const { text, visibility } of posts) {
      assert.deepEqual([text.shown, text.isCut, visibility], [content, false, 'PUBLIC']);
    }
    assert.deepEqual(new Set(comments.map(({ text }) => text)), new Set(['Where (map): https://example.com/a_b']));
    assert.deepEqual(new Set(comments.map(({ post }) => post)), new Set(posts.map((one) => one.id)));
    assert.equal(creates.length, 2);
    assert.deepEqual(
      targets.map(({ permalink }) => permalink).toSorted(),
      posts.map((one) => `https://www.linkedin.com/feed/update/${one.id}/`).toSorted(),
    );
  });

  t(
    '24: a version that has ended stops the queue: no target fails, and all go out once with a newer version',
    async () => {
      network.state.versions = ['209901'];
      const [before, answered] = [network.state.calls.length, network.state.posts.length];
      const first = await composed('After the end');
      const line = /live\/linkedin no longer answers version \d{6} of its API since .* is not active/;
      await until('the operator is told', async () =>
        line.test(await (await fetch(publisher.opsUrl('/readyz'))).text()),
      );
      const ids = [first, await composed('Another one')];
      // A target may be on its way when the network begins to rest; two are of the first post.
      const asked = network.state.calls.slice(before);
      assert.ok(asked.length >= 1 && asked.length <= 2, JSON.stringify(asked.map(({ path }) => path)));
      await publisher.stop();
      const waiting = (await Promise.all(ids.map(targetsOf))).flat();
      assert.equal(waiting.length, 4);
      assert.ok(
        waiting.every(({ status }) => status !== 'failed' && status !== 'published'),
        JSON.stringify(waiting),
      );
      const { rows } = await http.get(`/accounts?clientId=${clientId}`);
      assert.ok(rows.every(({ status }) => status === 'connected'));
      assert.equal(network.state.calls.length, before + asked.length);

      await launch('services/publisher/main.ts', { LINKEDIN_VERSION: '209901' });
      await until('all are published', async () =>
        (await Promise.all(ids.map(targetsOf))).flat().every(({ status }) => status === 'published'),
      );
      assert.equal(network.state.posts.length, answered + 4);
      assert.ok(network.state.calls.slice(before + asked.length).every(({ version }) => version === '209901'));
    },
  );
});
