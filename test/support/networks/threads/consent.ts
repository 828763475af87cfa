import { type Answer, badCode, invalid, Refusal, refuse } from './answer.ts';
import { paramsAre, type Request } from './request.ts';
import type { State } from './state.ts';

/**
 * The authorization window and the endpoints of tokens ("Get Access Tokens", "Long-Lived Tokens"): a code of an hour that
 * works once, a token of an hour, one of 60 days, which is renewed once it is a day old.
 */

const known = [
  ...['threads_basic', 'threads_content_publish', 'threads_manage_replies', 'threads_read_replies'],
  ...['threads_manage_insights', 'threads_delete', 'threads_location_tagging', 'threads_keyword_search'],
  ...['threads_manage_mentions', 'threads_profile_discovery'],
];
const [hourMs, dayMs] = [3_600_000, 86_400_000];

/** The page: `as` is the person who is signed in, and `deny` what they press instead of "Continue". */
export const authorizePage = (state: State, { params }: Request): Answer => {
  const { as, deny, ...asked } = params;
  // A page for browsers: whoever is not signed in gets it whatever they ask for.
  if (as === undefined) return { status: 200, body: '<!doctype html><title>Threads</title>' };
  paramsAre(asked, ['state'], ['client_id', 'redirect_uri', 'scope', 'response_type']);
  const { clientId, redirectUri } = state.app;
  if (asked.client_id !== clientId || asked.redirect_uri !== redirectUri) {
    throw new Refusal({ status: 400, body: { error_message: 'Blocked redirect URI', error_code: 1349168 } });
  }
  const back = (more: Record<string, string>): Answer => {
    const to = new URL(redirectUri);
    for (const [name, value] of Object.entries({ ...more, state: asked.state ?? '' })) to.searchParams.set(name, value);
    return { status: 302, body: '', headers: { location: `${to.href}#_` } };
  };
  const scopes = (asked.scope ?? '').split(',');
  if (
    asked.response_type !== 'code' ||
    !scopes.includes('threads_basic') ||
    !scopes.every((one) => known.includes(one))
  ) {
    throw invalid('Invalid Scopes');
  }
  const error_description = 'The user denied your request';
  if (deny !== undefined || !state.people.has(as)) {
    return back({ error: 'access_denied', error_reason: 'user_denied', error_description });
  }
  const code = `AQ${state.token()}`;
  state.codes.set(code, { personId: as, scopes, until: state.now() + hourMs });
  return back({ code });
};

export const shortToken = (state: State, { params }: Request): Answer => {
  paramsAre(params, [], ['client_id', 'client_secret', 'grant_type', 'redirect_uri', 'code']);
  const { clientId, clientSecret, redirectUri } = state.app;
  if (params.client_id !== clientId) throw badCode('Invalid client_id');
  if (params.client_secret !== clientSecret) throw badCode('Error validating client secret');
  if (params.grant_type !== 'authorization_code') throw badCode('Invalid grant_type');
  const code = state.codes.get(params.code ?? '');
  state.codes.delete(params.code ?? '');
  if (code === undefined || code.until <= state.now() || params.redirect_uri !== redirectUri) {
    throw badCode('Matching code was not found or was already used');
  }
  const token = state.grant(code.personId, code.scopes, false);
  // A number, as the documents show it.
  return { status: 200, body: `{"access_token":"${token}","user_id":${code.personId}}`, headers: json };
};
const json = { 'content-type': 'application/json' };

const longAnswer = (token: string): Answer => ({
  status: 200,
  body: { access_token: token, token_type: 'bearer', expires_in: (60 * dayMs) / 1_000 },
});

export const longToken = (state: State, { params }: Request): Answer => {
  paramsAre(params, [], ['grant_type', 'client_secret', 'access_token']);
  if (params.grant_type !== 'th_exchange_token') throw invalid('Invalid grant_type');
  if (params.client_secret !== state.app.clientSecret) throw invalid('Error validating client secret.');
  const access = state.access.get(params.access_token ?? '');
  if (access === undefined || access.isLong) throw refuse('token_invalid');
  if (access.until <= state.now()) throw refuse('token_expired');
  return longAnswer(state.grant(access.personId, access.scopes, true));
};

export const refreshToken = (state: State, { params }: Request): Answer => {
  paramsAre(params, [], ['grant_type', 'access_token']);
  if (params.grant_type !== 'th_refresh_token') throw invalid('Invalid grant_type');
  const access = state.access.get(params.access_token ?? '');
  if (access === undefined || !access.isLong) throw refuse('token_invalid');
  if (access.until <= state.now()) throw refuse('token_expired');
  if (state.now() - access.from < dayMs) throw invalid('The token is not 24 hours old');
  return longAnswer(state.grant(access.personId, access.scopes, true));
};
