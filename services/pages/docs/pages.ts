import { readFile } from 'node:fs/promises';
import Router from '@koa/router';
import type { Context, Middleware } from 'koa';
import type { Allowances } from '#services/api/call/allowances.ts';
import type { Deps } from '#services/api/call/deps.ts';
import { Refusal } from '#services/api/call/refusal.ts';
import { stateOf } from '#services/api/http/every-request.ts';
import type { Contract } from './contract.ts';
import { readGuides } from './guides.ts';
import { docsHeaders, docsPage, guidePath, paths, readViewer, startScript } from './page.ts';
import { type Prepared, prepare, sendPrepared } from './prepared.ts';
import { referenceOf } from './reference.ts';

/** GET /docs: the reference for people. Every file of it is made once and needs no token. */

const emitted = new URL('../../../contracts/openapi.json', import.meta.url);

type Files = Readonly<Record<string, Prepared>>;

const script = 'text/javascript; charset=utf-8';

const prepareFiles = async (baseUrl: string): Promise<Files> => {
  const contract = JSON.parse(await readFile(emitted, 'utf8')) as Contract;
  const guides = await readGuides();
  const exampleUrl = contract.servers[0]?.url ?? '';
  const viewer = await prepare(script, await readViewer());
  const reference = await prepare('application/json; charset=utf-8', referenceOf(contract, guides, baseUrl));
  const start = await prepare(script, startScript(`${paths.reference}?v=${reference.version}`));
  const versions = { viewer: viewer.version, start: start.version, reference: reference.version };
  const page = await prepare('text/html; charset=utf-8', docsPage(contract.info.title, guides, versions));
  const ofGuides = await Promise.all(
    guides.map(async ({ name, title, text }) => {
      const markdown = `# ${title}\n\n${text}\n`.replaceAll(exampleUrl, baseUrl);
      // Browsers show plain text and save Markdown.
      return [guidePath(name), await prepare('text/plain; charset=utf-8', markdown)] as const;
    }),
  );
  return {
    [paths.page]: page,
    [paths.viewer]: viewer,
    [paths.start]: start,
    [paths.reference]: reference,
    ...Object.fromEntries(ofGuides),
  };
};

/** Made at the first request, because most processes of a test never get one. A failure is not kept. */
const lazily = (make: () => Promise<Files>): (() => Promise<Files>) => {
  let made: Promise<Files> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
};

export const docsPages = (deps: Deps, allowances: Allowances): Middleware => {
  const files = lazily(() => prepareFiles(deps.baseUrl()));
  const router = new Router({ strict: true, sensitive: true });
  const send = async (ctx: Context): Promise<void> => {
    await allowances.of(stateOf(ctx)).spend(ctx, 1);
    const file = (await files())[ctx.path];
    if (file === undefined) throw new Refusal('not_found', 'There is no such path.');
    ctx.set(docsHeaders);
    sendPrepared(ctx, file);
  };
  router.get(paths.page, send);
  router.get('/docs/{*file}', send);
  return router.routes() as Middleware;
};
