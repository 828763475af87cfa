/** Pages of the console in a real Chromium, as a person of a world sees them. */
import assert from 'node:assert/strict';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import type { Mail } from '#services/auth/people/mail.ts';
import { consoleWorld, type signedIn } from './console.ts';
import type { World, WorldOptions } from './http.ts';
import { patience } from './patience.ts';
import type { personOf } from './people.ts';

export type Member = Awaited<ReturnType<typeof signedIn>>;

/** The console has a name of its own, as browsers want it for passkeys. */
export const namedConsole = async (options: WorldOptions = {}): Promise<World> => {
  let origin = '';
  const { deps, ...others } = options;
  const world = await consoleWorld({
    ...others,
    deps: { ...deps, consoleUrl: () => origin.replace('127.0.0.1', 'localhost') },
  });
  origin = world.origin();
  return world;
};

/** A context with the cookies of the member; without one, of nobody. */
export const contextOf = async (
  browser: Browser,
  world: World,
  member: Member | null,
  options: BrowserContextOptions = {},
): Promise<BrowserContext> => {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, ...options });
  context.setDefaultTimeout(10_000 * patience);
  const url = world.deps.consoleUrl();
  if (member !== null) {
    const cookies = [...member.browser.cookies].map(([name, value]) => ({ name, value, url }));
    await context.addCookies(cookies);
  }
  return context;
};

/** What the browser complains of, so far; the status of a page itself is none of it. */
export const faultsOf = (page: Page): readonly string[] => {
  const faults: string[] = [];
  page.on('console', (message) => {
    const isOwnStatus = message.location().url === page.url() && /status of 4\d\d/.test(message.text());
    if (message.type() === 'error' && !isOwnStatus) faults.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('requestfailed', (request) => {
    // The browser itself ends what a page that is left still loads.
    const why = request.failure()?.errorText;
    if (why !== 'net::ERR_ABORTED') faults.push(`failed: ${request.url()} ${why}`);
  });
  return faults;
};

/** Uses a page of a context of its own, of which the browser may have nothing to complain. */
export const lookAt = async (
  browser: Browser,
  world: World,
  member: Member | null,
  options: BrowserContextOptions,
  use: (page: Page) => Promise<void>,
): Promise<void> => {
  const context = await contextOf(browser, world, member, options);
  const page = await context.newPage();
  const faults = faultsOf(page);
  await use(page);
  await context.close();
  assert.deepEqual(faults, []);
};

/** Takes the mails of a world. */
export const mailbox = () => {
  const mails: Mail[] = [];
  const mailer = {
    send: async (mail: Mail) => {
      mails.push(mail);
      return true;
    },
    close: () => undefined,
  };
  return { mails, mailer };
};

/** Signs in through the page. */
export const signInAt = async (
  page: Page,
  world: World,
  { email, password }: Pick<Awaited<ReturnType<typeof personOf>>, 'email' | 'password'>,
): Promise<void> => {
  await page.goto(`${world.deps.consoleUrl()}/sign-in`);
  await page.locator('#email').fill(email);
  await page.locator('#password').fill(password);
  await page.locator('button[value=password]').click();
  await page.waitForURL('**/console');
};

export const press = (page: Page, value: string) => page.locator(`button[value=${value}]`).first().click();

/** Waits until the page says so. */
export const says = (page: Page, words: string | RegExp) => page.getByText(words).first().waitFor();

/** Opens what a row of a list folds away, and presses a button there. */
export const inRow = async (page: Page, words: string, folded: string, value: string): Promise<void> => {
  const row = page.locator('.rows > li').filter({ has: page.locator('h3', { hasText: words }) });
  assert.equal(await row.count(), 1, `rows with ${words}`);
  await row.locator('summary', { hasText: folded }).click();
  await row.locator(`button[value=${value}]`).click();
};
