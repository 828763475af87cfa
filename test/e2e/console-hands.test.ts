/** The console in a real browser by other means than a mouse: by the keyboard alone, and by a passkey of the device. */
import assert from 'node:assert/strict';
import type { Browser, CDPSession, Page } from 'playwright-core';
import { AppMemory, openCallback } from '#test/support/app-of-others.ts';
import { focused, openBrowser } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import {
  contextOf,
  faultsOf,
  inRow,
  type Member,
  mailbox,
  namedConsole,
  press,
  says,
  signInAt,
} from '#test/support/console-pages.ts';
import type { World } from '#test/support/http.ts';
import { oauthOf, pkce } from '#test/support/oauth.ts';
import { goodPassword, inviteToTeam, personOf } from '#test/support/people.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

suite('the console by other means', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in found) return t.skip('is tested with Chromium', found.missing);
  let browser: Browser;
  let world: World;
  const { mails, mailer } = mailbox();
  const isReported = (said: string, email: string): boolean =>
    mails.some(({ to, subject }) => subject === said && to === email);
  const at = (to: string): string => `${world.deps.consoleUrl()}${to}`;

  t.before(async () => {
    [browser, world] = await Promise.all([openBrowser(found.program), namedConsole({ deps: { mailer } })]);
    afterFile(() => browser.close());
  });
  t.after(() => world?.close());

  const pageOf = async (member: Member | null = null): Promise<Page> =>
    (await contextOf(browser, world, member)).newPage();

  /** Moves the focus there with Tab alone; on the way everything that has it shows so. @returns the stops */
  const tabTo = async (page: Page, name: string): Promise<readonly string[]> => {
    const passed: string[] = [];
    for (let on = await focused(page); on.name !== name; on = await focused(page)) {
      assert.ok(passed.length < 80, `Tab does not reach ${name}: ${passed.join(', ')}`);
      await page.keyboard.press('Tab');
      const { name: next, isVisible } = await focused(page);
      assert.ok(isVisible || next === 'body', `nothing shows that ${next} has the focus at ${page.url()}`);
      passed.push(next);
    }
    return passed;
  };
  const type = async (page: Page, name: string, text: string): Promise<void> => {
    await tabTo(page, name);
    await page.keyboard.type(text);
  };
  /** Moves to a button and presses it; the next page is there when it resolves. */
  const enter = async (page: Page, name: string): Promise<void> => {
    await tabTo(page, name);
    await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')]);
  };

  t(
    'the keyboard alone: sign in, join, choose a workspace, make a key and revoke it, let an app in and end it',
    async () => {
      const { email, personId } = await personOf(world, { name: 'Kay Keyboard' });
      const second = await world.agency('Second Star');
      const { token } = await inviteToTeam(world, { workspaceId: second.workspaceId });
      const page = await pageOf();
      const faults = faultsOf(page);
      await page.goto(at('/sign-in'));
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      assert.equal(await page.evaluate('document.activeElement.id'), 'content', 'the first stop skips to the content');
      await type(page, 'email', email);
      await type(page, 'password', goodPassword);
      assert.deepEqual(await tabTo(page, 'passkey'), ['password', 'a', 'passkey'], 'the order of what is shown');
      await page.keyboard.press('Shift+Tab');
      await page.keyboard.press('Shift+Tab');
      await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')]);
      await says(page, 'What you look at');
      await page.goto(at(`/join/${token}`));
      await enter(page, 'join');
      await page.locator('.place', { hasText: 'Second Star' }).waitFor();
      // A list takes the option whose name begins with what is typed.
      await type(page, 'workspace', 'North');
      await tabTo(page, 'mode-test');
      await page.keyboard.press('ArrowDown');
      assert.deepEqual(await tabTo(page, 'show'), ['show']);
      await enter(page, 'show');
      await page.locator('.place', { hasText: 'North Star' }).locator('.tag.live').waitFor();
      await page.goto(at('/developers'));
      await type(page, 'name', 'Made by keys');
      await enter(page, 'make-key');
      const secret = (await page.locator('#secret').textContent()) ?? '';
      await until('the key works', async () => (await world.callerWith(secret).get('/agency')).status === 200);
      await page.goto(at('/developers'));
      // The newest key comes first: its third fold is the one that revokes.
      for (let fold = 0; fold < 3; fold += 1) {
        await page.keyboard.press('Tab');
        await tabTo(page, 'summary');
      }
      await page.keyboard.press('Enter');
      await enter(page, 'revoke');
      await page.locator('.notice').waitFor();
      await until('it works no more', async () => (await world.callerWith(secret).get('/agency')).status === 401);

      const oauth = oauthOf(world);
      const callback = await openCallback();
      const memory = new AppMemory(callback.url, 'Keys');
      const app = await oauth.register({ client_name: 'Keys', redirect_uris: [callback.url] });
      const asked = oauth.authorizeUrl(app, pkce(), {
        redirect_uri: memory.redirectUrl,
        scope: 'agency.read posts.read',
      });
      await page.goto(asked);
      await says(page, 'What it may do');
      assert.deepEqual((await tabTo(page, 'scope-posts.read')).slice(-5), [
        ...['switch', 'workspace', 'mode-live', 'scope-agency.read', 'scope-posts.read'],
      ]);
      await page.keyboard.press('Space');
      await tabTo(page, 'allow');
      await page.keyboard.press('Enter');
      await page.waitForURL(`${callback.url}?**`);
      callback.close();
      assert.ok(new URL(page.url()).searchParams.get('code'));
      await world.settled();
      const { rows } = await world.pool.query('select scopes from read.grants where person_id = $1', [personId]);
      assert.deepEqual(rows, [{ scopes: ['agency.read'] }]);

      await page.goto(at('/apps'));
      // The first fold tells what the app may do, the second ends it.
      await tabTo(page, 'summary');
      await page.keyboard.press('Tab');
      await tabTo(page, 'summary');
      await page.keyboard.press('Enter');
      await enter(page, 'revoke');
      await says(page, 'The app has no access any more.');
      await enter(page, 'button');
      await says(page, 'You are signed out');
      assert.deepEqual(faults, []);
      await page.context().close();
    },
  );

  /** A device that has keys of its own and asks its owner. */
  const deviceOf = async (page: Page): Promise<{ readonly cdp: CDPSession; readonly authenticatorId: string }> => {
    const cdp = await page.context().newCDPSession(page);
    await cdp.send('WebAuthn.enable');
    const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        ...{ protocol: 'ctap2', transport: 'internal', hasResidentKey: true, hasUserVerification: true },
        ...{ isUserVerified: true, automaticPresenceSimulation: true },
      },
    });
    return { cdp, authenticatorId };
  };

  t('a passkey is added, signs in, and no more once it was removed', async () => {
    const paula = await personOf(world, { name: 'Paula Passkey' });
    const page = await pageOf();
    const faults = faultsOf(page);
    const { cdp, authenticatorId } = await deviceOf(page);
    await signInAt(page, world, paula);
    await page.goto(at('/security'));
    await page.locator('#passkey-name').fill('My phone');
    await page.locator('#passkey-password').fill(goodPassword);
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await press(page, 'add-passkey');
    await page.getByRole('alert').and(page.locator(':focus')).filter({ hasText: 'No passkey was made' }).waitFor();
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    await press(page, 'add-passkey');
    await page.locator('h3', { hasText: 'My phone' }).waitFor();
    await until('the mail', () => isReported('A passkey was added', paula.email));
    const { credentials } = await cdp.send('WebAuthn.getCredentials', { authenticatorId });
    assert.deepEqual(
      credentials.map(({ isResidentCredential, rpId }) => [isResidentCredential, rpId]),
      [[true, 'localhost']],
    );
    await page.locator('header button').click();
    await says(page, 'You are signed out');

    // The owner does not show that it is them: the page says what to do, and nobody is signed in.
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false });
    await page.goto(at('/sign-in'));
    await press(page, 'passkey');
    await page.getByRole('alert').filter({ hasText: 'The passkey was not used' }).waitFor();
    assert.equal(await page.evaluate("document.activeElement.getAttribute('role')"), 'alert');
    await page.goto(at('/console'));
    assert.match(page.url(), /\/sign-in/);

    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true });
    await page.goto(at('/sign-in?next=%2Fsecurity'));
    await press(page, 'passkey');
    await page.waitForURL('**/security');
    await inRow(page, 'My phone', 'Remove', 'remove-passkey');
    await page.locator('.notice').waitFor();
    await until('the mail', () => isReported('A passkey was removed', paula.email));
    await page.locator('header button').click();
    await says(page, 'You are signed out');
    await page.goto(at('/sign-in'));
    await press(page, 'passkey');
    await page.locator('.alert:not([hidden])').first().waitFor();
    await page.goto(at('/console'));
    assert.match(page.url(), /\/sign-in/);
    assert.deepEqual(faults, []);
    await page.context().close();
  });
});
