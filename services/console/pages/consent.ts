import type { Mode } from '#schemas/common.ts';
import { tickedScopes } from '#schemas/grant.ts';
import { notFound } from '#services/api/call/refusal.ts';
import { type ConsentResult, sealConsent } from '#services/auth/consent.ts';
import { type PendingConsent, pendingConsent } from '#services/auth/pending-consent.ts';
import { requireProven } from '#services/auth/people/proof.ts';
import { eraOfSession } from '#services/auth/people/sessions.ts';
import type { Visit, Visitor } from '../deps.ts';
import { type FormRefusal, refusalOf } from '../errors.ts';
import type { Route } from '../routes.ts';
import { goTo, showPage } from '../show.ts';
import { roleShown, scopeShown } from '../words.ts';

/**
 * Consent: what an app asks for, and what of it the person gives, in which workspace and mode. Nothing that the app says
 * of itself is verified. The answer goes through the browser to the authorization server, which knows by its cookie
 * whether it is the browser in which the authorization began.
 */

const asked = async ({ it, params }: Visit): Promise<PendingConsent> => {
  const pending = await pendingConsent(it.deps.pool, params.uid ?? '', it.deps.clock());
  if (pending === null) throw notFound('request');
  return pending;
};

/**
 * To decide for the workspace, to let others connect accounts, or to change its clients and campaigns is a power that
 * nobody expects to have given away: the person ticks it themselves.
 */
const isTickedAtFirst = (scope: string): boolean => tickedScopes.some((one) => one === scope);

interface Chosen {
  readonly workspaceId: string;
  readonly mode: Mode;
  readonly scopes: readonly string[];
}

const presetOf = ({ membership, session }: Visitor, { scopes }: PendingConsent): Chosen => ({
  workspaceId: membership?.workspaceId ?? '',
  mode: session.mode,
  scopes: scopes.filter(isTickedAtFirst),
});

const show = (visit: Visit<Visitor>, pending: PendingConsent, chosen: Chosen, refused: FormRefusal | null): void => {
  const { it, visitor } = visit;
  const { uid, clientName, documentHost, redirect, resource, scopes } = pending;
  showPage(visit, {
    ...{ view: 'consent', title: 'Connect an app', leaves: true, ...refused },
    data: {
      ...{ uid, clientName, documentHost, redirect, path: visit.ctx.path },
      isMcp: resource === it.deps.mcpUrl(),
      mode: chosen.mode,
      workspaces: visitor.memberships.map(({ workspaceId, name, role }) => ({
        id: workspaceId,
        name,
        role: roleShown(role).name,
        isChosen: workspaceId === chosen.workspaceId,
      })),
      scopes: scopes.map((name) => ({ ...scopeShown(name), isTicked: chosen.scopes.includes(name) })),
    },
  });
};

const decide = async (visit: Visit<Visitor>): Promise<void> => {
  const { it, ctx, form, visitor } = visit;
  const pending = await asked(visit);
  const mode: Mode = form.get('mode') === 'live' ? 'live' : 'test';
  const ticked = form.getAll('scope');
  const scopes = pending.scopes.filter((one) => ticked.includes(one));
  const workspaceId = form.get('workspace') ?? '';
  const era = await eraOfSession(it.deps.pool, visitor.session.id);
  if (era === null) throw notFound('request');
  const answer = (result: Omit<ConsentResult, 'uid' | 'personId' | 'era'>): void => {
    const { uid } = pending;
    const sealed = sealConsent(it.deps.secrets, { uid, personId: visitor.personId, era, ...result }, it.deps.clock());
    goTo(ctx, `${it.deps.authUrl()}/oauth/interaction/${uid}?${new URLSearchParams({ result: sealed })}`);
  };
  if (form.get('decision') !== 'allow') {
    return answer({ decision: 'deny', memberId: '', workspaceId: '', mode, scopes: [] });
  }
  const membership = visitor.memberships.find((one) => one.workspaceId === workspaceId);
  const again = (alert: string): void => show(visit, pending, { workspaceId, mode, scopes }, { status: 422, alert });
  if (membership === undefined) return again('Choose a workspace of yours.');
  if (scopes.length === 0) return again('Tick what the app may do, or cancel.');
  const refused = await refusalOf(ctx, () => requireProven(it.deps, visitor.personId));
  if (refused !== null) return again(refused.alert);
  answer({ decision: 'allow', memberId: membership.memberId, workspaceId, mode, scopes });
};

export const consentRoutes: readonly Route[] = [
  {
    method: 'GET',
    path: '/consent/:uid',
    for: 'person',
    answer: async (visit) => {
      const pending = await asked(visit);
      show(visit, pending, presetOf(visit.visitor, pending), null);
    },
  },
  { method: 'POST', path: '/consent/:uid', for: 'person', answer: decide },
];
