/**
 * The pages behind a live connect link, in a real browser: several ways for a network, a code, a choice, a step that has
 * ended. With the keyboard alone, on a phone, in the dark, without scripts.
 */
import assert from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { blueskyConnector, blueskyConsent } from '#infra/platforms/bluesky/index.ts';
import { operatorConnector, ownBotConnector } from '#infra/platforms/telegram/index.ts';
import {
  attentionIsOn,
  focused,
  openBrowser,
  overflowOf,
  says,
  tabTo,
  violationsOf,
  visit,
} from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { liveWorld } from '#test/support/live-world.ts';
import { TelegramSimulator } from '#test/support/networks/telegram/simulator.ts';
import type { Bot } from '#test/support/networks/telegram/state.ts';
import { afterFile, suite } from '#test/support/suite.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

const desktop = { colorScheme: 'light' } as const;
const phone = { deviceScaleFactor: 2, isMobile: true, hasTouch: true } as const;
/** What 200 % of zoom makes of a window of 1,280 pixels, in the dark. */
const zoomedInTheDark = { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2, colorScheme: 'dark' } as const;
const longTitle = `${'Donaudampfschifffahrt'.repeat(5)} <b>`;

suite('pages of a live connect link in a browser', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in found) return t.skip('are tested with Chromium', found.missing);
  let browser: Browser;
  let network: TelegramSimulator;
  let bot: Bot;
  let it: Awaited<ReturnType<typeof liveWorld>>;
  /** Another origin than that of our pages, which counts who comes. */
  let elsewhere: Server;
  let visits = 0;
  let clients = 0;

  t.before(async () => {
    network = await TelegramSimulator.start();
    bot = network.bot();
    elsewhere = createServer((_, response) => {
      visits += 1;
      response.end('Elsewhere.');
    });
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve));
    const jwk = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' });
    // Nobody answers there.
    const resolver = 'http://127.0.0.1:9';
    [browser, it] = await Promise.all([
      openBrowser(found.program),
      liveWorld(({ http, codes }) => ({
        bluesky: [
          blueskyConsent({ http, keys: [{ ...jwk, kid: '1' }], clock: () => Date.now(), resolver }),
          blueskyConnector({ http, resolver }),
        ],
        telegram: [
          operatorConnector({ http, codes, api: network.origin, token: bot.token }),
          ownBotConnector({ http, api: network.origin }),
        ],
      })),
    ]);
    afterFile(() => browser.close());
  });
  t.after(async () => {
    await it?.close();
    network?.close();
    elsewhere?.close();
  });

  const invited = async (platforms: readonly string[] = ['bluesky', 'telegram', 'threads']): Promise<string> => {
    clients += 1;
    const { id } = (await it.world.owner.post('/clients', { name: `Café Söhne ${clients}`, type: 'brand' })).data;
    const made = await it.world.owner.post(`/clients/${id}/connect-invites`, { platforms });
    assert.equal(made.status, 200, made.text);
    return String(made.data.url);
  };
  /** Opens a page, and closes its window once it was looked at; nothing may have gone wrong there. */
  const look = async (url: string, options: BrowserContextOptions, at: (page: Page) => Promise<void>) => {
    const opened = await visit(browser, it.world.origin(), url, options);
    await at(opened.page);
    await opened.page.context().close();
    assert.deepEqual(opened.faults, []);
  };
  const button = (page: Page, name: string) => page.getByRole('button', { name });
  /** Posts the message of the page in so many channels. */
  const post = async (page: Page, channels: number): Promise<void> => {
    const [, code = ''] = /^\/connect ([A-Z2-9]{10})$/.exec((await page.locator('.copy').textContent()) ?? '') ?? [];
    for (let at = 0; at < channels; at += 1) {
      await it.codes.spoke(code, String(network.chat({ title: `${longTitle} ${at}` }).id));
    }
    assert.equal((await it.codes.placesOf(code))?.length, channels);
  };
  /** Shows each state of the pages in turn. */
  const walk = async (page: Page, at: (state: string) => Promise<void>): Promise<void> => {
    await says(page, 'Telegram: with our bot');
    await at('several ways');
    await page.locator('#username-telegram').fill('@cafe');
    await page.locator('#botToken-telegram').fill('no token');
    await button(page, 'Connect Telegram').click();
    await says(page, 'A bot token has the form');
    await at('a refused form');
    await button(page, 'Get a code for Telegram').click();
    await says(page, `@${bot.username}`);
    await at('a code');
    await button(page, 'I have posted it').click();
    await says(page, 'The message has not arrived yet.');
    await at('a code that has not arrived');
    await post(page, 2);
    await button(page, 'I have posted it').click();
    await says(page, 'Which accounts of Telegram?');
    await at('a choice');
    const choice = page.url();
    await button(page, 'Connect these accounts').click();
    await says(page, 'Choose at least one account.');
    await at('no choice');
    await page.getByLabel(`${longTitle} 1`).check();
    await button(page, 'Connect these accounts').click();
    await says(page, 'Connected through this link');
    await at('a connected account');
    await page.goto(choice);
    await says(page, 'This step has ended');
    await at('a step that has ended');
  };

  t('axe finds nothing to mend in any state, also zoomed to 200 % in the dark', async () => {
    const contrast = ['color-contrast', 'link-in-text-block'];
    for (const [options, rules] of [[desktop], [zoomedInTheDark, contrast]] as const) {
      await look(await invited(), options, (page) =>
        walk(page, async (state) => assert.deepEqual(await violationsOf(page, rules), [], state)),
      );
    }
  });

  t('nothing is wider than a phone, and no button is too small for a finger', async () => {
    for (const width of [375, 320]) {
      await look(await invited(), { ...phone, viewport: { width, height: 667 } }, (page) =>
        walk(page, async (state) => {
          assert.equal(await page.evaluate('innerWidth'), width);
          assert.equal(await overflowOf(page), 0, `${state} at ${width}`);
          for (const one of await page.getByRole('button').all()) {
            assert.ok(Number((await one.boundingBox())?.height) >= 44, `${state}: ${one}`);
          }
        }),
      );
    }
  });

  t('the keyboard alone leads from the link to the account, and to each fault on the way', async () => {
    await look(await invited(['telegram']), desktop, async (page) => {
      await tabTo(page, 'timezone-telegram-code');
      await page.keyboard.type('Mars');
      await page.keyboard.press('Enter');
      await attentionIsOn(page, 'That is no timezone');
      assert.deepEqual(await tabTo(page, 'timezone-telegram-code'), ['timezone-telegram-code']);
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type('Europe/Berlin');
      await page.keyboard.press('Enter');
      await says(page, 'Show which account is yours');
      assert.deepEqual(await tabTo(page, 'button'), ['button']);
      assert.equal((await focused(page)).isVisible, true);
      await page.keyboard.press('Enter');
      await attentionIsOn(page, 'The message has not arrived yet.');
      assert.match(await page.title(), /^Not connected yet: /);
      await post(page, 2);
      await tabTo(page, 'button');
      await page.keyboard.press('Enter');
      await says(page, 'Which accounts of Telegram?');
      await page.keyboard.press('Tab');
      assert.equal((await focused(page)).isVisible, true);
      await page.keyboard.press('Space');
      await tabTo(page, 'button');
      await page.keyboard.press('Enter');
      await says(page, 'Connected through this link');
      assert.equal(await page.locator('.rows li').count(), 1);
    });
  });

  t('a reload and the way back connect nothing twice, without scripts', async () => {
    const url = await invited(['telegram']);
    await look(url, { ...desktop, javaScriptEnabled: false }, async (page) => {
      await button(page, 'Get a code for Telegram').click();
      await says(page, 'Show which account is yours');
      const shown = await page.locator('.copy').textContent();
      await page.reload();
      assert.equal(await page.locator('.copy').textContent(), shown);
      await post(page, 1);
      await button(page, 'I have posted it').click();
      await says(page, 'Connected through this link');
      assert.equal(page.url(), url, 'nothing of the step stays in the address');
      const before = await it.world.head();
      await page.reload();
      await page.goBack();
      await says(page, 'This step has ended');
      assert.equal(await it.world.head(), before);
    });
  });

  t('a form leaves our pages where a consent is offered, and nowhere else', async () => {
    const { port } = elsewhere.address() as AddressInfo;
    // NOTE: as somebody would write it who got HTML of theirs into the page.
    const leave = `(() => {
      const form = document.createElement('form');
      form.action = 'http://127.0.0.1:${port}/';
      const heard = new Promise((resolve) => document.addEventListener('securitypolicyviolation', (event) =>
        resolve(event.effectiveDirective)));
      document.body.append(form);
      form.submit();
      return heard;
    })()`;
    const stays = async (page: Page) => {
      assert.equal(await page.evaluate(leave), 'form-action');
      assert.equal(visits, 0);
    };
    const unreported = async (url: string, at: (page: Page) => Promise<void>) => {
      const { page } = await visit(browser, it.world.origin(), url, desktop);
      await at(page);
      await page.context().close();
    };
    await unreported(await invited(['telegram']), stays);
    await unreported(await invited(['bluesky', 'telegram']), async (page) => {
      await button(page, 'Get a code for Telegram').click();
      await says(page, 'Show which account is yours');
      await stays(page);
    });
    await unreported(await invited(['bluesky', 'telegram']), async (page) => {
      void page.evaluate(leave).catch(() => undefined);
      await says(page, 'Elsewhere.');
      assert.ok(visits > 0);
    });
  });
});
