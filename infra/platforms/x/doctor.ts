import { randomBytes } from 'node:crypto';
import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { addressOf, found, noAnswer, nobody, quoted } from '../shared/findings.ts';
import type { XConfig } from './live.ts';
import { authorizeUrl, exchangeCode, newVerifier, type OAuthOptions, scopes } from './oauth.ts';

/**
 * What can be known of the operator's app without a person who consents: the token endpoint judges the client before the
 * code, and the authorize page judges redirect address and scopes before it asks who is there, where it answers without
 * a browser at all.
 */

export interface XDoctorOptions {
  readonly http: NetworkHttp;
  readonly clock: () => number;
  readonly config: XConfig;
  /** Host of the pages behind links, as browsers reach it; null: the operator has not said. */
  readonly origin: string | null;
}

const settingsPage = 'the User authentication settings of your app in X’s developer console';
const why: Readonly<Record<string, string>> = {
  'tweet.read': 'to find a post whose answer was lost',
  'tweet.write': 'to publish',
  'users.read': 'to know whose account it is',
  'media.write': 'to upload pictures and videos',
  'offline.access': 'to stay connected for longer than two hours',
};

export const examineX = async (options: XDoctorOptions, signal: AbortSignal): Promise<readonly Finding[]> => {
  const { xClientId: clientId, xClientSecret: clientSecret, xApi: api, xAuthorize: authorize } = options.config;
  if (clientId === null) {
    const remedy = 'Make an app in X’s developer console, and set X_CLIENT_ID and X_CLIENT_SECRET.';
    return clientSecret === null
      ? [found('off', 'app', 'X_CLIENT_ID is not set: X is not offered.', remedy)]
      : [found('fix', 'app', 'X_CLIENT_SECRET is set, and X_CLIENT_ID is not.', remedy)];
  }
  const misshapen = Object.entries({ X_CLIENT_ID: clientId, X_CLIENT_SECRET: clientSecret ?? '' }).flatMap(
    ([name, value]) => (/[\s"']/.test(value) ? [name] : []),
  );
  if (misshapen.length > 0) {
    const words = `${misshapen.join(' and ')} must have no spaces and no quotes.`;
    return [found('fix', 'app', words, `Copy it anew from ${settingsPage}.`)];
  }
  const { origin } = options;
  if (origin === null) return [addressOf(origin)];
  const redirectUri = `${origin}/connect/callback`;
  const oauth = { ...options, app: { clientId, clientSecret }, api, authorize };
  const client = await examineClient(oauth, redirectUri, signal);
  return [addressOf(origin), client, ...(await examineConsent(oauth, redirectUri, client, signal))];
};

/** A made-up code buys nothing: X answers a client that it knows that the code is wrong. */
const examineClient = async (options: OAuthOptions, redirectUri: string, signal: AbortSignal): Promise<Finding> => {
  const about = 'client';
  const { api = '', app } = options;
  const code = `doctor-${randomBytes(16).toString('hex')}`;
  const said = await exchangeCode(options, { code, verifier: newVerifier(), redirectUri }, signal);
  if (said.kind === 'exchanged') return found('cannot_tell', about, 'X took a code that nobody gave.');
  if (said.kind === 'unavailable') return noAnswer(about, api, { kind: 'silent', reason: said.reason }, 'X_API');
  const kind = app.clientSecret === null ? 'a public client, without a secret' : 'a confidential client';
  if (/authorization code/i.test(said.reason)) return found('ok', about, `X takes the client id, as ${kind}.`);
  if (/client|authorization header/i.test(`${said.error} ${said.reason}`)) {
    const remedy =
      app.clientSecret === null
        ? 'Check X_CLIENT_ID. An app of the type "Web App" has a secret: set X_CLIENT_SECRET.'
        : 'Copy the OAuth 2.0 client id and secret (not the API key) anew. An app of the type "Native App" has no secret.';
    return found('fix', about, `X does not take the client: ${quoted(said.reason)}.`, `${remedy} See ${settingsPage}.`);
  }
  return found('cannot_tell', about, `X says ${quoted(said.reason)} of a made-up code.`, `Look at ${settingsPage}.`);
};

type Judged =
  | { readonly kind: 'accepted' }
  /** X sent the browser back to us with this error. */
  | { readonly kind: 'error'; readonly error: string }
  | { readonly kind: 'not_sent_back' }
  /** A page for a person who is signed in. */
  | { readonly kind: 'page' }
  | { readonly kind: 'no_answer'; readonly result: Exclude<NetworkResult, { readonly kind: 'answered' }> };

const judge = (result: NetworkResult, redirectUri: string): Judged => {
  if (result.kind !== 'answered') return { kind: 'no_answer', result };
  const { status, headers } = result;
  if (status === 400) return { kind: 'not_sent_back' };
  const to = headers.location ?? '';
  if (status < 300 || status >= 400 || !URL.canParse(to)) return { kind: 'page' };
  const { origin, pathname, searchParams } = new URL(to);
  if (`${origin}${pathname}` !== redirectUri) return { kind: 'page' };
  const error = searchParams.get('error');
  // Nobody is signed in, so nobody allows anything.
  return error === null || error === 'access_denied' ? { kind: 'accepted' } : { kind: 'error', error };
};

const examineConsent = async (
  options: OAuthOptions,
  redirectUri: string,
  client: Finding,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const asked = { redirectUri, state: 'doctor', verifier: newVerifier() };
  const ask = async (asking: readonly string[]): Promise<Judged> => {
    const url = authorizeUrl(options, { ...asked, scopes: asking });
    const call = { method: 'GET', url, headers: { accept: 'text/html' }, body: [], subject: nobody } as const;
    return judge(await options.http.send(call, signal), redirectUri);
  };
  const judged = await ask(scopes);
  const [redirect, asking] = ['redirect address', 'scopes'] as const;
  const purposes = scopes.map((one) => `${one} (${why[one]})`).join(', ');
  switch (judged.kind) {
    case 'accepted':
      return [
        found('ok', redirect, `X sends owners back to ${redirectUri}.`),
        found('ok', asking, `X takes all that are asked for: ${purposes}.`),
      ];
    case 'error': {
      const known = found('ok', redirect, `X sends owners back to ${redirectUri}.`);
      if (judged.error !== 'invalid_scope') {
        const words = `X sends owners back with the error ${quoted(judged.error)}.`;
        return [known, found('fix', asking, words, `Look at ${settingsPage}.`)];
      }
      const refused: string[] = [];
      for (const scope of scopes) {
        const one = await ask([scope]);
        if (one.kind === 'error' && one.error === 'invalid_scope') refused.push(scope);
      }
      const missing = (refused.length === 0 ? scopes : refused).map((one) => `${one} (${why[one]})`).join(', ');
      const remedy = `Set App permissions to "Read and write" in ${settingsPage}; owners then consent anew.`;
      return [known, found('fix', asking, `The app lacks ${missing}.`, remedy)];
    }
    case 'not_sent_back': {
      const later = found('cannot_tell', asking, 'X judges them after the redirect address.');
      if (client.verdict !== 'ok') {
        return [found('cannot_tell', redirect, 'X judges it together with the client: mend that first.'), later];
      }
      const words = `X does not know ${redirectUri} for this app.`;
      const remedy = `Add exactly this address under Callback URI in ${settingsPage}.`;
      return [found('fix', redirect, words, remedy), later];
    }
    case 'no_answer':
      return [noAnswer(redirect, options.authorize ?? '', judged.result, 'X_AUTHORIZE')];
    case 'page':
      return [
        found(
          ...(['cannot_tell', redirect, 'X tells it only to a person who is signed in.'] as const),
          `Open ${authorizeUrl(options, asked)} where you are signed in to X. "Something went wrong" means that ` +
            `${redirectUri} is not a Callback URI of the app: add it in ${settingsPage}.`,
        ),
        found(
          ...(['cannot_tell', asking, `Owners are asked for ${purposes}.`] as const),
          `The same page lists them; where posting is missing, set App permissions to "Read and write".`,
        ),
      ];
  }
};
