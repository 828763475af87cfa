import type { Middleware } from 'koa';
import type { Allowances } from '../call/allowances.ts';
import type { Deps } from '../call/deps.ts';
import { notFound } from '../call/refusal.ts';
import { redirectUriOf } from './begin.ts';

/** What networks read from us before they send a browser back, such as the metadata of our client. */
export const documents =
  (deps: Deps, allowances: Allowances): Middleware =>
  async (ctx) => {
    await allowances.spend(ctx, 1);
    const { origin } = new URL(redirectUriOf(deps));
    const ways = Object.values(deps.live?.connectors ?? {}).flat();
    const found = ways.flatMap((way) => {
      const all = way.kind === 'consent' ? (way.documents?.(origin) ?? {}) : {};
      return Object.entries(all).filter(([path]) => path === ctx.params.document);
    });
    const [document] = found;
    if (document === undefined) throw notFound('document');
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = JSON.stringify(document[1]);
    ctx.type = 'application/json';
  };
