import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { person } from '#domain/person.ts';
import { addPasskey as passkey } from '#services/auth/people/passkeys.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { Authenticator } from '#test/support/authenticator.ts';
import { ConsoleBrowser, consoleWorld, signedIn } from '#test/support/console.ts';
import { mailbox } from '#test/support/console-pages.ts';
import type { World } from '#test/support/http.ts';
import { oauthOf, pkce } from '#test/support/oauth.ts';
import { inviteToTeam, peopleDepsOf } from '#test/support/people.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** An address is proven by whoever reads its mail. Until then its account has little power, and its owner takes it back. */

const { mails, mailer } = mailbox();
const evil = 'a stranger knows this one';
const own = 'only the owner knows this';

let world: World;
let olga: Awaited<ReturnType<typeof signedIn>>;
const fresh = () => new ConsoleBrowser(() => world.deps.consoleUrl());

/** The path of the newest link of a mail to the address. */
const linkTo = (address: string, page: string, but = '-'): Promise<string> =>
  until(
    `a mail with ${page} to ${address}`,
    async () => {
      const texts = mails.filter(({ to }) => to === address).map(({ text }) => text);
      const paths = texts.flatMap((text) => new RegExp(`/${page}/[A-Za-z0-9_-]+`).exec(text)?.[0] ?? []);
      return paths.findLast((path) => path !== but);
    },
    { withinMs: 10_000 },
  );

/** Invites by the page of the team. @returns the path that the page shows */
const invite = async (email: string, role = 'manager'): Promise<string> => {
  await olga.browser.get('/team');
  const shown = await olga.browser.post('/team/invites', { email, role, hours: '24' });
  return /\/join\/[A-Za-z0-9_-]+/.exec(shown.html)?.[0] ?? '';
};

/** A stranger joins with the address of somebody else, by a link that the inviter saw. */
const squat = async (email: string) => {
  const path = await invite(email);
  const browser = fresh();
  await browser.get(path);
  const joined = await browser.post(path, { email, name: 'Vic Tim', password: evil });
  assert.deepEqual([joined.status, joined.location], [303, '/console']);
  await world.settled();
  const { rows } = await world.pool.query('select person_id::text from auth.people order by created_at desc limit 1');
  return { browser, path, personId: String(rows[0].person_id) };
};

const addressOf = (name: string): string => `${name}.${randomUUID()}@corp.example`;

const addPasskey = async (browser: ConsoleBrowser, password: string) => {
  const origin = world.deps.consoleUrl();
  const page = await browser.get('/security');
  const attribute = /data-options="([^"]*)"/.exec(page.html)?.[1];
  if (attribute === undefined) return { device: null, answer: page };
  const { challenge } = JSON.parse(attribute.replaceAll('&quot;', '"').replaceAll('&amp;', '&'));
  const device = new Authenticator();
  const response = JSON.stringify(device.register({ challenge, origin }));
  const answer = await browser.post('/security/passkeys', {
    ...{ sealed: browser.hidden('sealed'), response, name: 'phone', password },
  });
  return { device, answer };
};

