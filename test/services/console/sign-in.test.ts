import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { Secret, TOTP } from 'otpauth';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Mail } from '#services/auth/people/mail.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { startSession } from '#services/auth/people/sessions.ts';
import { nextOf } from '#services/console/paths.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { ConsoleBrowser, consoleWorld, signedIn } from '#test/support/console.ts';
import type { World } from '#test/support/http.ts';
import { goodPassword, inviteToTeam, peopleDepsOf, personOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

const mails: Mail[] = [];
let canSend = true;
const mailer = {
  send: async (mail: Mail) => {
    mails.push(mail);
    return canSend;
  },
  close: () => undefined,
};

let world: World;
const fresh = () => new ConsoleBrowser(world.origin);
const letTimePass = () => world.pool.query(`update auth.attempts set last_at = last_at - interval '1 day 1 hour'`);

suite('sign-in pages', (t) => {
  t.before(async () => {
    world = await consoleWorld({ deps: { mailer } });
  });
  t.after(() => world?.close());

  t('a person signs in, sees the workspace, and signs out', async () => {
    const { email } = await personOf(world, { name: 'Olga' });
    const browser = fresh();
    const toSignIn = await browser.get('/team');
    assert.deepEqual([toSignIn.status, toSignIn.location], [303, '/sign-in?next=%2Fteam']);
    const wrong = await browser.signIn(email, 'a wrong password');
    assert.deepEqual([wrong.status, browser.cookies.has('session')], [422, false]);
    assert.match(wrong.text, /The e-mail address or the password is wrong/);
    assert.match(wrong.html, new RegExp(`value="${email}"`));
    assert.ok(!wrong.html.includes('a wrong password'));
    const team = await browser.signIn(email, goodPassword, '/team');
    assert.match(team.text, /Team · Postline .*North Star Sandbox.*Members Olga/);
    const [line = ''] = browser.received.filter((one) => one.startsWith('session='));
    assert.match(line, /^session=[\w-]{43}; Path=\/; Max-Age=2592000; HttpOnly; SameSite=Lax$/);
    const secret = browser.cookies.get('session') ?? '';
    const out = await browser.post('/sign-out');
    assert.deepEqual([out.status, out.location], [303, '/sign-in?done=signed-out']);
    assert.equal(browser.cookies.has('session'), false);
    browser.cookies.set('session', secret);
    assert.equal((await browser.get('/console')).status, 303);
  });

  t('over https the cookies are bound to the host', async () => {
    let origin = '';
    const secure = await consoleWorld({ deps: { consoleUrl: () => origin.replace('http:', 'https:') } });
    origin = secure.origin();
    const browser = new ConsoleBrowser(secure.origin);
    const { email } = await personOf(secure);
    await browser.signIn(email, goodPassword);
    await secure.close();
    assert.deepEqual([...browser.cookies.keys()].sort(), ['__Host-device', '__Host-form', '__Host-session']);
    for (const line of browser.received) assert.match(line, /^__Host-.*; Path=\/; .*HttpOnly; SameSite=Lax; Secure$/);
  });

  t('a second factor is asked for, once for each code', async () => {
    const { browser: own, email } = await signedIn(world);
    const offer = await own.send('/security', '/security/second-factor', { password: goodPassword });
    assert.match(offer.html, /src="data:image\/svg\+xml;base64,[\w+/=]+"/);
    const [, secret = ''] = /Secret:\s+([A-Z2-7]+)/.exec(offer.text) ?? [];
    const codeAt = (ms: number) => new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: ms });
    const refused = await own.post('/security/second-factor/confirm', { code: '000000' });
    assert.match(refused.text, /This is not the code that the app shows now/);
    const now = world.deps.clock();
    const codes = await own.post('/security/second-factor/confirm', { code: codeAt(now) });
    assert.equal(codes.status, 200, codes.text);
    const recovery = [...codes.html.matchAll(/<code>([a-z2-9-]{14})<\/code>/g)].map(([, code]) => code);
    assert.equal(recovery.length, 10);

    const browser = fresh();
    const asked = await browser.signIn(email, goodPassword, '/apps');
    assert.match(asked.text, /Enter your code/);
    assert.equal(browser.cookies.has('session'), false);
    const pending = browser.hidden('pending');
    const used = await browser.post('/sign-in/code', { pending, next: '/apps', code: codeAt(now) });
    assert.match(used.text, /This code is wrong, or was used/);
    const done = await browser.post('/sign-in/code', { pending, next: '/apps', code: recovery[0] ?? '' });
    assert.deepEqual([done.status, done.location], [303, '/apps']);
    const forged = await fresh().send('/sign-in', '/sign-in/code', { pending: 'v1.e30.AAAA', code: '123456' });
    assert.match(forged.text, /This took too long/);
    const off = await own.send('/security', '/security/second-factor/remove', {
      password: goodPassword,
      code: recovery[1] ?? '',
    });
    assert.match(off.text, /The second factor is off/);
  });

  t('a session that was planted before the sign-in is worth nothing after it', async () => {
    const [attacker, victim] = [await signedIn(world), await personOf(world)];
    const planted = attacker.browser.cookies.get('session') ?? '';
    for (const secret of [planted, 'A'.repeat(43)]) {
      const browser = fresh();
      await browser.get('/sign-in');
      const token = browser.hidden('token');
      browser.cookies.set('session', secret);
      // The form of a page before the sign-in is not one of the planted session.
      const form = { email: victim.email, password: goodPassword };
      if (secret === planted) assert.equal((await browser.post('/sign-in', { ...form, token })).status, 403);
      if (secret === planted) await browser.get('/console');
      assert.equal((await browser.post('/sign-in', form)).status, 303);
      assert.notEqual(browser.cookies.get('session'), secret);
      const asPlanted = fresh();
      asPlanted.cookies.set('session', secret);
      assert.equal((await asPlanted.get('/console')).status, 303);
    }
  });

  t('each sign-in has a session of its own, and a shown cookie is no other’s', async () => {
    const { email } = await personOf(world);
    const [one, two] = [fresh(), fresh()];
    await one.signIn(email, goodPassword);
    await two.signIn(email, goodPassword);
    assert.notEqual(one.cookies.get('session'), two.cookies.get('session'));
  });

  t('only to pages of ours does a sign-in lead', async () => {
    const strange = [
      ...['https://evil.example/', '//evil.example', '/\\evil.example', '\\\\evil.example', 'javascript:alert(1)'],
      ...['/console/../../x', '/console?next=//evil.example', '/sign-out', '/developers/keys', '/%2Fevil.example', ''],
      ...['/consent/a/b', '/consent//evil.example', '/team\r\nX: y', ' /team', '/team@evil.example', '/teams'],
      `/join/${'x'.repeat(200)}`,
    ];
    for (const next of strange) assert.equal(nextOf(next), '/console', next);
    for (const next of ['/team', '/consent/Ab_-9', '/join/abc', '/security']) assert.equal(nextOf(next), next);
    const { email } = await personOf(world);
    for (const next of strange.slice(0, 6)) {
      const browser = fresh();
      await browser.get(`/sign-in?${new URLSearchParams({ next })}`);
      assert.equal(browser.hidden('next'), '/console');
      const sent = await browser.post('/sign-in', { email, password: goodPassword, next });
      assert.equal(sent.location, '/console');
      assert.equal((await browser.get(`/sign-in?${new URLSearchParams({ next })}`)).location, '/console');
    }
  });

  t('says the same whether the account exists, and makes wait the same', async () => {
    const { email } = await personOf(world);
    const reported: string[] = [];
    for (const account of [email, 'nobody@example.com']) {
      const browser = fresh();
      for (let at = 0; at < 5; at += 1) {
        const { status, text } = await browser.signIn(account, 'wrong');
        reported.push(`${status} ${text}`);
      }
      const { status, text, headers } = await browser.signIn(account, goodPassword);
      assert.equal(status, 429);
      assert.match(text, /Too many attempts. Try again in 1 s/);
      assert.equal(headers.get('retry-after'), '1');
    }
    assert.equal(new Set(reported).size, 1, reported.join('\n'));
    await letTimePass();
  });

  t('a lost password: the same answer for every address, a link by mail, and every session ends', async () => {
    const { email, browser: old } = await signedIn(world);
    mails.splice(0);
    const answers = [];
    for (const address of [email.toUpperCase(), 'nobody@example.com']) {
      const shown = await fresh().send('/forgot-password', '/forgot-password', { email: address });
      answers.push(`${shown.status} ${shown.text.replaceAll(address.toLowerCase(), 'X')}`);
    }
    assert.equal(answers[0], answers[1]);
    assert.match(answers[0] ?? '', /^200 {2}Look into your mail.*If there is an account for X , a link is on its way/);
    // The mail of the registration may come meanwhile.
    const links = (): readonly Mail[] => mails.filter(({ text }) => text.includes('/reset-password/'));
    await until('the mail', () => links().length > 0);
    assert.deepEqual(
      links().map(({ to }) => to),
      [email],
    );
    const [, path = ''] = /(\/reset-password\/[\w-]{43})\n/.exec(links()[0]?.text ?? '') ?? [];
    const browser = fresh();
    assert.match((await browser.get(path)).text, /New password/);
    const weak = await browser.post(path, { password: 'short' });
    assert.deepEqual([weak.status, /at least 12 characters/.test(weak.text)], [422, true]);
    const set = await browser.post(path, { password: 'another good one 17' });
    assert.equal(set.location, '/sign-in?done=password');
    assert.match((await browser.get(set.location)).text, /Your new password is set/);
    assert.equal((await browser.get(path)).status, 404);
    assert.equal((await old.get('/console')).status, 303);
    assert.equal((await browser.signIn(email, 'another good one 17')).status, 200);
    await until('the mail to the owner', () => mails.some(({ subject }) => /was set anew/.test(subject)));
    assert.ok(!world.lines.join('').includes(path), 'the link is in the log');
  });

  t(
    'a lost password: whoever asks as often as they like, the page is the same, and five links an hour work',
    async () => {
      const { email, personId } = await personOf(world);
      mails.splice(0);
      const forget = (address: string) => fresh().send('/forgot-password', '/forgot-password', { email: address });
      const shown = new Set<string>();
      for (let at = 0; at < 24; at += 1) {
        const { status, text } = await forget(at % 2 === 0 ? email : `nobody${at}@example.com`);
        shown.add(`${status} ${text.replaceAll(/account for \S+/g, 'X')}`);
      }
      assert.equal(shown.size, 1, [...shown].join('\n'));
      assert.match([...shown][0] ?? '', /^200 /);
      const links = () =>
        mails.flatMap(({ to, text }) => (to === email ? (/\/reset-password\/\S+/.exec(text) ?? []) : []));
      await until('five mails', () => links().length >= 5);
      for (const link of links()) assert.match((await fresh().get(link)).text, /New password/);
      const { rows } = await world.pool.query('select count(*)::int as n from auth.person_links where person_id = $1', [
        personId,
      ]);
      assert.deepEqual([links().length, rows[0].n], [5, 5]);
    },
  );

  t('a lost password: a mail that could not be sent does not count', async () => {
    const { email, personId } = await personOf(world);
    mails.splice(0);
    canSend = false;
    for (let at = 0; at < 6; at += 1) {
      const before = mails.length;
      await fresh().send('/forgot-password', '/forgot-password', { email });
      await until('the mail is tried, and its link taken back', async () => {
        const { rows } = await world.pool.query('select from auth.person_links where person_id = $1', [personId]);
        return mails.length === before + 1 && rows.length === 0;
      });
    }
    canSend = true;
    await fresh().send('/forgot-password', '/forgot-password', { email });
    await until('the mail', () => mails.length === 7);
  });

  t(
    'a proxy that nobody named: a browser that is known signs in whatever a stranger does, and the Owner is told',
    async () => {
      const behind = { 'x-forwarded-for': '203.0.113.66' };
      const { email, browser } = await signedIn(world);
      assert.doesNotMatch((await browser.get('/console')).text, /proxy/);
      assert.match(
        (await browser.get('/console', behind)).text,
        /through a proxy that it does not know.*TRUSTED_PROXIES/,
      );
      const viewer = await signedIn(world, { role: 'viewer' });
      assert.doesNotMatch((await viewer.browser.get('/console', behind)).text, /proxy/);
      const stranger = fresh();
      for (let at = 0; at < 24; at += 1) {
        await stranger.get('/sign-in');
        const { status } = await stranger.post('/sign-in', { email: `no${at}@x.example`, password: 'wrong' }, behind);
        if (status === 429) break;
      }
      assert.equal(stranger.page.status, 429);
      await browser.post('/sign-out');
      await browser.get('/sign-in');
      const back = await browser.post(
        '/sign-in',
        { email, password: goodPassword },
        { 'x-forwarded-for': '198.51.100.7' },
      );
      assert.deepEqual([back.status, back.location], [303, '/console'], back.text);
      await letTimePass();
    },
  );

  t('each change of who can sign in is told by mail, and so is a browser that is new', async () => {
    const { browser, email } = await signedIn(world);
    const reported = () => mails.flatMap(({ to, subject }) => (to === email ? [subject] : []));
    const tells = (subject: string) => until(subject, () => reported().at(-1) === subject);
    await tells('A sign-in from a new browser');
    assert.match(mails.at(-1)?.text ?? '', /Firefox on Linux, (127\.0\.0\.1|::1), 20\d\d-\d\d-\d\d \d\d:\d\d UTC/);
    const offer = await browser.send('/security', '/security/second-factor', { password: goodPassword });
    const [, secret = ''] = /Secret:\s+([A-Z2-7]+)/.exec(offer.text) ?? [];
    const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: world.deps.clock() });
    const codes = await browser.post('/security/second-factor/confirm', { code });
    await tells('The second factor is on');
    const recovery = [...codes.html.matchAll(/<code>([a-z2-9-]{14})<\/code>/g)].map(([, one = '']) => one);
    await browser.post('/sign-out');
    await browser.signIn(email, goodPassword);
    await browser.post('/sign-in/code', {
      pending: browser.hidden('pending'),
      next: '/console',
      code: recovery[0] ?? '',
    });
    await tells('A recovery code was used');
    await browser.send('/security', '/security/second-factor/remove', {
      password: goodPassword,
      code: recovery[1] ?? '',
    });
    await tells('The second factor is off');
    await browser.send('/security', '/security/password', { current: goodPassword, password: 'four other good words' });
    await tells('Your password was changed');
    await browser.post('/sign-out');
    await browser.signIn(email, 'four other good words');
    assert.equal(browser.page.status, 200);
    assert.equal(
      reported().filter((subject) => subject === 'A sign-in from a new browser').length,
      1,
      reported().join(),
    );
    assert.ok(!mails.some(({ text }) => recovery.some((one) => text.includes(one)) || text.includes(secret)));
  });

  t('a one-time link signs in by its button, once', async () => {
    const { personId } = await personOf(world);
    const { token } = await mintPersonLink(peopleDepsOf(world), personId, 'sign_in');
    const browser = fresh();
    for (let at = 0; at < 2; at += 1) assert.match((await browser.get(`/enter/${token}`)).text, /signs you in once/);
    assert.equal(browser.cookies.has('session'), false);
    assert.equal((await browser.post(`/enter/${token}`)).location, '/console');
    assert.equal((await browser.get('/console')).status, 200);
    assert.equal((await fresh().get(`/enter/${token}`)).status, 404);
    const reset = await mintPersonLink(peopleDepsOf(world), personId, 'reset');
    for (const strange of [reset.token, 'x', 'A'.repeat(43), '%2e%2e%2f']) {
      assert.equal((await fresh().get(`/enter/${strange}`)).status, 404);
    }
    assert.ok(!world.lines.join('').includes(token), 'the link is in the log');
  });

  t('an invitation: a new person registers and is in the workspace at once', async () => {
    const { token } = await inviteToTeam(world, { email: 'joiner@example.com', role: 'creator' });
    const browser = fresh();
    const shown = await browser.get(`/join/${token}`);
    assert.match(shown.text, /Join North Star .*You are invited as Creator/);
    assert.match(shown.html, /value="joiner@example.com" readonly/);
    const weak = { email: 'joiner@example.com', name: 'Joe Joiner', password: 'joiner' };
    const refused = await browser.post(`/join/${token}`, weak);
    assert.deepEqual([refused.status, /at least 12 characters/.test(refused.text)], [422, true]);
    assert.match(refused.html, /value="Joe Joiner"/);
    const joined = await browser.post(`/join/${token}`, { ...weak, password: goodPassword });
    assert.equal(joined.location, '/console', joined.text);
    const home = await browser.get('/console');
    assert.match(home.text, /North Star .*You are Creator here/);
    assert.equal((await fresh().get(`/join/${token}`)).status, 404);
    assert.ok(!world.lines.join('').includes(token), 'the link is in the log');
  });

  t('an invitation: a signed-in person joins another workspace and looks at it', async () => {
    const { browser } = await signedIn(world);
    const other = await world.agency('Second & <b>Sons</b>');
    const { token } = await inviteToTeam(world, { workspaceId: other.workspaceId, role: 'viewer' });
    const home = await browser.send(`/join/${token}`, `/join/${token}`);
    assert.match(home.text, /Second & <b>Sons<\/b> You are Viewer here/);
    assert.ok(!home.html.includes('<b>Sons'));
  });

  t('a member of no workspace gets a page that says so, and can leave', async () => {
    const { browser, memberId } = await signedIn(world, { role: 'viewer' });
    assert.equal((await browser.get('/console')).status, 200);
    const command = { type: 'RemoveMember', memberId } as const;
    await execute(world.store, workspace, world.workspaceId, command, contextOf(world.operator, world.workspaceId));
    await world.settled();
    for (const path of ['/console', '/team', '/apps', '/developers']) {
      const shown = await browser.get(path);
      assert.equal(shown.status, 403);
      assert.match(shown.text, /You are in no workspace/);
      assert.ok(!shown.text.includes('North Star'));
    }
    assert.match((await browser.get('/security')).text, /Sessions Firefox on Linux this one/);
    assert.equal((await browser.post('/sign-out')).status, 303);
  });

  t('a session that was ended shows nothing at its next request, and does nothing', async () => {
    const { browser, email, personId } = await signedIn(world);
    await browser.get('/security');
    const second = fresh();
    await second.signIn(email, goodPassword);
    const ended = await second.send('/security', '/security/sessions/end-others');
    assert.match(ended.text, /All other sessions have ended/);
    assert.equal((await browser.get('/console')).location, '/sign-in');
    const post = await browser.post('/security/sessions/end-others');
    assert.deepEqual([post.status, post.location], [303, '/sign-in']);
    const { id } = await startSession(peopleDepsOf(world), { personId, by: 'link', device: 'd', address: 'a' });
    assert.match((await second.send('/security', `/security/sessions/${id}/end`)).text, /The session has ended/);
    const foreign = await signedIn(world);
    const [row] = (await world.pool.query('select id::text from auth.sessions where person_id = $1', [personId])).rows;
    for (const strange of [row.id, randomUUID(), 'x']) {
      await foreign.browser.get('/security');
      assert.equal((await foreign.browser.post(`/security/sessions/${strange}/end`)).status, 404);
    }
  });

  t('the password is changed with the former one, and the other sessions end', async () => {
    const { browser, email } = await signedIn(world);
    const other = fresh();
    await other.signIn(email, goodPassword);
    const wrong = await browser.send('/security', '/security/password', {
      current: 'no',
      password: 'a new good pass 1',
    });
    assert.match(wrong.text, /This is not your password/);
    const form = { current: goodPassword, password: 'a new good pass 1' };
    assert.match((await browser.send('/security', '/security/password', form)).text, /Your password is changed/);
    assert.equal((await other.get('/console')).status, 303);
  });
});
