import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { FindOutcome, FindRequest, ListedPost, Undecided } from '#contracts/ports/platform.ts';
import { permalinkOf } from '#domain/platforms/index.ts';
import { listIn, type Members, membersOf, textIn } from '../shared/members.ts';
import { failureOf, notReached } from './errors.ts';
import type { SessionSecret } from './session.ts';
import { type XrpcResult, xrpc } from './xrpc.ts';

/** Posts in a repository: written and read by their key. */

export const collection = 'app.bsky.feed.post';

/** Without `swapRecord`: the same record under the same key is no new version (com.atproto.repo.putRecord). */
export const writePost = (
  http: NetworkHttp,
  { service, did, token }: SessionSecret,
  key: string,
  record: Members,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<XrpcResult> =>
  xrpc(
    http,
    {
      ...{ service, nsid: 'com.atproto.repo.putRecord', token, subject },
      input: { repo: did, collection, rkey: key, record },
    },
    signal,
  );

/** Succeeds also where there is none (com.atproto.repo.deleteRecord). */
export const deletePost = (
  http: NetworkHttp,
  { service, did, token }: SessionSecret,
  key: string,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<XrpcResult> =>
  xrpc(
    http,
    {
      ...{ service, nsid: 'com.atproto.repo.deleteRecord', token, subject },
      input: { repo: did, collection, rkey: key },
    },
    signal,
  );

export type FoundPost =
  | { readonly kind: 'present'; readonly uri: string; readonly cid: string; readonly value: Members }
  | { readonly kind: 'absent' }
  | Undecided;

/** Reads without a token: a repository is public, also where the account's access has ended. */
export const findPost = async (
  http: NetworkHttp,
  { service, did, key }: { readonly service: string; readonly did: string; readonly key: string },
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<FoundPost> => {
  const nsid = 'com.atproto.repo.getRecord';
  const result = await xrpc(http, { service, nsid, params: { repo: did, collection, rkey: key }, subject }, signal);
  if (result.kind === 'refused') {
    return result.error === 'RecordNotFound' ? { kind: 'absent' } : { kind: 'undecided', failure: failureOf(result) };
  }
  if (result.kind !== 'ok') return { kind: 'undecided', failure: notReached(result.reason) };
  const [uri, cid, value] = [textIn(result.data, 'uri'), textIn(result.data, 'cid'), membersOf(result.data.value)];
  if (uri === null || cid === null || value === null) return { kind: 'undecided' };
  return { kind: 'present', uri, cid, value };
};

/** Records of one page, as many as the protocol gives; pages of one question; posts that are listed for it. */
const perPage = 100;
const maxPages = 20;
const maxFound = 20;

const filesOf = (record: Members): number => {
  const embed = membersOf(record.embed);
  const type = textIn(embed, '$type');
  if (type === 'app.bsky.embed.video') return 1;
  if (type === 'app.bsky.embed.images') return listIn(embed, 'images').length;
  return type === 'app.bsky.embed.gallery' ? listIn(embed, 'items').length : 0;
};

/**
 * The account's posts of that time with that text and as many files, which are no replies. Newest first, as the keys of
 * our records follow their time; those of other programs may not, so a page that is too old does not end the reading of
 * its own (com.atproto.repo.listRecords).
 */
export const listPosts = async (
  http: NetworkHttp,
  service: string,
  request: FindRequest,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<FindOutcome> => {
  const did = request.account.externalId;
  const [from, until] = [Date.parse(request.from), Date.parse(request.until)];
  const nsid = 'com.atproto.repo.listRecords';
  const posts: ListedPost[] = [];
  let cursor: string | null = null;
  for (let page = 0; page < maxPages; page += 1) {
    const params = { repo: did, collection, limit: String(perPage), ...(cursor === null ? {} : { cursor }) };
    const result = await xrpc(http, { service, nsid, params, subject }, signal);
    if (result.kind === 'refused') return { kind: 'undecided', failure: failureOf(result) };
    if (result.kind !== 'ok') return { kind: 'undecided', failure: notReached(result.reason) };
    let newest = Number.NEGATIVE_INFINITY;
    for (const one of listIn(result.data, 'records')) {
      const [uri, record] = [textIn(one, 'uri'), membersOf(one.value)];
      const createdAt = textIn(record, 'createdAt');
      const at = Date.parse(createdAt ?? '');
      if (!Number.isNaN(at)) newest = Math.max(newest, at);
      if (uri === null || record === null || createdAt === null || !(at >= from && at <= until)) continue;
      const isIt = textIn(record, 'text') === request.content && filesOf(record) === request.media.length;
      if (isIt && record.reply === undefined) posts.push(publishedAs(uri, did, new Date(at).toISOString()));
    }
    cursor = textIn(result.data, 'cursor');
    if (cursor === null || newest < from) return { kind: 'listed', posts: posts.toReversed().slice(0, maxFound) };
  }
  return posts.length === 0 ? { kind: 'undecided' } : { kind: 'listed', posts: posts.toReversed().slice(0, maxFound) };
};

/** `at://did/collection/key` → its parts; null: it is none of a post. */
export const partsOf = (uri: string): { readonly did: string; readonly key: string } | null => {
  const [, did = '', key = ''] =
    /^at:\/\/(did:[a-z]{1,20}:[^/]{1,300})\/app\.bsky\.feed\.post\/([^/]{1,100})$/.exec(uri) ?? [];
  return key === '' ? null : { did, key };
};

/** By the did: a handle may change hands. */
export const publishedAs = (uri: string, did: string, publishedAt: string) => {
  const key = partsOf(uri)?.key;
  const permalink =
    key === undefined ? null : permalinkOf('bluesky', { id: uri, code: key, username: null, account: did });
  return { externalId: uri, permalink, publishedAt };
};
