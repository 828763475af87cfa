/** The console as a browser without scripts sees it: cookies are kept, forms are sent with the fields of their page. */
import assert from 'node:assert/strict';
import { consolePart } from '#services/console/part.ts';
import type { World, WorldOptions } from './http.ts';
import { oauthWorld } from './oauth.ts';
import { personOf } from './people.ts';

/** A world with the authorization server and the console on the host of the api. */
export const consoleWorld = (options: WorldOptions = {}): Promise<World> =>
  oauthWorld({}, { ...options, parts: [consolePart(), ...(options.parts ?? [])] });

export interface ShownPage {
  readonly status: number;
  readonly headers: Headers;
  readonly html: string;
  /** Without tags, with entities resolved and blanks joined. */
  readonly text: string;
  readonly location: string;
}

const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', '#39': "'" };
const plain = (html: string): string => html.replaceAll(/&(\w+|#39);/g, (whole, name) => entities[name] ?? whole);

const textIn = (html: string): string =>
  plain(
    html
      .replaceAll(/<style>[^<]*<\/style>/g, '')
      .replaceAll(/<[^>]*>/g, ' ')
      .replaceAll(/\s+/g, ' '),
  );

export type Fields = Readonly<Record<string, string | readonly string[]>>;

export class ConsoleBrowser {
  readonly #origin: () => string;
  readonly cookies = new Map<string, string>();
  /** Lines of Set-Cookie. */
  readonly received: string[] = [];
  page: ShownPage = { status: 0, headers: new Headers(), html: '', text: '', location: '' };

  constructor(origin: () => string) {
    this.#origin = origin;
  }

  /** The value of a hidden field of the page. */
  hidden(name: string, html: string = this.page.html): string {
    const [, value = ''] = new RegExp(`name="${name}" value="([^"]*)"`).exec(html) ?? [];
    return plain(value);
  }

  async #ask(path: string, init: RequestInit): Promise<ShownPage> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(new URL(path, this.#origin()), {
      ...init,
      redirect: 'manual',
      headers: { ...(cookie === '' ? {} : { cookie }), 'user-agent': 'Firefox/140.0 (Linux)', ...init.headers },
    });
    for (const line of response.headers.getSetCookie()) {
      this.received.push(line);
      const [pair = ''] = line.split(';');
      const at = pair.indexOf('=');
      if (/Max-Age=0/.test(line)) this.cookies.delete(pair.slice(0, at));
      else this.cookies.set(pair.slice(0, at), pair.slice(at + 1));
    }
    const html = await response.text();
    const location = response.headers.get('location') ?? '';
    this.page = { status: response.status, headers: response.headers, html, text: textIn(html), location };
    return this.page;
  }

  get(path: string, headers: Readonly<Record<string, string>> = {}): Promise<ShownPage> {
    return this.#ask(path, { headers });
  }

  /** Without a token of its own it sends that of the page that is shown. */
  post(path: string, fields: Fields = {}, headers: Readonly<Record<string, string>> = {}): Promise<ShownPage> {
    const form = new URLSearchParams({ token: this.hidden('token') });
    for (const [name, value] of Object.entries(fields)) {
      form.delete(name);
      for (const one of typeof value === 'string' ? [value] : value) form.append(name, one);
    }
    return this.#ask(path, { method: 'POST', body: form, headers });
  }

  /** Opens a page, sends its form, and follows where that leads within the console. */
  async send(page: string, action: string, fields: Fields = {}): Promise<ShownPage> {
    const shown = await this.get(page);
    assert.equal(shown.status, 200, shown.text);
    const sent = await this.post(action, fields);
    if (sent.status !== 303) return sent;
    return this.get(sent.location);
  }

  signIn(email: string, password: string, next?: string): Promise<ShownPage> {
    const to = next === undefined ? '/sign-in' : `/sign-in?${new URLSearchParams({ next })}`;
    return this.send(to, '/sign-in', { email, password, ...(next === undefined ? {} : { next }) });
  }
}

/** A person of the world's workspace, signed in. */
export const signedIn = async (world: World, ask: Parameters<typeof personOf>[1] = {}) => {
  const person = await personOf(world, ask);
  const browser = new ConsoleBrowser(() => world.deps.consoleUrl());
  const home = await browser.signIn(person.email, person.password);
  assert.equal(home.status, 200, home.text);
  return { ...person, browser };
};
