import type { Mode } from '#schemas/common.ts';
import type { MemberVisitor, Visit } from '../deps.ts';
import { attempt, type FormRefusal, refusalOf } from '../errors.ts';
import { textOf } from '../forms.ts';
import { call } from '../operations.ts';
import type { Route } from '../routes.ts';
import { goTo, noticeOf, showPage } from '../show.ts';
import { principalIn } from '../visitors.ts';
import { modeName, scopeShown, scopesForRole, scopesTicked } from '../words.ts';

/** Developer settings: API keys. */

interface KeyRow {
  readonly id: string;
  readonly name: string;
  readonly memberId: string;
  readonly mode: Mode;
  readonly prefix: string;
  readonly scopes: readonly string[];
  readonly clientIds: readonly string[] | null;
  readonly createdAt: string;
  readonly expiresAt: string;
  readonly previousUntil: string | null;
  readonly lastUsedAt: string | null;
  readonly revokedAt: string | null;
}

interface ClientRow {
  readonly id: string;
  readonly name: string;
}

const dayMs = 86_400_000;
/** A year less a minute: the key is created a little after this is read. */
const lives = [
  { value: '30', words: '30 days', ms: 30 * dayMs },
  { value: '90', words: '90 days', ms: 90 * dayMs },
  { value: '180', words: '180 days', ms: 180 * dayMs },
  { value: '365', words: 'a year', ms: 365 * dayMs - 60_000 },
] as const;

const notices: Readonly<Record<string, string>> = {
  revoked: 'The key is revoked: it stops working within a second.',
};

interface Typed {
  readonly name: string;
  readonly mode: Mode;
  readonly scopes: readonly string[];
  readonly clientIds: readonly string[];
  readonly life: string;
}

const typedIn = (form: URLSearchParams): Typed => ({
  name: textOf(form, 'name'),
  mode: form.get('mode') === 'live' ? 'live' : 'test',
  scopes: form.getAll('scope').slice(0, 100),
  clientIds: form.getAll('client').slice(0, 200),
  life: form.get('life') ?? '',
});

const maxClients = 100;

/** The clients of the sandbox are others than the live ones. */
const clientsOf = (visit: Visit<MemberVisitor>, mode: Mode): Promise<readonly ClientRow[]> =>
  call(visit, 'listClients', { query: { limit: maxClients } }, principalIn(visit.visitor, mode));

/** Names of the clients that keys are limited to. Those of the mode that is not shown are asked for only if a key has one. */
const clientNames = async (
  visit: Visit<MemberVisitor>,
  keys: readonly KeyRow[],
  shown: readonly ClientRow[],
): Promise<ReadonlyMap<string, string>> => {
  const other: Mode = visit.visitor.session.mode === 'live' ? 'test' : 'live';
  const isAsked = keys.some(({ mode, clientIds }) => mode === other && clientIds !== null);
  const others = isAsked ? await clientsOf(visit, other) : [];
  return new Map([...shown, ...others].map(({ id, name }) => [id, name]));
};

const show = async (visit: Visit<MemberVisitor>, refused: FormRefusal | null, typed: Typed | null): Promise<void> => {
  const { it, visitor } = visit;
  const { session, membership } = visitor;
  const [keys, clients] = await Promise.all([
    call<readonly KeyRow[]>(visit, 'listApiKeys'),
    clientsOf(visit, session.mode),
  ]);
  const names = await clientNames(visit, keys, clients);
  const offered = scopesForRole(membership.role);
  const ticked = typed?.scopes ?? scopesTicked(session.mode, membership.role);
  const now = new Date(it.deps.clock()).toISOString();
  showPage(visit, {
    ...{ view: 'developers', title: 'Developers', ...refused },
    notice: noticeOf(visit, notices, refused),
    data: {
      keys: keys.map((one) => ({
        ...one,
        // A reader of the new key has the power of its member.
        mayRotate: membership.role === 'owner' || one.memberId === membership.memberId,
        modeName: modeName(one.mode),
        scopes: one.scopes.map(scopeShown),
        clients: one.clientIds?.map((id) => names.get(id) ?? id) ?? null,
        isOver: one.revokedAt !== null || one.expiresAt <= now,
        previousUntil: one.previousUntil !== null && one.previousUntil > now ? one.previousUntil : null,
      })),
      lives,
      baseUrl: it.deps.baseUrl(),
      docsUrl: `${new URL(it.deps.baseUrl()).origin}/docs`,
      modeName: modeName(session.mode),
      scopes: offered.map((one) => ({ ...one, isTicked: ticked.includes(one.name) })),
      clients: clients.map(({ id, name }) => ({ id, name, isTicked: typed?.clientIds.includes(id) === true })),
      typed: { name: typed?.name ?? '', mode: typed?.mode ?? session.mode, life: typed?.life ?? '90' },
    },
  });
};

const showSecret = (visit: Visit<MemberVisitor>, key: KeyRow & { readonly secret: string }, isNew: boolean): void =>
  showPage(visit, {
    ...{ view: 'key', title: isNew ? 'Your new key' : 'The key is rotated' },
    data: {
      key: { ...key, modeName: modeName(key.mode) },
      isNew,
      baseUrl: visit.it.deps.baseUrl(),
      docsUrl: `${new URL(visit.it.deps.baseUrl()).origin}/docs`,
    },
  });

type Made = KeyRow & { readonly secret: string };

const create = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { it, ctx, form } = visit;
  const typed = typedIn(form);
  const { name, mode, scopes, clientIds } = typed;
  const { ms } = lives.find(({ value }) => value === typed.life) ?? lives[1];
  const expiresAt = new Date(it.deps.clock() + ms).toISOString();
  const [key, refused] = await attempt(ctx, () => {
    const body = { name, mode, scopes, expiresAt, ...(clientIds.length === 0 ? {} : { clientIds }) };
    return call<Made>(visit, 'createApiKey', { body });
  });
  return refused === null ? showSecret(visit, key, true) : show(visit, refused, typed);
};

const rotate = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { ctx, params } = visit;
  const [key, refused] = await attempt(ctx, () =>
    call<Made>(visit, 'rotateApiKey', { params: { id: params.id ?? '' } }),
  );
  return refused === null ? showSecret(visit, key, false) : show(visit, refused, null);
};

const revoke = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { ctx, params } = visit;
  const refused = await refusalOf(ctx, async () => {
    await call(visit, 'revokeApiKey', { params: { id: params.id ?? '' } });
  });
  return refused === null ? goTo(ctx, '/developers?done=revoked') : show(visit, refused, null);
};

const back = ({ ctx }: Visit<MemberVisitor>): void => goTo(ctx, '/developers');

export const developerRoutes: readonly Route[] = [
  { method: 'GET', path: '/developers', for: 'member', answer: (visit) => show(visit, null, null) },
  { method: 'POST', path: '/developers/keys', for: 'member', answer: create },
  // A page with a secret is left by a reload of its address.
  { method: 'GET', path: '/developers/keys', for: 'member', answer: back },
  { method: 'POST', path: '/developers/keys/:id/rotate', for: 'member', answer: rotate },
  { method: 'GET', path: '/developers/keys/:id/rotate', for: 'member', answer: back },
  { method: 'POST', path: '/developers/keys/:id/revoke', for: 'member', answer: revoke },
];
