import { createHash, randomBytes } from 'node:crypto';
import type { ConsentConnector, FinishedConsent, KeptConsent, RefusedConnect } from '#contracts/ports/connector.ts';
import type { Json } from '#contracts/ports/platform.ts';
import { membersOf, textIn } from '../../shared/members.ts';
import { type ConnectOptions, shownNameOf } from '../connect.ts';
import { clientAt, documentsOf, metadataOf, type OurClient, type ProofKeys, scopes } from './client.ts';
import { fetchBy, NotAnswered } from './fetch.ts';
import { type ConsentSecret, credentialOfConsent, revokeConsent } from './tokens.ts';

/**
 * Connects an account by its owner's consent on the page of their own server (atproto.com, "OAuth"). The kept client of the
 * protocol finds the server, pushes the request, and checks who answered; it keeps nothing and calls nobody by itself.
 */

export interface ConsentOptions extends ConnectOptions {
  readonly keys: ProofKeys;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
}

const later = 'Bluesky does not answer now. Try again in a few minutes.';
const instead = 'You can connect with an app password instead.';

const refused = (words: string, operator?: string): RefusedConnect => ({
  kind: 'refused',
  words,
  ...(operator === undefined ? {} : { operator }),
});

/** Loaded at the first consent: it is large, and most processes never need it. */
const library = () => import('@atproto/oauth-client-node');

const named = (error: unknown): { readonly name: string; readonly message: string; readonly isSilent: boolean } => {
  let deepest = error;
  let isSilent = false;
  for (let depth = 0; depth < 10 && deepest instanceof Error; depth += 1) {
    if (deepest instanceof NotAnswered) isSilent = true;
    if (!(deepest.cause instanceof Error)) break;
    deepest = deepest.cause;
  }
  const last = deepest instanceof Error ? deepest : new Error(String(deepest));
  return { name: last.name, message: last.message.slice(0, 300), isSilent };
};

/** How the client is made for one consent. `kept` is what it wants to find again when the browser has come back. */
const clientFor = async (
  { http, resolver = 'https://public.api.bsky.app', directory = 'https://plc.directory' }: ConsentOptions,
  ours: OurClient,
  asked: { readonly redirectUri: string; readonly state: string; readonly kept?: Json },
  signal: AbortSignal,
) => {
  const { NodeOAuthClient, JoseKey, requestLocalLock } = await library();
  let kept = asked.kept;
  let session: Json | undefined;
  const { origin } = new URL(asked.redirectUri);
  const clientMetadata =
    ours.kind === 'loopback'
      ? {
          client_id: ours.id,
          ...{ scope: scopes.join(' '), redirect_uris: [asked.redirectUri], response_types: ['code'] },
          ...{ grant_types: ['authorization_code', 'refresh_token'], token_endpoint_auth_method: 'none' },
          ...{ application_type: 'native', dpop_bound_access_tokens: true },
        }
      : metadataOf(origin);
  const keyset =
    ours.kind === 'loopback'
      ? {}
      : { keyset: await Promise.all(ours.keys.map((key) => JoseKey.fromJWK({ ...key } as Record<string, unknown>))) };
  const client = new NodeOAuthClient({
    clientMetadata: clientMetadata as never,
    ...keyset,
    handleResolver: resolver,
    plcDirectoryUrl: directory,
    // Servers on this machine, in tests and trials.
    allowHttp: directory.startsWith('http:'),
    runtimeImplementation: {
      requestLock: requestLocalLock,
      // Every server takes these (atproto.com, "OAuth"); other kinds would need another library to sign.
      createKey: () => JoseKey.generate(['ES256']),
      getRandomValues: randomBytes,
      digest: (bytes: Uint8Array, { name }: { readonly name: string }) => createHash(name).update(bytes).digest(),
    },
    // The client makes a state of its own; the browser carries ours.
    fetch: fetchBy(http, (form) => form.has('state') && form.set('state', asked.state), signal),
    stateStore: {
      get: async () => kept as never,
      set: async (_: string, value: unknown) => {
        kept = JSON.parse(JSON.stringify(value)) as Json;
      },
      del: async () => {},
    },
    sessionStore: {
      get: async () => undefined,
      set: async (_: string, value: unknown) => {
        session = JSON.parse(JSON.stringify(value)) as Json;
      },
      del: async () => {},
    },
  });
  return { client, kept: () => kept, session: () => session };
};

const whyNotBegun = (error: unknown): RefusedConnect => {
  const { name, message, isSilent } = named(error);
  if (isSilent) return refused(later);
  if (/resolve identity|handle|did/i.test(message) && !/client/i.test(message))
    return refused(`Bluesky knows no account of this handle. Write it in full: name.bsky.social.`);
  if (/invalid_client|client_id|client metadata|redirect_uri/i.test(message))
    return refused(later, `Bluesky refuses our client: ${name}: ${message}`);
  return refused(`The server of this account takes no consent for Postline. ${instead}`, `${name}: ${message}`);
};

