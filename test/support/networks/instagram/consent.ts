import { createHmac } from 'node:crypto';
import { type Answer, badCode, badExchange, invalid, refuse } from './answer.ts';
import { chosen, paramsAre, type Request } from './request.ts';
import type { Host, Page, State } from './state.ts';

/**
 * Both logins. "Business Login for Instagram": a code of an hour that works once, a token of an hour, one of 60 days, renewed
 * once it is a day old. "Facebook Login": a code, a token of hours, one of 60 days, and that of each page, which has no end.
 */

const known: Readonly<Record<Host, readonly string[]>> = {
  ig: [
    ...['instagram_business_basic', 'instagram_business_content_publish', 'instagram_business_manage_comments'],
    ...['instagram_business_manage_insights', 'instagram_business_manage_messages'],
  ],
  fb: [
    ...['instagram_basic', 'instagram_content_publish', 'instagram_manage_comments', 'instagram_manage_insights'],
    ...['pages_show_list', 'pages_read_engagement', 'pages_manage_posts', 'business_management', 'email'],
  ],
};
const [hourMs, dayMs] = [3_600_000, 86_400_000];

const page =
  (host: Host): ((state: State, request: Request) => Answer) =>
  (state, { params }) => {
    const { as, deny, without = '', ...asked } = params;
    // A page for browsers: whoever is not signed in gets it whatever they ask for.
    if (as === undefined) return { status: 200, body: '<!doctype html><title>Log in</title>' };
    const more = host === 'ig' ? ['state', 'enable_fb_login', 'force_reauth'] : ['state', 'extras', 'auth_type'];
    paramsAre(asked, more, ['client_id', 'redirect_uri', 'scope', 'response_type']);
    const { redirectUri } = state.app;
    const { clientId } = host === 'ig' ? state.app : state.metaApp;
    if (asked.client_id !== clientId || asked.redirect_uri !== redirectUri) {
      return { status: 200, body: '<!doctype html><title>Invalid redirect_uri</title>' };
    }
    const back = (said: Record<string, string>): Answer => {
      const to = new URL(redirectUri);
      for (const [name, value] of Object.entries({ ...said, state: asked.state ?? '' }))
        to.searchParams.set(name, value);
      return { status: 302, body: '', headers: { location: `${to.href}#_` } };
    };
    const scopes = (asked.scope ?? '').split(',');
    if (asked.response_type !== 'code' || !scopes.every((one) => known[host].includes(one)))
      throw invalid('Invalid Scopes');
    const knows = host === 'ig' ? state.people.has(as) : state.holders.has(as);
    if (deny !== undefined || !knows) {
      return back({
        error: 'access_denied',
        error_reason: 'user_denied',
        error_description: 'The user denied your request',
      });
    }
    const code = `AQ${state.token()}`;
    const granted = scopes.filter((one) => !without.split(',').includes(one));
    state.codes.set(code, { host, who: as, scopes: granted, until: state.now() + hourMs });
    return back({ code });
  };

export const authorizePage = page('ig');
export const dialogPage = page('fb');

const codeOf = (state: State, host: Host, params: Request['params']) => {
  const code = state.codes.get(params.code ?? '');
  state.codes.delete(params.code ?? '');
  const isGood = code !== undefined && code.host === host && code.until > state.now();
  return isGood && params.redirect_uri === state.app.redirectUri ? code : null;
};

/** `POST https://api.instagram.com/oauth/access_token` */
export const shortToken = (state: State, { params }: Request): Answer => {
  paramsAre(params, [], ['client_id', 'client_secret', 'grant_type', 'redirect_uri', 'code']);
  const { clientId, clientSecret } = state.app;
  if (params.client_id !== clientId) throw badCode('Invalid platform app');
  if (params.client_secret !== clientSecret) throw badCode('Error validating client secret');
  if (params.grant_type !== 'authorization_code') throw badCode('Invalid grant_type');
  const code = codeOf(state, 'ig', params);
  if (code === null) throw badCode('This authorization code has been used or has expired');
  const person = state.people.get(code.who);
  const token = state.grant(
    { host: 'ig', personId: code.who, holderId: null, scopes: code.scopes, isLong: false },
    hourMs / 1_000,
  );
  const permissions = code.scopes.join(',');
  return { status: 200, body: { data: [{ access_token: token, user_id: person?.scopedId, permissions }] } };
};

const longAnswer = (token: string): Answer => ({
  status: 200,
  body: { access_token: token, token_type: 'bearer', expires_in: (60 * dayMs) / 1_000 },
});

const longer = (state: State, token: string | undefined, wantsLong: boolean, minAgeMs: number): Answer => {
  const access = state.access.get(token ?? '');
  if (access === undefined || access.host !== 'ig' || access.isLong !== wantsLong) throw refuse('token_invalid');
  if (access.until !== null && access.until <= state.now()) throw refuse('token_expired');
  if (state.now() - access.from < minAgeMs) throw invalid('The token is not 24 hours old');
  return longAnswer(state.grant({ ...access, isLong: true }, (60 * dayMs) / 1_000));
};

export const longToken = (state: State, { params }: Request): Answer => {
  paramsAre(params, [], ['grant_type', 'client_secret', 'access_token']);
  if (params.grant_type !== 'ig_exchange_token') throw invalid('Invalid grant_type');
  if (params.client_secret !== state.app.clientSecret) throw invalid('Error validating client secret.');
  return longer(state, params.access_token, false, 0);
};

export const refreshToken = (state: State, { params }: Request): Answer => {
  paramsAre(params, [], ['grant_type', 'access_token']);
  if (params.grant_type !== 'ig_refresh_token') throw invalid('Invalid grant_type');
  return longer(state, params.access_token, true, dayMs);
};

