/**
 * Every function of the console on a phone without scripts: each route of the table is asked for by a browser here, but
 * those of passkeys, which need a script.
 */
import assert from 'node:assert/strict';
import { Secret, TOTP } from 'otpauth';
import type { Browser, Page } from 'playwright-core';
import { Restores, restored } from '#runtime/work/restores.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { routes } from '#services/console/pages.ts';
import { openCallback } from '#test/support/app-of-others.ts';
import { openBrowser } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { composer } from '#test/support/composing.ts';
import { signedIn } from '#test/support/console.ts';
import { inRow, lookAt, type Member, mailbox, namedConsole, press, says } from '#test/support/console-pages.ts';
import type { World } from '#test/support/http.ts';
import { oauthOf, pkce } from '#test/support/oauth.ts';
import { goodPassword, inviteToTeam, peopleDepsOf, personOf } from '#test/support/people.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

const phone = { viewport: { width: 375, height: 667 }, isMobile: true, hasTouch: true, javaScriptEnabled: false };

/** See `console-hands.test.ts`. */
const ofPasskeys = [
  'GET /sign-in/passkeys.js',
  'POST /security/passkeys',
  'POST /security/passkeys/:id/remove',
  'POST /sign-in/passkey',
];

/** Whether a path is one of a route, whose parts that begin with a colon vary. */
const isAt = (route: string, path: string): boolean => {
  const [parts, given] = [route.split('/'), path.split('/')];
  return parts.length === given.length && parts.every((part, at) => part.startsWith(':') || part === given[at]);
};

