import { hash } from 'node:crypto';
import type { Context } from 'koa';

/** The page that a person sees where an authorization cannot go on and there is no app to send them back to. */

const style = `:root{color-scheme:light dark}body{font:1rem/1.55 system-ui,sans-serif;margin:0;overflow-wrap:anywhere}
main{max-width:36rem;margin:0 auto;padding:3rem 1rem}h1{font-size:1.5rem;line-height:1.25}code{opacity:.8}`;

const headers = {
  'Content-Security-Policy': `default-src 'none'; style-src 'sha256-${hash('sha256', style, 'base64')}'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'`,
  'X-Frame-Options': 'DENY',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-store',
};

const escaped = (text: string): string =>
  text.replace(/[&<>"']/g, (one) => `&#${one.codePointAt(0) ?? 0};`).slice(0, 2_000);

/** @param why a sentence without anything that a link could carry to the person as if we said it */
export const showError = (ctx: Context, status: number, code: string, why: string): void => {
  ctx.status = status;
  ctx.set(headers);
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<title>The app could not be connected</title><style>${style}</style></head>
<body><main><h1>The app could not be connected</h1><p>${escaped(why)}</p>
<p>Go back to the app and connect it again.</p><p><code>${escaped(code)}</code></p></main></body></html>`;
};
