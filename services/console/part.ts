import type { Middleware } from 'koa';
import { toProblem } from '#services/api/call/problems.ts';
import type { Part } from '#services/api/parts.ts';
import { isHost } from '#services/auth/hosts.ts';
import type { ConsolePages } from './pages.ts';
import { isConsolePath } from './paths.ts';

/**
 * The console as a part of the api's server. On the host of the console it answers its own paths and leaves the others,
 * such as `/invite/…` and `/approval/…`, to the next. Where the api has the same host, the root and unknown paths are
 * the api's.
 */
export const consolePart =
  (): Part =>
  (tools): Middleware => {
    const { deps } = tools;
    let opened: Promise<ConsolePages> | null = null;
    // Loaded with the first request: a process whose console nobody opens saves the memory.
    const pages = (): Promise<ConsolePages> => {
      opened ??= import('./pages.ts').then(({ consolePages }) => consolePages(tools));
      return opened;
    };
    return async (ctx, next) => {
      if (!isHost(ctx.req.headers.host, deps.consoleUrl())) return next();
      const isShared = new URL(deps.consoleUrl()).host === new URL(deps.baseUrl()).host;
      if (isConsolePath(ctx.path) || (ctx.path === '/' && !isShared)) return (await pages()).serve(ctx);
      if (isShared || ctx.accepts('application/json', 'text/html') !== 'text/html') return next();
      try {
        await next();
      } catch (error) {
        if (toProblem(error).code !== 'not_found') throw error;
        await (await pages()).missing(ctx);
      }
    };
  };
