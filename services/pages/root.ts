import Router from '@koa/router';
import type { Middleware } from 'koa';
import type { Allowances } from '#services/api/call/allowances.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import { operations } from '#services/api/operations.ts';
import { escapeHtml, page, pageHeaders } from '#services/shell/page.ts';

/**
 * GET /: what is where, as JSON or as a page for a person. Paths relative to the root of the server. Beside it stand the files by
 * which networks see that the host is the operator's, and again where the addresses of media files begin.
 */

interface Place {
  readonly name: string;
  readonly path: string;
  readonly about: string;
}

const served = (id: string, name: string, about: string): readonly Place[] =>
  operations.filter((one) => one.id === id).map(({ path }) => ({ name, path: `/v1${path}`, about }));

export const places: readonly Place[] = [
  { name: 'docs', path: '/docs', about: 'The reference and the guides' },
  ...served('getOpenapi', 'openapi', 'The contract, OpenAPI 3.1'),
  ...served('getAsyncapi', 'asyncapi', 'The webhook events, AsyncAPI 3.0'),
  ...served('listErrors', 'errors', 'The catalogue of error codes'),
  { name: 'live', path: '/livez', about: 'Whether the process runs' },
  { name: 'ready', path: '/readyz', about: 'Whether the process can serve calls' },
];

const title = 'Postline';

const json = JSON.stringify({ name: title, ...Object.fromEntries(places.map(({ name, path }) => [name, path])) });

const html = page(
  title,
  `<h1>${title}</h1>
<p>Social-media publishing and analytics for agencies, as a REST API.</p>
<ul>
${places.map(({ path, about }) => `<li><a href="${path}">${escapeHtml(about)}</a> <code>${path}</code></li>`).join('\n')}
</ul>`,
);

type Proving = Pick<Deps, 'siteProofs' | 'blobs'>;

export const rootPage = ({ siteProofs = [], blobs: { served } }: Proving, allowances: Allowances): Middleware => {
  const router = new Router({ strict: true, sensitive: true });
  router.get('/', async (ctx) => {
    await allowances.of(stateOf(ctx)).spend(ctx, 1);
    ctx.set('Vary', 'Accept');
    if (ctx.accepts('application/json', 'text/html') === 'text/html') {
      ctx.set(pageHeaders);
      ctx.body = html;
      ctx.type = 'text/html';
      return;
    }
    ctx.body = json;
    ctx.type = 'application/json';
  });
  for (const { name, text } of siteProofs) {
    for (const place of ['/', served.prefix]) {
      router.get(place + name, async (ctx) => {
        await allowances.of(stateOf(ctx)).spend(ctx, 1);
        ctx.set('Cache-Control', 'no-store');
        ctx.body = text;
        ctx.type = 'text/plain';
      });
    }
  }
  return router.routes() as Middleware;
};
