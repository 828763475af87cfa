import { mayManage } from '#domain/roles.ts';
import { type Mode, type Role, roles } from '#schemas/common.ts';
import { type LeftKind, leftKinds } from '#schemas/http/console.ts';
import { notFound } from '#services/api/call/refusal.ts';
import type { MemberVisitor, Visit } from '../deps.ts';
import { attempt, type FormRefusal, refusalOf } from '../errors.ts';
import { textOf } from '../forms.ts';
import { call } from '../operations.ts';
import type { Route } from '../routes.ts';
import { goTo, noticeOf, showPage } from '../show.ts';
import { principalIn } from '../visitors.ts';
import { modeName, roleShown } from '../words.ts';

/** The team: members and their roles, and invitations. */

interface MemberRow {
  readonly id: string;
  readonly name: string;
  readonly email: string | null;
  readonly role: Role;
}

interface InviteRow {
  readonly id: string;
  readonly email: string | null;
  readonly role: Role;
  readonly expiresAt: string;
}

interface LeftRow {
  readonly kind: LeftKind;
  readonly id: string;
  readonly parentId: string | null;
  readonly mode: Mode;
  readonly name: string;
  readonly expiresAt: string | null;
}

interface NewInvite extends InviteRow {
  readonly url: string;
  readonly mailed: boolean;
}

const notices: Readonly<Record<string, string>> = {
  role: 'The role is changed.',
  removed: 'The member is removed, with the power of their keys and apps here.',
  ended: 'It has ended.',
  withdrawn: 'The invitation is withdrawn.',
};

const lives = [
  { hours: 24, words: 'a day' },
  { hours: 168, words: 'a week' },
  { hours: 720, words: '30 days' },
] as const;

const show = async (
  visit: Visit<MemberVisitor>,
  refused: FormRefusal | null,
  typed: { readonly email: string; readonly role: string } = { email: '', role: 'creator' },
): Promise<void> => {
  const { visitor } = visit;
  const { role: own, memberId } = visitor.membership;
  const given = roles.filter((role) => mayManage(own, role)).map(roleShown);
  const [members, invites] = await Promise.all([
    call<readonly MemberRow[]>(visit, 'listMembers'),
    given.length === 0 ? [] : call<readonly InviteRow[]>(visit, 'listTeamInvites'),
  ]);
  showPage(visit, {
    ...{ view: 'team', title: 'Team', ...refused },
    notice: noticeOf(visit, notices, refused),
    data: {
      ...{ given, typed, lives },
      members: members.map((one) => ({
        ...one,
        role: roleShown(one.role),
        isSelf: one.id === memberId,
        isManaged: mayManage(own, one.role),
      })),
      invites: invites.map((one) => ({ ...one, role: roleShown(one.role) })),
    },
  });
};

const changeRole = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { ctx, form, params } = visit;
  const refused = await refusalOf(ctx, async () => {
    const body = { role: form.get('role') ?? '' };
    await call(visit, 'changeMemberRole', { params: { id: params.id ?? '' }, body });
  });
  return refused === null ? goTo(ctx, '/team?done=role') : show(visit, refused);
};

const remove = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { ctx, params } = visit;
  const refused = await refusalOf(ctx, async () => {
    await call(visit, 'removeMember', { params: { id: params.id ?? '' } });
  });
  if (refused !== null) return show(visit, refused);
  const isSelf = params.id === visit.visitor.membership.memberId;
  goTo(ctx, !isSelf && (await leftBy(visit)).length > 0 ? `${leftPath(visit)}?done=removed` : '/team?done=removed');
};

const leftPath = ({ params }: Visit): string => `/team/members/${params.id ?? ''}/left`;

const leftBy = (visit: Visit<MemberVisitor>) =>
  call<readonly LeftRow[]>(visit, 'listLeftByMember', { params: { id: visit.params.id ?? '' } });

const leftWords: Readonly<Record<LeftKind, string>> = {
  api_key: 'API key',
  connect_invite: 'Link to connect accounts',
  approval_link: 'Link to approve a post',
  webhook: 'Webhook endpoint',
  recycle: 'Recycled post',
};

const showLeft = async (visit: Visit<MemberVisitor>, refused: FormRefusal | null): Promise<void> => {
  const left = await leftBy(visit);
  showPage(visit, {
    ...{ view: 'left', title: 'What the member leaves', ...refused },
    notice: noticeOf(visit, notices, refused),
    data: {
      memberId: visit.params.id,
      left: left.map((one) => ({ ...one, words: leftWords[one.kind], modeName: modeName(one.mode) })),
    },
  });
};

/** The operation that ends each kind, and what it asks for. */
const ends: Readonly<Record<LeftKind, (item: string, parent: string) => readonly [string, Record<string, string>]>> = {
  api_key: (id) => ['revokeApiKey', { id }],
  connect_invite: (inviteId, id) => ['revokeConnectInvite', { id, inviteId }],
  approval_link: (linkId, id) => ['revokeApprovalLink', { id, linkId }],
  webhook: (id) => ['deleteWebhook', { id }],
  recycle: (id) => ['clearPostRecycle', { id }],
};

const endLeft = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { ctx, form, visitor } = visit;
  const kind = leftKinds.find((one) => one === form.get('kind'));
  if (kind === undefined) throw notFound('page');
  const [operation, params] = ends[kind](textOf(form, 'item', 40), textOf(form, 'parent', 40));
  const mode = form.get('mode') === 'live' ? 'live' : 'test';
  const by = kind === 'api_key' ? visitor.livePrincipal : principalIn(visitor, mode);
  const refused = await refusalOf(ctx, () => call(visit, operation, { params }, by));
  return refused === null ? goTo(ctx, `${leftPath(visit)}?done=ended`) : showLeft(visit, refused);
};

const invite = async (visit: Visit<MemberVisitor>): Promise<void> => {
  const { ctx, form } = visit;
  const typed = { email: textOf(form, 'email'), role: textOf(form, 'role', 20) };
  const hours = lives.find(({ hours: one }) => String(one) === form.get('hours'))?.hours ?? lives[1].hours;
  const [link, refused] = await attempt(ctx, () => {
    const body = { role: typed.role, expiresInHours: hours, ...(typed.email === '' ? {} : { email: typed.email }) };
    return call<NewInvite>(visit, 'createTeamInvite', { body });
  });
  if (refused !== null) return show(visit, refused, typed);
  showPage(visit, { view: 'invited', title: 'The invitation is made', data: { link } });
};

const withdraw = async (visit: Visit<MemberVisitor>): Promise<void> => {
  await call(visit, 'revokeTeamInvite', { params: { id: visit.params.id ?? '' } });
  goTo(visit.ctx, '/team?done=withdrawn');
};

export const teamRoutes: readonly Route[] = [
  { method: 'GET', path: '/team', for: 'member', answer: (visit) => show(visit, null) },
  { method: 'POST', path: '/team/members/:id/role', for: 'member', answer: changeRole },
  { method: 'POST', path: '/team/members/:id/remove', for: 'member', answer: remove },
  { method: 'GET', path: '/team/members/:id/left', for: 'member', answer: (visit) => showLeft(visit, null) },
  { method: 'POST', path: '/team/members/:id/left', for: 'member', answer: endLeft },
  { method: 'POST', path: '/team/invites', for: 'member', answer: invite },
  { method: 'GET', path: '/team/invites', for: 'member', answer: ({ ctx }) => goTo(ctx, '/team') },
  { method: 'POST', path: '/team/invites/:id/withdraw', for: 'member', answer: withdraw },
];
