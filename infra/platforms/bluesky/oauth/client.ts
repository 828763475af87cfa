import { createPublicKey, type JsonWebKey, randomUUID } from 'node:crypto';
import { importJWK, type JWK, SignJWT } from 'jose';
import type { Json } from '#contracts/ports/platform.ts';

/**
 * Our client, as servers of Bluesky's protocol know it (atproto.com, "OAuth"): its id is the address of its metadata. On
 * this machine alone it is the client that every server knows, without a key; its sessions end after two weeks.
 */

/** What the service of videos may be asked in the account's name (permission set app.bsky.authCreatePosts, August 2026). */
const videoMethods = 'getUploadLimits startUpload uploadPart finishUpload getUploadStatus abortUpload'.split(' ');

/** Posts, their files, and the upload of videos; nothing else of the account. */
export const scopes = [
  ...['atproto', 'repo:app.bsky.feed.post', 'blob:*/*', 'rpc:com.atproto.repo.uploadBlob?aud=*'],
  ...videoMethods.map((method) => `rpc:app.bsky.video.${method}?aud=*`),
];

/** Keys of ES256 with their ids. The first signs; the others are for sessions that began with them. */
export type ProofKeys = readonly JsonWebKey[];

const kidOf = (key: JsonWebKey): string => String(key.kid);

const isLoopback = (origin: string): boolean => {
  const { protocol, hostname } = new URL(origin);
  return protocol === 'http:' && (hostname === '127.0.0.1' || hostname === '[::1]');
};

export type OurClient =
  | { readonly kind: 'confidential'; readonly id: string; readonly keys: ProofKeys }
  | { readonly kind: 'loopback'; readonly id: string };

/** @returns words for the operator where servers would take no such client */
export const clientAt = (redirectUri: string, keys: ProofKeys): OurClient | { readonly wrong: string } => {
  const { origin, protocol } = new URL(redirectUri);
  if (isLoopback(origin)) {
    const query = new URLSearchParams({ redirect_uri: redirectUri, scope: scopes.join(' ') });
    return { kind: 'loopback', id: `http://localhost?${query}` };
  }
  if (protocol !== 'https:') {
    return {
      wrong: `Bluesky sends browsers back to https addresses alone, on this machine also to http://127.0.0.1, not to ${origin}`,
    };
  }
  return { kind: 'confidential', id: `${origin}/connect/client-metadata.json`, keys };
};

const publicKeys = (keys: ProofKeys): Json =>
  keys.map((key) => ({
    ...(createPublicKey({ key, format: 'jwk' }).export({ format: 'jwk' }) as Record<string, string>),
    ...{ kid: kidOf(key), alg: 'ES256', use: 'sig' },
  }));

/** What servers read of us. */
export const metadataOf = (origin: string) => ({
  client_id: `${origin}/connect/client-metadata.json`,
  client_name: 'Postline',
  client_uri: origin,
  redirect_uris: [`${origin}/connect/callback`],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  scope: scopes.join(' '),
  application_type: 'web',
  token_endpoint_auth_method: 'private_key_jwt',
  token_endpoint_auth_signing_alg: 'ES256',
  dpop_bound_access_tokens: true,
  jwks_uri: `${origin}/connect/jwks.json`,
});

/** By their path below `/connect/`. */
export const documentsOf = (origin: string, keys: ProofKeys): Readonly<Record<string, Json>> => ({
  'client-metadata.json': metadataOf(origin),
  'jwks.json': { keys: publicKeys(keys) },
});

/** Who we are, in the form of a call for tokens (RFC 7523). Null: the key with which the session began is gone. */
export const proofOfClient = async (
  { clientId, kid, issuer }: { readonly clientId: string; readonly kid: string | null; readonly issuer: string },
  keys: ProofKeys,
): Promise<Readonly<Record<string, string>> | null> => {
  if (kid === null) return { client_id: clientId };
  const key = keys.find((one) => kidOf(one) === kid);
  if (key === undefined) return null;
  const assertion = await new SignJWT({ jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', kid })
    .setIssuer(clientId)
    .setSubject(clientId)
    .setAudience(issuer)
    .setIssuedAt()
    .setExpirationTime('60s')
    .sign(await importJWK(key as JWK, 'ES256'));
  return {
    client_id: clientId,
    client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
    client_assertion: assertion,
  };
};
