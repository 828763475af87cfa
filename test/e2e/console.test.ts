/** Every page of the console in a real browser: judged by axe, in light and dark, on a phone. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { Secret, TOTP } from 'otpauth';
import type { Browser, Page } from 'playwright-core';
import { workspace } from '#domain/workspace.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { type LinkPurpose, mintPersonLink } from '#services/auth/people/person-links.ts';
import { contextOf as commandContextOf } from '#services/workflows/provision.ts';
import { openBrowser, overflowOf, violationsOf } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { signedIn } from '#test/support/console.ts';
import { lookAt, type Member, mailbox, namedConsole, press, says } from '#test/support/console-pages.ts';
import { rowsOfRun } from '#test/support/drawing.ts';
import type { World } from '#test/support/http.ts';
import { Browser as Jar, oauthOf, pkce } from '#test/support/oauth.ts';
import { goodPassword, inviteToTeam, peopleDepsOf, personOf } from '#test/support/people.ts';
import { afterFile, suite } from '#test/support/suite.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

const longWord = 'Donaudampfschifffahrt'.repeat(7);

/** Templates that are parts of others. */
const parts = ['frame', 'messages', 'token'];
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
    [browser, world] = await Promise.all([
      openBrowser(found.program),
      namedConsole({ deps: { mailer: mailbox().mailer } }),
    ]);
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

  const look = (member: Member | null, use: (page: Page) => Promise<void>) =>
    lookAt(browser, world, member, { colorScheme: 'light' }, use);

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
  const linkOf = async (purpose: LinkPurpose) => {
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
    ['confirm', 'nobody', async (page) => page.goto(at(`/confirm/${(await linkOf('confirm')).token}`))],
    ['enter', 'nobody', async (page) => page.goto(at(`/enter/${(await linkOf('sign_in')).token}`))],
    ['join', 'nobody', async (page) => page.goto(at(`/join/${(await inviteToTeam(world)).token}`))],
    ['join', 'olga', async (page) => page.goto(at(`/join/${(await inviteToTeam(world)).token}`))],
    ['error', 'nobody', (page) => page.goto(at('/join/nothing'))],
    ['error', 'olga', (page) => page.goto(at('/security/nothing'))],
    ['home', 'olga', (page) => page.goto(at('/console'))],
    ['security', 'olga', (page) => page.goto(at('/security'))],
    ['left', 'olga', (page) => page.goto(at(`/team/members/${olga.memberId}/left`))],
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

  const looked = rowsOfRun('views of the console', ways, ([view, who]) => `${view} for ${who}`);
  for (const [view, who, way] of looked) {
    t(`${view}, for ${who}: axe in light and dark, on a phone, no complaint of the browser`, async () => {
      fresh = who === 'fresh' ? await signedIn(world, { name: 'Fritz Fresh' }) : null;
      await look(who === 'nobody' ? null : (fresh ?? olga), async (page) => {
        await way(page);
        const url = page.url();
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

  t('the bar is one row on a desk, and on a phone the sign-out has no row of its own', async () => {
    await look(olga, async (page) => {
      await page.goto(at('/console'));
      const below = async (part: string): Promise<boolean> => {
        const [one, button] = await Promise.all(
          [part, 'button'].map((each) => page.locator(`.bar ${each}`).boundingBox()),
        );
        assert.ok(one && button, part);
        return button.y >= one.y + one.height;
      };
      assert.equal(await below('.brand'), false);
      await page.setViewportSize({ width: 375, height: 667 });
      assert.equal(await below('.place'), false);
    });
  });
});
