import type { Mode } from '#schemas/common.ts';
import type { MemberVisitor, Visit } from '../deps.ts';
import { call } from '../operations.ts';
import type { Route } from '../routes.ts';
import { goTo, showPage } from '../show.ts';
import { modeName, scopeShown } from '../words.ts';

/** Connected apps: what members gave to apps in this workspace. */

interface AppRow {
  readonly id: string;
  readonly clientId: string;
  readonly clientName: string;
  readonly memberId: string;
  readonly mode: Mode;
  readonly scopes: readonly string[];
  readonly resource: string;
  readonly givenAt: string;
  readonly expiresAt: string;
  readonly lastUsedAt: string | null;
  readonly revokedAt: string | null;
}

/** Apps whose access has ended and that are still shown. */
const maxEnded = 20;

const show = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { it, ctx, visitor } = visit;
  const now = new Date(it.deps.clock()).toISOString();
  const all = (await call<readonly AppRow[]>(visit, 'listApps')).map((one) => ({
    ...one,
    isOver: one.revokedAt !== null || one.expiresAt <= now,
    isOwn: one.memberId === visitor.membership.memberId,
    isMcp: one.resource === it.deps.mcpUrl(),
    modeName: modeName(one.mode),
    scopes: one.scopes.map(scopeShown),
  }));
  showPage(visit, {
    ...{ view: 'apps', title: 'Connected apps' },
    notice: ctx.query.done === 'revoked' ? 'The app has no access any more.' : null,
    data: {
      apps: [...all.filter(({ isOver }) => !isOver), ...all.filter(({ isOver }) => isOver).slice(0, maxEnded)],
      mcpUrl: it.deps.mcpUrl(),
      authUrl: it.deps.authUrl(),
    },
  });
};

const revoke = async (visit: Visit<MemberVisitor>): Promise<void> => {
  await call(visit, 'revokeApp', { params: { id: visit.params.id ?? '' } });
  goTo(visit.ctx, '/apps?done=revoked');
};

export const appRoutes: readonly Route[] = [
  { method: 'GET', path: '/apps', for: 'member', answer: show },
  { method: 'POST', path: '/apps/:id/revoke', for: 'member', answer: revoke },
];
