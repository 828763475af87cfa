/** Runs the code of the guides: curl, TypeScript and Python, against a standalone service and against a rude server. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { stripTypeScriptTypes } from 'node:module';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { type GuideName, guideNames } from '#services/pages/docs/guides.ts';
import { built } from '#test/support/bundles.ts';
import { rowsOfRun, withoutTests } from '#test/support/drawing.ts';
import { codeOf, languagesIn, onlyCodeOf } from '#test/support/guides.ts';
import { callerOf } from '#test/support/http.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, printedUrl, start } from '#test/support/processes.ts';
import { afterFile, type Declare, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

type Env = Readonly<Record<string, string>>;
type Answer = Readonly<Record<string, unknown>>;
interface Result {
  readonly data: Answer & { readonly id: string };
}

const root = fileURLToPath(new URL('../../', import.meta.url));
const has = (command: string): boolean => spawnSync(command, ['--version']).status === 0;
const missing = ['curl', 'python3'].filter((command) => !has(command));

/** Below node_modules, where the programs of the guides find openapi-fetch. */
const folder = (() => {
  const cache = path.join(root, 'node_modules/.cache');
  mkdirSync(cache, { recursive: true });
  const made = mkdtempSync(path.join(cache, 'guides-'));
  writeFileSync(path.join(made, 'package.json'), '{"type":"module"}');
  copyFileSync(path.join(root, 'test/fixtures/coffee.jpg'), path.join(made, 'coffee.jpg'));
  return made;
})();
afterFile(() => rmSync(folder, { recursive: true, force: true }));

const children = new Set<ChildProcess>();
afterFile(() => {
  for (const child of children) child.kill('SIGKILL');
});

interface Ran {
  readonly child: ChildProcess;
  readonly output: () => string;
  readonly ended: Promise<number | null>;
}

const launch = (command: string, args: readonly string[], env: Env): Ran => {
  const child = spawn(command, args, {
    cwd: folder,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  children.add(child);
  let text = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk) => (text += chunk));
  const ended = new Promise<number | null>((resolve) => {
    child.once('close', (code) => {
      children.delete(child);
      resolve(code);
    });
  });
  return { child, output: () => text, ended };
};

const finished = async ({ output, ended }: Ran): Promise<string> => {
  assert.equal(await ended, 0, output());
  return output();
};

let count = 0;
const typescript = (code: string, env: Env): Ran => {
  count += 1;
  const file = path.join(folder, `program-${count}.mjs`);
  // Node strips no types below node_modules.
  writeFileSync(file, stripTypeScriptTypes(code));
  return launch(process.execPath, [file], env);
};
const python = (code: string, env: Env): Ran => {
  count += 1;
  const file = path.join(folder, `program-${count}.py`);
  writeFileSync(file, code);
  return launch('python3', [file], env);
};
const shell = async (code: string | undefined, env: Env): Promise<string> =>
  finished(launch('sh', ['-euc', code ?? assert.fail('the guide has fewer blocks')], env));

