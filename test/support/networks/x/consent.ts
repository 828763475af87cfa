import { createHash } from 'node:crypto';
import { type Answer, badToken, invalidRequest, Refusal } from './answer.ts';
import { formOf, type Request, single } from './request.ts';
import type { State } from './state.ts';

/** The authorize page and the endpoints of tokens: PKCE with S256 alone, codes of 30 seconds, refresh tokens that work once. */

const known = [
  ...['tweet.read', 'tweet.write', 'tweet.moderate.write', 'users.read', 'media.write', 'offline.access'],
  ...['follows.read', 'follows.write', 'like.read', 'like.write'],
];

const membersAre = (members: Record<string, string>, names: readonly string[], optional: readonly string[] = []) => {
  for (const name of names) if (members[name] === undefined) throw badToken('invalid_request', `Missing ${name}.`);
  for (const name of Object.keys(members)) {
    if (!names.includes(name) && !optional.includes(name)) throw badToken('invalid_request', `Unknown ${name}.`);
  }
};

/** The page: `as` is the person who is signed in, and `deny` what they press instead of "Authorize app". */
export const authorizePage = (state: State, { query }: Request): Answer => {
  const members = single(query);
  const { as, deny, ...asked } = members;
  if (as === undefined && state.hidesFromStrangers) return { status: 200, body: '<!doctype html><title>X</title>' };
  const required = [
    ...['response_type', 'client_id', 'redirect_uri', 'scope', 'state'],
    ...['code_challenge', 'code_challenge_method'],
  ];
  membersAre(asked, required);
  // Without these two nobody may be sent back.
  if (asked.client_id !== state.app.clientId || asked.redirect_uri !== state.app.redirectUri) {
    throw invalidRequest('Something went wrong. You weren’t able to give access to the App.');
  }
  const back = (more: Record<string, string>): Answer => {
    const to = new URL(state.app.redirectUri);
    for (const [name, value] of Object.entries({ ...more, state: asked.state ?? '' })) to.searchParams.set(name, value);
    return { status: 302, body: '', headers: { location: to.href } };
  };
  const scopes = (asked.scope ?? '').split(' ');
  if (asked.response_type !== 'code') return back({ error: 'unsupported_response_type' });
  const isTaken = (one: string) => known.includes(one) && state.app.scopes?.includes(one) !== false;
  if (!scopes.every(isTaken)) return back({ error: 'invalid_scope' });
  if ((asked.state ?? '').length > 500 || asked.code_challenge_method !== 'S256')
    return back({ error: 'invalid_request' });
  if (!/^[\w-]{43}$/.test(asked.code_challenge ?? '')) return back({ error: 'invalid_request' });
  if (deny !== undefined || as === undefined || !state.people.has(as)) return back({ error: 'access_denied' });
  const code = state.token('code');
  const { code_challenge: challenge = '' } = asked;
  state.codes.set(code, { personId: as, scopes, challenge, until: state.now() + 30_000 });
  return back({ code });
};

/** Of a confidential client by HTTP Basic, of a public one by the member `client_id`. */
const clientIs = (state: State, { headers }: Request, members: Record<string, string>): void => {
  const { clientId, clientSecret } = state.app;
  const refused = new Refusal({
    status: 401,
    body: { error: 'unauthorized_client', error_description: 'Missing valid authorization header' },
  });
  if (clientSecret === null) {
    if (members.client_id !== clientId || headers.authorization !== undefined) throw refused;
    return;
  }
  const given = /^Basic (\S+)$/.exec(headers.authorization ?? '')?.[1] ?? '';
  const pair = Buffer.from(given, 'base64').toString('utf8').split(':').map(decodeURIComponent);
  if (pair.length !== 2 || pair[0] !== clientId || pair[1] !== clientSecret) throw refused;
};

export const tokenEndpoint = (state: State, request: Request): Answer => {
  const members = formOf(request);
  clientIs(state, request, members);
  const given = members.grant_type === 'refresh_token' ? refreshed(state, members) : exchanged(state, members);
  const { accessToken, refreshToken } = state.grant(given.personId, given.scopes);
  const keeps = members.grant_type === 'refresh_token' && state.keepsRefresh;
  if (keeps && refreshToken !== null) {
    state.refresh.delete(refreshToken);
    state.refresh.set(members.refresh_token ?? '', given);
  }
  return {
    status: 200,
    body: {
      ...{ token_type: 'bearer', expires_in: 7_200, access_token: accessToken, scope: given.scopes.join(' ') },
      ...(refreshToken === null || keeps ? {} : { refresh_token: refreshToken }),
    },
  };
};

const exchanged = (state: State, members: Record<string, string>) => {
  membersAre(members, ['grant_type', 'code', 'redirect_uri', 'code_verifier'], ['client_id']);
  if (members.grant_type !== 'authorization_code') throw badToken('unsupported_grant_type', 'Unknown grant_type.');
  const code = state.codes.get(members.code ?? '');
  state.codes.delete(members.code ?? '');
  if (code === undefined || code.until <= state.now()) {
    throw badToken('invalid_request', 'Value passed for the authorization code was invalid.');
  }
  const challenge = createHash('sha256')
    .update(members.code_verifier ?? '')
    .digest('base64url');
  if (challenge !== code.challenge || members.redirect_uri !== state.app.redirectUri) {
    throw badToken('invalid_request', 'Value passed for the code verifier did not match the code challenge.');
  }
  return { personId: code.personId, scopes: code.scopes };
};

const refreshed = (state: State, members: Record<string, string>) => {
  membersAre(members, ['grant_type', 'refresh_token'], ['client_id']);
  const spent = members.refresh_token ?? '';
  const grant = state.refresh.get(spent);
  state.refresh.delete(spent);
  if (grant === undefined) throw badToken('invalid_request', 'Value passed for the token was invalid.');
  return grant;
};

export const revokeEndpoint = (state: State, request: Request): Answer => {
  const members = formOf(request);
  clientIs(state, request, members);
  membersAre(members, ['token'], ['client_id']);
  const { token = '' } = members;
  if (!state.refresh.delete(token) && !state.access.delete(token)) {
    throw badToken('invalid_request', 'Value passed for the token was invalid.');
  }
  return { status: 200, body: { revoked: true } };
};
