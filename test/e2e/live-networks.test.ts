/**
 * Live accounts from their connect link to a post that is read from the network, not from us: standalone in a process of
 * its own, the real server of Bluesky's protocol in another, its page in a Chromium, and a strict Bot API of Telegram.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { openBrowser } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import { orMissing } from '#test/support/missing.ts';
import { signIn } from '#test/support/networks/bluesky-consent.ts';
import { type Identity, type Pds, sharedPds } from '#test/support/networks/pds.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import { patience } from '#test/support/patience.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase, type TestDatabase } from '#test/support/postgres.ts';
import { type Process, printedUrl, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { sparing, until } from '#test/support/until.ts';

/** Where no registry answers, the tests are left out, and say so. */
const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

/** There is a server, but perhaps no browser. */
const chromium = await orMissing(findChromium().then((program) => ({ program })));

suite('live accounts', { drawn: true, costs: 13, timeoutMs: 120_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened as { readonly pds: Pds };
  const data = dataFolder();
  const fired = mkdtempSync(path.join(tmpdir(), 'postline-fired-'));
  let db: TestDatabase;
  let service: Process;
  let http: Caller;
  let ann: Identity;
  let password = '';
  let bearer = '';
  let clientId = '';
  let telegram: TelegramSimulator;
  let invite = '';
  let own = 0;
  const oauthKey = {
    ...generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
    kid: '1',
  };

  /** Starts the service, which dies at the point once it comes there. */
  const child = async (point: string): Promise<void> => {
    const port = new URL(pds.service).host;
    service = await start('services/standalone/main.ts', {
      args: ['--data', data.dataDir, '--port', String(own), '--no-tour'],
      env: {
        DATABASE_URL: db.url,
        PRIVATE_TARGETS: [port, ...[pds.directory, telegram.origin].map((url) => new URL(url).host)].join(),
        TELEGRAM_API: telegram.origin,
        BLUESKY_RESOLVER: pds.service,
        BLUESKY_DIRECTORY: pds.directory,
        BLUESKY_APP_VIEW: pds.service,
        BLUESKY_OAUTH_KEYS: JSON.stringify(oauthKey),
        // Servers know a client without an address by this name of the machine.
        CONSOLE_URL: `http://127.0.0.1:${own}`,
        POSTLINE_FAULT: point,
        POSTLINE_FAULT_ONCE: fired,
        ...timesEnv({ sweepIntervalMs: 300 }),
      },
      readyAt: /^Data: /m,
    });
  };
  const base = () => printedUrl(service.output());
  let key = '';
  const submit = (fields: Record<string, string>) =>
    fetch(new URL(new URL(invite).pathname, base()), {
      method: 'POST',
      body: new URLSearchParams({ platform: 'bluesky', timezone: '', ...fields }),
      redirect: 'manual',
    });
  const postsOf = async (did: string) => {
    const params = { repo: did, collection: 'app.bsky.feed.post' };
    return (await pds.call('com.atproto.repo.listRecords', { params })).records as readonly {
      readonly uri: string;
      readonly value: { readonly text: string; readonly reply?: unknown };
    }[];
  };

  t.before(async () => {
    db = await preparedDatabase();
    own = await freePort();
    telegram = await TelegramSimulator.start();
    ann = await pds.identity();
    password = await pds.appPassword(ann);
    await child('invite:between-credentials-and-connect');
    key = /sk_live_\S+/.exec(service.output())?.[0] ?? '';
    http = callerOf(base, key);
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
  });
  t.after(async () => {
    await service?.stop();
    telegram?.close();
    rmSync(fired, { recursive: true, force: true });
  });

  t('a live link offers Bluesky, and refuses networks to which this installation does not connect', async () => {
    const none = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['threads'] });
    assert.equal(none.body.code, 'platform_not_available');
    const made = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['bluesky', 'threads'] });
    assert.equal(made.status, 200, made.text);
    const { warnings = [] } = made.body.meta as unknown as {
      readonly warnings?: readonly Readonly<Record<string, unknown>>[];
    };
    const [said, ...others] = warnings;
    assert.deepEqual([said?.code, said?.platform, others], ['platform_not_connectable', 'threads', []]);
    assert.match(String(said?.message), /Threads cannot be connected here yet.*no app of Threads/);
    invite = String(made.data.url);
    const page = await (await fetch(new URL(new URL(invite).pathname, base()))).text();
    assert.match(page, /Handle, such as name\.bsky\.social/);
    assert.match(page, /Cannot be connected here yet: Threads\./);
  });

  t('a wrong password is told in words, and is not shown again', async () => {
    const refused = await submit({ username: ann.handle, password: 'not-this-one-at-all' });
    const text = await refused.text();
    assert.equal(refused.status, 422);
    assert.match(text, /does not take this password for this account\. Give an app password/);
    assert.ok(!text.includes('not-this-one-at-all'));
    const missing = await submit({ username: ann.handle });
    assert.match(await missing.text(), /Give the App password\./);
  });

  t('a service that dies between the credentials and the account connects it at the next try', async () => {
    await submit({ username: `@${ann.handle}`, password }).then(
      ({ status }) => assert.fail(`answered with ${status}`),
      () => undefined,
    );
    assert.equal((await service.exited()).signal, 'SIGKILL');
    await child('outcomes:after-revocation');
    assert.deepEqual((await http.get('/accounts')).rows, []);
    const done = await submit({ username: `@${ann.handle}`, password });
    assert.equal(done.status, 303, await done.text());
    const account = await until('the account', async () => (await http.get('/accounts')).rows[0]);
    assert.deepEqual(
      [account.platform, account.status, account.username, account.externalId],
      ['bluesky', 'connected', ann.handle, ann.did],
    );
    assert.equal(account.expiresAt, null, 'the consent lasts for as long as it is used');
  });

  t('a post and its first comment are on the network, each once', async () => {
    const composed = await http.post('/posts', {
      ...{ clientId, content: 'From Postline, for real ☕ #real', targets: { mode: 'group', clientId } },
      ...{ schedule: { type: 'now' } },
      variants: [{ platform: 'bluesky', overrides: { firstComment: 'And a word below.' } }],
    });
    assert.equal(composed.status, 200, composed.text);
    const shown = await until(
      'the post is published',
      async () => {
        const { data: post } = await http.get(`/posts/${composed.data.id}`);
        const [target] = post.targets as readonly Record<string, unknown>[];
        assert.notEqual(target?.status, 'failed', JSON.stringify(target));
        return target?.status === 'published' ? target : null;
      },
      { ...sparing, withinMs: 30_000 },
    );
    const posts = await until(
      'both on the network',
      async () => {
        const all = await postsOf(ann.did);
        return all.length >= 2 ? all : null;
      },
      { ...sparing, withinMs: 30_000 },
    );
    assert.equal(shown.firstCommentIssue, null);
    assert.deepEqual(posts.map(({ value }) => value.text).toSorted(), [
      'And a word below.',
      'From Postline, for real ☕ #real',
    ]);
    const head = posts.find(({ value }) => value.reply === undefined);
    assert.equal(shown.externalId, head?.uri);
    assert.match(String(shown.permalink), new RegExp(`^https://bsky\\.app/profile/${ann.did}/post/`));
  });

  const keptCredentials = async (): Promise<number> => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 });
    const { rows } = await pool.query('select count(*)::int as n from ops.network_credentials');
    await pool.end();
    return rows[0].n;
  };

  t(
    'a disconnected account: its session ends at the network, its credentials are destroyed, also after a death',
    async () => {
      const [account] = (await http.get('/accounts')).rows;
      assert.equal(await keptCredentials(), 1);
      const gone = await http.post(`/accounts/${account?.id}/disconnect`, {});
      assert.equal(gone.status, 200, gone.text);
      // The service dies between the network's answer and the deletion.
      assert.equal((await service.exited()).signal, 'SIGKILL');
      assert.equal(await keptCredentials(), 1);
      await child('outcomes:after-revocation');
      await until('they are destroyed', async () => (await keptCredentials()) === 0);
      assert.equal((await submit({ username: ann.handle, password })).status, 303);
      await until('it is connected again', async () => (await http.get('/accounts')).rows[0]?.status === 'connected');
      assert.equal((await http.get('/accounts')).rows[0]?.id, account?.id, 'the same account, with its history');
      assert.equal(await keptCredentials(), 1);
    },
  );

  t('a channel of Telegram, by a bot of its own: connected, posted to, commented on', async () => {
    const bot = telegram.bot();
    const chat = telegram.chat({ username: 'cafe_real' });
    const client = (await http.post('/clients', { name: 'Channel', type: 'brand' })).data.id;
    const link = await http.post(`/clients/${client}/connect-invites`, { platforms: ['telegram'] });
    const done = await fetch(new URL(new URL(String(link.data.url)).pathname, base()), {
      ...{ method: 'POST', redirect: 'manual' },
      body: new URLSearchParams({ platform: 'telegram', username: '@cafe_real', botToken: bot.token, timezone: '' }),
    });
    assert.equal(done.status, 303, await done.text());
    await until('the account', async () => (await http.get(`/accounts?clientId=${client}`)).rows.length === 1);
    const composed = await http.post('/posts', {
      ...{ clientId: client, content: 'From *Postline*, for real', targets: { mode: 'group', clientId: client } },
      ...{ schedule: { type: 'now' } },
      variants: [{ platform: 'telegram', overrides: { parseMode: 'MarkdownV2', firstComment: 'And below.' } }],
    });
    assert.equal(composed.status, 200, composed.text);
    const made = await until('both messages', async () => {
      const all = telegram.ledger.filter(({ chatId }) => chatId === chat.id);
      return all.length >= 2 ? all : null;
    });
    assert.deepEqual(
      made.map(({ text, replyTo }) => [text, replyTo]),
      [
        ['From *Postline*, for real', null],
        ['And below.', made[0]?.messageId],
      ],
    );
    const target = await until('the target', async () => {
      const { data: post } = await http.get(`/posts/${composed.data.id}`);
      const [one] = post.targets as readonly Record<string, unknown>[];
      return one?.status === 'published' ? one : null;
    });
    assert.equal(target.permalink, `https://t.me/cafe_real/${made[0]?.messageId}`);
    bearer = bot.token;
  });

  if ('missing' in chromium) t.skip('an account by consent', chromium.missing);
  else
    t('an account by consent on the page of its server: refused, allowed at the next try, posted to', async () => {
      const browser = await openBrowser(chromium.program);
      try {
        const bea = await pds.identity();
        const client = (await http.post('/clients', { name: 'Consent', type: 'brand' })).data.id;
        const link = await http.post(`/clients/${client}/connect-invites`, { platforms: ['bluesky'] });
        const context = await browser.newContext({ locale: 'en-US' });
        context.setDefaultTimeout(15_000 * patience);
        const page = await context.newPage();
        const answer = async (press: 'Authorize' | 'Deny access') => {
          await page.getByLabel('Handle, such as name.bsky.social').first().fill(bea.handle);
          await page.getByRole('button', { name: 'Continue to Bluesky' }).click();
          await page.waitForURL(`${pds.service}/**`);
          await signIn(page, bea);
          await page.getByRole('button', { name: press }).click();
          await page.waitForURL(`http://127.0.0.1:${own}/**`);
        };
        await page.goto(String(link.data.url));
        await answer('Deny access');
        await page.getByText('You did not allow it on the page of Bluesky.').waitFor();
        await page.goto(String(link.data.url));
        await answer('Authorize');
        await page.getByText('Connected through this link').waitFor();
        assert.equal(page.url(), link.data.url, 'nothing of the answer stays in the address');
        assert.match(String(await page.locator('ul.rows').textContent()), new RegExp(bea.handle));
        const [account] = (await http.get(`/accounts?clientId=${client}`)).rows;
        assert.deepEqual([account?.externalId, account?.status], [bea.did, 'connected']);
        const composed = await http.post('/posts', {
          ...{ clientId: client, content: 'By consent, for real', targets: { mode: 'group', clientId: client } },
          ...{ schedule: { type: 'now' } },
        });
        assert.equal(composed.status, 200, composed.text);
        const posts = await until('the post on the network', async () => {
          const all = await postsOf(bea.did);
          return all.length > 0 ? all : null;
        });
        assert.deepEqual(
          posts.map(({ value }) => value.text),
          ['By consent, for real'],
        );
      } finally {
        await browser.close();
      }
    });

  t('an account that the network takes down must be connected again: the target says so, and the account', async () => {
    const subject = { $type: 'com.atproto.admin.defs#repoRef', did: ann.did };
    const input = { subject, takedown: { applied: true, ref: '1' } };
    await pds.call('com.atproto.admin.updateSubjectStatus', { input, auth: pds.adminAuth });
    const composed = await http.post('/posts', {
      ...{ clientId, content: 'Too late', targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
    });
    const failure = await until('the target fails', async () => {
      const [target] = (await http.get(`/posts/${composed.data.id}`)).data.targets as readonly Record<
        string,
        unknown
      >[];
      return target?.status === 'failed' ? (target.failure as Record<string, unknown>) : null;
    });
    assert.deepEqual([failure.category, failure.actor], ['reauth_required', 'user']);
    await until(
      'the account',
      async () => (await http.get(`/accounts?clientId=${clientId}`)).rows[0]?.status === 'reauth_required',
    );
  });

  t('no password and no token was written down in clear: rows, events, log', async () => {
    const pool = new pg.Pool({ connectionString: db.url, max: 1 });
    const { rows: kept } = await pool.query('select sealed from ops.network_credentials');
    assert.equal(kept.length, 'missing' in chromium ? 2 : 3);
    const { rows: tables } = await pool.query<{ name: string }>(
      `select format('%I.%I', table_schema, table_name) as name from information_schema.tables
       where table_schema not in ('pg_catalog', 'information_schema') and table_type = 'BASE TABLE'`,
    );
    const written = [service.output()];
    for (const { name } of tables) {
      const { rows } = await pool.query(`select string_agg(t::text, e'\\n') as text from ${name} t`);
      written.push(String(rows[0].text ?? ''));
    }
    const { rows: calls } = await pool.query<{ text: string }>(
      `select convert_from(data, 'latin1') as text from es.events e where e::text like '%targetcalls-%'`,
    );
    await pool.end();
    const reported = calls.map(({ text }) => text).join('\n');
    assert.ok(calls.length >= 6, `${calls.length} calls of networks were kept`);
    for (const part of ['com.atproto.repo.putRecord', '/bot…/sendMessage']) {
      assert.ok(reported.includes(Buffer.from(part).toString('latin1')), part);
    }
    assert.ok(!/eyJ[\w-]{20,}\./.test(reported) && !reported.includes(ann.handle), 'what was answered is sealed');
    written.push(reported);
    const all = written.join('\n');
    assert.ok(all.length > 10_000);
    for (const secret of [password, 'not-this-one-at-all', bearer]) {
      assert.ok(secret.length > 8);
      for (const form of [secret, Buffer.from(secret).toString('hex')]) assert.ok(!all.includes(form));
    }
    assert.ok(!/eyJ[\w-]{20,}\.eyJ[\w-]{20,}/.test(all), 'a token of the network');
  });
});
