import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import { found, noAnswer, nobody } from '../shared/findings.ts';
import { parsed } from '../shared/members.ts';
import type { ProofKeys } from './oauth/client.ts';
import { examineClient } from './oauth/doctor.ts';
import { xrpc } from './xrpc.ts';

/** The three servers that Bluesky needs beside those of the accounts, and our client. */

export interface BlueskyDoctorOptions {
  readonly http: NetworkHttp;
  readonly config: {
    readonly blueskyResolver: string;
    readonly blueskyDirectory: string;
    readonly blueskyAppView: string;
    readonly blueskyOauthKeys: ProofKeys | null;
  };
  readonly origin: string | null;
}

/** Bluesky's own account. A server may not know it: what it answers then has the form of the protocol, too. */
const knownHandle = 'bsky.app';
const knownDid = 'did:plc:z72i7hdynmk6r22z27h6tvur';

const speaks = (
  about: string,
  server: string,
  setting: string,
  { status, isProtocol }: { readonly status: number; readonly isProtocol: boolean },
): Finding => {
  if (isProtocol && status < 500 && status !== 429) return found('ok', about, `${server} answers.`);
  const words = `${server} answers ${status}${isProtocol ? '' : ', in another form than that of the protocol'}.`;
  return status === 429 || status >= 500
    ? found('cannot_tell', about, words, 'Ask again in some minutes.')
    : found('fix', about, words, `Set ${setting} to the origin of a server of that kind, or leave it out.`);
};

export const examineBluesky = (
  { http, config, origin }: BlueskyDoctorOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const { blueskyResolver, blueskyDirectory, blueskyAppView } = config;
  const ofXrpc = async (
    about: string,
    service: string,
    setting: string,
    nsid: string,
    params: Record<string, string>,
  ) => {
    const result = await xrpc(http, { service, nsid, params, subject: nobody }, signal);
    if (result.kind === 'ok') return speaks(about, service, setting, { status: 200, isProtocol: true });
    if (result.kind === 'refused') {
      return speaks(about, service, setting, { status: result.status, isProtocol: result.error !== '' });
    }
    return noAnswer(about, service, result, setting);
  };
  const ofDirectory = async (): Promise<Finding> => {
    const [about, setting] = ['directory of identities', 'BLUESKY_DIRECTORY'] as const;
    const url = `${blueskyDirectory}/${encodeURIComponent(knownDid)}`;
    const headers = { accept: 'application/did+json, application/json' };
    const result = await http.send({ method: 'GET', url, headers, body: [], subject: nobody }, signal);
    if (result.kind !== 'answered') return noAnswer(about, blueskyDirectory, result, setting);
    const body = parsed(result.body);
    const isProtocol = typeof body?.id === 'string' || typeof body?.message === 'string';
    return speaks(about, blueskyDirectory, setting, { status: result.status, isProtocol });
  };
  return Promise.all([
    examineClient({ http, keys: config.blueskyOauthKeys, origin }, signal),
    ofXrpc(
      ...(['resolver of handles', blueskyResolver, 'BLUESKY_RESOLVER'] as const),
      ...(['com.atproto.identity.resolveHandle', { handle: knownHandle }] as const),
    ),
    ofDirectory(),
    ofXrpc(
      ...(['app view', blueskyAppView, 'BLUESKY_APP_VIEW'] as const),
      ...(['app.bsky.actor.getProfile', { actor: knownHandle }] as const),
    ),
  ]);
};