suite('an address that is not proven', (t) => {
  t.before(async () => {
    let origin = '';
    const deps = { mailer, consoleUrl: () => origin.replace('127.0.0.1', 'localhost') };
    world = await consoleWorld({ deps });
    origin = world.origin();
    olga = await signedIn(world, { name: 'Olga Owner' });
  });
  t.after(() => world?.close());

  t('gives no passkey, second factor, key, app or further workspace', async () => {
    const { browser, personId } = await squat(addressOf('victim'));
    const refused = /Confirm your e-mail address first/;
    const planted = { personId, sealed: '', response: {} as never, name: '' };
    await assert.rejects(passkey({ ...peopleDepsOf(world), mailer }, { origin: '' }, planted), refused);
    const shown = await addPasskey(browser, evil);
    assert.equal(shown.device, null, 'the page offers none');
    await browser.get('/security');
    await browser.post('/security/second-factor', { password: evil });
    await browser.get('/developers');
    await browser.post('/developers/keys', { name: 'stolen', mode: 'live', scope: ['agency.read'], life: '365' });
    const oauth = oauthOf(world);
    const app = await oauth.register({ client_name: 'App', redirect_uris: ['http://127.0.0.1:1/back'] });
    const url = oauth.authorizeUrl(app, pkce(), { redirect_uri: 'http://127.0.0.1:1/back', scope: 'agency.read' });
    const began = await fetch(url, { redirect: 'manual' });
    const consent = new URL(
      (
        await fetch(new URL(began.headers.get('location') ?? '', url), {
          redirect: 'manual',
          headers: {
            cookie: began.headers
              .getSetCookie()
              .map((line) => line.split(';')[0])
              .join('; '),
          },
        })
      ).headers.get('location') ?? '',
      url,
    ).pathname;
    await browser.get(consent);
    const allowed = await browser.post(consent, {
      ...{ decision: 'allow', workspace: world.workspaceId, mode: 'test', scope: 'agency.read' },
    });
    const { workspaceId } = await world.agency('Second');
    const further = `/join/${(await inviteToTeam(world, { workspaceId })).token}`;
    await browser.get(further);
    const joined = await browser.post(further);
    await world.settled();
    const made = await world.pool.query(
      `select (select count(*)::int from auth.passkeys where person_id = $1) as passkeys,
              (select count(*)::int from auth.people where person_id = $1 and totp_secret is not null) as factors,
              (select count(*)::int from read.api_keys where name = 'stolen') as keys`,
      [personId],
    );
    assert.deepEqual(
      { ...made.rows[0], consent: allowed.status, joined: joined.status },
      { passkeys: 0, factors: 0, keys: 0, consent: 422, joined: 422 },
    );
    assert.match(joined.text, /Confirm your e-mail address first/);
    const team = await olga.browser.get('/team');
    assert.match(team.text, /victim\.\S+ Nobody has confirmed that this address is theirs/);
  });

  t('is proven by a link in a mail, which sets a password and ends what a stranger had', async () => {
    const email = addressOf('owner');
    const { browser: stranger, personId } = await squat(email);
    const path = await linkTo(email, 'confirm');
    const owner = fresh();
    assert.match((await owner.get(path)).text, /Confirm that owner\.\S+ is yours/);
    await owner.get(path);
    const done = await owner.post(path, { password: own });
    assert.deepEqual([done.status, done.location], [303, '/sign-in?done=confirmed']);
    assert.equal((await stranger.get('/console')).status, 303, 'the session of the stranger has ended');
    assert.equal((await fresh().signIn(email, evil)).status, 422);
    assert.equal((await owner.signIn(email, own)).status, 200);
    const { answer } = await addPasskey(owner, own);
    assert.equal(answer.location, '/security?done=passkey-added');
    assert.equal((await fresh().get(path)).status, 404, 'the link works once');
    const { state } = await world.store.load(person, personId);
    assert.ok(state.status === 'registered' && state.emailProvenAt !== null);
  });

  t('is proven in the browser of the person by one press, and other sessions end', async () => {
    const email = addressOf('ann');
    const { browser } = await squat(email);
    const other = fresh();
    await other.signIn(email, evil);
    const path = await linkTo(email, 'confirm');
    await browser.get(path);
    const done = await browser.post(path);
    assert.deepEqual([done.status, done.location], [303, '/security?done=confirmed']);
    assert.equal((await browser.get('/console')).status, 200);
    assert.equal((await other.get('/console')).status, 303);
    const { answer } = await addPasskey(browser, evil);
    assert.equal(answer.location, '/security?done=passkey-added');
  });

  t('is proven by an invitation that came by mail, and not by the same one as the inviter sees it', async () => {
    const email = addressOf('mailed');
    const shown = await invite(email);
    const mailed = await linkTo(email, 'join', shown);
    const browser = fresh();
    await browser.get(mailed);
    await browser.post(mailed, { email, name: 'Mia Mailed', password: own });
    await world.settled();
    const { answer } = await addPasskey(browser, own);
    assert.equal(answer.location, '/security?done=passkey-added');
    assert.ok(!mails.some(({ to, text }) => to === email && text.includes('/confirm/')), 'one mail is enough');
  });

  t('gets the link again, a few times', async () => {
    const email = addressOf('again');
    const { browser } = await squat(email);
    const first = await linkTo(email, 'confirm');
    for (let at = 0; at < 6; at += 1) await browser.send('/security', '/security/confirmation');
    assert.match(browser.page.text, /Too many attempts/);
    await linkTo(email, 'confirm', first);
    assert.ok(mails.filter(({ to }) => to === email).length <= 6);
  });

  t('and a reset by mail ends passkeys and second factor of an account from before', async () => {
    const email = addressOf('legacy');
    const { browser, personId } = await squat(email);
    // As an installation without mails, or the build before, let it.
    const without = { ...peopleDepsOf(world), mailer: null };
    await world.pool.query(
      `insert into auth.passkeys (id, person_id, credential_id, public_key, counter, transports, name)
       values ($1, $2, $3, 'x', 0, '{}', 'planted')`,
      [randomUUID(), personId, randomUUID()],
    );
    const { token } = await mintPersonLink(without, personId, 'reset');
    const reset = await browser.get(`/reset-password/${token}`);
    assert.match(reset.html, /name="remove" value="yes" checked/);
    await browser.post(`/reset-password/${token}`, { password: own, remove: 'yes' });
    const { rows } = await world.pool.query('select 1 from auth.passkeys where person_id = $1', [personId]);
    assert.equal(rows.length, 0);
  });
});
