import { type Answer, badToken, invalid, Refusal, refuse } from './answer.ts';
import { accessOf, chosen, pageOfList, paramsAre, type Request } from './request.ts';
import type { Access, Page, Person, State } from './state.ts';

/**
 * Facebook Login ("Manually Build a Login Flow", "Long-Lived Access Tokens", "Permissions") and the lists of a person: own pages,
 * and those of businesses.
 */

export const pageScopes = [
  ...['pages_show_list', 'pages_manage_posts', 'pages_read_engagement', 'pages_manage_engagement'],
  ...['pages_read_user_content', 'read_insights', 'business_management'],
];
export const instagramScopes = [
  ...['instagram_basic', 'instagram_content_publish', 'instagram_manage_comments', 'instagram_manage_insights'],
];
const known = [...pageScopes, ...instagramScopes, 'public_profile', 'email', 'pages_manage_metadata'];
const hourMs = 3_600_000;

/** The page: `as` is the person who is signed in, `deny` what they press, `leave` the permissions that they take off. */
export const dialog = (state: State, { params }: Request): Answer => {
  const { as, deny, leave = '', ...asked } = params;
  // A page for browsers: whoever is not signed in gets it whatever they ask for.
  if (as === undefined) return { status: 200, body: '<!doctype html><title>Log in to Facebook</title>' };
  paramsAre(asked, ['state', 'auth_type', 'config_id'], ['client_id', 'redirect_uri', 'scope', 'response_type']);
  const { clientId, redirectUri } = state.app;
  if (asked.client_id !== clientId || asked.redirect_uri !== redirectUri) {
    return { status: 200, body: '<!doctype html>URL blocked' };
  }
  const back = (more: Record<string, string>): Answer => {
    const to = new URL(redirectUri);
    for (const [name, value] of Object.entries({ ...more, state: asked.state ?? '' })) to.searchParams.set(name, value);
    return { status: 302, body: '', headers: { location: `${to.href}#_=_` } };
  };
  const scopes = (asked.scope ?? '').split(',');
  if (asked.response_type !== 'code' || !scopes.every((one) => known.includes(one))) throw invalid('Invalid Scopes');
  if (deny !== undefined || !state.people.has(as)) {
    return back({
      ...{ error: 'access_denied', error_code: '200', error_reason: 'user_denied' },
      error_description: 'Permissions error',
    });
  }
  const code = `AQ${state.token()}`;
  const granted = scopes.filter((one) => !leave.split(',').includes(one));
  state.codes.set(code, { personId: as, scopes: granted, until: state.now() + hourMs });
  return back({ code });
};

export const giveToken = (state: State, { params }: Request): Answer => {
  const { clientId, clientSecret, redirectUri } = state.app;
  const { grant_type: type, ...asked } = params;
  if (asked.client_id !== clientId) {
    throw badToken(101, 'Error validating application. Cannot get application info due to a system error.');
  }
  if (asked.client_secret !== clientSecret) throw badToken(1, 'Error validating client secret.');
  if (type === 'fb_exchange_token') {
    paramsAre(asked, [], ['client_id', 'client_secret', 'fb_exchange_token']);
    const access = state.access.get(asked.fb_exchange_token ?? '');
    if (access === undefined) throw refuse('token_invalid');
    if (access.until !== null && access.until <= state.now()) throw refuse('token_ended');
    const token = state.grant(access.personId, access.scopes, true);
    return { status: 200, body: { access_token: token, token_type: 'bearer', expires_in: 5_183_944 } };
  }
  if (type !== undefined) throw badToken(1, 'Invalid grant_type');
  paramsAre(asked, [], ['client_id', 'client_secret', 'redirect_uri', 'code']);
  const code = state.codes.get(asked.code ?? '');
  state.codes.delete(asked.code ?? '');
  if (code === undefined) throw badToken(100, 'Invalid verification code format.');
  if (code.until <= state.now()) throw badToken(100, 'This authorization code has expired.');
  if (asked.redirect_uri !== redirectUri) {
    throw badToken(100, 'Error validating verification code. Please make sure your redirect_uri is identical.');
  }
  const token = state.grant(code.personId, code.scopes, false);
  return { status: 200, body: { access_token: token, token_type: 'bearer', expires_in: 5_400 } };
};

