import { type Answer, badToken, invalid, refuse } from './answer.ts';
import { accessOf, emptyOf, formOf, onlyHeaders, queryOf, type Request } from './request.ts';
import type { State } from './state.ts';

/**
 * The page of consent, the server of tokens and the calls that say whose login it is: learn.microsoft.com/linkedin,
 * "Authorization code flow", "Refresh tokens", "Sign In with LinkedIn using OpenID Connect", "Profile API".
 */

const known = [
  ...['openid', 'profile', 'email', 'w_member_social', 'r_member_social', 'r_basicprofile', 'w_organization_social'],
  ...['r_organization_social', 'rw_organization_admin', 'r_organization_admin', 'w_member_social_feed'],
  ...[
    'w_organization_social_feed',
    'r_organization_social_feed',
    'r_member_postAnalytics',
    'r_member_profileAnalytics',
  ],
];

const daySeconds = 86_400;

/** The page: `as` is the member who is signed in, and `deny` what they press instead of "Allow". */
export const authorizePage = (state: State, { query }: Request): Answer => {
  const members = Object.fromEntries(new URLSearchParams(query));
  const { as, deny, ...asked } = members;
  const names = ['response_type', 'client_id', 'redirect_uri', 'state', 'scope'];
  for (const name of names) if (asked[name] === undefined) throw invalid(`${name} is missing`);
  for (const name of Object.keys(asked)) if (!names.includes(name)) throw invalid(`${name} is no parameter`);
  if (query.includes('+')) throw invalid('spaces of scope are written %20');
  if (asked.client_id !== state.app.clientId) throw invalid('client_id: no such app');
  if (asked.redirect_uri !== state.app.redirectUri) {
    throw invalid('The redirect_uri does not match the registered value');
  }
  // A stranger sees the page on which members sign in.
  if (as === undefined) return { status: 200, body: '<!doctype html><title>LinkedIn Login</title>' };
  const back = (more: Record<string, string>): Answer => {
    const to = new URL(state.app.redirectUri);
    for (const [name, value] of Object.entries({ ...more, state: asked.state ?? '' })) to.searchParams.set(name, value);
    return { status: 302, body: '', headers: { location: to.href } };
  };
  const scopes = (asked.scope ?? '').split(' ');
  if (asked.response_type !== 'code') return back({ error: 'unsupported_response_type' });
  const lacking = scopes.find((one) => !known.includes(one) || state.scopes?.includes(one) === false);
  if (lacking !== undefined) {
    const error_description = `Scope "${lacking}" is not authorized for your application`;
    return back({ error: 'unauthorized_scope_error', error_description });
  }
  if (deny !== undefined) return back({ error: 'user_cancelled_authorize' });
  if (!state.people.has(as)) return back({ error: 'user_cancelled_login' });
  return back({ code: state.code(as, scopes) });
};

export const tokenEndpoint = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  const { client_id, client_secret, grant_type, ...members } = formOf(request);
  const named = (...names: readonly string[]): void => {
    for (const name of names) {
      if ((members[name] ?? '') === '') {
        throw badToken(400, 'invalid_request', `A required parameter "${name}" is missing`);
      }
    }
    for (const name of Object.keys(members)) {
      if (!names.includes(name)) throw badToken(400, 'invalid_request', `"${name}" is no parameter`);
    }
  };
  if (client_secret === undefined) {
    throw badToken(400, 'invalid_request', 'A required parameter "client_secret" is missing');
  }
  if (client_id !== state.app.clientId || client_secret !== state.app.clientSecret) {
    throw badToken(401, 'invalid_client', 'Client authentication failed');
  }
  const seconds = (until: number): number => Math.floor((until - state.now()) / 1_000);
  const given = (personId: string, scopes: readonly string[], former: string | null): Answer => {
    const made = state.grant(personId, scopes);
    const refreshToken = former ?? made.refreshToken;
    if (former !== null && made.refreshToken !== null) state.refresh.delete(made.refreshToken);
    const until = state.refresh.get(refreshToken ?? '')?.until;
    return {
      status: 200,
      body: {
        ...{ access_token: made.accessToken, expires_in: 60 * daySeconds, scope: scopes.join(',') },
        ...(until === undefined ? {} : { refresh_token: refreshToken, refresh_token_expires_in: seconds(until) }),
        ...{ token_type: 'Bearer' },
      },
    };
  };
  if (grant_type === 'authorization_code') {
    named('code', 'redirect_uri');
    const code = state.codes.get(members.code ?? '');
    state.codes.delete(members.code ?? '');
    if (code === undefined || code.until <= state.now() || members.redirect_uri !== state.app.redirectUri) {
      const words =
        'Unable to retrieve access token: appid/redirect uri/code verifier does not match authorization code. Or authorization code expired.';
      throw badToken(400, 'invalid_request', words);
    }
    return given(code.personId, code.scopes, null);
  }
  if (grant_type !== 'refresh_token') throw badToken(400, 'unsupported_grant_type', 'Unknown grant_type');
  named('refresh_token');
  const grant = state.refresh.get(members.refresh_token ?? '');
  if (grant === undefined || grant.until <= state.now()) {
    throw badToken(
      400,
      'invalid_request',
      'The provided authorization grant or refresh token is invalid, expired or revoked',
    );
  }
  return given(grant.personId, grant.scopes, members.refresh_token ?? '');
};

export const userInfo = (state: State, request: Request): Answer => {
  onlyHeaders(request, 'authorization');
  emptyOf(request);
  queryOf(request, {});
  const { personId } = accessOf(state, request, 'openid');
  const { name } = state.people.get(personId) ?? { name: '' };
  const [given_name = '', family_name = ''] = name.split(' ');
  const picture = `https://media.licdn.com/dms/image/${personId}`;
  return {
    status: 200,
    body: { sub: personId, name, given_name, family_name, picture, locale: { country: 'DE', language: 'de' } },
  };
};

export const profile = (state: State, request: Request): Answer => {
  onlyHeaders(request, 'authorization');
  emptyOf(request);
  queryOf(request, {});
  const { personId: id } = accessOf(state, request, 'r_basicprofile');
  const [localizedFirstName = '', localizedLastName = ''] = (state.people.get(id)?.name ?? '').split(' ');
  return { status: 200, body: { id, localizedFirstName, localizedLastName, vanityName: `vanity-${id.toLowerCase()}` } };
};

/** @throws Refusal the member has no such role in the organization */
export const requireRole = (state: State, personId: string, urn: string, ...roles: readonly string[]): void => {
  if (!state.rolesOf(personId, urn).some((one) => roles.includes(one))) throw refuse('access_denied');
};
