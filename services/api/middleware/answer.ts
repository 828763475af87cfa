import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import type { Middleware } from 'koa';
import { pageHeaders } from '../html.ts';
import { isShort, jsonPieces } from '../json-pieces.ts';
import type { Pieces } from '../operation.ts';
import { operationOf, stateOf } from '../state.ts';
import { type CallOrigin, type CarryOutTools, carryOut, rememberWrites, warningsOf } from '../steps/carry-out.ts';
import type { Allowances } from './rate-limit.ts';

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