suite('the console without scripts', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in found) return t.skip('is tested with Chromium', found.missing);
  let browser: Browser;
  let world: World;
  let olga: Member;
  const { mails, mailer } = mailbox();
  /** Method and path of what Chromium asked for. */
  const asked = new Set<string>();
  const at = (to: string): string => `${world.deps.consoleUrl()}${to}`;

  t.before(async () => {
    const record: NonNullable<World['deps']['first']>[number] = (ctx, next) => {
      if (/Chrome/.test(ctx.get('User-Agent'))) asked.add(`${ctx.method} ${ctx.path}`);
      return next();
    };
    const query = ((...given: Parameters<World['pool']['query']>) =>
      world.pool.query(...given)) as World['pool']['query'];
    [browser, world] = await Promise.all([
      openBrowser(found.program),
      namedConsole({ deps: { mailer, first: [record], restores: new Restores({ query }) } }),
    ]);
    afterFile(() => browser.close());
    olga = await signedIn(world, { name: 'Olga Owner' });
    const { memberId, personId } = olga;
    const app = await oauthOf(world).register();
    await oauthOf(world).tokensOf(app, { result: { personId, memberId } });
    await world.settled();
  });
  t.after(() => world?.close());

  const look = (member: Member | null, use: (page: Page) => Promise<void>) =>
    lookAt(browser, world, member, phone, use);
  const codeOf = (secret: string) =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: world.deps.clock() });
  const secretOn = async (page: Page) => (await page.locator('code.secret').textContent()) ?? '';
  const noticeOn = async (page: Page, words: RegExp) => {
    await page.locator('.notice').filter({ hasText: words }).waitFor();
  };
  const signIn = async (page: Page, email: string, password: string) => {
    await page.locator('#email').fill(email);
    await page.locator('#password').fill(password);
    await press(page, 'password');
  };

  t('without scripts: join, confirm the address, invite, give a role, remove, withdraw', async () => {
    const { token, memberId } = await inviteToTeam(world, { role: 'manager' });
    await look(null, async (page) => {
      await page.goto(at(`/join/${token}`));
      await page.locator('#email').fill('scriptless@example.com');
      await page.locator('#name').fill('Sina Scriptless');
      await page.locator('#password').fill(goodPassword);
      await press(page, 'join');
      await page.waitForURL('**/console');
      await says(page, 'Confirm your e-mail address');
      await page.goto(at('/security'));
      await press(page, 'send-confirmation');
      await noticeOn(page, /on its way/);
      const isConfirm = (mail: (typeof mails)[number]) => mail.text.includes('/confirm/');
      const mail = await until('both mails came', async () =>
        mails.filter(isConfirm).length > 1 ? mails.findLast(isConfirm) : null,
      );
      await page.goto(/http\S+\/confirm\/\S+/.exec(mail.text)?.[0] ?? '');
      await press(page, 'confirm-email');
      await noticeOn(page, /Your address is confirmed/);
    });
    await world.settled();
    await world.keyOf(world.workspaceId, memberId);
    await look(olga, async (page) => {
      await page.goto(at('/team'));
      const row = page.locator('.rows > li').filter({ hasText: 'Sina Scriptless' });
      await row.locator('summary', { hasText: 'Change the role' }).click();
      await row.locator('select').selectOption('creator');
      await row.locator('button[value=change-role]').click();
      await row.locator('.tag', { hasText: 'Creator' }).waitFor();
      await inRow(page, 'Sina Scriptless', 'Remove', 'remove-member');
      await says(page, 'What the member leaves');
      await press(page, 'end-left');
      await noticeOn(page, /It has ended/);
      await says(page, 'Nothing that the member made goes on');
      await page.goto(at('/team'));
      assert.equal(await page.getByText('scriptless@example.com').count(), 0);
      await page.locator('#email').fill('later@example.com');
      await press(page, 'invite');
      const link = (await page.locator('code.secret').textContent()) ?? '';
      assert.match(link, /\/join\//);
      await page.goto(at('/team'));
      const invited = page.locator('.rows > li').filter({ hasText: 'later@example.com' });
      await invited.locator('button[value=withdraw]').click();
      await page.locator('.notice').waitFor();
      await page.goto(link);
      await says(page, 'There is no such page');
    });
  });

  t('without scripts: after a restore a person says that they looked at an account', async () => {
    const { accounts } = await composer(world, ['telegram']);
    await restored(world.pool, new Date(Date.now() - 3_600_000).toISOString(), 'ann');
    await look(olga, async (page) => {
      await page.goto(at('/console'));
      await page.getByText('Accounts to look at').waitFor();
      await press(page, 'confirm');
      await page.waitForURL('**/console');
      assert.equal(await page.getByText('Accounts to look at').count(), 0);
    });
    const { rows } = await world.pool.query('select account_id::text as id from ops.restore_words');
    assert.deepEqual(rows, [{ id: accounts.telegram }]);
  });

  t('without scripts: a key is made, used, rotated and revoked; an app is ended; live is chosen', async () => {
    await look(olga, async (page) => {
      await page.goto(at('/console'));
      await page.locator('#mode-live').check();
      await press(page, 'show');
      await page.locator('.place .tag.live').waitFor();
      await page.locator('#mode-test').check();
      await press(page, 'show');
      await page.locator('.place .tag.test').waitFor();
      await page.goto(at('/developers'));
      await page.locator('#name').fill('Without scripts');
      await press(page, 'make-key');
      const key = (await page.locator('#secret').textContent()) ?? '';
      await until('the key works', async () => (await world.callerWith(key).get('/agency')).status === 200);
      await page.goto(at('/developers'));
      await inRow(page, 'Without scripts', 'Rotate', 'rotate');
      const next = (await page.locator('#secret').textContent()) ?? '';
      assert.notEqual(next, key);
      await page.goto(at('/developers'));
      await inRow(page, 'Without scripts', 'Revoke', 'revoke');
      await page.locator('.notice').waitFor();
      await until('it works no more', async () => (await world.callerWith(next).get('/agency')).status === 401);
      await page.goto(at('/apps'));
      await inRow(page, 'An app', 'Revoke', 'revoke');
      await says(page, 'The app has no access any more.');
    });
  });

  t('without scripts: a forgotten password, the second factor, recovery codes, other sessions, sign out', async () => {
    const { email } = await personOf(world, { name: 'Fiona Forgetful' });
    await look(null, async (page) => {
      await page.goto(at('/forgot-password'));
      await page.locator('#email').fill(email);
      await press(page, 'send');
      await says(page, /If .* account/);
      const mail = await until('the mail', () =>
        mails.find(({ to, text }) => to === email && text.includes('/reset-')),
      );
      await page.goto(/http\S+/.exec(mail.text)?.[0] ?? '');
      const password = 'another four words of mine';
      await page.locator('#password').fill(password);
      await press(page, 'set');
      await page.locator('#email').fill(email);
      await page.locator('#password').fill(password);
      await press(page, 'password');
      await page.waitForURL('**/console');
      await page.goto(at('/security'));
      await page.locator('#factor-password').fill(password);
      await press(page, 'factor-on');
      const secret = await secretOn(page);
      await page.locator('#code').fill('000000');
      await press(page, 'confirm');
      await says(page, 'This is not the code that the app shows now');
      assert.equal(await secretOn(page), secret, 'the picture that was scanned stays');
      await page.locator('#code').fill(codeOf(secret));
      await press(page, 'confirm');
      const [recovery = ''] = await page.locator('.codes code').allTextContents();
      // Another browser signs in with a recovery code, and is ended from here.
      await look(null, async (other) => {
        await other.goto(at('/sign-in'));
        await other.locator('#email').fill(email);
        await other.locator('#password').fill(password);
        await press(other, 'password');
        await other.locator('#code').fill(recovery);
        await press(other, 'code');
        await other.waitForURL('**/console');
        await page.goto(at('/security'));
        await press(page, 'end-others');
        await page.locator('.notice').waitFor();
        await other.goto(at('/console'));
        await other.waitForURL('**/sign-in**');
      });
      await page.locator('header button').click();
      await page.waitForURL('**/sign-in?done=signed-out');
    });
  });

  t(
    'without scripts: a link signs in, the password changes, one session ends, new codes, the factor goes off',
    async () => {
      const { email, personId } = await personOf(world, { name: 'Lina Link' });
      const { token } = await mintPersonLink(peopleDepsOf(world), personId, 'sign_in');
      const password = 'four words that are new';
      await look(null, async (page) => {
        await page.goto(at(`/enter/${token}`));
        await press(page, 'enter');
        await page.waitForURL('**/console');
        await page.goto(at('/security'));
        await page.locator('#current').fill('a wrong password');
        await page.locator('#password').fill(password);
        await press(page, 'set-password');
        await page.locator('.alert:not([data-alert])').waitFor();
        await page.locator('#current').fill(goodPassword);
        await page.locator('#password').fill(password);
        await press(page, 'set-password');
        await noticeOn(page, /Your password is changed/);
        await look(null, async (other) => {
          await other.goto(at('/sign-in'));
          await signIn(other, email, password);
          await other.waitForURL('**/console');
          await page.goto(at('/security'));
          assert.equal(await page.locator('button[value=end-session]').count(), 1);
          await press(page, 'end-session');
          await noticeOn(page, /The session has ended/);
          await other.goto(at('/team'));
          await other.waitForURL('**/sign-in?next=%2Fteam');
        });
        await page.locator('#factor-password').fill(password);
        await press(page, 'factor-on');
        await page.locator('#code').fill(codeOf(await secretOn(page)));
        await press(page, 'confirm');
        const codes = () => page.locator('.codes code').allTextContents();
        const former = await codes();
        await page.goto(at('/security'));
        await page.locator('summary', { hasText: 'New recovery codes' }).click();
        await page.locator('#codes-password').fill(password);
        await press(page, 'new-codes');
        await says(page, 'Write them down now');
        const [recovery = ''] = await codes();
        assert.ok(recovery !== '' && !former.includes(recovery));
        await page.goto(at('/security'));
        await page.locator('summary', { hasText: 'Turn it off' }).click();
        await page.locator('#off-password').fill(password);
        await page.locator('#off-code').fill(recovery);
        await press(page, 'factor-off');
        await noticeOn(page, /The second factor is off/);
        assert.equal(await page.locator('form[data-passkey]').isVisible(), false);
        await page.locator('noscript p', { hasText: 'allow scripts on this page' }).waitFor();
      });
    },
  );

  t('without scripts: consent by somebody else, to nothing, to less than asked, and not at all', async () => {
    const { email } = await personOf(world, { name: 'Conny Consent' });
    const ina = await signedIn(world, { name: 'Ina Before' });
    const oauth = oauthOf(world);
    const callback = await openCallback();
    const app = await oauth.register({ client_name: 'Scriptless', redirect_uris: [callback.url] });
    const url = oauth.authorizeUrl(app, pkce(), { redirect_uri: callback.url, scope: 'agency.read posts.read' });
    const answered = async (page: Page) => {
      await page.waitForURL(`${callback.url}?**`);
      return new URL(page.url()).searchParams;
    };
    await look(ina, async (page) => {
      await page.goto(url);
      await says(page, 'Ina Before');
      await press(page, 'switch');
      await signIn(page, email, goodPassword);
      await says(page, 'Conny Consent');
      for (const box of await page.locator('input[name=scope]').all()) await box.uncheck();
      await press(page, 'allow');
      await says(page, 'Tick what the app may do, or cancel.');
      assert.equal(await page.locator('input[name=scope]:checked').count(), 0);
      await page.locator('#scope-agency\\.read').check();
      await press(page, 'allow');
      assert.ok((await answered(page)).get('code'));
      await page.goto(url);
      await press(page, 'deny');
      assert.equal((await answered(page)).get('error'), 'access_denied');
      await world.settled();
      await page.goto(at('/apps'));
      await page.locator('summary', { hasText: 'What it may do' }).first().click();
      await says(page, 'Scriptless');
    });
    callback.close();
  });

  t('an address that a form leaves in the bar leads back to a page', async () => {
    const id = '0199a000-0000-7000-8000-000000000000';
    await look(olga, async (page) => {
      for (const [from, to] of [
        ['/', '/console'],
        ['/sign-in/code', '/console'],
        ['/sign-in/passkey', '/console'],
        ['/security/second-factor', '/security'],
        ['/security/second-factor/confirm', '/security'],
        ['/security/recovery-codes', '/security'],
        ['/developers/keys', '/developers'],
        [`/developers/keys/${id}/rotate`, '/developers'],
        ['/team/invites', '/team'],
      ] as const) {
        await page.goto(at(from));
        assert.equal(page.url(), at(to), from);
      }
    });
  });

  t('each route of the table was asked for by these pages', () => {
    const isAsked = ({ method, path }: (typeof routes)[number]) =>
      [...asked].some((one) => isAt(`${method} ${path}`, one));
    const others = routes.filter((route) => !isAsked(route)).map(({ method, path }) => `${method} ${path}`);
    assert.deepEqual(others.sort(), ofPasskeys);
  });
});
