import type { Context, Middleware } from 'koa';
import { readyAnswer, type SelfReport } from '#runtime/process/telemetry.ts';

/** How long the api repeats its public answer before it checks the dependencies again, milliseconds. */
const readyStandsMs = 1_000;

type Answer = Partial<ReturnType<typeof readyAnswer>>;

/**
 * Whether the process is ready and publishes, without reasons. The api checks the dependencies at most once a second however many
 * callers ask, so that strangers cannot load the database.
 */
const readyOrNot = (report: SelfReport): (() => Promise<Answer>) => {
  let asking: Promise<Answer> | null = null;
  let until = Number.NEGATIVE_INFINITY;
  const ask = async (): Promise<Answer> => {
    try {
      return readyAnswer(await report.checks());
    } catch {
      return { status: 'not_ready' };
    } finally {
      until = performance.now() + readyStandsMs;
    }
  };
  return () => {
    if (performance.now() >= until) {
      until = Number.POSITIVE_INFINITY;
      asking = ask();
    }
    return asking ?? Promise.resolve({ status: 'not_ready' });
  };
};

/** Answers strangers and load balancers with yes or no, and whether publishing is held. The reasons and the figures are on OPS_PORT. */
export const health = (report: SelfReport): Middleware => {
  const ready = readyOrNot(report);
  const answer = async (ctx: Context): Promise<void> => {
    const alive = ctx.path === '/livez';
    const said = alive ? { status: 'alive' } : await ready();
    ctx.status = said.status === 'not_ready' ? 503 : 200;
    ctx.type = 'application/json';
    ctx.set('Cache-Control', 'no-store');
    ctx.body = JSON.stringify(said);
  };
  return (ctx, next) => {
    const known = ctx.path === '/livez' || ctx.path === '/readyz';
    return known && (ctx.method === 'GET' || ctx.method === 'HEAD') ? answer(ctx) : next();
  };
};
