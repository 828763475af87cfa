import type { Context } from 'koa';
import { escapeHtml, page, pageHeaders } from '#services/shell/page.ts';

/** The page that a person sees where an authorization cannot go on and there is no app to send them back to. */

const title = 'The app could not be connected';

/** A page shows no more of a text than this. */
const maxText = 2_000;

const shown = (text: string): string => escapeHtml(text.slice(0, maxText));

/** @param why a sentence without anything that a link could carry to the person as if we said it */
export const showError = (ctx: Context, status: number, code: string, why: string): void => {
  ctx.status = status;
  ctx.set({ ...pageHeaders, 'Cache-Control': 'no-store' });
  ctx.type = 'text/html; charset=utf-8';
  ctx.body = page(
    title,
    `<h1>${title}</h1>
<p>${shown(why)}</p>
<p>Go back to the app and connect it again.</p>
<p><code>${shown(code)}</code></p>`,
  );
};
