import { createHash } from 'node:crypto';
import { style } from './page-style.ts';

/** The few pages for people: one template, no script, nothing loaded but the files of a post. */

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (one) => entities[one] ?? one);

const styleHash = createHash('sha256').update(style).digest('base64');

/** In the page itself: a browser asks for an icon of its own accord, which our policy refuses or the server lacks. */
export const icon = Buffer.from(
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><rect width="16" height="16" rx="4" fill="#2b4acb"/>' +
    '<path d="M4 8.5l2.7 2.7L12 5.6" fill="none" stroke="#fff" stroke-width="2"/></svg>',
).toString('base64');

/**
 * Sent with every page. `form-action 'self'`: a form goes back to us and nowhere else. `data:` is for the icon.
 * @param origins from which pictures and videos are loaded
 * @param more `leadsTo`: where else a form may end, as sources of the policy. Chromium holds `form-action` against the
 *   whole chain of redirects after the form, and stops without a word to the person.
 */
export const pageHeadersWith = (
  origins: readonly string[],
  { leadsTo = [] }: { readonly leadsTo?: readonly string[] } = {},
): Readonly<Record<string, string>> => {
  const files = origins.length === 0 ? '' : ` media-src ${origins.join(' ')};`;
  const pictures = ` img-src ${[...origins, 'data:'].join(' ')};`;
  const forms = ` form-action ${["'self'", ...leadsTo].join(' ')};`;
  return {
    'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${styleHash}';${pictures}${files}${forms} base-uri 'none'; frame-ancestors 'none'`,
    'Referrer-Policy': 'no-referrer',
    'X-Frame-Options': 'DENY',
  };
};
export const pageHeaders = pageHeadersWith([]);

/**
 * Why the form was refused. It takes the focus as the page opens, so that a screen reader begins there and the next Tab
 * leads to the field below it.
 */
export const alertOf = (words: string | null): string =>
  words === null ? '' : `<p class="alert" tabindex="-1" autofocus role="alert">${escapeHtml(words)}</p>`;

/** @param at ISO 8601 */
export const timeOf = (at: string, timezone: string): string => {
  const format = new Intl.DateTimeFormat('en-GB', { dateStyle: 'full', timeStyle: 'short', timeZone: timezone });
  return `<time datetime="${at}">${escapeHtml(format.format(new Date(at)))}</time> (${escapeHtml(timezone)})`;
};

export const expiry = (at: string): string => `<p><small>This link works until ${timeOf(at, 'UTC')}.</small></p>`;

/** @param body trusted HTML: the caller has escaped every value in it. */
export const page = (title: string, body: string): string => `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="robots" content="noindex"><link rel="icon" href="data:image/svg+xml;base64,${icon}"><title>${escapeHtml(title)}</title><style>${style}</style></head>
<body><main>
${body}
</main></body>
</html>
`;
