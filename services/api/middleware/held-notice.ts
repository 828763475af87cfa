import type { Context, Middleware } from 'koa';
import type { PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Deps } from '../deps.ts';
import { stateOf } from '../state.ts';

/** Every page says that publishing is held, for all workspaces or for the one that the page is about. */

const words = 'Publishing is held: nothing goes out until an operator resumes it. What is due goes out then.';
const notice = `<p class="banner" role="status"><strong>Publishing is held</strong>${words}</p>`;

/** The page with the notice as the first thing of its main part; a page without one stays as it is. */
const withNotice = (page: string): string => {
  const main = page.indexOf('<main');
  const end = main === -1 ? -1 : page.indexOf('>', main);
  return end === -1 ? page : `${page.slice(0, end + 1)}\n${notice}${page.slice(end + 1)}`;
};

/** The workspace is known once the page is made. */
const isHeld = async (hold: PublishingHold, ctx: Context): Promise<boolean> => {
  const { pageOf } = stateOf(ctx);
  return (pageOf === null ? await hold.ofAll() : await hold.of(pageOf)) !== null;
};

export const heldNotice =
  ({ hold, logger }: Pick<Deps, 'hold' | 'logger'>): Middleware =>
  async (ctx, next) => {
    await next();
    if (hold === undefined || ctx.response.type !== 'text/html' || typeof ctx.body !== 'string') return;
    try {
      if (await isHeld(hold, ctx)) ctx.body = withNotice(ctx.body);
    } catch (error) {
      logger.warn({ err: error }, 'whether publishing is held could not be read; a page does not tell it');
    }
  };
