/** The owner on the page of their own server, in a real Chromium. */
import type { Browser, Page } from 'playwright-core';
import { patience } from '#test/support/patience.ts';
import type { Identity } from './pds.ts';

/** Signs in, and comes to the question. */
export const signIn = async (page: Page, { password }: Identity): Promise<void> => {
  await page.locator('input[type=password]').fill(password);
  await page.locator('button[type=submit]').click();
  await page.getByRole('button', { name: 'Authorize' }).waitFor();
};

/** @returns the address to which the server sends the browser back; nobody needs to listen there */
export const answerOf = async (
  browser: Browser,
  { url, redirectUri }: { readonly url: string; readonly redirectUri: string },
  owner: Identity,
  press: 'Authorize' | 'Deny access',
): Promise<URL> => {
  const context = await browser.newContext({ locale: 'en-US' });
  context.setDefaultTimeout(15_000 * patience);
  const page = await context.newPage();
  const there = `${new URL(redirectUri).origin}/**`;
  await page.route(there, (route) => route.fulfill({ body: 'Back.' }));
  const back = page.waitForRequest(there);
  back.catch(() => undefined);
  await page.goto(url);
  await signIn(page, owner);
  await page.getByRole('button', { name: press }).click();
  try {
    return new URL((await back).url());
  } finally {
    await context.close();
  }
};
