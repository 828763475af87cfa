import assert from 'node:assert/strict';
import { request } from 'node:http';
import { ConsoleBrowser, consoleWorld, signedIn } from '#test/support/console.ts';
import { startWorld, type World } from '#test/support/http.ts';
import { goodPassword, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';

let world: World;
let ann: Awaited<ReturnType<typeof signedIn>>;
const fresh = () => new ConsoleBrowser(world.origin);

/** Every page that a member sees, and the ones before the sign-in. */
const memberPages = ['/console', '/team', '/developers', '/apps', '/security'];
const openPages = ['/sign-in', '/forgot-password', '/enter/x', '/join/x', '/reset-password/x'];

const rawGet = (path: string, host: string): Promise<{ status: number; location: string | undefined }> =>
  new Promise((resolve, reject) => {
    const { hostname, port } = new URL(world.origin());
    const asked = request({ hostname, port, path, headers: { host } }, (answer) => {
      answer.resume();
      resolve({ status: answer.statusCode ?? 0, location: answer.headers.location });
    });
    asked.on('error', reject);
    asked.end();
  });

suite('forms and headers of the console', (t) => {
  t.before(async () => {
    world = await consoleWorld();
    ann = await signedIn(world);
  });
  t.after(() => world?.close());

  t('a form without a token, with a foreign one, or with that of another session does nothing', async () => {
    const bob = await signedIn(world);
    await bob.browser.get('/console');
    const ofBob = bob.browser.hidden('token');
    const stranger = fresh();
    await stranger.get('/sign-in');
    const ofStranger = stranger.hidden('token');
    await ann.browser.get('/console');
    const own = ann.browser.hidden('token');
    const before = await world.head();
    const altered = `${own.slice(0, -2)}${own.endsWith('AA') ? 'BB' : 'AA'}`;
    for (const token of ['', 'x', 'v1.', 'v9.AAAA', ofBob, ofStranger, altered, own.slice(3), `${own}.x`]) {
      for (const path of ['/console/workspace', '/team/invites', '/developers/keys', '/security/sessions/end-others']) {
        const { status, text } = await ann.browser.post(path, { token, mode: 'live', role: 'viewer' });
        assert.deepEqual([status, /This form is out of date/.test(text)], [403, true], `${path} ${token}`);
      }
    }
    for (const path of ['/sign-in', '/forgot-password']) {
      const browser = fresh();
      const { status } = await browser.post(path, { email: ann.email, password: goodPassword, token: ofStranger });
      assert.deepEqual([status, browser.cookies.has('session')], [403, false], path);
    }
    assert.equal(await world.head(), before);
    await ann.browser.get('/console');
    assert.equal((await ann.browser.post('/console/workspace', { mode: 'test' })).status, 303);
  });

  t('a form from another site does nothing, even with the right token', async () => {
    const origin = world.origin();
    for (const [headers, right] of [
      [{ origin: 'https://evil.example' }, false],
      [{ origin: 'null' }, false],
      [{ origin: origin.replace('http:', 'https:') }, false],
      [{ origin: `${origin}.evil.example` }, false],
      [{ 'sec-fetch-site': 'cross-site' }, false],
      [{ 'sec-fetch-site': 'same-site', origin }, false],
      [{ 'sec-fetch-site': 'same-origin', origin }, true],
      [{ 'sec-fetch-site': 'same-origin', origin: 'null' }, true],
      [{ origin }, true],
    ] as const) {
      await ann.browser.get('/console');
      const { status } = await ann.browser.post('/console/workspace', { mode: 'test' }, headers);
      assert.equal(status, right ? 303 : 403, JSON.stringify(headers));
    }
  });

  t('only a form of bounded length is read', async () => {
    await ann.browser.get('/console');
    const cookie = `session=${ann.browser.cookies.get('session')}`;
    const send = (body: string, type: string) =>
      fetch(`${world.origin()}/console/workspace`, {
        ...{ method: 'POST', body, redirect: 'manual' },
        headers: { cookie, 'content-type': type },
      });
    const token = ann.browser.hidden('token');
    assert.equal((await send(JSON.stringify({ token }), 'application/json')).status, 415);
    assert.equal((await send(`token=${token}`, 'text/plain')).status, 415);
    assert.equal((await send('', 'application/x-www-form-urlencoded')).status, 403);
    const long = await send(`token=${token}&x=${'x'.repeat(20_000)}`, 'application/x-www-form-urlencoded');
    assert.equal(long.status, 413);
    assert.match(await long.text(), /<h1>/);
  });

  t('every page forbids frames, strange scripts and styles, caches and referrers', async () => {
    const seen = [];
    for (const path of memberPages) seen.push(await ann.browser.get(path));
    for (const path of openPages) seen.push(await fresh().get(path));
    for (const { headers, html } of seen) {
      const policy = headers.get('content-security-policy') ?? '';
      for (const part of ["default-src 'none'", "base-uri 'none'", "frame-ancestors 'none'", "form-action 'self'"]) {
        assert.ok(policy.includes(part), policy);
      }
      assert.ok(!policy.includes('unsafe'));
      assert.equal(headers.get('x-frame-options'), 'DENY');
      assert.equal(headers.get('cache-control'), 'no-store');
      assert.equal(headers.get('referrer-policy'), 'same-origin');
      assert.equal(headers.get('x-content-type-options'), 'nosniff');
      assert.doesNotMatch(html, / style=| on\w+=/);
      const scripts = html.match(/<script[^>]*>/g) ?? [];
      assert.deepEqual(scripts, policy.includes('script-src') ? ['<script src="/sign-in/passkeys.js" defer>'] : []);
    }
    const script = await fetch(`${world.origin()}/sign-in/passkeys.js`);
    assert.match(script.headers.get('content-type') ?? '', /^text\/javascript/);
  });

  t('GET and HEAD change nothing', async () => {
    const before = await world.head();
    for (const path of memberPages) await ann.browser.get(path);
    for (const path of ['/sign-out', '/console/workspace', '/security/sessions/end-others']) {
      assert.equal((await ann.browser.get(path)).status, 404, path);
    }
    for (const path of ['/developers/keys', '/team/invites', '/sign-in/code']) {
      assert.equal((await ann.browser.get(path)).status, 303, path);
    }
    const cookie = `session=${ann.browser.cookies.get('session')}`;
    for (const path of memberPages) {
      const { status } = await fetch(`${world.origin()}${path}`, { method: 'HEAD', headers: { cookie } });
      assert.equal(status, 200);
    }
    assert.equal(await world.head(), before);
  });

  t('answers on its own host alone, and there leaves other paths to the next', async () => {
    const { host } = new URL(world.origin());
    assert.deepEqual(await rawGet('/console', host), { status: 303, location: '/sign-in' });
    for (const other of ['evil.example', `${host}.`, `x@${host}`, 'localhost']) {
      assert.equal((await rawGet('/console', other)).status, 404, other);
    }
    assert.equal((await fresh().get('/approval/x')).status, 404);
    assert.match((await fresh().get('/approval/x')).html, /This link does not work/);
    assert.equal((await fetch(`${world.origin()}/v1/openapi.json`)).status, 200);
    for (const path of ['/team/x', '/console/', '/TEAM', '/security/../team/y', '/consent/none', '/join/x/y']) {
      assert.equal((await ann.browser.get(path)).status, 404, path);
    }
    const missing = await ann.browser.get('/team/x');
    assert.match(missing.text, /There is no such page/);
    assert.match(missing.headers.get('content-type') ?? '', /html/);
  });

  t('on a host of its own it has the root, and its own page for what is missing', async () => {
    const { port } = new URL(world.origin());
    let origin = '';
    const own = await startWorld({
      deps: { consoleUrl: () => origin.replace('127.0.0.1', 'localhost') },
      parts: [(await import('#services/console/part.ts')).consolePart()],
    });
    origin = own.origin();
    const browser = new ConsoleBrowser(() => own.deps.consoleUrl());
    assert.equal((await browser.get('/')).location, '/console');
    assert.equal((await browser.get('/nothing', { accept: 'text/html' })).status, 404);
    assert.match(browser.page.text, /There is no such page/);
    assert.match((await browser.get('/invite/x')).text, /This link does not work/);
    assert.notEqual((await fetch(`${own.origin()}/`)).status, 303);
    await own.close();
    assert.ok(port);
  });

  t('too many pages of one address: 429, as a page, with Retry-After', async () => {
    const small = await consoleWorld({ rate: { perMinute: 10, burst: 10 } });
    const browser = new ConsoleBrowser(small.origin);
    for (let at = 0; at < 10; at += 1) await browser.get('/sign-in');
    const { status, headers, text } = await browser.get('/sign-in');
    assert.equal(status, 429);
    assert.ok(Number(headers.get('retry-after')) >= 1);
    assert.match(text, /Too many requests/);
    await small.close();
  });

  t('hostile names are shown as text', async () => {
    const name = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`;
    const { email } = await personOf(world, { name });
    const browser = fresh();
    await browser.signIn(email, goodPassword);
    for (const path of memberPages) {
      const { status, html, text } = await browser.get(path);
      assert.equal(status, 200);
      assert.ok(!html.includes('<script>') && !html.includes('<img src=x'), path);
      if (path === '/team') assert.ok(text.includes(name));
    }
    const echoed = await fresh().send('/sign-in', '/sign-in', { email: `${name}@x`, password: 'x' });
    assert.ok(!echoed.html.includes('<script>'));
  });
});
