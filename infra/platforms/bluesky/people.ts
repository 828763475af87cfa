import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import { listIn, type Members, textIn } from '../shared/members.ts';
import { xrpc } from './xrpc.ts';

/** Handles and dids (atproto.com, "Identity"). */

const didForm = /^did:(?:plc:[a-z2-7]{24}|web:[a-zA-Z0-9.-]{1,253})$/;
/** A text of 300 graphemes may hold more, and each costs a call. */
const maxMentions = 20;

export const isDid = (text: string): boolean => didForm.test(text);

export const resolveHandle = async (
  http: NetworkHttp,
  service: string,
  handle: string,
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<string | null> => {
  const nsid = 'com.atproto.identity.resolveHandle';
  const result = await xrpc(http, { service, nsid, params: { handle }, subject }, signal);
  const did = result.kind === 'ok' ? textIn(result.data, 'did') : null;
  return did !== null && isDid(did) ? did : null;
};

/** A handle that nobody has, or that is not found now, is left out: it stays plain text. */
export const resolveHandles = async (
  http: NetworkHttp,
  service: string,
  handles: readonly string[],
  subject: NetworkCall['subject'],
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> => {
  const different = [...new Set(handles)].slice(0, maxMentions);
  const dids = await Promise.all(different.map((handle) => resolveHandle(http, service, handle, subject, signal)));
  return new Map(
    different.flatMap((handle, at) => {
      const did = dids[at];
      return did === undefined || did === null ? [] : [[handle, did]];
    }),
  );
};

/** The origin of the server that holds a person's repository; null: the document names none. */
export const serviceOf = (document: Members | null): string | null => {
  for (const one of listIn(document, 'service').slice(0, 20)) {
    const [id, url] = [textIn(one, 'id'), textIn(one, 'serviceEndpoint')];
    if (id?.endsWith('#atproto_pds') && url !== null && URL.canParse(url)) return new URL(url).origin;
  }
  return null;
};
