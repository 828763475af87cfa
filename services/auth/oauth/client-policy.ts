import { grantableScopes } from '#schemas/grant.ts';

/**
 * What a client may register, and what we make of it before oidc-provider checks it. It runs for a registration, for a
 * metadata document and for each load from the table: tighten it only together with the stored rows.
 */

/** A registration that we refuse. The text is for the developer of the client. */
export class ClientFault extends Error {}

export type ClientMetadata = Record<string, unknown>;

const maxUris = 10;
const maxUri = 2_000;
const maxText = 100;

const loopbacks: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];
export const isLoopback = (hostname: string): boolean => loopbacks.includes(hostname);

/** Schemes that a browser or a system handles itself: a code must not reach them. */
const forbiddenSchemes: ReadonlySet<string> = new Set([
  ...['javascript:', 'vbscript:', 'data:', 'blob:', 'file:', 'filesystem:', 'about:', 'view-source:', 'resource:'],
  ...['ws:', 'wss:', 'ftp:', 'sftp:', 'ssh:', 'smb:', 'ldap:', 'ldaps:', 'git:', 'jar:', 'gopher:', 'telnet:'],
  ...['mailto:', 'tel:', 'sms:', 'facetime:', 'intent:', 'android-app:', 'search-ms:', 'urn:'],
  ...['shell:', 'applescript:', 'help:', 'steam:'],
  ...['chrome:', 'edge:', 'opera:', 'vnc:', 'rdp:', 'news:', 'nntp:', 'irc:', 'magnet:', 'market:'],
]);

/** Parts of systems, each with a scheme of its own: `ms-word:`, `ms-msdt:`, `x-apple.systempreferences:`. */
const ofSystems = /^(?:ms-|x-apple)/;

/**
 * Printable ASCII without backslash, with both slashes of a web address: a URL parser would read another address than
 * the text shows, and a browser would follow it to a path of ours.
 */
const isPlainUrl = (text: string): boolean =>
  /^[\x21-\x5b\x5d-\x7e]+$/.test(text) &&
  URL.canParse(text) &&
  (!/^https?:/i.test(text) || /^https?:\/\/[^/]/i.test(text));

type UriKind = 'web' | 'native';

/** @throws ClientFault */
const kindOfRedirect = (uri: unknown): UriKind => {
  const refuse = (why: string) => new ClientFault(`redirect_uris ${why}`);
  if (typeof uri !== 'string' || uri.length > maxUri) {
    throw refuse(`must hold texts of at most ${maxUri} characters`);
  }
  if (!isPlainUrl(uri)) throw refuse('must be absolute urls');
  const { protocol, hostname, username, password } = new URL(uri);
  if (uri.includes('#')) throw refuse('must not have a fragment');
  if (uri.includes('*')) throw refuse('must not have a wildcard');
  if (username !== '' || password !== '') throw refuse('must not have a user name or password');
  if (protocol === 'https:') {
    if (isLoopback(hostname)) throw refuse('use http for a loopback address');
    return 'web';
  }
  if (protocol === 'http:') {
    if (isLoopback(hostname)) return 'native';
    throw refuse('must use https, except on localhost, 127.0.0.1 and [::1]');
  }
  if (forbiddenSchemes.has(protocol) || ofSystems.test(protocol)) throw refuse(`must not use the scheme ${protocol}`);
  return 'native';
};

const redirectsOf = ({ redirect_uris: uris }: ClientMetadata): readonly UriKind[] => {
  if (!Array.isArray(uris) || uris.length === 0 || uris.length > maxUris) {
    throw new ClientFault(`redirect_uris must hold 1 to ${maxUris} urls`);
  }
  return uris.map(kindOfRedirect);
};

/** The known ones among the given; @throws ClientFault where some were given and none is known */
const known = (metadata: ClientMetadata, name: string, all: readonly string[]): readonly string[] => {
  const given = metadata[name];
  if (given === undefined) return all;
  if (!Array.isArray(given)) throw new ClientFault(`${name} must be an array`);
  const kept = all.filter((one) => given.includes(one));
  if (kept.length === 0) throw new ClientFault(`${name} must hold one of: ${all.join(', ')}`);
  return kept;
};

/** Members of OpenID Connect that would make every authorization fail, or ask us to call an address. */
const dropped = [
  ...['default_max_age', 'require_auth_time', 'default_acr_values', 'sector_identifier_uri', 'subject_type'],
  ...['initiate_login_uri', 'contacts', 'post_logout_redirect_uris', 'id_token_signed_response_alg'],
];

const webUris = ['client_uri', 'logo_uri', 'policy_uri', 'tos_uri'];

const isHttps = (value: unknown): boolean =>
  typeof value === 'string' && value.length <= maxUri && isPlainUrl(value) && new URL(value).protocol === 'https:';

/** A text that a page can show on one line, without characters that turn or hide what stands beside it. */
const plainText = (value: unknown): string | undefined => {
  if (typeof value !== 'string') return undefined;
  const plain = value
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}]/gu, '')
    .trim();
  return plain === '' ? undefined : [...plain].slice(0, maxText).join('').trim();
};

/** Registered ids are uuids, so an address is that of a metadata document. */
export const isDocumentId = (clientId: unknown): boolean =>
  typeof clientId === 'string' && clientId.startsWith('https://');

/**
 * Changes the metadata in place, as oidc-provider wants it.
 * @throws ClientFault
 */
export const normaliseClient = (metadata: ClientMetadata): void => {
  // Serialisers write a member without a value as null or as an empty list: it was not given.
  for (const [name, value] of Object.entries(metadata)) {
    if (value === null || (Array.isArray(value) && value.length === 0)) delete metadata[name];
  }
  const kinds = redirectsOf(metadata);
  for (const name of dropped) delete metadata[name];
  for (const name of webUris) if (!isHttps(metadata[name])) delete metadata[name];
  for (const name of ['client_name', 'software_id', 'software_version']) {
    const plain = plainText(metadata[name]);
    if (plain === undefined) delete metadata[name];
    else metadata[name] = plain;
  }
  // A native client may use any port of a loopback address, as it finds a free one.
  metadata.application_type = kinds.includes('native') ? 'native' : 'web';
  metadata.grant_types = [
    ...new Set(['authorization_code', ...known(metadata, 'grant_types', ['authorization_code', 'refresh_token'])]),
  ];
  metadata.response_types = [...known(metadata, 'response_types', ['code'])];
  metadata.response_modes = ['query'];
  // No ceiling: the person chooses at each consent, and a client that asks for more later must be able to.
  metadata.scope = grantableScopes.join(' ');
  const method = metadata.token_endpoint_auth_method;
  if (method === 'private_key_jwt' && isDocumentId(metadata.client_id)) return;
  if (method === 'private_key_jwt') {
    throw new ClientFault('token_endpoint_auth_method must be none, client_secret_basic or client_secret_post');
  }
  delete metadata.jwks;
  delete metadata.jwks_uri;
};
