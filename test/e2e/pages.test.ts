/**
 * The pages behind a link, in a real browser: what a client of an agency sees when they approve a post or connect an
 * account. With the keyboard alone, on a phone, in the dark, without scripts.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import sharp from 'sharp';
import { testTwinIdOf } from '#domain/ids.ts';
import { readyAsset } from '#test/support/assets.ts';
import {
  attentionIsOn,
  focused,
  mediaOf,
  openBrowser,
  overflowOf,
  says,
  tabTo,
  type Visit,
  violationsOf,
  visit,
} from '#test/support/browser.ts';
import { findChromium } from '#test/support/chromium.ts';
import { readyClip } from '#test/support/clip.ts';
import { type Composer, composedWorld, composer } from '#test/support/composing.ts';
import type { World } from '#test/support/http.ts';
import { afterFile, suite } from '#test/support/suite.ts';

/** On a machine without a browser that may not install one, the tests are left out. */
const found = await findChromium().then(
  (program) => ({ program }),
  (error: Error) => ({ missing: error.message }),
);

const longWord = 'Donaudampfschifffahrt'.repeat(9);
const longName = 'the_very_long_name_of_an_account_'.repeat(3);

const picture = readFileSync(path.resolve(import.meta.dirname, '../fixtures/coffee.jpg'));
/** A phone stored it lying on its side. */
const { autoOrient: pictureSize } = await sharp(picture).metadata();
const large = { width: 2_000, height: 1_500 };

