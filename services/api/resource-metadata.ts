import Router from '@koa/router';
import type { Middleware } from 'koa';
import { metadataOf } from '#services/auth/protected-resource.ts';
import type { Deps } from './deps.ts';
import type { Allowances } from './middleware/rate-limit.ts';

/** The document by which an app that was refused finds the authorization server of the api. */
export const resourceMetadata = (deps: Deps, allowances: Allowances): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/.well-known/oauth-protected-resource/v1', async (ctx) => {
    const resource = deps.baseUrl();
    await allowances.spend(ctx, 1);
    const documentation = `${new URL(resource).origin}/docs`;
    ctx.set('Access-Control-Allow-Origin', '*');
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = JSON.stringify(metadataOf({ resource, name: 'Postline API', authUrl: deps.authUrl(), documentation }));
    ctx.type = 'application/json';
  });
  return router.routes() as Middleware;
};
