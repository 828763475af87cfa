/** The console in a real browser against pages of others: frames, forms, sessions and addresses that they bring. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { routes } from '#services/console/pages.ts';
import { openBrowser } from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { signedIn } from '#test/support/console.ts';
import { contextOf, type Member, namedConsole, press, says } from '#test/support/console-pages.ts';
import type { World } from '#test/support/http.ts';
import { goodPassword, personOf } from '#test/support/people.ts';
import { afterFile, suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

/** Everything that some form of the console asks for; an action takes what it knows. */
const fields = {
  ...{ name: 'Stolen', mode: 'live', scope: 'posts.compose', life: '365', role: 'viewer', email: 'thief@example.com' },
  ...{ hours: '24', password: goodPassword, current: goodPassword, decision: 'allow', next: '/console' },
};

suite('the console against pages of others', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in found) return t.skip('is tested with Chromium', found.missing);
  let browser: Browser;
  let world: World;
  let stranger: Server;
  const at = (to: string): string => `${world.deps.consoleUrl()}${to}`;

  t.before(async () => {
    // Shows the console in a frame, or offers a form that goes there, as its address says.
    stranger = createServer((request, answer) => {
      const { searchParams } = new URL(request.url ?? '/', 'http://stranger');
      const [frame, action] = [searchParams.get('frame'), searchParams.get('action')];
      const inputs = Object.entries(fields).map(([name, value]) => `<input name="${name}" value="${value}">`);
      answer.setHeader('content-type', 'text/html');
      answer.end(`<!doctype html><title>Prize</title>
        ${frame === null ? '' : `<iframe src="${frame}"></iframe>`}
        ${action === null ? '' : `<form method="post" action="${action}">${inputs.join('')}<button value="prize">Click</button></form>`}`);
    });
    await new Promise<void>((resolve) => stranger.listen(0, '127.0.0.1', resolve));
    afterFile(() => stranger.close());
    [browser, world] = await Promise.all([openBrowser(found.program), namedConsole()]);
    afterFile(() => browser.close());
  });
  t.after(() => world?.close());

  const pageOf = async (member: Member | null = null): Promise<Page> =>
    (await contextOf(browser, world, member)).newPage();
  /**
   * A page of somebody else. On the name of the console, at another port, the browser sends the cookies of the console
   * along: SameSite does not help there, as with a neighbour under the same domain.
   */
  const strangeAt = (host: 'localhost' | '127.0.0.1', query: Readonly<Record<string, string>>): string =>
    `http://${host}:${(stranger.address() as AddressInfo).port}/?${new URLSearchParams(query)}`;

  t('no page of somebody else shows the console in a frame', async () => {
    const page = await pageOf(await signedIn(world));
    const complaints: string[] = [];
    page.on('console', (message) => complaints.push(message.text()));
    for (const host of ['localhost', '127.0.0.1'] as const) {
      for (const path of ['/team', '/sign-in', '/join/nothing']) {
        complaints.length = 0;
        const [asked] = await Promise.all([
          page.waitForRequest(at(path)),
          page.goto(strangeAt(host, { frame: at(path) })),
        ]);
        const isKnown = /session=/.test((await asked.allHeaders()).cookie ?? '');
        assert.equal(isKnown, host === 'localhost', 'a neighbour asks as the person');
        await until(`${path} is refused to a frame of ${host}`, () => {
          const [, frame] = page.frames();
          return frame?.url().startsWith('chrome-error:') && /frame-ancestors/.test(complaints.join());
        });
      }
    }
    await page.context().close();
  });

  t('no form of somebody else does anything, whether the browser knows the person or not', async () => {
    const olga = await signedIn(world);
    const id = olga.memberId;
    const posts = routes.filter(({ method }) => method === 'POST');
    assert.ok(posts.length > 20);
    for (const member of [olga, null]) {
      const page = await pageOf(member);
      await page.goto(at('/sign-in'));
      const before = await world.head();
      for (const { path, for: who } of posts) {
        const action = at(path.replace(/:\w+/, id));
        await page.goto(strangeAt('localhost', { action }));
        const [answer] = await Promise.all([
          page.waitForResponse((one) => one.request().method() === 'POST' && one.url() === action),
          press(page, 'prize'),
        ]);
        // Nobody is sent to the sign-in by a page for members.
        assert.equal(answer.status(), member === null && who !== 'anyone' ? 303 : 403, path);
        await page.waitForLoadState();
      }
      await page.goto(strangeAt('127.0.0.1', { action: at('/developers/keys') }));
      await press(page, 'prize');
      await page.waitForURL((url) => url.hostname === 'localhost');
      assert.equal(await world.head(), before);
      await page.goto(at('/console'));
      assert.equal(new URL(page.url()).pathname, member === null ? '/sign-in' : '/console');
      await page.context().close();
    }
  });

  t('after the sign-out the way back shows nothing of the workspace', async () => {
    const olga = await signedIn(world);
    const page = await pageOf(olga);
    await page.goto(at('/team'));
    await says(page, 'Members');
    await page.locator('header button').click();
    await says(page, 'You are signed out');
    await page.goBack();
    await page.waitForURL('**/sign-in**');
    assert.equal(await page.getByText('Members').count(), 0);
    await page.context().close();
  });

  t('a sign-in leads to pages of the console alone, and gives a new session', async () => {
    const { email, password } = await personOf(world);
    const page = await pageOf();
    for (const next of ['https://evil.example/', '//evil.example', '/\\evil.example', 'javascript:alert(1)']) {
      await page.context().clearCookies();
      await page.goto(at(`/sign-in?${new URLSearchParams({ next })}`));
      const planted = { name: 'session', value: 'A'.repeat(43), url: world.deps.consoleUrl() };
      await page.context().addCookies([planted]);
      await page.locator('#email').fill(email);
      await page.locator('#password').fill(password);
      await Promise.all([page.waitForEvent('load'), press(page, 'password')]);
      assert.equal(page.url(), at('/console'), next);
      const [session] = (await page.context().cookies()).filter(({ name }) => name === 'session');
      assert.notEqual(session?.value, planted.value);
    }
    await page.context().close();
  });
});
