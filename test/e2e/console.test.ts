/**
 * Every page of the console in a real browser: judged by axe, in light and dark, on a phone; and every function of it
 * without scripts.
 */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { Secret, TOTP } from 'otpauth';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import type { Mail } from '#services/auth/people/mail.ts';
import { mintPersonLink } from '#services/auth/people/person-links.ts';
import { contextOf as commandContextOf } from '#services/workflows/provision.ts';
import { openBrowser, overflowOf, violationsOf } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { signedIn } from '#test/support/console.ts';
import { contextOf, faultsOf, inRow, type Member, namedConsole, press, says } from '#test/support/console-pages.ts';
import type { World } from '#test/support/http.ts';
import { Browser as Jar, oauthOf, pkce } from '#test/support/oauth.ts';
import { goodPassword, inviteToTeam, peopleDepsOf, personOf } from '#test/support/people.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

const longWord = 'Donaudampfschifffahrt'.repeat(7);
const phone = { viewport: { width: 375, height: 667 }, isMobile: true, hasTouch: true, javaScriptEnabled: false };

const mails: Mail[] = [];
const mailer = {
  send: async (mail: Mail) => {
    mails.push(mail);
    return true;
  },
  close: () => undefined,
};

/** Templates that are parts of others. */
const parts = ['frame', 'told', 'token'];
const views = readdirSync(path.resolve(import.meta.dirname, '../../services/console/views'))
  .filter((file) => file.endsWith('.eta'))
  .map((file) => file.replace('.eta', ''))
  .filter((view) => !parts.includes(view));

