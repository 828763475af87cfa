import { randomBytes, timingSafeEqual } from 'node:crypto';
import type { Context } from 'koa';
import type { Secrets } from '#runtime/identity/secrets.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { readBody } from '#services/api/http/rest.ts';
import { readCookie, setCookie } from './cookies.ts';
import type { Console } from './deps.ts';

/**
 * Forms: how they are read, and how we know that the person sent one from a page of ours. Each form has a token that is
 * bound to the session or, before the sign-in, to a cookie of the browser.
 */

const formLimit = 16 * 1024;

/** @throws Refusal 415, 413 */
export const readForm = async (ctx: Context): Promise<URLSearchParams> => {
  if (typeof ctx.is('application/x-www-form-urlencoded') !== 'string') {
    throw new Refusal('unsupported_media_type', 'Send the form of this page.');
  }
  return new URLSearchParams((await readBody(ctx.req, formLimit)).toString('utf8'));
};

/** One line of text, trimmed; a longer one is cut, so that it fails where its length is checked. */
export const textOf = (form: URLSearchParams, name: string, most = 1_000): string =>
  (form.get(name) ?? '').trim().slice(0, most);

const macOf = (secrets: Secrets, bound: string, version: string): Buffer =>
  secrets.mac('forms', `token of forms\n${bound}`, version);

const tokenFor = (secrets: Secrets, bound: string): string =>
  `${secrets.current}.${macOf(secrets, bound, secrets.current).toString('base64url')}`;

const isTokenFor = (secrets: Secrets, bound: string, token: string): boolean => {
  const [version = '', mac = '', ...rest] = token.slice(0, 200).split('.');
  if (rest.length > 0 || !secrets.has(version)) return false;
  const given = Buffer.from(mac, 'base64url');
  const expected = macOf(secrets, bound, version);
  return given.length === expected.length && timingSafeEqual(given, expected);
};

const ofSession = (sessionId: string): string => `session\n${sessionId}`;
const ofBrowser = (nonce: string): string => `browser\n${nonce}`;
const nonceForm = /^[A-Za-z0-9_-]{22}$/;

const nonceOf = (it: Console, ctx: Context): string | null => {
  const nonce = readCookie(it, ctx, 'form');
  return nonce !== null && nonceForm.test(nonce) ? nonce : null;
};

/** The token for the forms of a page. Before the sign-in it gives the browser its cookie, where it has none. */
export const formTokenOf = (it: Console, ctx: Context, sessionId: string | null): string => {
  const { secrets } = it.deps;
  if (sessionId !== null) return tokenFor(secrets, ofSession(sessionId));
  const known = nonceOf(it, ctx);
  const nonce = known ?? randomBytes(16).toString('base64url');
  if (known === null) setCookie(it, ctx, 'form', nonce, null);
  return tokenFor(secrets, ofBrowser(nonce));
};

/**
 * What the browser itself says of where the form comes from. Old browsers send neither header. `Origin: null` is that of
 * a page without referrers, which `Sec-Fetch-Site` tells from a stranger's.
 */
const isFromUs = (ctx: Context, consoleUrl: string): boolean => {
  const site = ctx.get('Sec-Fetch-Site');
  const origin = ctx.get('Origin');
  if (site !== '' && site !== 'same-origin' && site !== 'none') return false;
  return origin === '' || origin === new URL(consoleUrl).origin || (origin === 'null' && site === 'same-origin');
};

/** The person may have left the page open while they signed in again elsewhere: nothing is lost, and nothing was done. */
export class StaleForm extends Error {}

/**
 * @param sessionId null: the form of a page before the sign-in
 * @throws StaleForm
 */
export const requireOwnForm = (it: Console, ctx: Context, form: URLSearchParams, sessionId: string | null): void => {
  const { secrets, consoleUrl } = it.deps;
  const token = form.get('token') ?? '';
  const nonce = nonceOf(it, ctx);
  const isOurs =
    sessionId === null
      ? nonce !== null && isTokenFor(secrets, ofBrowser(nonce), token)
      : isTokenFor(secrets, ofSession(sessionId), token);
  if (!isOurs || !isFromUs(ctx, consoleUrl())) throw new StaleForm();
};
