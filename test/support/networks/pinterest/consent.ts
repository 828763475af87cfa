import { type Answer, badGrant, invalidRequest, Refusal, refuse } from './answer.ts';
import { formOf, type Request, single } from './request.ts';
import type { Access, State } from './state.ts';
import { object, oneOf, text } from './strict.ts';

/** "Set up authentication and authorization": the page of consent, and tokens of 30 days with refresh tokens of 60. */

const known = [
  ...['ads:read', 'ads:write', 'billing:read', 'billing:write', 'biz_access:read', 'biz_access:write'],
  ...['boards:read', 'boards:read_secret', 'boards:write', 'boards:write_secret', 'catalogs:read', 'catalogs:write'],
  ...['pins:read', 'pins:read_secret', 'pins:write', 'pins:write_secret', 'user_accounts:read', 'user_accounts:write'],
];

/** The page: `as` is the person who is signed in, and `deny` what they press instead of "Give access". */
export const authorizePage = (state: State, { query }: Request): Answer => {
  const { as, deny, ...asked } = single(query);
  // Pinterest shows strangers its page to sign in, whatever is asked for.
  if (as === undefined) return { status: 200, body: '<!doctype html><title>Pinterest</title>' };
  object({ response_type: text(), client_id: text(), redirect_uri: text(), scope: text(), state: text() }, [
    'response_type',
    'client_id',
    'redirect_uri',
    'scope',
  ])(asked, 'query');
  // Without these two nobody may be sent back.
  if (asked.client_id !== state.app.clientId || asked.redirect_uri !== state.app.redirectUri) {
    throw invalidRequest('Invalid redirect_uri or client_id');
  }
  const back = (more: Record<string, string>): Answer => {
    const to = new URL(state.app.redirectUri);
    for (const [name, value] of Object.entries({ ...more, state: asked.state ?? '' })) to.searchParams.set(name, value);
    return { status: 302, body: '', headers: { location: to.href } };
  };
  const scopes = (asked.scope ?? '').split(',');
  if (asked.response_type !== 'code') return back({ error: 'unsupported_response_type' });
  if (!scopes.every((one) => known.includes(one))) return back({ error: 'invalid_scope' });
  if (deny !== undefined || !state.people.has(as)) return back({ error: 'access_denied' });
  const code = state.token('code');
  state.codes.set(code, { personId: as, scopes, until: state.now() + 600_000 });
  return back({ code });
};

/** HTTP Basic alone: there is no public client. */
const clientIs = (state: State, { headers }: Request): void => {
  const given = /^Basic (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
  const pair = Buffer.from(given, 'base64').toString('utf8').split(':').map(decodeURIComponent);
  const { clientId, clientSecret } = state.app;
  if (pair.length !== 2 || pair[0] !== clientId || pair[1] !== clientSecret) throw refuse('unauthorized');
};

const ofCode = object(
  {
    ...{ grant_type: oneOf('authorization_code'), code: text(), redirect_uri: text() },
    continuous_refresh: oneOf('true', 'false'),
  },
  ['grant_type', 'code', 'redirect_uri'],
);
const ofRefresh = object({ grant_type: oneOf('refresh_token'), refresh_token: text(), scope: text() }, [
  ...['grant_type', 'refresh_token'],
]);

const exchanged = (state: State, members: Record<string, string>): Omit<Access, 'until'> => {
  ofCode(members, 'body');
  // Apps made before 2025-09-25 get a refresh token that lasts only when they ask.
  if (members.continuous_refresh !== 'true') throw invalidRequest('legacy refresh tokens are no longer supported');
  const code = members.code ?? '';
  const given = state.codes.get(code);
  state.codes.delete(code);
  if (given === undefined || given.until <= state.now() || members.redirect_uri !== state.app.redirectUri) {
    throw badGrant();
  }
  return { ...given, family: state.token('family') };
};

const refreshed = (state: State, members: Record<string, string>): Access => {
  ofRefresh(members, 'body');
  const token = members.refresh_token ?? '';
  const given = state.refresh.get(token);
  const family = state.used.get(token);
  // RFC 6819, 5.2.2.3: whoever uses one again may have stolen it.
  if (family !== undefined) state.endFamily(family);
  if (given === undefined || given.until <= state.now()) throw badGrant();
  state.refresh.delete(token);
  state.used.set(token, given.family);
  return given;
};

export const tokenEndpoint = (state: State, request: Request): Answer => {
  const members = formOf(request);
  clientIs(state, request);
  const isRefresh = members.grant_type === 'refresh_token';
  const { personId, scopes, family } = isRefresh ? refreshed(state, members) : exchanged(state, members);
  const { accessToken, refreshToken } = state.grant(personId, scopes, family);
  const lasts = 60 * 86_400;
  const body = {
    ...{ access_token: accessToken, token_type: 'bearer', expires_in: 30 * 86_400, scope: scopes.join(',') },
    ...{ refresh_token: refreshToken, refresh_token_expires_in: lasts },
    refresh_token_expires_at: Math.floor(state.now() / 1_000) + lasts,
  };
  return { status: 200, body: { ...body, response_type: isRefresh ? 'refresh_token' : 'authorization_code' } };
};

const ofRevocation = object({ token: text(), token_type_hint: oneOf('access_token', 'refresh_token') }, ['token']);

/** "Only tokens issued for system users are currently supported." */
export const revokeEndpoint = (state: State, request: Request): Answer => {
  const members = formOf(request);
  clientIs(state, request);
  ofRevocation(members, 'body');
  throw new Refusal(refuse('not_permitted').answer);
};