/** `GET https://graph.facebook.com/oauth/access_token`: of a code, and of a token of hours. */
export const exchange = (state: State, { params }: Request): Answer => {
  const { metaApp } = state;
  if (params.client_id !== metaApp.clientId)
    throw badExchange('Error validating application. Cannot get application info', 101);
  if (params.client_secret !== metaApp.clientSecret) throw badExchange('Error validating client secret.', 1);
  const of = (holderId: string, scopes: readonly string[], isLong: boolean): Answer => {
    const seconds = isLong ? (60 * dayMs) / 1_000 : 5_183;
    const token = state.grant({ host: 'fb', personId: null, holderId, scopes, isLong }, seconds);
    return { status: 200, body: { access_token: token, token_type: 'bearer', expires_in: seconds } };
  };
  if (params.grant_type === 'fb_exchange_token') {
    paramsAre(params, [], ['grant_type', 'client_id', 'client_secret', 'fb_exchange_token']);
    const access = state.access.get(params.fb_exchange_token ?? '');
    if (access?.host !== 'fb' || access.holderId === null) throw refuse('token_invalid');
    return of(access.holderId, access.scopes, true);
  }
  paramsAre(params, [], ['client_id', 'client_secret', 'redirect_uri', 'code']);
  const code = codeOf(state, 'fb', params);
  if (code === null) throw badExchange('This authorization code has been used.');
  return of(code.who, code.scopes, false);
};

/** The token of the login, with the proof that the app wants. @throws Refusal */
const loginOf = (state: State, { token, proof, host }: Request) => {
  const access = state.access.get(token ?? '');
  if (host !== 'fb' || access === undefined || access.host !== 'fb' || access.holderId === null)
    throw refuse('token_invalid');
  if (access.until !== null && access.until <= state.now()) throw refuse('token_expired');
  const right = createHmac('sha256', state.metaApp.clientSecret)
    .update(token ?? '')
    .digest('hex');
  if (proof !== right) throw badExchange('Invalid appsecret_proof provided in the API argument');
  const holder = state.holders.get(access.holderId);
  if (holder === undefined) throw refuse('token_invalid');
  return { access, holder };
};

export const permissions = (state: State, request: Request): Answer => {
  const { access } = loginOf(state, request);
  const data = access.scopes.map((permission) => ({ permission, status: 'granted' }));
  return { status: 200, body: { data: [...data, { permission: 'email', status: 'declined' }] } };
};

export const revoke = (state: State, request: Request): Answer => {
  const { holder } = loginOf(state, request);
  for (const [token, access] of state.access) if (access.holderId === holder.id) state.access.delete(token);
  return { status: 200, body: { success: true } };
};

/** The token of a page, minted by a long token: it has no end of its own. */
const pageToken = (state: State, one: Page, holderId: string, scopes: readonly string[]): string =>
  state.grant({ host: 'fb', personId: one.account?.id ?? null, holderId, scopes, isLong: true }, null);

const shownPage = (state: State, one: Page, holderId: string, scopes: readonly string[], tasks: boolean) => ({
  ...{ id: one.id, name: one.name, username: one.name.toLowerCase().replaceAll(' ', ''), category: 'Café' },
  ...{
    access_token: pageToken(state, one, holderId, scopes),
    picture: { data: { url: 'https://scontent.example/p.jpg' } },
  },
  tasks: tasks ? ['CREATE_CONTENT', 'MANAGE'] : undefined,
  instagram_business_account:
    one.account === null
      ? undefined
      : {
          ...{ id: one.account.id, username: one.account.username, name: `The ${one.account.username}` },
          profile_picture_url: `https://scontent.example/${one.account.id}.jpg`,
        },
});

const listed = (params: Request['params'], all: readonly Record<string, unknown>[]): Answer => {
  paramsAre(params, ['fields', 'limit', 'after']);
  const data = all.map((one) => chosen(params.fields, one));
  return {
    status: 200,
    body: { data, ...(data.length === 0 ? {} : { paging: { cursors: { before: 'a', after: 'b' } } }) },
  };
};

export const myPages = (state: State, request: Request): Answer => {
  const { access, holder } = loginOf(state, request);
  if (!access.scopes.includes('pages_show_list')) return listed(request.params, []);
  return listed(
    request.params,
    holder.pages.map((one) => shownPage(state, one, holder.id, access.scopes, true)),
  );
};

export const businesses = (state: State, request: Request): Answer => {
  const { access, holder } = loginOf(state, request);
  if (!access.scopes.includes('business_management')) throw refuse('no_permission');
  return listed(
    request.params,
    holder.businesses.map(({ id }) => ({ id, name: 'A business' })),
  );
};

const pagesOfBusiness =
  (edge: 'owned' | 'client') =>
  (state: State, request: Request, id: string): Answer => {
    const { access, holder } = loginOf(state, request);
    const business = holder.businesses.find((one) => one.id === id);
    if (business === undefined || !access.scopes.includes('business_management')) throw refuse('no_permission');
    return listed(
      request.params,
      business[edge].map((one) => shownPage(state, one, holder.id, access.scopes, false)),
    );
  };
export const ownedPages = pagesOfBusiness('owned');
export const clientPages = pagesOfBusiness('client');

export const showLogin = (state: State, request: Request): Answer => {
  const { holder } = loginOf(state, request);
  paramsAre(request.params, ['fields']);
  return { status: 200, body: chosen(request.params.fields, { id: holder.id, name: 'Ada' }) };
};

export const showPage = (state: State, request: Request, one: Page): Answer => {
  const { access, holder } = loginOf(state, request);
  paramsAre(request.params, ['fields']);
  return { status: 200, body: chosen(request.params.fields, shownPage(state, one, holder.id, access.scopes, true)) };
};
