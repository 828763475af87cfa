import type { Context, Middleware } from 'koa';
import type { SelfReport } from '#runtime/process/telemetry.ts';

/** How long the api repeats its public answer before it checks the dependencies again, milliseconds. */
const readyStandsMs = 1_000;

/**
 * Whether the process is ready, without reasons. The api checks the dependencies at most once a second however many
 * callers ask, so that strangers cannot load the database.
 */
const readyOrNot = (report: SelfReport): (() => Promise<boolean>) => {
  let asking: Promise<boolean> | null = null;
  let until = Number.NEGATIVE_INFINITY;
  const ask = async (): Promise<boolean> => {
    try {
      return (await report.checks()).every((one) => one.ok);
    } catch {
      return false;
    } finally {
      until = performance.now() + readyStandsMs;
    }
  };
  return () => {
    if (performance.now() >= until) {
      until = Number.POSITIVE_INFINITY;
      asking = ask();
    }
    return asking ?? Promise.resolve(false);
  };
};

/** Answers strangers and load balancers with yes or no. The reasons and the figures are on OPS_PORT. */
export const health = (report: SelfReport): Middleware => {
  const isReady = readyOrNot(report);
  const answer = async (ctx: Context): Promise<void> => {
    const well = ctx.path === '/livez' || (await isReady());
    ctx.status = well ? 200 : 503;
    ctx.type = 'application/json';
    ctx.set('Cache-Control', 'no-store');
    ctx.body = JSON.stringify({ status: ctx.path === '/livez' ? 'alive' : well ? 'ready' : 'not_ready' });
  };
  return (ctx, next) => {
    const known = ctx.path === '/livez' || ctx.path === '/readyz';
    return known && (ctx.method === 'GET' || ctx.method === 'HEAD') ? answer(ctx) : next();
  };
};