suite('the console in a browser', { timeoutMs: 180_000 }, (t) => {
  if ('missing' in found) return t.skip('is tested with Chromium', found.missing);
  let browser: Browser;
  let world: World;
  let olga: Member;
  const at = (to: string): string => `${world.deps.consoleUrl()}${to}`;

  t.before(async () => {
    [browser, world] = await Promise.all([openBrowser(found.program), namedConsole({ deps: { mailer } })]);
    afterFile(() => browser.close());
    olga = await signedIn(world, { name: `Olga ${longWord}` });
    await fill();
  });
  t.after(() => world?.close());

  /** Each list has entries, with names as long as they may be. */
  const fill = async (): Promise<void> => {
    const { memberId, personId } = olga;
    await world.tester.post('/clients', { name: `Client ${longWord}`, type: 'brand' });
    const { browser: forms } = olga;
    const form = { name: `Key ${longWord}`, mode: 'test', scope: ['agency.read'], life: '365' };
    await forms.send('/developers', '/developers/keys', form);
    await personOf(world, { role: 'creator', name: `Member ${longWord}` });
    await inviteToTeam(world, { role: 'viewer', email: `${longWord.slice(0, 60)}@example.com` });
    const app = await oauthOf(world).register({ client_name: `App ${longWord}` });
    await oauthOf(world).tokensOf(app, { result: { personId, memberId } });
    await world.settled();
  };

  const look = async (member: Member | null, options: BrowserContextOptions, use: (page: Page) => Promise<void>) => {
    const context = await contextOf(browser, world, member, options);
    const page = await context.newPage();
    const faults = faultsOf(page);
    await use(page);
    await context.close();
    assert.deepEqual(faults, []);
  };

  const codeOf = (secret: string) =>
    new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: Date.now() });
  const secretOn = async (page: Page) => (await page.locator('code.secret').textContent()) ?? '';
  const turnFactorOn = async (page: Page): Promise<string> => {
    await page.goto(at('/security'));
    await page.locator('#factor-password').fill(goodPassword);
    await press(page, 'factor-on');
    const secret = await secretOn(page);
    await page.locator('#code').fill(codeOf(secret));
    await press(page, 'confirm');
    await says(page, 'Your recovery codes');
    return secret;
  };
  const linkOf = async (purpose: 'reset' | 'sign_in') => {
    const { personId } = await personOf(world);
    return mintPersonLink(peopleDepsOf(world), personId, purpose);
  };
  /** An authorization that waits for its person. */
  const waitingConsent = async (): Promise<string> => {
    const oauth = oauthOf(world);
    const app = await oauth.register({ client_name: `App ${longWord}` });
    return oauth.begin(new Jar(), oauth.authorizeUrl(app, pkce()));
  };

  /** View → who sees it, and the way to it, from an empty page. A view may have several. */
  const ways: readonly (readonly [
    view: string,
    who: 'nobody' | 'olga' | 'fresh',
    way: (page: Page) => Promise<unknown>,
  ])[] = [
    ['sign-in', 'nobody', (page) => page.goto(at('/sign-in'))],
    [
      'sign-in',
      'nobody',
      async (page) => {
        await page.goto(at('/sign-in'));
        await page.locator('#email').fill('nobody@example.com');
        await page.locator('#password').fill('a wrong password');
        await press(page, 'password');
        await says(page, /is wrong/);
      },
    ],
    ['forgot', 'nobody', (page) => page.goto(at('/forgot-password'))],
    [
      'forgot-done',
      'nobody',
      async (page) => {
        await page.goto(at('/forgot-password'));
        await page.locator('#email').fill(`${longWord.slice(0, 60)}@example.com`);
        await press(page, 'send');
      },
    ],
    ['reset', 'nobody', async (page) => page.goto(at(`/reset-password/${(await linkOf('reset')).token}`))],
    ['enter', 'nobody', async (page) => page.goto(at(`/enter/${(await linkOf('sign_in')).token}`))],
    ['join', 'nobody', async (page) => page.goto(at(`/join/${(await inviteToTeam(world)).token}`))],
    ['join', 'olga', async (page) => page.goto(at(`/join/${(await inviteToTeam(world)).token}`))],
    ['error', 'nobody', (page) => page.goto(at('/join/nothing'))],
    ['error', 'olga', (page) => page.goto(at('/security/nothing'))],
    ['home', 'olga', (page) => page.goto(at('/console'))],
    ['security', 'olga', (page) => page.goto(at('/security'))],
    ['team', 'olga', (page) => page.goto(at('/team'))],
    [
      'invited',
      'olga',
      async (page) => {
        await page.goto(at('/team'));
        await page.locator('#email').fill(`${longWord.slice(0, 50)}@example.com`);
        await press(page, 'invite');
        await says(page, 'The invitation is made');
      },
    ],
    ['developers', 'olga', (page) => page.goto(at('/developers'))],
    [
      'key',
      'olga',
      async (page) => {
        await page.goto(at('/developers'));
        await page.locator('#name').fill(longWord);
        await press(page, 'make-key');
        await says(page, 'Copy it now');
      },
    ],
    ['apps', 'olga', (page) => page.goto(at('/apps'))],
    ['consent', 'olga', async (page) => page.goto(at(`/consent/${await waitingConsent()}`))],
    [
      'second-factor',
      'fresh',
      async (page) => {
        await page.goto(at('/security'));
        await page.locator('#factor-password').fill(goodPassword);
        await press(page, 'factor-on');
        await says(page, 'Scan the picture');
      },
    ],
    ['recovery-codes', 'fresh', turnFactorOn],
    [
      'security',
      'fresh',
      async (page) => {
        await turnFactorOn(page);
        await page.goto(at('/security'));
        await says(page, 'recovery codes are left');
      },
    ],
    [
      'sign-in-code',
      'fresh',
      async (page) => {
        await turnFactorOn(page);
        await page.locator('header button').click();
        await page.waitForURL('**/sign-in**');
        await page.locator('#email').fill(fresh?.email ?? '');
        await page.locator('#password').fill(goodPassword);
        await press(page, 'password');
        await says(page, 'Enter your code');
      },
    ],
    [
      'no-workspace',
      'fresh',
      async (page) => {
        const command = { type: 'RemoveMember', memberId: fresh?.memberId ?? '' } as const;
        const context = commandContextOf(world.operator, world.workspaceId);
        await execute(world.store, workspace, world.workspaceId, command, context);
        await world.settled();
        await page.goto(at('/team'));
        await says(page, 'You are in no workspace');
      },
    ],
  ];
  let fresh: Member | null = null;

  t('each view is among the pages that are looked at', () => {
    assert.deepEqual([...new Set(ways.map(([view]) => view))].sort(), views.sort());
  });

  for (const [view, who, way] of ways) {
    t(`${view}, for ${who}: axe in light and dark, on a phone, no complaint of the browser`, async () => {
      fresh = who === 'fresh' ? await signedIn(world, { name: 'Fritz Fresh' }) : null;
      await look(who === 'nobody' ? null : (fresh ?? olga), { colorScheme: 'light' }, async (page) => {
        await way(page);
        const { url } = { url: page.url() };
        for (const fold of await page.locator('summary').all()) await fold.click();
        assert.deepEqual(await violationsOf(page), [], url);
        await page.emulateMedia({ colorScheme: 'dark' });
        assert.deepEqual(await violationsOf(page, ['color-contrast', 'link-in-text-block']), [], `${url} in the dark`);
        for (const width of [375, 320]) {
          await page.setViewportSize({ width, height: 667 });
          assert.equal(await overflowOf(page), 0, `${url} at ${width}`);
        }
        for (const button of await page.getByRole('button').all()) {
          const { height = 0 } = (await button.boundingBox()) ?? {};
          assert.ok(height >= 44, `${url}: ${await button.textContent()} is ${height} high`);
        }
      });
    });
  }

  t('without scripts: join, invite, give a role, remove, withdraw', async () => {
    const { token } = await inviteToTeam(world, { role: 'manager' });
    await look(null, phone, async (page) => {
      await page.goto(at(`/join/${token}`));
      await page.locator('#email').fill('scriptless@example.com');
      await page.locator('#name').fill('Sina Scriptless');
      await page.locator('#password').fill(goodPassword);
      await press(page, 'join');
      await page.waitForURL('**/console');
    });
    await world.settled();
    await look(olga, phone, async (page) => {
      await page.goto(at('/team'));
      const row = page.locator('.rows > li').filter({ hasText: 'Sina Scriptless' });
      await row.locator('summary', { hasText: 'Change the role' }).click();
      await row.locator('select').selectOption('creator');
      await row.locator('button[value=change-role]').click();
      await row.locator('.tag', { hasText: 'Creator' }).waitFor();
      await inRow(page, 'Sina Scriptless', 'Remove', 'remove-member');
      await page.locator('.notice').waitFor();
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

  t('without scripts: a key is made, used, rotated and revoked; an app is ended; live is chosen', async () => {
    await look(olga, phone, async (page) => {
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
      await inRow(page, 'App Donau', 'Revoke', 'revoke');
      await says(page, 'The app has no access any more.');
    });
  });

  t('without scripts: a forgotten password, the second factor, recovery codes, other sessions, sign out', async () => {
    const { email } = await personOf(world, { name: 'Fiona Forgetful' });
    await look(null, phone, async (page) => {
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
      await look(null, phone, async (other) => {
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
});
