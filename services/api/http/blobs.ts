import type { Readable } from 'node:stream';
import type { Context, Middleware } from 'koa';
import {
  type ServedAnswer,
  type ServedBlobs,
  ServedRefusal,
  type ServedRefusalCode,
} from '#contracts/ports/blob-store.ts';
import type { ErrorCode } from '#domain/codes.ts';
import type { Allowance, Allowances } from '../call/allowances.ts';
import type { Deps } from '../call/deps.ts';
import { Refusal } from '../call/refusal.ts';
import { stateOf } from './every-request.ts';

/**
 * Presigned URLs that lead to the api itself. The signature is the only permission; without a token each
 * request counts against the address it comes from.
 */

const codes: Readonly<Record<ServedRefusalCode, ErrorCode>> = {
  url_invalid: 'upload_url_invalid',
  mismatch: 'upload_mismatch',
  type: 'unsupported_media_type',
  method: 'method_not_allowed',
  not_found: 'not_found',
};

/**
 * Any page may use a signed URL that it was given. No cookie or token counts here, so a page can do no more with a URL
 * than any other holder of it, and learns nothing about other URLs.
 */
const crossOrigin = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers': 'ETag, Content-Length, Content-Range, Accept-Ranges, Content-Disposition',
};
const preflight = {
  'Access-Control-Allow-Methods': 'PUT, GET, HEAD',
  'Access-Control-Allow-Headers': 'Content-Type, Range, If-Range, If-None-Match',
  'Access-Control-Max-Age': '86400',
};

export const blobs =
  ({ blobs: { served } }: Deps, { files }: Allowances): Middleware =>
  (ctx, next) =>
    isOf(served, ctx) ? answer(served, files, ctx) : next();

const isOf = ({ prefix }: ServedBlobs, ctx: Context): boolean => ctx.path.startsWith(prefix);

const answer = async (served: ServedBlobs, files: Allowance, ctx: Context): Promise<void> => {
  ctx.set(crossOrigin);
  if (ctx.method === 'OPTIONS') {
    ctx.set(preflight);
    ctx.status = 204;
    return;
  }
  await files.spend(ctx, stateOf(ctx).address, 1);
  const { status, headers, body } = await handled(served, ctx);
  // NOTE: Koa sets 204 for a body of null, and headers of its own for other bodies: status and headers are set after
  // the body.
  ctx.body = body ?? '';
  ctx.remove('Content-Type');
  ctx.status = status;
  ctx.set(headers);
};

const handled = async (served: ServedBlobs, ctx: Context): Promise<ServedAnswer> => {
  try {
    const { method, url = '', headers } = ctx.req;
    return await served.handle({ method: method ?? '', url, headers, body: ctx.req as Readable });
  } catch (error) {
    if (!(error instanceof ServedRefusal)) throw error;
    const allow = error.code === 'method' ? { Allow: 'PUT, GET, HEAD, OPTIONS' } : {};
    throw new Refusal(codes[error.code], error.message, { headers: allow });
  }
};
