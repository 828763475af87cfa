import { randomBytes } from 'node:crypto';
import type { Context } from 'koa';
import { attemptMs } from '#contracts/ports/connect-attempts.ts';
import type { Deps } from '../call/deps.ts';

/**
 * The cookie that binds attempts to the browser that began them: an answer of a network that reaches another browser
 * opens nothing there. Over https its name begins with `__Host-`, so that no other host and no plain connection can set
 * it.
 */

const isSecure = ({ consoleUrl }: Deps): boolean => consoleUrl().startsWith('https:');
const nameOf = (deps: Deps): string => (isSecure(deps) ? '__Host-connect' : 'connect');

/** The form of what follows. */
export const isSecretText = (text: unknown): text is string => typeof text === 'string' && /^[\w-]{43}$/.test(text);
export const newSecretText = (): string => randomBytes(32).toString('base64url');

/** Null: the browser has begun nothing. */
export const browserOf = (deps: Deps, ctx: Context): string | null => {
  const value = ctx.cookies.get(nameOf(deps));
  return isSecretText(value) ? value : null;
};

/** The browser's own text, which it keeps as long as its newest attempt. */
export const keepBrowser = (deps: Deps, ctx: Context): string => {
  const value = browserOf(deps, ctx) ?? newSecretText();
  const parts = [`${nameOf(deps)}=${value}`, 'Path=/', `Max-Age=${attemptMs / 1_000}`, 'HttpOnly', 'SameSite=Lax'];
  ctx.append('Set-Cookie', [...parts, ...(isSecure(deps) ? ['Secure'] : [])].join('; '));
  return value;
};