const whyNotFinished = (error: unknown, answer: ReadonlyMap<string, string>): RefusedConnect => {
  if (answer.get('error') === 'access_denied') {
    return refused('You did not allow it on the page of Bluesky. Nothing was connected; you can try again.');
  }
  const { name, message, isSilent } = named(error);
  if (isSilent) return refused(later);
  if (answer.get('error') === 'invalid_client' || /invalid_client/.test(message)) {
    return refused(later, `Bluesky refuses our client: ${name}: ${message}`);
  }
  return refused(`Bluesky did not confirm the consent. Try again. ${instead}`);
};

const secretOf = (
  session: Json | undefined,
  server: {
    readonly token_endpoint: string;
    readonly revocation_endpoint?: string | undefined;
    readonly issuer: string;
  },
  clientId: string,
  now: number,
): ConsentSecret | null => {
  const data = membersOf(session ?? null);
  const tokens = membersOf(data?.tokenSet ?? null);
  const dpopKey = membersOf(data?.dpopJwk ?? null);
  const [accessToken, refreshToken] = [textIn(tokens, 'access_token'), textIn(tokens, 'refresh_token')];
  const [did, audience] = [textIn(tokens, 'sub'), textIn(tokens, 'aud')];
  if (dpopKey === null || accessToken === null || refreshToken === null || did === null || audience === null)
    return null;
  const method = membersOf(data?.authMethod ?? null);
  return {
    ...{ service: new URL(audience).origin, did, accessToken, refreshToken, dpopKey },
    accessUntil: textIn(tokens, 'expires_at') ?? new Date(now + 300_000).toISOString(),
    ...{ issuer: server.issuer, tokenEndpoint: server.token_endpoint },
    revocationEndpoint: server.revocation_endpoint ?? null,
    ...{ clientId, kid: textIn(method, 'kid') },
  };
};

/** A scope that the owner left out would be found at the first post. */
const missing = (granted: readonly string[]): readonly string[] => scopes.filter((one) => !granted.includes(one));

export const blueskyConsent = (options: ConsentOptions): ConsentConnector => {
  const { http, keys, clock } = options;
  const finish = async (
    returned: {
      readonly answer: ReadonlyMap<string, string>;
      readonly kept: KeptConsent;
      readonly redirectUri: string;
    },
    signal: AbortSignal,
  ): Promise<FinishedConsent> => {
    const { answer, kept, redirectUri } = returned;
    const ours = clientAt(redirectUri, keys);
    if ('wrong' in ours) return refused(later, ours.wrong);
    const state = answer.get('state') ?? '';
    const made = await clientFor(options, ours, { redirectUri, state, kept: kept.client ?? null }, signal);
    try {
      const { session } = await made.client.callback(new URLSearchParams([...answer]), {
        redirect_uri: redirectUri as never,
      });
      const now = clock();
      const secret = secretOf(made.session(), session.server.serverMetadata, ours.id, now);
      if (secret === null) return refused(`Bluesky did not confirm the consent. Try again. ${instead}`);
      const granted = (textIn(membersOf(membersOf(made.session() ?? null)?.tokenSet ?? null), 'scope') ?? '').split(
        ' ',
      );
      if (missing(granted).length > 0) {
        await revokeConsent({ http, keys }, secret, { accountId: '', targetId: null }, signal);
        return refused('Postline may not post there: allow all that the page of Bluesky asks for. Try again.');
      }
      const { handle } = await made.client.identityResolver.resolve(secret.did, { signal });
      const profile = {
        externalId: secret.did,
        username: handle === 'handle.invalid' ? null : handle,
        displayName: await shownNameOf(options, secret.service, secret.did, signal),
        ...{ avatarUrl: null, scopes: granted },
        consentEndsAt: new Date(now + (secret.kid === null ? 14 : 730) * 86_400_000).toISOString(),
      };
      return { kind: 'accounts', accounts: [{ profile, credential: credentialOfConsent(secret, now) }] };
    } catch (error) {
      return whyNotFinished(error, answer);
    }
  };
  return {
    kind: 'consent',
    title: 'By signing in there',
    usernameLabel: 'Handle, such as name.bsky.social',
    begin: async ({ username, redirectUri, state }, signal) => {
      const ours = clientAt(redirectUri, keys);
      if ('wrong' in ours) return refused(`This does not work here yet. ${instead}`, ours.wrong);
      const handle = (username ?? '').trim().replace(/^@/, '');
      if (handle === '' || handle.length > 253 || handle.includes('/'))
        return refused('Give the handle of the account, such as name.bsky.social.');
      try {
        const made = await clientFor(options, ours, { redirectUri, state }, signal);
        const url = await made.client.authorize(handle, { signal, redirect_uri: redirectUri as never });
        return { kind: 'begun', url: url.href, kept: { client: made.kept() ?? null } };
      } catch (error) {
        return whyNotBegun(error);
      }
    },
    finish,
    documents: (origin) => documentsOf(origin, keys),
  };
};
