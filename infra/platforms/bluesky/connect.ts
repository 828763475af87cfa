import type { Connected, FormConnector } from '#contracts/ports/connector.ts';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import { type Members, membersOf, parsed, textIn } from '../shared/members.ts';
import { isHandle } from './facets.ts';
import { isDid, resolveHandle, serviceOf } from './people.ts';
import { credentialOf } from './session.ts';
import { xrpc } from './xrpc.ts';

/**
 * Connects an account by an app password, which its owner makes under Settings → Privacy and security → App passwords. The
 * password buys a session and is forgotten.
 */

export interface ConnectOptions {
  readonly http: NetworkHttp;
  /** Resolves handles. Default `https://public.api.bsky.app`. */
  readonly resolver?: string;
  /** Documents of `did:plc`. Default `https://plc.directory`. */
  readonly directory?: string;
}

const publicResolver = 'https://public.api.bsky.app';
const subject: NetworkCall['subject'] = { accountId: '', targetId: null };
const refused = (words: string): Connected => ({ kind: 'refused', words });
const later = 'Bluesky does not answer now. Try again in a few minutes.';

/** As a person may read it: a server may be anybody's, and says what it likes. */
const shown = (text: string): string =>
  [...text.slice(0, 1_000).replaceAll(/\p{C}/gu, ' ').trim()].slice(0, 64).join('');

const documentOf = async (options: ConnectOptions, did: string, signal: AbortSignal): Promise<Members | null> => {
  const { http, directory = 'https://plc.directory' } = options;
  const url = did.startsWith('did:web:')
    ? `https://${did.slice('did:web:'.length)}/.well-known/did.json`
    : `${directory}/${encodeURIComponent(did)}`;
  const headers = { accept: 'application/did+json, application/json' };
  const result = await http.send({ method: 'GET', url, headers, body: [], subject }, signal);
  return result.kind === 'answered' && result.status === 200 ? parsed(result.body) : null;
};

/** The name that the account shows; null: it has none, or does not say. */
export const shownNameOf = async (
  { http }: Pick<ConnectOptions, 'http'>,
  service: string,
  did: string,
  signal: AbortSignal,
): Promise<string | null> => {
  // The record of the profile, which is public: the app view's own answer would need the app view.
  const params = { repo: did, collection: 'app.bsky.actor.profile', rkey: 'self' };
  const result = await xrpc(http, { service, nsid: 'com.atproto.repo.getRecord', params, subject }, signal);
  const profile = result.kind === 'ok' ? membersOf(result.data.value) : null;
  return shown(textIn(profile, 'displayName') ?? '') || null;
};

/** A server may claim any handle, also that of a stranger: only a handle that resolves to the did is shown. */
const usernameOf = async (
  { http, resolver = publicResolver }: ConnectOptions,
  did: string,
  claimed: readonly string[],
  signal: AbortSignal,
): Promise<string | null> => {
  for (const handle of new Set(claimed.map((one) => one.toLowerCase()).filter(isHandle))) {
    if ((await resolveHandle(http, resolver, handle, subject, signal)) === did) return handle;
  }
  return null;
};

/** @param handle with or without `@`; a did is taken too */
export const connectByAppPassword = async (
  options: ConnectOptions,
  { handle: typed, password }: { readonly handle: string; readonly password: string },
  signal: AbortSignal,
): Promise<Connected> => {
  const { http, resolver = publicResolver } = options;
  const handle = typed.trim().replace(/^@/, '');
  if (handle === '' || handle.length > 253) return refused('Give the handle of the account, such as name.bsky.social.');
  const did = isDid(handle) ? handle : await resolveHandle(http, resolver, handle.toLowerCase(), subject, signal);
  if (did === null) return refused('Bluesky knows no account of this handle. Write it in full: name.bsky.social.');
  const service = serviceOf(await documentOf(options, did, signal));
  if (service === null) return refused(later);
  const input = { identifier: did, password };
  const nsid = 'com.atproto.server.createSession';
  const result = await xrpc(http, { service, nsid, input, subject, isSecret: true }, signal);
  if (result.kind === 'refused') {
    if (result.error === 'AuthFactorTokenRequired') {
      return refused(
        'This is the password of the account itself. Make an app password under Settings, Privacy and security, and give that.',
      );
    }
    if (result.error === 'AccountTakedown') return refused('Bluesky has suspended this account.');
    if (result.status === 429) return refused('Too many tries for this account. Try again in five minutes.');
    if (result.status < 500)
      return refused('Bluesky does not take this password for this account. Give an app password of it.');
  }
  if (result.kind !== 'ok') return refused(later);
  const credential = credentialOf(service, result.data);
  if (credential === null || textIn(result.data, 'did') !== did) return refused(later);
  const username = await usernameOf(options, did, [textIn(result.data, 'handle') ?? '', handle], signal);
  const displayName = await shownNameOf(options, service, did, signal);
  return {
    kind: 'connected',
    credential,
    profile: { externalId: did, username, displayName, avatarUrl: null, scopes: ['app_password'], consentEndsAt: null },
  };
};

/** The form of the page behind a connect link. */
export const blueskyConnector = (options: ConnectOptions): FormConnector => ({
  kind: 'form',
  title: 'With an app password',
  usernameLabel: 'Handle, such as name.bsky.social',
  secrets: [
    {
      name: 'password',
      label: 'App password',
      hint: 'made in Bluesky under Settings, Privacy and security, App passwords',
      maxLength: 200,
    },
  ],
  connect: (handle, secrets, signal) =>
    connectByAppPassword(options, { handle, password: secrets.get('password') ?? '' }, signal),
});
