import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Context, Middleware } from 'koa';
import type { Hold, PublishingHold } from '#runtime/work/publishing-hold.ts';
import { pageHeaders } from '#services/shell/page.ts';
import type { Allowances } from '../call/allowances.ts';
import { type CallOrigin, type CarryOutTools, carryOut, rememberWrites, warningsOf } from '../call/call.ts';
import type { Deps } from '../call/deps.ts';
import { isShort, jsonPieces } from '../call/json.ts';
import type { Pieces } from '../call/operation.ts';
import { operationOf, stateOf } from '../call/state.ts';

async function* enveloped({ head, items, tail }: Pieces, meta: unknown): AsyncGenerator<string> {
  yield `{"data":${head}`;
  let comma = '';
  for (const item of items()) {
    if (comma !== '') yield comma;
    comma = ',';
    yield* jsonPieces(item);
    await setImmediate();
  }
  yield `${tail},"meta":${JSON.stringify(meta)}}`;
}

/** A long text is written while it is sent. */
const written = (value: object): string | Readable =>
  isShort(value) ? JSON.stringify(value) : Readable.from(jsonPieces(value));

/** Makes the call and its answer: envelope, ETag, consistency token. */
export const answer =
  (tools: CarryOutTools, allowances: Allowances): Middleware =>
  async (ctx) => {
    const operation = operationOf(ctx);
    const state = stateOf(ctx);
    const { correlationId } = state;
    const origin: CallOrigin = {
      ifMatch: ctx.headers['if-match'],
      consistencyToken: ctx.get('X-Consistency-Token'),
      accepts: (...types) => ctx.accepts(...types) as string | false,
      charge: (requests) => allowances.owe(ctx, requests),
    };
    try {
      const made = await carryOut(tools, operation, state, origin);
      ctx.status = 200;
      if ('raw' in made) {
        if (made.raw.type === 'text/html') ctx.set(pageHeaders);
        ctx.body = made.raw.body;
        ctx.type = made.raw.type;
        return;
      }
      const meta = { correlationId, ...(await warningsOf(tools, operation, state, made)) };
      if ('items' in made) {
        ctx.body = Readable.from(enveloped(made, meta));
        if (made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
      } else if ('page' in made) {
        ctx.body = written({ data: made.data, page: made.page, meta });
      } else {
        ctx.body =
          'json' in made ? `{"data":${made.json},"meta":${JSON.stringify(meta)}}` : written({ data: made.data, meta });
        const tagged = operation.ifMatch === true || operation.etag === true;
        if (made.revision !== undefined && tagged) ctx.set('ETag', `"${made.revision}"`);
        if ('data' in made && made.replayed === true) ctx.set('Idempotent-Replayed', 'true');
      }
      ctx.type = 'application/json';
    } finally {
      const token = rememberWrites(tools, state);
      if (token !== null) ctx.set('X-Consistency-Token', token);
    }
  };

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
