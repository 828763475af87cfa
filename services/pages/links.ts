import type { Context, Middleware } from 'koa';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Allowances } from '#services/api/call/allowances.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { errors } from '#services/api/call/errors.ts';
import { toProblem } from '#services/api/call/problems.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { escapeHtml, page, pageHeaders } from '#services/shell/page.ts';

/** What every page behind a link has in common: the token in its address is the only permission; no cookie, no script. */

/** One page for every link that does not work, so that the page does not reveal why. */
const missingPage = page(
  'Link not found',
  '<h1>This link does not work</h1>\n<p>It may have expired or been withdrawn. Ask for a new one.</p>',
);

const messagePage = (title: string, text: string): string =>
  page(title, `<h1>${escapeHtml(title)}</h1>\n<p>${escapeHtml(text)}</p>`);

export const show = (ctx: Context, status: number, html: string, headers = pageHeaders): void => {
  ctx.status = status;
  ctx.set(headers);
  ctx.type = 'text/html';
  ctx.body = html;
};

export const show404 = (ctx: Context): void => show(ctx, errors.not_found.status, missingPage);

/** Answers an error with a page for a person, with the same codes and statuses as the API. */
export const forPeople =
  (deps: Deps, allowances: Allowances): Middleware =>
  async (ctx, next) => {
    try {
      await allowances.of(stateOf(ctx)).spend(ctx, 1);
      await next();
    } catch (error) {
      const { code, headers } = toProblem(error);
      if (code === 'not_found') return show404(ctx);
      if (code === 'internal') deps.logger.error({ correlationId: stateOf(ctx).correlationId, err: error }, 'failed');
      ctx.set(headers);
      show(ctx, errors[code].status, messagePage(errors[code].title, errors[code].about));
    }
  };

export const tooLate = (): never => {
  throw new Unavailable('The stores behind this page did not answer in time.');
};
