/** Presigned URLs that the api serves: GET and HEAD of any store, and PUT of the disk store. */
import type { IncomingHttpHeaders } from 'node:http';
import {
  BlobError,
  type BlobInfo,
  type BlobStore,
  type ServedAnswer,
  type ServedBlobs,
  ServedRefusal,
} from '#contracts/ports/blob-store.ts';
import type { WriteOptions } from './disk-write.ts';
import { disposition } from './disposition.ts';
import type { Permission, SignedUrls } from './signed-urls.ts';

const PREFIX = '/blobs/';

type Request = Parameters<ServedBlobs['handle']>[0];
type PutPermission = Extract<Permission, { method: 'PUT' }>;
type GetPermission = Extract<Permission, { method: 'GET' }>;

type Store = Pick<BlobStore, 'head' | 'get'>;

type Put = (
  key: string,
  body: Request['body'],
  options: WriteOptions & { readonly contentType: string },
) => Promise<Pick<BlobInfo, 'etag'>>;

/** The longest upload, milliseconds: 5 GiB at 2 Mbit/s. */
const longestMs = 6 * 3_600_000;

/**
 * Uploads under way, by key. The newest upload to a key ends the older one: no caller fills the disk through one URL.
 */
type Uploads = Map<string, AbortController>;

/** @param put null: callers upload elsewhere */
export const serve = (store: Store, put: Put | null, urls: SignedUrls, uploads: Uploads = new Map()): ServedBlobs => ({
  prefix: PREFIX,
  handle: async (request) => {
    const method = request.method === 'HEAD' ? 'GET' : request.method;
    if (method !== 'PUT' && method !== 'GET') throw new ServedRefusal('method', 'This URL takes PUT, or GET and HEAD.');
    const [path = '', ...query] = request.url.split('?');
    const permission = urls.permission(method, path.slice(PREFIX.length), new URLSearchParams(query.join('?')));
    if (permission?.method === 'GET') return give(store, permission, request);
    if (permission !== null && put !== null) return receive(put, permission, request, uploads);
    throw new ServedRefusal('url_invalid', 'The URL was not made for this request, was altered, or has expired.');
  },
});

const header = ({ headers }: Request, name: keyof IncomingHttpHeaders & string): string | null => {
  const value = headers[name];
  return typeof value === 'string' ? value : null;
};

/** Characters of a Content-Type; URLs for longer ones are never presigned. */
const maxType = 200;

/** Types are compared without letter case and without the spaces around `;`, as servers read them. */
const plainType = (text: string): string =>
  text
    .toLowerCase()
    .split(';')
    .map((part) => part.trim())
    .join(';');

const receive = async (
  put: Put,
  { key, contentType, bytes }: PutPermission,
  request: Request,
  uploads: Uploads,
): Promise<ServedAnswer> => {
  const sent = header(request, 'content-type') ?? '';
  if (sent.length > maxType) throw new ServedRefusal('type', `A Content-Type may have ${maxType} characters.`);
  if (plainType(sent) !== plainType(contentType)) {
    throw new ServedRefusal('mismatch', `The URL was made for Content-Type: ${contentType}.`);
  }
  const encoding = header(request, 'content-encoding');
  if (encoding !== null && encoding !== 'identity') {
    throw new ServedRefusal('mismatch', 'Send the file as it is, without Content-Encoding.');
  }
  // A declared length is required: without it a wrong length shows only after all bytes arrived.
  if (header(request, 'content-length') !== String(bytes)) {
    throw new ServedRefusal('mismatch', `The URL was made for Content-Length: ${bytes}.`);
  }
  uploads.get(key)?.abort();
  const own = new AbortController();
  uploads.set(key, own);
  const signal = AbortSignal.any([own.signal, AbortSignal.timeout(longestMs)]);
  try {
    const { etag } = await put(key, request.body, { contentType, bytes, owned: true, signal });
    return { status: 200, headers: { ETag: quoted(etag), 'Content-Length': '0' }, body: null };
  } catch (error) {
    if (signal.aborted) throw new ServedRefusal('mismatch', 'The upload was started again, or took too long.');
    if (!(error instanceof BlobError) || error.code !== 'refused') throw error;
    throw new ServedRefusal('mismatch', 'The upload broke off.');
  } finally {
    if (uploads.get(key) === own) uploads.delete(key);
  }
};

const give = async (store: Store, { key, fileName }: GetPermission, request: Request): Promise<ServedAnswer> => {
  const info = await store.head(key);
  if (info === null) throw new ServedRefusal('not_found', 'There is no such file.');
  const headers = {
    ETag: quoted(info.etag),
    'Accept-Ranges': 'bytes',
    'Content-Type': info.contentType,
    'Content-Disposition': disposition(info.contentType, fileName),
    // No file is a page of ours: the browser must run nothing in it and guess no type.
    'X-Content-Type-Options': 'nosniff',
    'Content-Security-Policy': "default-src 'none'; sandbox",
    'Cross-Origin-Resource-Policy': 'cross-origin',
    'Referrer-Policy': 'no-referrer',
    'Cache-Control': 'private, max-age=300',
  };
  if (listed(header(request, 'if-none-match'), info)) return { status: 304, headers, body: null };
  const asked = applies(header(request, 'if-range'), info) ? header(request, 'range') : null;
  const range = asked === null ? null : rangeOf(asked, info.bytes);
  if (range === 'unsatisfiable') {
    return { status: 416, headers: { ...headers, 'Content-Range': `bytes */${info.bytes}` }, body: null };
  }
  const length = range === null ? info.bytes : range.end - range.start + 1;
  const sized = {
    ...headers,
    'Content-Length': String(length),
    ...(range === null ? {} : { 'Content-Range': `bytes ${range.start}-${range.end}/${info.bytes}` }),
  };
  const status = range === null ? 200 : 206;
  if (request.method === 'HEAD') return { status, headers: sized, body: null };
  const found = await store.get(key, range === null ? {} : { range });
  if (found.info.etag === info.etag) return { status, headers: sized, body: found.body };
  // The file was replaced after its info was read: that info no longer holds.
  found.body.destroy();
  return give(store, { method: 'GET', key, fileName }, request);
};

/** S3 tells etags with their quotes. */
const quoted = (etag: string): string => (etag.startsWith('"') ? etag : `"${etag}"`);

/** RFC 9110 13.1.2, compared weakly. */
const listed = (sent: string | null, { etag }: BlobInfo): boolean =>
  sent !== null &&
  (sent.trim() === '*' || sent.split(',').some((one) => one.trim().replace(/^W\//, '') === quoted(etag)));

/** If-Range: only for the exact file that the client has a part of; otherwise the whole file. */
const applies = (sent: string | null, { etag }: BlobInfo): boolean => sent === null || sent.trim() === quoted(etag);

/** One range; several, or a malformed one, mean the whole file (RFC 9110 14.2 lets a server ignore them). */
const rangeOf = (text: string, bytes: number): { start: number; end: number } | 'unsatisfiable' | null => {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(text.trim()) ?? [];
  if (first === '' && last === '') return null;
  if (first === '') {
    const start = Math.max(0, bytes - Number(last));
    return Number(last) === 0 || bytes === 0 ? 'unsatisfiable' : { start, end: bytes - 1 };
  }
  const start = Number(first);
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1);
  if (last !== '' && Number(last) < start) return null;
  return start >= bytes ? 'unsatisfiable' : { start, end };
};
