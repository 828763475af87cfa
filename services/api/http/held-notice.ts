import type { Context, Middleware } from 'koa';
import type { Hold, PublishingHold } from '#runtime/work/publishing-hold.ts';
import type { Deps } from '../call/deps.ts';
import { stateOf } from './correlation.ts';

/** Every page says that publishing is held, for all workspaces or for the one that the page is about. */

const words = 'Publishing is held: nothing goes out until an operator resumes it. What is due goes out then.';
const afterRestore =
  'This service was restored from an older copy. What may have gone out since then is looked for, and nothing else goes out until an operator resumes publishing.';
const noticeOf = (isRestored: boolean): string =>
  `<p class="banner" role="status"><strong>Publishing is held</strong>${isRestored ? afterRestore : words}</p>`;

/** The page with the notice as the first thing of its main part; a page without one stays as it is. */
const withNotice = (page: string, notice: string): string => {
  const main = page.indexOf('<main');
  const end = main === -1 ? -1 : page.indexOf('>', main);
  return end === -1 ? page : `${page.slice(0, end + 1)}\n${notice}${page.slice(end + 1)}`;
};

/** The workspace is known once the page is made. */
const heldIn = (hold: PublishingHold, ctx: Context): Promise<Hold | null> => {
  const { pageOf } = stateOf(ctx);
  return pageOf === null ? hold.ofAll() : hold.of(pageOf);
};

/** Whether a restore set the hold, or came while it was set. */
const isRestored = async (restores: Deps['restores'], { since }: Hold): Promise<boolean> => {
  const restore = (await restores?.newest()) ?? null;
  return restore !== null && (restore.completedAt === null || since === null || since <= restore.completedAt);
};

export const heldNotice =
  ({ hold, restores, logger }: Pick<Deps, 'hold' | 'restores' | 'logger'>): Middleware =>
  async (ctx, next) => {
    await next();
    if (hold === undefined || ctx.response.type !== 'text/html' || typeof ctx.body !== 'string') return;
    try {
      const held = await heldIn(hold, ctx);
      if (held !== null) ctx.body = withNotice(ctx.body, noticeOf(await isRestored(restores, held)));
    } catch (error) {
      logger.warn({ err: error }, 'whether publishing is held could not be read; a page does not tell it');
    }
  };
