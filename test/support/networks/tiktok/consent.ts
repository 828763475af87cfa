import { createHash } from 'node:crypto';
import { type Answer, badToken } from './answer.ts';
import { type Request, single } from './request.ts';
import type { Access, State } from './state.ts';

/** "Login Kit for Web", "User Access Token Management": a page of consent, tokens that rotate, revocation. */

export const allScopes = ['user.info.basic', 'user.info.profile', 'user.info.stats', 'video.publish', 'video.list'];
const known = [...allScopes, 'video.upload'];

const page = (words: string): Answer => ({ status: 200, body: `<!doctype html><title>TikTok</title>${words}` });

/**
 * The page: `as` is the person who is signed in, `deny` what they press instead of "Continue", and `without` a permission that they
 * switch off.
 */
export const authorizePage = (state: State, { query }: Request): Answer => {
  const { as, deny, without, ...asked } = single(query);
  if (as === undefined) return page('Log in');
  const names = [
    'client_key',
    'response_type',
    'redirect_uri',
    'scope',
    'state',
    'code_challenge',
    'code_challenge_method',
  ];
  const { clientKey, redirectUri } = state.app;
  if (Object.keys(asked).some((one) => ![...names, 'disable_auto_auth'].includes(one))) return page('param_error');
  if (asked.client_key !== clientKey) return page('client_key');
  if (asked.redirect_uri !== redirectUri) return page('redirect_uri');
  const back = (more: Record<string, string>): Answer => {
    const to = new URL(redirectUri);
    for (const [name, value] of Object.entries({ ...more, state: asked.state ?? '' })) to.searchParams.set(name, value);
    return { status: 302, body: '', headers: { location: to.href } };
  };
  const scopes = (asked.scope ?? '').split(',');
  if (asked.response_type !== 'code') return back({ error: 'unsupported_response_type' });
  if (!scopes.includes('user.info.basic') || !scopes.every((one) => known.includes(one)))
    return back({ error: 'invalid_scope' });
  const { code_challenge: challenge = null, code_challenge_method: method = null } = asked;
  // The challenge is written in hexadecimal digits.
  const isSaid = method === 'S256' && /^[0-9a-f]{64}$/.test(challenge ?? '');
  if ((challenge !== null || method !== null) && !isSaid) return back({ error: 'invalid_request' });
  if (deny !== undefined || !state.people.has(as))
    return back({ error: 'access_denied', error_description: 'User denied' });
  const granted = scopes.filter((one) => one !== without);
  const code = state.token('code');
  state.codes.set(code, { personId: as, scopes: granted, until: state.now() + 600_000, challenge });
  return back({ code, scopes: granted.join(',') });
};

const formOf = ({ headers, body }: Request, names: readonly string[]): Record<string, string> => {
  if (headers['content-type'] !== 'application/x-www-form-urlencoded') {
    throw badToken('invalid_request', 'Only `application/x-www-form-urlencoded` is supported as Content-Type.');
  }
  const members = single(new URLSearchParams(body.toString('utf8')));
  for (const name of Object.keys(members)) {
    if (!names.includes(name)) throw badToken('invalid_request', `${name} is no parameter`);
  }
  return members;
};

const clientIs = ({ app }: State, { client_key, client_secret }: Record<string, string>): void => {
  if (client_key !== app.clientKey || client_secret !== app.clientSecret) {
    throw badToken('invalid_client', 'Client key or secret is incorrect.');
  }
};

const ofClient = ['client_key', 'client_secret'];

const exchanged = (state: State, members: Record<string, string>): Omit<Access, 'until' | 'family'> => {
  const code = members.code ?? '';
  const given = state.codes.get(code);
  state.codes.delete(code);
  if (given === undefined || given.until <= state.now())
    throw badToken('invalid_grant', 'Authorization code is expired.');
  if (members.redirect_uri !== state.app.redirectUri) throw badToken('invalid_request', 'Redirect_uri is not matched.');
  const hash = createHash('sha256')
    .update(members.code_verifier ?? '')
    .digest('hex');
  if (given.challenge !== null && hash !== given.challenge)
    throw badToken('invalid_request', 'Code verifier or code challenge is invalid.');
  return given;
};

export const tokenEndpoint = (state: State, request: Request): Answer => {
  const names = ['grant_type', 'code', 'redirect_uri', 'code_verifier', 'refresh_token'];
  const members = formOf(request, [...ofClient, ...names]);
  clientIs(state, members);
  const { grant_type: type, refresh_token: token = '' } = members;
  if (type !== 'authorization_code' && type !== 'refresh_token')
    throw badToken('unsupported_grant_type', 'Grant type is not supported.');
  const former = state.refresh.get(token);
  if (type === 'refresh_token') {
    if (former === undefined || former.until <= state.now())
      throw badToken('invalid_grant', 'Refresh token is invalid or expired.');
    // The former one stops working.
    state.refresh.delete(token);
  }
  const { personId, scopes } = type === 'refresh_token' && former !== undefined ? former : exchanged(state, members);
  const { accessToken, refreshToken } = state.grant(personId, scopes, former?.family);
  return {
    status: 200,
    body: {
      ...{ access_token: accessToken, expires_in: 7_200, open_id: personId, refresh_expires_in: 15_552_000 },
      ...{ refresh_token: refreshToken, scope: scopes.join(','), token_type: 'Bearer' },
    },
  };
};

export const revokeEndpoint = (state: State, request: Request): Answer => {
  const members = formOf(request, [...ofClient, 'token']);
  clientIs(state, members);
  const access = state.access.get(members.token ?? '');
  if (access === undefined) throw badToken('invalid_grant', 'Access token is invalid or expired.');
  state.endFamily(access.family);
  return { status: 200, body: {} };
};
