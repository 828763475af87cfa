import { randomBytes } from 'node:crypto';
import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp, NetworkResult } from '#contracts/ports/network-http.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { AppSettings } from '#domain/platforms/rules.ts';
import { addressOf as findingOfAddress, found, noAnswer, nobody, quoted } from '../shared/findings.ts';
import { addressOf, appSetOf } from './app.ts';
import { askedBy, authorizeUrl, exchangeCode, newVerifier, type OAuthTools } from './oauth.ts';
import type { DoctorTables, NetworkTables } from './tables.ts';

/**
 * What can be known of the operator's app without a person who consents: the token endpoint judges the client before the
 * code, and the authorize page judges redirect address and scopes before it asks who is there, where it answers without
 * a browser at all.
 */

export interface AppDoctorOptions {
  readonly http: NetworkHttp;
  readonly clock: () => number;
  readonly config: AppSettings;
  /** Host of the pages behind links, as browsers reach it; null: the operator has not said. */
  readonly origin: string | null;
}

interface Examined extends OAuthTools {
  readonly tables: DoctorTables;
  readonly name: string;
  /** Of the settings: `X`. */
  readonly prefix: string;
  readonly redirectUri: string;
}

export const examineApp = async (
  { platform, oauth: table, doctor: tables }: NetworkTables,
  { http, clock, config, origin }: AppDoctorOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const { name } = rulesOf(platform);
  const prefix = platform.toUpperCase();
  const [idName, secretName] = [`${prefix}_CLIENT_ID`, `${prefix}_CLIENT_SECRET`];
  const { id, ...set } = appSetOf(platform, config);
  if (id === null) {
    const remedy = `${tables.makeApp}, and set ${idName} and ${secretName}.`;
    return set.secret === null
      ? [found('off', 'app', `${idName} is not set: ${name} is not offered.`, remedy)]
      : [found('fix', 'app', `${secretName} is set, and ${idName} is not.`, remedy)];
  }
  const misshapen = Object.entries({ [idName]: id, [secretName]: set.secret ?? '' }).flatMap(([setting, value]) =>
    /[\s"']/.test(value) ? [setting] : [],
  );
  if (misshapen.length > 0) {
    const words = `${misshapen.join(' and ')} must have no spaces and no quotes.`;
    return [found('fix', 'app', words, `Copy it anew from ${tables.console}.`)];
  }
  if (origin === null) return [findingOfAddress(origin)];
  const redirectUri = `${origin}/connect/callback`;
  const oauth = askedBy(table, set);
  const examined: Examined = { ...{ http, clock, oauth, app: { id, ...set } }, tables, name, prefix, redirectUri };
  const client = await examineClient(examined, signal);
  const consent = await examineConsent(examined, client, signal);
  const { caution } = tables;
  const cautions =
    caution === undefined ? [] : [found('cannot_tell', 'page of consent', caution.words, caution.remedy)];
  const calls = await examineCalls(examined, platform, origin, signal);
  return [findingOfAddress(origin), client, ...consent, ...cautions, ...calls];
};

/** Whether what the network calls is there: the api refuses a call that nobody signed in a form of its own, a proxy in another. */
const examineCalls = async (
  { http, app, name, tables }: Examined,
  platform: string,
  origin: string,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const { calls = [] } = tables;
  // Without a secret nothing is signed, and the client is what must be mended.
  if (calls.length === 0 || app.secret === null) return [];
  const about = 'calls';
  const places = calls.map(({ topic, name: place }) => ({
    url: [`${origin}/network/${platform}`, ...(topic === null ? [] : [topic])].join('/'),
    place,
  }));
  for (const { url } of places) {
    const headers = { accept: 'application/json' };
    const result = await http.send({ method: 'POST', url, headers, body: [], subject: nobody }, signal);
    if (result.kind !== 'answered') {
      const words = `This machine does not reach ${url}: ${result.reason}.`;
      return [found('cannot_tell', about, words, `Let networks reach the paths ${origin}/network/… without a login.`)];
    }
    const isOurs = (result.headers['content-type'] ?? '').startsWith('application/problem+json');
    if (result.status !== 404 || !isOurs) {
      const words = `${url} answers ${result.status}, and not as the API does.`;
      return [found('fix', about, words, 'Start the API, and let a proxy pass /network/ on to it without a login.')];
    }
  }
  const list = places.map(({ url, place }) => `${url} (${place})`).join(', ');
  return [
    found('ok', about, `Calls of ${name} arrive at ${list}; whether they stand in ${tables.console} is seen there.`),
  ];
};

/** A made-up code buys nothing: the network answers a client that it knows that the code is wrong. */
const examineClient = async (examined: Examined, signal: AbortSignal): Promise<Finding> => {
  const about = 'client';
  const { app, tables, name, redirectUri, prefix, oauth } = examined;
  const code = `doctor-${randomBytes(16).toString('hex')}`;
  const said = await exchangeCode(examined, { code, verifier: newVerifier(), redirectUri }, signal);
  if (said.kind === 'exchanged') return found('cannot_tell', about, `${name} took a code that nobody gave.`);
  if (said.kind === 'unavailable') {
    const server = new URL(addressOf(app, oauth.exchange[0].url)).origin;
    return noAnswer(about, server, { kind: 'silent', reason: said.reason }, settingOf(prefix, oauth.exchange[0].url));
  }
  const kind = app.secret === null ? 'a public client, without a secret' : 'a confidential client';
  if (tables.refusesCode.test(said.reason)) return found('ok', about, `${name} takes the client id, as ${kind}.`);
  if (tables.refusesClient.test(`${said.error} ${said.reason}`)) {
    const remedy = app.secret === null ? tables.clientRemedy.public : tables.clientRemedy.confidential;
    const words = `${name} does not take the client: ${quoted(said.reason)}.`;
    return found('fix', about, words, `${remedy} See ${tables.console}.`);
  }
  return found(
    'cannot_tell',
    about,
    `${name} says ${quoted(said.reason)} of a made-up code.`,
    `Look at ${tables.console}.`,
  );
};

/** `{tokens}/oauth` is below `LINKEDIN_TOKENS`. */
const settingOf = (prefix: string, address: string): string =>
  `${prefix}_${(/^\{(\w+)\}/.exec(address)?.[1] ?? 'api').toUpperCase()}`;

type Judged =
  | { readonly kind: 'accepted' }
  /** The network sent the browser back to us with this error. */
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

const redirectAddress = 'redirect address';
const asking = 'scopes';

const withWhy = ({ oauth }: Examined, scopes: readonly string[]): string =>
  scopes.map((one) => `${one} (${oauth.scopes[one]?.why})`).join(', ');

const ask = async (examined: Examined, scopes: readonly string[], signal: AbortSignal): Promise<Judged> => {
  const { http, redirectUri } = examined;
  const url = authorizeUrl(examined, { redirectUri, state: 'doctor', verifier: newVerifier(), scopes });
  const call = { method: 'GET', url, headers: { accept: 'text/html' }, body: [], subject: nobody } as const;
  return judge(await http.send(call, signal), redirectUri);
};

const examineConsent = async (
  examined: Examined,
  client: Finding,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const { name, redirectUri, oauth, tables, app, prefix } = examined;
  const scopes = Object.keys(oauth.scopes);
  const judged = await ask(examined, scopes, signal);
  switch (judged.kind) {
    case 'accepted':
      return [
        found('ok', redirectAddress, `${name} sends owners back to ${redirectUri}.`),
        found('ok', asking, `${name} takes all that are asked for: ${withWhy(examined, scopes)}.`),
      ];
    case 'error':
      return [
        found('ok', redirectAddress, `${name} sends owners back to ${redirectUri}.`),
        await refusedScopes(examined, judged.error, signal),
      ];
    case 'not_sent_back': {
      const later = found('cannot_tell', asking, `${name} judges them after the redirect address.`);
      if (client.verdict !== 'ok') {
        const words = `${name} judges it together with the client: mend that first.`;
        return [found('cannot_tell', redirectAddress, words), later];
      }
      const words = `${name} does not know ${redirectUri} for this app.`;
      const remedy = `Add exactly this address under ${tables.redirectName} in ${tables.console}.`;
      return [found('fix', redirectAddress, words, remedy), later];
    }
    case 'no_answer':
      return [noAnswer(redirectAddress, addressOf(app, '{authorize}'), judged.result, `${prefix}_AUTHORIZE`)];
    case 'page':
      return findingsOfPage(examined, scopes);
  }
};

const refusedScopes = async (examined: Examined, error: string, signal: AbortSignal): Promise<Finding> => {
  const { name, tables, oauth } = examined;
  const ofScopes = ['invalid_scope', ...(oauth.pageErrors?.scopes ?? [])];
  if (!ofScopes.includes(error)) {
    const words = `${name} sends owners back with the error ${quoted(error)}.`;
    return found('fix', asking, words, `Look at ${tables.console}.`);
  }
  const refused: string[] = [];
  for (const scope of Object.keys(oauth.scopes)) {
    const one = await ask(examined, [scope], signal);
    if (one.kind === 'error' && ofScopes.includes(one.error)) refused.push(scope);
  }
  const missing = withWhy(examined, refused.length === 0 ? Object.keys(oauth.scopes) : refused);
  const remedy = `${tables.scopesRemedy} in ${tables.console}; owners then consent anew.`;
  return found('fix', asking, `The app lacks ${missing}.`, remedy);
};

const findingsOfPage = (examined: Examined, scopes: readonly string[]): readonly Finding[] => {
  const { name, tables, redirectUri } = examined;
  const url = authorizeUrl(examined, { redirectUri, state: 'doctor', verifier: newVerifier(), scopes });
  return [
    found(
      ...(['cannot_tell', redirectAddress, `${name} tells it only to a person who is signed in.`] as const),
      `Open ${url} where you are signed in to ${name}. ${tables.redirectRefused} means that ` +
        `${redirectUri} is not among the addresses of the app: add it under ${tables.redirectName} in ${tables.console}.`,
    ),
    found(
      ...(['cannot_tell', asking, `Owners are asked for ${withWhy(examined, scopes)}.`] as const),
      `The same page lists them; where posting is missing: ${tables.scopesRemedy}.`,
    ),
  ];
};
