import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

/**
 * The text of a refusal. A problem has a detail only where the title is not enough; a proxy's answer is not a problem
 * document.
 */
const problemIn = (text: string): string => {
  const problem = parsed(text);
  if (typeof problem !== 'object' || problem === null) return text === '' ? '' : `: ${text.slice(0, 200)}`;
  const { code, title, detail, errors } = problem as Readonly<Record<string, unknown>>;
  const words = detail ?? title;
  return [
    code === undefined ? '' : ` ${code}`,
    words === undefined ? '' : `: ${words}`,
    errors === undefined ? '' : ` ${JSON.stringify(errors)}`,
  ].join('');
};

/** Milliseconds for which a call that the allowance refuses is sent again. */
const patienceMs = 60_000;
/** Requests of the allowance that the tour leaves for a person who looks meanwhile. */
const leftOver = 20;

/** Milliseconds that keep the calls within the allowance of the key, which the answer tells. */
const restOf = ({ status, headers }: Response): number => {
  if (status === 429) return 1_000 * Number(headers.get('retry-after') ?? 1);
  const left = Number(/;r=(\d+)/.exec(headers.get('ratelimit') ?? '')?.[1] ?? Number.POSITIVE_INFINITY);
  return left < leftOver ? 250 : 0;
};

/** The few calls of the tour, with plain fetch: as a caller would write them. */
export class TourClient {
  readonly #baseUrl: string;
  readonly #key: string;
  readonly #signal: AbortSignal;
  /** Milliseconds until the next call. */
  #restMs = 0;

  constructor(baseUrl: string, key: string, signal: AbortSignal) {
    this.#baseUrl = baseUrl;
    this.#key = key;
    this.#signal = signal;
  }

  get<Data>(path: string): Promise<Data> {
    return this.#call<Data>(path, { method: 'GET' });
  }

  post<Data>(path: string, body: unknown): Promise<Data> {
    const headers = { 'content-type': 'application/json', 'idempotency-key': randomUUID() };
    return this.#call<Data>(path, { method: 'POST', headers, body: JSON.stringify(body) });
  }

  async patch(path: string, body: unknown): Promise<void> {
    const headers = { 'content-type': 'application/json' };
    await this.#call(path, { method: 'PATCH', headers, body: JSON.stringify(body) });
  }

  async delete(path: string): Promise<void> {
    await this.#call(path, { method: 'DELETE' });
  }

  /** To a presigned URL: without our token. */
  async upload(url: string, headers: Readonly<Record<string, string>>, file: Buffer): Promise<void> {
    const answer = await fetch(url, { method: 'PUT', headers, body: new Uint8Array(file), signal: this.#signal });
    if (!answer.ok) throw new Error(`the upload was answered with ${answer.status}: ${await answer.text()}`);
  }

  /** Sends the form of the invite page as a browser without script does. */
  async connect(
    url: string,
    form: { readonly platform: string; readonly username: string; readonly [secret: string]: string },
  ): Promise<void> {
    const { platform } = form;
    const page = await fetch(url, { signal: this.#signal });
    const html = await page.text();
    if (!page.ok || !html.includes(`value="${platform}"`)) throw new Error(`the invite page offers no ${platform}`);
    const body = new URLSearchParams({ timezone: '', ...form });
    const answer = await fetch(url, { method: 'POST', body, signal: this.#signal });
    const [, words = ''] = answer.ok ? [] : (await answer.text()).split('role="alert">');
    if (!answer.ok) {
      throw new Error(`connecting ${platform} was answered with ${answer.status} ${words.split('<')[0]}`.trim());
    }
  }

  /** Opens the page of an approval and sends its form, as a guest's browser without script does. */
  async decide(url: string, words: string, form: Readonly<Record<string, string>>): Promise<void> {
    const page = await fetch(url, { signal: this.#signal });
    if (!page.ok || !(await page.text()).includes(words)) throw new Error('the page of the approval shows no post');
    const answer = await fetch(url, { method: 'POST', body: new URLSearchParams(form), signal: this.#signal });
    if (!answer.ok) throw new Error(`the decision was answered with ${answer.status}`);
  }

  async #call<Data>(path: string, init: RequestInit): Promise<Data> {
    const headers = { ...init.headers, authorization: `Bearer ${this.#key}` };
    const until = performance.now() + patienceMs;
    let response: Response;
    let text: string;
    do {
      await delay(this.#restMs, undefined, { signal: this.#signal });
      response = await fetch(`${this.#baseUrl}${path}`, { ...init, headers, signal: this.#signal });
      text = await response.text();
      this.#restMs = restOf(response);
    } while (response.status === 429 && response.headers.has('retry-after') && performance.now() < until);
    if (!response.ok) {
      throw new Error(`${init.method} ${path} was answered with ${response.status}${problemIn(text)}`);
    }
    return (JSON.parse(text) as { data: Data }).data;
  }
}