const desktop = { colorScheme: 'light' } as const;
const phone = { viewport: { width: 375, height: 667 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true } as const;
/** What 200 % of zoom makes of a window of 1,280 pixels, in the dark. */
const zoomedInTheDark = { viewport: { width: 640, height: 400 }, deviceScaleFactor: 2, colorScheme: 'dark' } as const;

suite('pages in a browser', { timeoutMs: 120_000 }, (t) => {
  if ('missing' in found) return t.skip('are tested with Chromium', found.missing);
  let browser: Browser;
  let world: World;
  let own: Composer;
  let content: Record<string, unknown>;

  t.before(async () => {
    const [opened, made] = await Promise.all([openBrowser(found.program), composedWorld([])]);
    browser = opened;
    afterFile(() => browser.close());
    world = made.world;
    own = await composer(world, ['x', 'instagram', 'youtube', 'linkedin'], { name: 'Café Söhne' });
    await world.tester.patch(`/clients/${own.clientId}`, { approvalRequired: true });
    await connectLongName();
    content = await fullPost();
  });

  const connectLongName = async () => {
    const invite = await world.tester.post(`/clients/${own.clientId}/connect-invites`, { platforms: ['linkedin'] });
    const body = new URLSearchParams({ platform: 'linkedin', username: longName });
    await fetch(String(invite.data.url), { method: 'POST', body });
    await world.settled();
  };

  /** A thread, a title, a first comment, pictures and a video, each on a network that has it. */
  const fullPost = async (): Promise<Record<string, unknown>> => {
    const { store, deps } = world;
    const home = testTwinIdOf(world.workspaceId);
    const asset = (body: Uint8Array, name: string, probe: { width: number; height: number }) =>
      readyAsset(store, home, 'image', { body, blobs: deps.blobs, name, probe });
    const flat = await sharp({ create: { ...large, channels: 3, background: '#7a5a3c' } })
      .jpeg()
      .toBuffer();
    const coffee = (await asset(picture, 'coffee.jpg', pictureSize)).id;
    const wide = (await asset(flat, 'table.jpg', large)).id;
    const poster = { body: flat, ...large };
    const clip = (await readyClip(store, home, deps.blobs, { name: 'roasting.mp4', poster })).id;
    await world.settled();
    // Those of the client so far: other tests connect more.
    const accountIds = (await world.tester.get(`/accounts?clientId=${own.clientId}`)).rows.map(({ id }) => id);
    const words = 'Our winter roast is back.\nThree farms, one cup.\n\nFrom Thursday, in all shops.';
    return {
      ...{ content: words, mediaIds: [wide], aiDisclosure: true, targets: { mode: 'accounts', accountIds } },
      mediaAltTexts: { [wide]: 'A wooden table', [coffee]: 'A cup of coffee on a table' },
      thread: { segments: [{ content: words, mediaIds: [wide] }, { content: longWord }] },
      variants: [
        { platform: 'instagram', mediaIdsOverride: [coffee], overrides: { firstComment: '#coffee #winter' } },
        { platform: 'youtube', mediaIdsOverride: [clip], overrides: { title: 'How we roast' } },
        { platform: 'linkedin', mediaIdsOverride: [coffee, wide], contentOverride: `${words}\n${longWord}` },
      ],
    };
  };

  interface Request {
    readonly postId: string;
    readonly approvalId: string;
    readonly url: string;
  }
  const request = async (more: Record<string, unknown> = {}): Promise<Request> => {
    const post = await world.tester.post('/posts', own.body(more));
    assert.equal(post.status, 200, post.text);
    const approvalId = String(post.data.approvalId);
    const link = await world.tester.post(`/approvals/${approvalId}/links`, {});
    assert.equal(link.status, 200, link.text);
    return { postId: post.data.id, approvalId, url: String(link.data.url) };
  };
  /** A short post for one network. */
  const short = (words: string) =>
    request({ content: words, targets: { mode: 'accounts', accountIds: [own.accounts.x] } });
  const invited = async (platforms: readonly string[] = ['x', 'bluesky']): Promise<string> =>
    String((await world.tester.post(`/clients/${own.clientId}/connect-invites`, { platforms })).data.url);
  const stateOf = async ({ approvalId }: Request) => {
    await world.settled();
    return (await world.tester.get(`/approvals/${approvalId}`)).data;
  };

  /** Opens a page, and closes its window once it was looked at; nothing may have gone wrong there. */
  const look = async <T>(url: string, options: BrowserContextOptions, at: (page: Page) => Promise<T>): Promise<T> => {
    const opened: Visit = await visit(browser, world.origin(), url, options);
    const seen = await at(opened.page);
    await opened.page.context().close();
    assert.deepEqual(opened.faults, []);
    return seen;
  };

  t('axe finds nothing to mend in any state of a page, also zoomed to 200 % in the dark', async () => {
    const [pending, refused, withdrawn, approved, rejected, changed] = await Promise.all([
      request(content),
      short('Refused at first.'),
      short('Will change.'),
      ...['approve', 'reject', 'request_changes'].map(async (decision) => {
        const made = await short(decision);
        const body = new URLSearchParams({ decision, name: 'Zoë', comment: 'It\nis so.' });
        await fetch(made.url, { method: 'POST', body });
        return made;
      }),
    ]);
    await world.tester.post(`/posts/${withdrawn?.postId}/revise`, { content: 'Changed.' });
    const used = await invited(['x']);
    await fetch(used, { method: 'POST', body: new URLSearchParams({ platform: 'x', username: 'used' }) });
    const fresh = await invited();
    const contrast = ['color-contrast', 'link-in-text-block'];
    for (const [options, rules] of [[desktop], [zoomedInTheDark, contrast]] as const) {
      const checkedIn = async (page: Page, state: RegExp) => {
        await says(page, state);
        assert.deepEqual(await violationsOf(page, rules), [], `${state}`);
      };
      const shown = (url: string | undefined, state: RegExp) =>
        look(String(url), options, (page) => checkedIn(page, state));
      await shown(pending?.url, /waits for your decision/);
      await shown(approved?.url, /is approved/);
      await shown(rejected?.url, /was rejected/);
      await shown(changed?.url, /Changes were asked for/);
      await shown(withdrawn?.url, /changed or canceled/);
      await shown(`${world.origin()}/approval/nothing`, /does not work/);
      await shown(fresh, /Username/);
      await shown(used, /Connected through this link/);
      await look(String(refused?.url), options, async (page) => {
        await page.getByLabel('Your name').fill('Zoë');
        await page.getByRole('button', { name: 'Reject' }).click();
        await checkedIn(page, /Say in a comment/);
      });
      await look(fresh, options, async (page) => {
        await page.locator('#username-bluesky').fill('acme');
        await page.locator('#timezone-bluesky').fill('Mars');
        await page.getByRole('button', { name: 'Connect Bluesky' }).click();
        await checkedIn(page, /That is no timezone/);
      });
    }
  });

  t('the keyboard alone decides: a form that is refused keeps its words and leads to the fault', async () => {
    const one = await request(content);
    await look(one.url, desktop, async (page) => {
      await tabTo(page, 'name');
      await page.keyboard.type('Zoë Guest');
      // Enter in a field must not press the first button.
      await page.keyboard.press('Enter');
      assert.equal((await stateOf(one)).status, 'pending');
      await page.keyboard.press('Tab');
      assert.deepEqual(await focused(page), { name: 'comment', isVisible: true });
      assert.deepEqual(await tabTo(page, 'reject'), ['approve', 'request_changes', 'reject']);
      await page.keyboard.press('Enter');
      await attentionIsOn(page, 'Say in a comment what is wrong.');
      assert.match(await page.title(), /^Not sent/);
      assert.deepEqual(await tabTo(page, 'comment'), ['name', 'comment']);
      assert.equal(await page.getByLabel('Your name').inputValue(), 'Zoë Guest');
      await page.keyboard.type('Less coffee.\nMore milk.');
      await tabTo(page, 'request_changes');
      assert.equal((await focused(page)).isVisible, true);
      await page.keyboard.press('Space');
      await says(page, /Changes were asked for/);
    });
    const { status, comment, guestName } = await stateOf(one);
    assert.deepEqual([status, comment, guestName], ['changes_requested', 'Less coffee.\nMore milk.', 'Zoë Guest']);
  });

  t('the connect page works with the keyboard, and keeps what was typed', async () => {
    await look(await invited(['pinterest', 'bluesky']), desktop, async (page) => {
      await tabTo(page, 'username-bluesky');
      await page.keyboard.type('by_keyboard');
      await tabTo(page, 'timezone-bluesky');
      await page.keyboard.type('Mars');
      await page.keyboard.press('Enter');
      await attentionIsOn(page, 'That is no timezone: give one such as Europe/Berlin, or none.');
      assert.equal(await page.locator('#username-bluesky').inputValue(), 'by_keyboard');
      assert.equal(await page.locator('#username-pinterest').inputValue(), '');
      assert.deepEqual(await tabTo(page, 'timezone-bluesky'), ['username-bluesky', 'timezone-bluesky']);
      await page.keyboard.press('ControlOrMeta+A');
      await page.keyboard.type('Europe/Berlin');
      await page.keyboard.press('Enter');
      await says(page, /Bluesky: by_keyboard \(connected\)/);
    });
  });

  t('nothing is wider than a phone, and no button is too small for a finger', async () => {
    const { url } = await request(content);
    const connect = await invited();
    const form = new URLSearchParams({ platform: 'x', username: longName });
    await fetch(connect, { method: 'POST', body: form });
    for (const width of [375, 320]) {
      const options = { ...phone, viewport: { width, height: 667 } };
      for (const one of [url, connect, `${world.origin()}/approval/nothing`]) {
        await look(one, options, async (page) => {
          assert.equal(await page.evaluate('innerWidth'), width);
          assert.equal(await overflowOf(page), 0, `${one} at ${width}`);
          for (const button of await page.getByRole('button').all()) {
            assert.ok(Number((await button.boundingBox())?.height) >= 44, `${button}`);
          }
        });
      }
    }
  });

  t('scanners of mail, prefetching and a second tab change nothing', async () => {
    const urls = [(await short('Seen before.')).url, await invited()];
    await world.settled();
    const before = await world.head();
    for (const url of urls) {
      for (const method of ['GET', 'HEAD', 'OPTIONS']) {
        for (const headers of [{}, { 'sec-purpose': 'prefetch' }, { purpose: 'prefetch' }]) {
          const { status } = await fetch(url, { method, headers });
          assert.ok(method === 'OPTIONS' || status === 200, `${method} ${status}`);
        }
      }
      await look(url, desktop, (page) => look(url, desktop, () => page.reload()));
    }
    assert.equal(await world.head(), before);
  });

  t('two tabs: the second to decide is told how the request stands', async () => {
    const one = await short('Twice.');
    await look(one.url, desktop, async (second) => {
      await second.getByLabel('Your name').fill('Second');
      await second.getByLabel('Comment').fill('Good.\nBut blue.');
      await look(one.url, desktop, async (first) => {
        await first.getByLabel('Your name').fill('First');
        await first.getByRole('button', { name: 'Approve' }).click();
        await says(first, /is approved/);
      });
      const decided = await world.head();
      await second.getByRole('button', { name: 'Approve' }).click();
      await says(second, /is approved/);
      await says(second, 'Good. But blue.');
      assert.equal(await second.getByRole('button').count(), 0);
      assert.equal(await world.head(), decided);
    });
  });

  t('no script is needed', async () => {
    const one = await short('Plain.');
    const bare = { ...phone, javaScriptEnabled: false };
    await look(one.url, bare, async (page) => {
      await page.getByLabel('Your name').fill('Zoë');
      await page.getByRole('button', { name: 'Reject' }).tap();
      await says(page, /Say in a comment/);
      await page.getByLabel('Comment').fill('No.');
      await page.getByRole('button', { name: 'Reject' }).tap();
      await says(page, /was rejected/);
    });
    assert.equal((await stateOf(one)).status, 'rejected');
    await look(await invited(), bare, async (page) => {
      await page.locator('#username-x').fill('scriptless');
      await page.getByRole('button', { name: 'Connect X' }).tap();
      await says(page, /X: scriptless \(connected\)/);
    });
  });

  t('pictures and videos of the post are loaded, each with its size', async () => {
    await look((await request(content)).url, desktop, async (page) => {
      const { pictures, videos } = await mediaOf(page);
      const [small, big] = [pictureSize, large].map(({ width, height }) => [width, height]);
      // The order of the networks is not that of the accounts.
      assert.deepEqual(pictures.toSorted(), [small, big, big, small].toSorted());
      assert.deepEqual(
        videos.map((one) => one.map(Math.round)),
        [[720, 1_280, 5]],
      );
    });
  });

  t('the parts of each post are where its network has them', async () => {
    await look((await request(content)).url, desktop, async (page) => {
      const card = (name: string) => page.getByRole('region', { name, exact: true });
      assert.deepEqual(await card('X').getByRole('heading', { level: 3 }).allInnerTexts(), [
        'Part 1 of 2',
        'Part 2 of 2',
      ]);
      assert.match(
        (await card('X').locator('.text').allInnerTexts())[0] ?? '',
        /back\.\nThree farms, one cup\.\n\nFrom/,
      );
      assert.match(String(await card('Instagram').allInnerTexts()), /First comment\n+#coffee #winter/);
      assert.match(String(await card('YouTube').allInnerTexts()), /How we roast/);
      assert.equal(await card('LinkedIn').getByRole('img').count(), 2);
    });
  });
});
