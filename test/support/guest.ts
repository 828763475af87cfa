/** A guest who follows a connect link in a browser of their own: it keeps cookies, and runs no script. */
import assert from 'node:assert/strict';

export interface Shown {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** Where the browser is sent; null: it stays. */
  readonly next: string | null;
}

export class Guest {
  readonly #origin: () => string;
  readonly #cookies = new Map<string, string>();

  /** @param origin of the pages, as they are reached here */
  constructor(origin: () => string) {
    this.#origin = origin;
  }

  get(path: string): Promise<Shown> {
    return this.#ask(path, { method: 'GET' });
  }

  head(path: string): Promise<Shown> {
    return this.#ask(path, { method: 'HEAD' });
  }

  post(path: string, fields: Readonly<Record<string, string>> | readonly (readonly [string, string])[] = {}) {
    const body = new URLSearchParams(Array.isArray(fields) ? fields : Object.entries(fields));
    return this.#ask(path, { method: 'POST', body });
  }

  /** Sends a form that leads on, and answers where to. */
  async sent(...[path, fields]: Parameters<Guest['post']>): Promise<string> {
    const { status, next, html } = await this.post(path, fields);
    assert.ok(status === 303 && next !== null, `${status} ${html}`);
    return next;
  }

  async #ask(path: string, init: RequestInit): Promise<Shown> {
    const cookie = [...this.#cookies].map((pair) => pair.join('=')).join('; ');
    const url = new URL(path, this.#origin());
    // A link of ours holds the host by which guests reach it.
    const here = new URL(url.pathname + url.search, this.#origin());
    const answer = await fetch(here, { ...init, headers: cookie === '' ? {} : { cookie }, redirect: 'manual' });
    for (const set of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      this.#cookies.set(name, value);
    }
    const { status, headers } = answer;
    return { status, headers, html: await answer.text(), next: headers.get('location') };
  }
}
