/**
 * An account of X from its connect link to a post, over separate processes and a strict X: the api is killed at each
 * moment of the consent, the guest begins again, the account posts once, and its end is told to the network.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { openPool } from '#infra/postgres/pool.ts';
import { Guest } from '#test/support/guest.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { type Person, startX, type XNetwork } from '#test/support/networks/x/index.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, run, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { until } from '#test/support/until.ts';

suite('an account of x, over separate processes', { timeoutMs: 120_000 }, (t) => {
  const fired = mkdtempSync(path.join(tmpdir(), 'postline-fired-'));
  const processes: Process[] = [];
  let env: Record<string, string>;
  let network: XNetwork;
  let person: Person;
  let api: Process;
  let http: Caller;
  let clientId = '';
  let own = 0;
  /** Of the connect link. */
  let link = '';
  const guest = new Guest(() => api.url(''));

  const launch = async (main: string, more: Readonly<Record<string, string>> = {}): Promise<Process> => {
    const one = await start(main, { env: { ...env, ...more } });
    processes.push(one);
    return one;
  };
  /** Starts the api, which dies at the point once it comes there. */
  const child = async (point: string): Promise<void> => {
    const more = { PORT: String(own), POSTLINE_FAULT: point, POSTLINE_FAULT_ONCE: fired };
    api = await launch('services/api/main.ts', more);
  };
  const died = async (asked: Promise<unknown>): Promise<void> => {
    await assert.rejects(asked, TypeError);
    assert.equal((await api.exited()).signal, 'SIGKILL');
  };
  const admin = async (...args: string[]): Promise<Readonly<Record<string, string>>> => {
    const { code, output } = await run('services/admin/main.ts', { env, args: [...args, '--json'] });
    assert.equal(code, 0, output);
    return JSON.parse(output.split('\n').at(-1) ?? '');
  };
  const begin = () => guest.sent(link, { platform: 'x', way: 'consent', timezone: '' });
  /** Presses "Authorize app" there, and answers where X sends the browser. */
  const allowed = async (page: string): Promise<string> => {
    const url = new URL(page);
    url.searchParams.set('as', person.id);
    const answer = await fetch(url, { redirect: 'manual' });
    assert.equal(answer.status, 302, await answer.text());
    return answer.headers.get('location') ?? '';
  };
  const rows = () => http.get(`/accounts?clientId=${clientId}`).then((answer) => answer.rows);

  t.before(async () => {
    own = await freePort();
    const base = `http://127.0.0.1:${own}`;
    network = await startX({ redirectUri: `${base}/connect/callback` });
    person = network.person();
    const { url } = await preparedDatabase();
    const { clientId: app, clientSecret } = network.state.app;
    env = {
      ...{ DATABASE_URL: url, SECRET_KEY: `v1:${randomBytes(32).toString('base64')}`, PORT: '0' },
      ...{ DATA_DIR: dataFolder().dataDir, DATABASE_POOL: '4', LEASE_TTL_MS: '2000' },
      ...timesEnv({ sweepIntervalMs: 300 }),
      ...{ PRIVATE_TARGETS: new URL(network.origin).host, CONSOLE_URL: base },
      ...{ X_API: network.origin, X_AUTHORIZE: `${network.origin}/i/oauth2/authorize` },
      ...{ X_CLIENT_ID: app, X_CLIENT_SECRET: clientSecret ?? '' },
    };
    await child('connect:after-attempt');
    await Promise.all(
      ['projections/main.ts', 'services/publisher/main.ts', 'services/outcomes/main.ts'].map((main) => launch(main)),
    );
    await admin('workspace', 'create', '--name', 'Café');
    const { secret = '' } = await admin('key', 'create', '--mode', 'live');
    http = callerOf(() => api.url('/v1'), secret);
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
  });
  t.after(async () => {
    await Promise.all(processes.map((one) => one.kill()));
    network?.close();
    rmSync(fired, { recursive: true, force: true });
  });

  t('an api that dies before the browser leaves has connected nothing: the same form begins again', async () => {
    const made = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['x'] });
    assert.equal(made.status, 200, made.text);
    link = new URL(String(made.data.url)).pathname;
    await died(begin());
    await child('connect:after-take');
    assert.match((await guest.get(link)).html, /Continue to X/);
  });

  t('an api that dies with the answer in hand has spent it: the page says how to go on', async () => {
    const back = await allowed(await begin());
    await died(guest.get(back));
    await child('connect:after-finish');
    assert.equal(network.state.refresh.size, 0, 'the network was not asked');
    const again = await guest.get(back);
    assert.equal(again.status, 404);
    assert.match(again.html, /Open the link that you were sent/);
  });

  t('an api that dies with the tokens in hand has kept none: the guest allows it once more', async () => {
    const back = await allowed(await begin());
    await died(guest.get(back));
    assert.equal(network.state.refresh.size, 1);
    await child('');
    assert.deepEqual(await rows(), []);
    const done = await guest.get(await allowed(await begin()));
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await until('the account', async () => {
      const all = await rows();
      return all.length > 0 && all;
    });
    assert.deepEqual(
      [account?.status, account?.externalId, account?.username],
      ['connected', person.id, person.username],
    );
  });

  t('it posts, once', async () => {
    const composed = await http.post('/posts', {
      ...{ clientId, content: 'Fresh rolls', targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
    });
    assert.equal(composed.status, 200, composed.text);
    const target = await until('it is published', async () => {
      const [one] = (await http.get(`/posts/${composed.data.id}`)).data.targets as readonly Record<string, unknown>[];
      return one?.status === 'published' ? one : null;
    });
    const [made, ...others] = network.state.creates;
    assert.deepEqual([made?.personId, made?.body, others], [person.id, { text: 'Fresh rolls' }, []]);
    assert.equal(target.permalink, `https://x.com/${person.username}/status/${made?.postId}`);
  });

  t('a disconnected account ends its consent at the network', async () => {
    const [account] = await rows();
    const ended = network.state.refresh.size - 1;
    assert.equal((await http.post(`/accounts/${account?.id}/disconnect`, {})).status, 200);
    await until('the consent is revoked', () => network.state.refresh.size === ended);
    const pool = openPool({ url: env.DATABASE_URL ?? '' });
    await until('its credentials are destroyed', async () => {
      const { rowCount } = await pool.query('select 1 from ops.network_credentials');
      return rowCount === 0;
    });
    await pool.end();
  });
});