suite('the code of the guides', { timeoutMs: 240_000 }, (t) => {
  t('is in languages that run here', () => {
    for (const name of guideNames) {
      const others = languagesIn(name).filter((one) => !['bash', 'ts', 'python', 'json'].includes(one));
      assert.deepEqual(others, [], name);
    }
  });

  if (missing.length > 0) {
    t.skip('runs', `there is no ${missing.join(' and no ')} here`);
    return;
  }

  const data = dataFolder();
  let service: Process;
  let env: Env = {};
  let baseUrl = '';
  let clientId = '';
  let mcpUrl = '';
  let databaseUrl = '';
  const ports: number[] = [];
  const curl = (name: GuideName): readonly string[] => codeOf(name, 'bash', baseUrl);
  const asked = async (code: string | undefined, more: Env = {}): Promise<Result> =>
    JSON.parse(await shell(code, { ...env, ...more }));
  const http = () => callerOf(() => baseUrl, env.POSTLINE_KEY ?? '');

  t.before(async () => {
    const db = await preparedDatabase();
    databaseUrl = db.url;
    ports.push(await freePort(), await freePort(), await freePort());
    service = await start('services/standalone/main.ts', {
      args: ['--data', data.dataDir, '--port', '0', '--no-tour'],
      env: {
        DATABASE_URL: db.url,
        PRIVATE_TARGETS: ports.map((port) => `127.0.0.1:${port}`).join(),
        // The tests poll.
        RATE_LIMIT_PER_MINUTE: '6000',
        RATE_LIMIT_BURST: '1000',
      },
      readyAt: /^Data: /m,
    });
    mcpUrl = /over MCP, with OAuth or a key: (\S+)/.exec(service.output())?.[1] ?? '';
    baseUrl = printedUrl(service.output());
    env = { POSTLINE_KEY: /sk_test_\S+/.exec(service.output())?.[0] ?? '' };
  });
  t.after(() => service.stop());

  /** Of the guides, beside what each is begun with; those of a group take long together. */
  const programs = [
    'thirty days',
    'an operator',
    'uploads',
    'an agent',
    'receivers',
    'strangers',
    'spoiled',
    'same call',
  ];
  const run = rowsOfRun('programs of the guides', programs, String);
  const of = (program: string): Declare => (run.includes(program) ? t : withoutTests(t));

  t('first post: curl, to the published post', async () => {
    const [agency, client, invite, accounts, post, shown, ...more] = curl('first-post');
    assert.deepEqual(more, []);
    assert.equal((await asked(agency)).data.object, 'agency');
    clientId = (await asked(client)).data.id;
    const { data } = await asked(invite, { CLIENT_ID: clientId });
    for (const platform of data.platformsRequested as readonly string[]) {
      const body = new URLSearchParams({ platform, username: 'acme', timezone: '' });
      assert.equal((await fetch(String(data.url), { method: 'POST', body, redirect: 'manual' })).status, 303);
    }
    await until('both accounts', async () => {
      const { data: rows } = await asked(accounts, { CLIENT_ID: clientId });
      return (rows as unknown as readonly unknown[]).length === 2;
    });
    const { id } = (await asked(post, { CLIENT_ID: clientId })).data;
    const published = await until('the post published', async () => {
      const answer = await asked(shown, { POST_ID: id });
      return answer.data.status === 'published' ? answer : null;
    });
    for (const target of published.data.targets as readonly Answer[]) assert.match(String(target.permalink), /^https:/);
  });

  t('first post: the programs print both targets with their links', async () => {
    const own = { ...env, CLIENT_ID: clientId };
    const programs = [
      typescript(onlyCodeOf('first-post', 'ts', baseUrl), own),
      python(onlyCodeOf('first-post', 'python', baseUrl), own),
    ];
    for (const program of programs) {
      const lines = (await finished(program)).trim().split('\n').sort();
      assert.equal(lines.length, 2);
      assert.match(lines[0] ?? '', /^bluesky published https:/);
      assert.match(lines[1] ?? '', /^x published https:/);
    }
  });

  t('sandbox: a fault that a text asks for strikes, and the post goes out', async () => {
    const [fault, ...more] = curl('sandbox');
    assert.equal(more.length, 2, 'the other blocks are tests of their own');
    const { id } = (await asked(fault, { CLIENT_ID: clientId })).data;
    const [target] = await until('the post published', async () => {
      const { data } = await http().get(`/posts/${id}`);
      return data.status === 'published' ? (data.targets as unknown as readonly Answer[]) : null;
    });
    const shown = await http().get(`/post-targets/${target?.id}`);
    assert.equal(shown.data.attempts, 2, shown.text);
  });

  t('sandbox: a simulation answers what the guide shows of it', async () => {
    const [accounts, at] = [await http().get(`/accounts?clientId=${clientId}`), '2027-03-01T09:00:00.000Z'];
    const x = accounts.rows.find(({ platform }) => platform === 'x')?.id;
    const later = new Date(Date.now() + 7 * 86_400_000);
    const begin = new Date(later.setUTCHours(9, 0, 0, 0)).getTime();
    for (const minutes of [0, 10]) {
      const scheduledAt = new Date(begin + minutes * 60_000).toISOString();
      const targets = { mode: 'selection', accountIds: [x] };
      const body = { clientId, content: `At ${minutes}`, targets, schedule: { type: 'at', scheduledAt } };
      assert.equal((await http().post('/posts', body)).status, 200);
    }
    const [, , simulation] = curl('sandbox');
    const { data } = await until('both are planned', async () => {
      const answer = await asked(simulation, { CLIENT_ID: clientId });
      return answer.data.targets === 2 ? answer : null;
    });
    const shift = (instant: string): string => new Date(Date.parse(instant) - begin + Date.parse(at)).toISOString();
    const [change, ...more] = data.changes as readonly Record<'now' | 'then', { readonly at: string }>[];
    assert.ok(change !== undefined && more.length === 0);
    const { targetId: _target, postId: _post, accountId: _account, ...shown } = change as unknown as Answer;
    const moved = (side: 'now' | 'then') => ({ ...change[side], at: shift(change[side].at) });
    assert.deepEqual({ ...shown, now: moved('now'), then: moved('then') }, JSON.parse(onlyCodeOf('sandbox', 'json')));
  });

  of('thirty days')('sandbox: thirty days pass in a minute', async () => {
    const [, move] = curl('sandbox');
    const { now } = (await http().get('/sandbox/clock')).data as unknown as { readonly now: string };
    const next = new Date(Date.parse(now) + 3_600_000).toISOString();
    const moved = (await asked(move, { NEXT_DAY: next })).data as unknown as { readonly now: string };
    assert.ok(moved.now >= next);
    const own = { ...env, CLIENT_ID: clientId, WEBHOOK_URL: `http://127.0.0.1:${ports[2]}/`, PORT: String(ports[2]) };
    const lines = (await finished(typescript(onlyCodeOf('sandbox', 'ts', baseUrl), own))).trim().split('\n');
    assert.equal(lines.length, 31, lines.join('\n'));
    assert.match(lines.at(-1) ?? '', /^4 copies, \d+ events taken at the second try, figures of (29|30|31) days$/);
  });

  t('media: curl, to the asset that a post may use', async () => {
    const [presign, put, register, shown, ...more] = curl('media');
    assert.deepEqual(more, []);
    const { data: upload } = await asked(presign);
    assert.equal((upload.headers as Env)['content-type'] ?? (upload.headers as Env)['Content-Type'], 'image/jpeg');
    await shell(put, { ...env, UPLOAD_URL: String(upload.url) });
    const own = { ASSET_ID: String(upload.assetId) };
    assert.equal((await asked(register, own)).data.readyEvent, 'media.ready');
    await until('the asset publishable', async () => (await asked(shown, own)).data.publishable === true);
  });

  of('uploads')('media: the programs upload a picture and wait until it is ready', async () => {
    const programs = [
      typescript(onlyCodeOf('media', 'ts', baseUrl), env),
      python(onlyCodeOf('media', 'python', baseUrl), env),
    ];
    for (const program of programs) assert.match(await finished(program), /^[\da-f-]{36} transcoded/);
  });

  t('auditing: curl reads the feed and a note, and the program proves the newest event', async () => {
    const [page, lines, history, then, , note] = curl('auditing');
    const numbered = await until('events in the feed', async () => {
      const { data } = await asked(page);
      const found = data as unknown as readonly Answer[];
      return found.length > 5 ? found : null;
    });
    assert.deepEqual(
      numbered.map(({ sequence }) => sequence),
      numbered.map((_, at) => at + 1),
    );
    const made = numbered.find(({ type }) => type === 'ClientCreated');
    const own = { CLIENT_ID: String(made?.stream).replace('client-', ''), SEQUENCE: String(made?.sequence) };
    const { data: client } = await asked(then, own);
    assert.deepEqual([client.id, client.revision, client.accountCount], [own.CLIENT_ID, 0, 0]);
    const { data: changes } = await asked(history, await published());
    const entries = changes as unknown as readonly { readonly changes: readonly object[]; readonly actor: object }[];
    assert.ok(entries.some((one) => one.changes.length > 0 && one.actor !== null));
    const all = (await shell(lines, env)).trim().split('\n');
    assert.ok(all.length >= numbered.length);
    const [{ note: text = '' } = {}] = (await asked(note)).data as unknown as readonly Answer[];
    assert.match(String(text), /^postline\/[\w-]+\n\d+\n/);
    const output = await finished(typescript(onlyCodeOf('auditing', 'ts', baseUrl), env));
    assert.match(output, /^\w+ is event \d+ of \d+: signed true, included true$/m);
  });

  /** A post that went out before. */
  const published = async () => {
    const [target] = (await http().get('/post-targets?status=published&limit=1')).rows;
    return { POST_ID: String(target?.postId), TARGET_ID: String(target?.id) };
  };

  of('an operator')(
    'auditing: what an operator runs says what the page shows, and names what was changed',
    async () => {
      const [, , , , diff, , exported, tampered, verified, replayed, bundled, ...more] = curl('auditing');
      assert.deepEqual(more, []);
      /** As the npm script runs it, on the sandbox, whose key the page is tried with. */
      const run = (code: string | undefined, own: Env = {}): Promise<string> => {
        const main = `"${process.execPath}" "${built(path.join(root, 'services/admin/main.ts'))}" audit`;
        const onTwin = (code ?? '').replace(/npm run audit -- (export|verify|replay|diff) /g, `${main} $1 --test `);
        const where = { DATA_DIR: data.dataDir, DATABASE_URL: databaseUrl };
        return shell(onTwin.replaceAll('npm run audit --', main), { ...where, ...own });
      };
      /** What differs from run to run has one form. */
      const alike = (text: string): readonly string[] =>
        text
          .replace(/[\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12}/g, 'ID')
          .replace(/[\w+/]{43}=/g, 'ROOT')
          .replace(/: \d+ events/, ': N events')
          .replace(/\b(Un)\w+ ID of [\w]+-ID/g, '$1Type ID of stream')
          .trim()
          .split('\n')
          .map((line) => line.trim());
      const guide = readFileSync(path.join(root, 'services/pages/docs/guides/auditing.md'), 'utf8');
      const shown = new Set(alike(guide));
      for (const code of [exported, tampered]) {
        const said = alike(await run(code)).slice(-3);
        for (const line of said) assert.ok(shown.has(line), `the page does not show: ${line}`);
      }
      const [signed] = (await http().get('/events/checkpoints?limit=1')).rows as unknown as readonly { size: number }[];
      const between = await run(diff, { SEQUENCE: String(signed?.size) });
      assert.match(between, /client-[\da-f-]{36} +made/);
      assert.match(await run(`${verified} `), /whole +true/);
      const ids = await published();
      const replay = await run(replayed, { ...ids, INSTANT: new Date().toISOString() });
      assert.match(replay, /^ +1 {2}\d{4}-.*Z {2}\w+-[\da-f-]+ 0 {2}\w+/m);
      assert.match(replay, new RegExp(`^\\{.*"stream":"post-${ids.POST_ID}".*"type":"Post\\w+"`, 'm'));
      assert.match(await run(bundled, ids), /same +true/);
    },
  );

  of('an agent')('agents: the program composes a post and sees it published', async () => {
    const code = onlyCodeOf('agents-and-apps', 'ts');
    const own = { ...env, CLIENT_ID: clientId, POSTLINE_MCP: mcpUrl };
    const lines = (await finished(typescript(code, own))).trim().split('\n');
    assert.match(lines[0] ?? '', /^(1[4-9]|[23]\d) tools$/);
    assert.match(lines[1] ?? '', /^published [\da-f-]{36}$/);
    // The answer of the Inspector below it is compared in test/services/mcp/transport.test.ts.
    const [settings = '', answer, ...more] = codeOf('agents-and-apps', 'json');
    assert.ok(answer !== undefined && more.length === 0);
    const { mcpServers } = JSON.parse(settings);
    assert.deepEqual(Object.keys(mcpServers.postline), ['type', 'url']);
  });

  t('apps: an app finds the authorization server and registers', async () => {
    const [inspector, finding, ...more] = curl('agents-and-apps');
    assert.match(inspector ?? '', /^npx @modelcontextprotocol\/inspector /);
    assert.deepEqual(more, []);
    const said = await shell(finding, env);
    const [metadata, app] = said.split(/(?<=\})\s*(?=\{)/).map((text) => JSON.parse(text));
    assert.match(metadata.authorization_endpoint, /\/oauth\/authorize$/);
    assert.equal(app.client_name, 'Planner');
    assert.match(app.client_id, /^[\w-]{20,}$/);
  });

  of('receivers')('webhooks: the receivers take each genuine event once', async () => {
    const [register, test, rotate, ...more] = curl('webhooks');
    assert.deepEqual(more, []);
    const receivers = [typescript, python].map(async (run, at) => {
      const [code] = codeOf('webhooks', at === 0 ? 'ts' : 'python');
      const port = ports[at] ?? 0;
      const registration = register?.replace('newsroom-1', `newsroom-${at}`);
      const { data: endpoint } = await asked(registration, { WEBHOOK_URL: `http://127.0.0.1:${port}/` });
      const own = { WEBHOOK_SECRET: String(endpoint.secret), PORT: String(port) };
      const receiver = run(code ?? '', own);
      await until('the receiver listens', () =>
        fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' }).then(
          ({ status }) => status === 401,
          () => false,
        ),
      );
      const tried = async () => {
        const { data: delivery } = await asked(test, { WEBHOOK_ID: endpoint.id });
        await until('the event at the receiver', async () => receiver.output().includes(String(delivery.eventId)));
        const path = `/webhooks/${endpoint.id}/deliveries/${delivery.id}`;
        await until('delivered', async () => (await http().get(path)).data.status === 'delivered');
        return { path, eventId: String(delivery.eventId) };
      };
      const delivery = await tried();
      // The same event again: it arrives, is taken, and is not worked on twice.
      await http().post(`${delivery.path}/resend`);
      await until('sent twice', async () => {
        const { attempts } = (await http().get(delivery.path)).data as unknown as {
          readonly attempts: readonly unknown[];
        };
        return attempts.length === 2;
      });
      const taken = receiver
        .output()
        .split('\n')
        .filter((line) => line.includes(delivery.eventId));
      assert.equal(taken.length, 1, receiver.output());
      // During the 24 hours the receiver with the former secret takes what both sign.
      const rotation = rotate?.replace('newsroom-rotation-1', `newsroom-rotation-${at}`);
      assert.notEqual((await asked(rotation, { WEBHOOK_ID: endpoint.id })).data.secret, endpoint.secret);
      await tried();
      receiver.child.kill();
    });
    await Promise.all(receivers);
  });

  of('strangers')('webhooks: the receivers outlive strangers, and none starts without a secret', async () => {
    const body = '{"id":"forged","type":"target.published"}';
    const now = Math.floor(Date.now() / 1_000);
    const forged = (secret: string, { time = now, before = '' } = {}) => {
      const mac = createHmac('sha256', Buffer.from(secret, 'base64'))
        .update(`event-1.${time}.${body}`)
        .digest('base64');
      const signed = ['webhook-id: event-1', `webhook-timestamp: ${time}`, `webhook-signature: ${before}v1,${mac}`];
      return [...signed, `Content-Length: ${body.length}`, '', body];
    };
    for (const [at, run] of [typescript, python].entries()) {
      const [code = ''] = codeOf('webhooks', at === 0 ? 'ts' : 'python');
      const unset = run(code, { PORT: String(await freePort()) });
      assert.notEqual(await Promise.race([unset.ended, setTimeout(10_000, 'it listens')]), 'it listens');
      assert.notEqual(await unset.ended, 0);
      const port = await freePort();
      const receiver = run(code, { WEBHOOK_SECRET: `whsec_${btoa('ours')}`, PORT: String(port) });
      /** @returns the status line; empty: the receiver closed the connection */
      const send = (lines: readonly string[], isBroken = false) =>
        new Promise<string>((resolve, reject) => {
          const socket = connect(port, '127.0.0.1');
          let answer = '';
          socket.on('data', (chunk) => {
            answer += String(chunk);
            socket.end();
          });
          socket.once('error', reject).once('close', () => resolve(answer.split('\r\n')[0] ?? ''));
          const request = ['POST / HTTP/1.1', 'Host: receiver', ...lines].join('\r\n');
          socket.write(Buffer.from(request, 'latin1'), () => isBroken && socket.resetAndDestroy());
        });
      await until('the receiver listens', () => send(forged(btoa('wrong'))).catch(() => null));
      await send(['Content-Length: 100', '', 'abc'], true);
      for (const refused of [
        forged(btoa('wrong')),
        forged(btoa('ours'), { time: now - 301 }),
        forged(btoa('ours'), { time: now + 310 }),
        [
          'webhook-id: event-1',
          `webhook-timestamp: ${now}`,
          'webhook-signature: v1,\xe9',
          'Content-Length: 2',
          '',
          '{}',
        ],
        ['webhook-id: event-1', 'webhook-timestamp: \xb2', 'webhook-signature: v1,', 'Content-Length: 2', '', '{}'],
        ['Content-Length: 0', '', ''],
        ['Connection: close', '', ''],
      ]) {
        assert.match(await send(refused), / 401 /, `${at}: ${refused.join(' ')}`);
      }
      assert.doesNotMatch(receiver.output(), /TypeError|ValueError/);
      assert.match(await send(forged(btoa('ours'), { before: 'v1,b3RoZXI= ' })), / 204 /);
      await until('the event is taken', async () => receiver.output().includes('forged'));
      receiver.child.kill();
    }
  });

  t('webhooks: the example is an event as it is sent', async () => {
    const [example] = codeOf('webhooks', 'json');
    const { id, type, created, data, ...more } = JSON.parse(example ?? '');
    assert.deepEqual(more, {});
    assert.equal(type, 'media.ready');
    assert.ok(id && created);
    assert.deepEqual(Object.keys(data), ['assetId', 'status']);
  });

  t('errors: the example is a refusal as it is answered', async () => {
    const shown = JSON.parse(onlyCodeOf('errors-and-retries', 'json', baseUrl));
    const schedule = { type: 'now' };
    const refused = await http().post('/posts', { clientId, schedule });
    const { correlationId: _own, ...answered } = refused.body;
    const { correlationId: _shown, ...expected } = shown;
    assert.deepEqual(answered, expected);
  });

  of('spoiled')('errors: the programs repeat what a rude server spoils, and nothing else', async () => {
    const programs = [
      (base: string, own: Env) => {
        const code = onlyCodeOf('errors-and-retries', 'ts', base);
        const tried = (args: string) =>
          `await call(${args}).then((data) => console.log(data.id), (error) => console.log(error.message));`;
        const calls = [`'POST', '/posts', {}, 'key-1'`, `'POST', '/once', {}`, `'POST', '/refused', {}, 'key-2'`];
        return typescript(`${code}\n${calls.map(tried).join('\n')}`, own);
      },
      (base: string, own: Env) => {
        const code = onlyCodeOf('errors-and-retries', 'python', base);
        const tried = (args: string) =>
          `try:\n    print(call(${args})["id"])\nexcept RuntimeError as error:\n    print(error)\n`;
        const calls = ['"POST", "/posts", {}, "key-1"', '"POST", "/once", {}', '"POST", "/refused", {}, "key-2"'];
        return python(`${code}\n${calls.map(tried).join('\n')}`, own);
      },
    ];
    const outcomes = programs.map(async (program) => {
      const seen: string[] = [];
      const server = createServer((request, response) => {
        const { url = '', headers } = request;
        const before = seen.filter((one) => one.startsWith(`${url} `)).length;
        seen.push(`${url} ${headers['idempotency-key']}`);
        request.resume().once('end', () => {
          const problem = { 'Content-Type': 'application/problem+json' };
          if (url === '/once') return response.writeHead(503, problem).end('{"code":"unavailable"}');
          if (url === '/refused') return response.writeHead(422, problem).end('{"code":"validation_failed"}');
          if (before === 0) return request.socket.destroy();
          // The answer breaks off in its middle: the call has worked.
          if (before === 1) {
            response.writeHead(200, { 'Content-Type': 'application/json', 'Content-Length': '100' });
            return response.write('{"data"', () => request.socket.destroy());
          }
          return response.writeHead(200, { 'Content-Type': 'application/json' }).end('{"data":{"id":"post-1"}}');
        });
      });
      const port = await freePort();
      await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
      const said = await finished(program(`http://127.0.0.1:${port}`, env)).finally(() => server.close());
      return { said: said.trim().split(/\r?\n/), seen };
    });
    for (const { said, seen } of await Promise.all(outcomes)) {
      assert.deepEqual(said, ['post-1', 'unavailable', 'validation_failed']);
      assert.deepEqual(seen, [...Array(3).fill('/posts key-1'), '/once undefined', '/refused key-2']);
    }
  });

  t('errors: a change with a former revision is refused', async () => {
    const [change] = curl('errors-and-retries');
    assert.equal((await asked(change, { CLIENT_ID: clientId })).data.revision, 1);
    const refused = JSON.parse(await shell(change, { ...env, CLIENT_ID: clientId }));
    assert.equal(refused.code, 'revision_mismatch');
    assert.equal(refused.currentRevision, 1);
  });

  t('idempotency: a repeat answers the first result and says so', async () => {
    const [post, ...more] = curl('idempotency');
    assert.deepEqual(more, []);
    const answers = [];
    for (let n = 0; n < 2; n += 1) {
      const [head = '', body = ''] = (await shell(post, { ...env, CLIENT_ID: clientId })).split('\r\n\r\n');
      answers.push({ isReplayed: /^idempotent-replayed: true\r?$/im.test(head), id: JSON.parse(body).data.id });
    }
    const [first, second] = answers;
    assert.equal(first?.isReplayed, false);
    assert.equal(second?.isReplayed, true);
    assert.equal(second?.id, first?.id);
  });

  of('same call')('idempotency: what counts as the same call', async () => {
    const body = { clientId, content: 'Same', targets: { mode: 'group', clientId }, schedule: { type: 'now' } };
    const key = 'same-call-1';
    const first = await http().post('/posts', body, { key });
    const { content, ...rest } = body;
    const others = [
      { ...rest, content },
      { ...body, campaignId: null },
      { ...body, ourOwn: 'id 7' },
    ];
    for (const other of others) {
      const again = await http().request('POST', '/posts', { raw: JSON.stringify(other, null, 4), key });
      assert.equal(again.headers.get('idempotent-replayed'), 'true', JSON.stringify(other));
      assert.equal(again.data.id, first.data.id);
    }
    const changed = await http().post('/posts', { ...body, content: 'Other' }, { key });
    assert.equal(changed.body.code, 'idempotency_key_reused');
    // A refusal leaves no trace: corrected, the call goes through under its key.
    const refused = await http().post('/posts', { ...body, content: 'x'.repeat(2_000) }, { key: 'corrected-1' });
    assert.equal(refused.status, 422);
    assert.equal((await http().post('/posts', body, { key: 'corrected-1' })).status, 200);
    const both = await Promise.all([1, 2].map(() => http().post('/posts', body, { key: 'at-once-1' })));
    assert.deepEqual(
      both.map(({ status }) => status),
      [200, 200],
    );
    assert.equal(both[0]?.data.id, both[1]?.data.id);
  });
});