const loginOf = (
  state: State,
  request: Request,
  ...scopes: readonly string[]
): Access & { readonly person: Person } => {
  const access = accessOf(state, request, ...scopes);
  const person = state.people.get(access.personId);
  if (person === undefined || access.pageId !== null) throw refuse('object_missing');
  return { ...access, person };
};

export const showMe = (state: State, request: Request): Answer => {
  const { person } = loginOf(state, request);
  paramsAre(request.params, ['fields']);
  return { status: 200, body: chosen(request.params.fields, { id: person.id, name: 'Ada Lovelace' }) };
};

export const permissions = (state: State, request: Request): Answer => {
  const { scopes } = loginOf(state, request);
  paramsAre(request.params, []);
  const data = known.flatMap((permission) =>
    scopes.includes(permission) ? [{ permission, status: 'granted' }] : [{ permission, status: 'declined' }],
  );
  return { status: 200, body: { data } };
};

/** Takes back all that the person allowed: every token of it ends. */
export const takeBack = (state: State, request: Request): Answer => {
  const { personId } = loginOf(state, request);
  paramsAre(request.params, []);
  for (const [token, one] of state.access) if (one.personId === personId) state.access.delete(token);
  return { status: 200, body: { success: true } };
};

/** As a list of pages shows it: with a token where the person has a task there. */
const shown = (state: State, access: Access, page: Page, tasks: readonly string[] | undefined, isOwnList: boolean) => ({
  ...{ id: page.id, name: page.name, username: page.username ?? undefined },
  access_token: tasks === undefined ? undefined : state.grantPage(access, page.id),
  picture: { data: { url: `https://scontent.example.com/${page.id}.jpg` } },
  ...(isOwnList ? { tasks } : {}),
  instagram_business_account:
    page.instagram === null
      ? undefined
      : { ...page.instagram, name: page.name, profile_picture_url: 'https://scontent.example.com/ig.jpg' },
});

const pageParams = ['fields', 'limit', 'after'];

export const ownPages = (state: State, request: Request): Answer => {
  const login = loginOf(state, request, 'pages_show_list');
  paramsAre(request.params, pageParams);
  const { person } = login;
  const own = [...person.tasks].filter(([id]) => !person.unlisted.has(id));
  const all = own.flatMap(([id, tasks]) => {
    const page = state.pages.get(id);
    return page === undefined ? [] : [chosen(request.params.fields, shown(state, login, page, tasks, true))];
  });
  return { status: 200, body: pageOfList(state, request, all, 'https://graph.facebook.com') };
};

const businessesOf = (state: State, person: Person): readonly string[] => [
  ...new Set([...person.tasks.keys()].flatMap((id) => state.pages.get(id)?.business?.id ?? [])),
];

export const businesses = (state: State, request: Request): Answer => {
  const { person } = loginOf(state, request, 'business_management');
  paramsAre(request.params, pageParams);
  const all = businessesOf(state, person).map((id) => ({ id }));
  return { status: 200, body: pageOfList(state, request, all, 'https://graph.facebook.com') };
};

export const pagesOfBusiness =
  (isClient: boolean) =>
  (state: State, request: Request, business: string): Answer => {
    const login = loginOf(state, request, 'business_management');
    paramsAre(request.params, pageParams);
    if (!businessesOf(state, login.person).includes(business)) throw new Refusal(refuse('object_missing').answer);
    const all = [...state.pages.values()]
      .filter((page) => page.business?.id === business && page.business.isClient === isClient)
      .map((page) => chosen(request.params.fields, shown(state, login, page, login.person.tasks.get(page.id), false)));
    return { status: 200, body: pageOfList(state, request, all, 'https://graph.facebook.com') };
  };
