import type { Context } from 'koa';
import type { Console } from './deps.ts';

/**
 * Cookies of the console. Over https their names begin with `__Host-`, so that no other host and no plain connection can
 * set them.
 */

/** The session; a browser that this person has signed in with; what forms before the sign-in are bound to. */
type CookieName = 'session' | 'device' | 'form';

const isSecure = ({ deps }: Console): boolean => deps.consoleUrl().startsWith('https:');

const nameOf = (it: Console, name: CookieName): string => (isSecure(it) ? `__Host-${name}` : name);

/** The longest value that is looked at. */
const maxLength = 500;

export const readCookie = (it: Console, ctx: Context, name: CookieName): string | null => {
  const value = ctx.cookies.get(nameOf(it, name));
  return value === undefined || value.length > maxLength ? null : value;
};

/**
 * @param value of base64url characters and dots
 * @param seconds until it ends; null: with the browser
 */
export const setCookie = (it: Console, ctx: Context, name: CookieName, value: string, seconds: number | null): void => {
  const age = seconds === null ? [] : [`Max-Age=${Math.floor(seconds)}`];
  const secure = isSecure(it) ? ['Secure'] : [];
  const parts = [`${nameOf(it, name)}=${value}`, 'Path=/', ...age, 'HttpOnly', 'SameSite=Lax', ...secure];
  ctx.append('Set-Cookie', parts.join('; '));
};

export const clearCookie = (it: Console, ctx: Context, name: CookieName): void => setCookie(it, ctx, name, '', 0);
