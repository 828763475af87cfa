import { createHash } from 'node:crypto';
import { type Answer, badToken, invalid } from './answer.ts';
import { allScopes, formOf, onlyHeaders, queryOf, type Request } from './request.ts';
import type { Access, State } from './state.ts';

/** Google's page of consent and its server of tokens: developers.google.com/identity, "OAuth 2.0 for Web Server Applications". */

/** The page: `as` is the channel that the owner chooses, `deny` what they press instead, `leave` a scope that they untick. */
export const authorizePage = (state: State, request: Request): Answer => {
  const asked = queryOf(
    request,
    ...['response_type', 'client_id', 'redirect_uri', 'scope', 'state', 'access_type?', 'prompt?'],
    ...['include_granted_scopes?', 'code_challenge?', 'code_challenge_method?', 'as?', 'deny?', 'leave?'],
  );
  if (asked.client_id !== state.app.clientId) throw invalid('Error 401: invalid_client');
  if (asked.redirect_uri !== state.app.redirectUri) throw invalid('Error 400: redirect_uri_mismatch');
  if (asked.response_type !== 'code') throw invalid('response_type must be code');
  const scopes = (asked.scope ?? '').split(' ');
  for (const one of scopes) if (!allScopes.includes(one)) throw invalid(`Error 400: invalid_scope: ${one}`);
  const channel = state.channels.get(asked.as ?? '');
  const back = (members: Record<string, string>): Answer => {
    const query = new URLSearchParams({ ...members, state: asked.state ?? '' });
    return { status: 302, headers: { location: `${asked.redirect_uri}?${query}` } };
  };
  if (asked.deny !== undefined) return back({ error: 'access_denied' });
  if (channel === undefined) return { status: 200, body: '<html>Sign in with Google</html>' };
  if (asked.code_challenge_method !== 'S256') throw invalid('code_challenge_method must be S256');
  const code = state.token('4/code');
  const granted = scopes.filter((one) => one !== asked.leave);
  const isOffline = asked.access_type === 'offline' && asked.prompt === 'consent';
  state.codes.set(code, {
    ...{ channelId: channel.id, until: isOffline ? state.now() + 600_000 : null },
    ...{ scopes: granted, challenge: asked.code_challenge ?? '' },
  });
  return back({ code, scope: granted.join(' ') });
};

const part = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const tokens = (
  state: State,
  { channelId, scopes }: Access,
  refreshToken: string | null,
  accessToken: string,
): Answer => {
  const person = state.channels.get(channelId)?.person ?? '';
  const until = refreshToken === null ? null : (state.refresh.get(refreshToken)?.until ?? null);
  return {
    status: 200,
    body: {
      ...{ access_token: accessToken, expires_in: 3_599, scope: scopes.join(' '), token_type: 'Bearer' },
      ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
      ...(until === null ? {} : { refresh_token_expires_in: Math.floor((until - state.now()) / 1_000) }),
      ...(scopes.includes('openid') ? { id_token: `${part({ alg: 'RS256' })}.${part({ sub: person })}.c2VhbA` } : {}),
    },
  };
};

export const tokenEndpoint = (state: State, request: Request): Answer => {
  onlyHeaders(request);
  const form = formOf(request);
  if (form.client_id !== state.app.clientId) throw badToken(401, 'invalid_client', 'The OAuth client was not found.');
  if (form.client_secret !== state.app.clientSecret) throw badToken(401, 'invalid_client', 'Unauthorized');
  if (form.grant_type === 'refresh_token') {
    const known = state.refresh.get(form.refresh_token ?? '');
    if (known === undefined || (known.until !== null && known.until <= state.now())) {
      throw badToken(400, 'invalid_grant', 'Token has been expired or revoked.');
    }
    return tokens(state, known, null, state.accessFor(known.channelId, known.scopes));
  }
  if (form.grant_type !== 'authorization_code') throw badToken(400, 'unsupported_grant_type', 'Invalid grant_type');
  const code = state.codes.get(form.code ?? '');
  if (code === undefined) throw badToken(400, 'invalid_grant', 'Malformed auth code.');
  state.codes.delete(form.code ?? '');
  if (form.redirect_uri !== state.app.redirectUri) throw badToken(400, 'redirect_uri_mismatch', 'Bad Request');
  const verified = createHash('sha256')
    .update(form.code_verifier ?? '')
    .digest('base64url');
  if (verified !== code.challenge) throw badToken(400, 'invalid_grant', 'Invalid code verifier.');
  const { accessToken, refreshToken } = state.grant(code.channelId, code.scopes);
  return tokens(state, code, code.until === null ? null : refreshToken, accessToken);
};

export const revokeEndpoint = (state: State, request: Request): Answer => {
  const { token = '' } = formOf(request);
  const known = state.access.get(token) ?? state.refresh.get(token);
  if (known === undefined) throw badToken(400, 'invalid_token', 'Token expired or revoked');
  state.revoke(state.channels.get(known.channelId)?.person ?? '');
  return { status: 200, body: {} };
};
