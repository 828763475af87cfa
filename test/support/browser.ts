/** Pages as a person opens them, in a real Chromium, with everything that goes wrong on the way. */
import assert from 'node:assert/strict';
import axe from 'axe-core';
import { type Browser, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { patience } from './patience.ts';

export interface Visit {
  readonly page: Page;
  /** Errors of the console, requests that failed, and requests to another origin than that of the page, so far. */
  readonly faults: readonly string[];
}

export const openBrowser = (program: string): Promise<Browser> =>
  chromium.launch({
    executablePath: program,
    args: ['--disable-background-networking', '--disable-component-update', '--disable-gpu', '--in-process-gpu'],
  });

/** @param origin the only one that the page may ask */
export const visit = async (
  browser: Browser,
  origin: string,
  url: string,
  options: BrowserContextOptions = {},
): Promise<Visit> => {
  const context = await browser.newContext({ viewport: { width: 1_280, height: 800 }, ...options });
  context.setDefaultTimeout(10_000 * patience);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on('console', (message) => {
    // Chromium reports the status of the page itself there; the tests that expect a refusal read its words.
    const isOwnStatus = message.location().url === page.url() && /status of 4\d\d/.test(message.text());
    if (message.type() === 'error' && !isOwnStatus) faults.push(`console: ${message.text()} ${message.location().url}`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('requestfailed', (request) => {
    // A video is read in pieces: Chromium drops the rest of a piece once it has the metadata.
    const isDropped = request.resourceType() === 'media' && request.failure()?.errorText === 'net::ERR_ABORTED';
    if (!isDropped) faults.push(`failed: ${request.url()} ${request.failure()?.errorText}`);
  });
  page.on('request', (request) => {
    const { protocol, origin: asked } = new URL(request.url());
    if (asked !== origin && protocol !== 'data:') faults.push(`asks elsewhere: ${request.url()}`);
  });
  await page.goto(url);
  return { page, faults };
};

interface Found {
  readonly id: string;
  readonly impact?: string | null | undefined;
  readonly nodes: readonly { readonly html: string; readonly failureSummary?: string | undefined }[];
}

const reported = ({ id, impact, nodes }: Found): string =>
  `${id} (${impact}): ${nodes.map(({ html, failureSummary = '' }) => `${html}\n${failureSummary}`).join('\n')}`;

// NOTE: what runs in the page is given as text: the types of a browser are no part of this program.

/**
 * What axe holds against the page, best practices included; contrasts that it cannot judge count too.
 * @param rules only these
 */
export const violationsOf = async (page: Page, rules?: readonly string[]): Promise<readonly string[]> => {
  await page.evaluate(axe.source);
  const options = { resultTypes: ['violations', 'incomplete'], ...(rules === undefined ? {} : { runOnly: rules }) };
  const { violations, incomplete } = await page.evaluate<axe.AxeResults>(
    `axe.run(document, ${JSON.stringify(options)})`,
  );
  return [...violations, ...incomplete.filter(({ id }) => id === 'color-contrast')].map(reported);
};

export interface Focused {
  /** Its id, for a button its value. */
  readonly name: string;
  /** Whether a ring is drawn round it. */
  readonly isVisible: boolean;
}

export const focused = (page: Page): Promise<Focused> =>
  page.evaluate<Focused>(`(() => {
    const element = document.activeElement ?? document.body;
    const { outlineStyle, outlineWidth } = getComputedStyle(element);
    return {
      name: element.id || element.getAttribute('value') || element.localName,
      isVisible: outlineStyle !== 'none' && parseFloat(outlineWidth) >= 2,
    };
  })()`);

/** Waits until the page that a key or a click opens says this. */
export const says = (page: Page, words: string | RegExp): Promise<void> => page.getByText(words).first().waitFor();

/** Waits until the page says it as the reason of a refusal, in sight and with the focus. */
export const attentionIsOn = async (page: Page, words: string): Promise<void> => {
  await page.getByRole('alert').and(page.locator(':focus')).filter({ hasText: words }).waitFor();
  assert.equal((await focused(page)).isVisible, true);
  const { y = 0, height = 0 } = (await page.getByRole('alert').boundingBox()) ?? {};
  const window = page.viewportSize()?.height ?? 0;
  assert.ok(height > 0 && y >= 0 && y + height <= window, `the alert lies at ${y} of a window of ${window}`);
};

/** Presses Tab until that element has the focus. @returns the names of those that had it on the way, its own included */
export const tabTo = async (page: Page, name: string): Promise<readonly string[]> => {
  const passed: string[] = [];
  for (let at = await focused(page); at.name !== name; at = await focused(page)) {
    assert.ok(passed.length < 40, `Tab does not reach ${name}: ${passed.join(', ')}`);
    await page.keyboard.press('Tab');
    passed.push((await focused(page)).name);
  }
  return passed;
};

/** CSS pixels by which the page is wider than the window. */
export const overflowOf = (page: Page): Promise<number> =>
  page.evaluate<number>('document.documentElement.scrollWidth - document.documentElement.clientWidth');

export interface ShownMedia {
  /** Width and height of each picture, once all are loaded. */
  readonly pictures: readonly (readonly [number, number])[];
  /** Width, height and seconds of each video, once their metadata are loaded. */
  readonly videos: readonly (readonly [number, number, number])[];
}

/** Rejects for a file that is not shown. */
export const mediaOf = (page: Page): Promise<ShownMedia> =>
  page.evaluate<ShownMedia>(`(async () => {
    const loaded = (video) => new Promise((resolve, reject) => {
      if (video.readyState >= 1) resolve();
      if (video.error) reject(new Error(video.error.message));
      video.addEventListener('loadedmetadata', resolve);
      video.addEventListener('error', () => reject(new Error(video.error.message)));
    });
    const pictures = [...document.images];
    const videos = [...document.querySelectorAll('video')];
    await Promise.all([...pictures.map((one) => one.decode()), ...videos.map(loaded)]);
    return {
      pictures: pictures.map((one) => [one.naturalWidth, one.naturalHeight]),
      videos: videos.map((one) => [one.videoWidth, one.videoHeight, one.duration]),
    };
  })()`);
