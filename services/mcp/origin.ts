/**
 * The pages that may call the server. Pages of any site over TLS may: each call needs a token that a page has only if a
 * person gave it one, and no cookie counts. A page without TLS may only be one of this machine, or of this installation,
 * because others on the way could have written it; so a page that reaches us under a name of its own (DNS rebinding) is
 * refused, as the protocol demands.
 */

const isLoopback = (hostname: string): boolean =>
  hostname === 'localhost' ||
  hostname.endsWith('.localhost') ||
  hostname === '[::1]' ||
  /^127\.\d+\.\d+\.\d+$/.test(hostname);

/** @param own addresses of this installation */
export const isAllowedOrigin = (origin: string, own: readonly string[]): boolean => {
  if (!URL.canParse(origin)) return false;
  const url = new URL(origin);
  // An origin and nothing more: no path, no user.
  if (url.origin !== origin.toLowerCase()) return false;
  if (url.protocol === 'https:') return true;
  return url.protocol === 'http:' && (isLoopback(url.hostname) || own.some((one) => new URL(one).host === url.host));
};
