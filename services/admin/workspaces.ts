import { testTwinIdOf } from '#domain/ids.ts';
import { type WorkspaceCommand, workspace } from '#domain/workspace.ts';
import { isTimezone } from '#domain/zones.ts';
import { uuidv7 } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { mintSession, sealedSessionMs } from '#runtime/identity/sessions.ts';
import { noteWithdrawal } from '#runtime/identity/withdrawals.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { type Role, roles } from '#schemas/common.ts';
import { leftBehind } from '#services/auth/left-behind.ts';
import { endSealedSessions } from '#services/auth/sealed-sessions.ts';
import { contextOf, createWorkspace as create } from '#services/workflows/provision.ts';
import { type Admin, type CommandOutput, type Given, shown } from './context.ts';
import { idOf, liveWorkspaces, modeOf, workspaceOf, workspaceOfMember } from './find.ts';

/** Agencies and their people. */

const command = async (admin: Admin, workspaceId: string, what: WorkspaceCommand): Promise<void> => {
  const { operator, pool, store } = admin;
  const { positions } = operator;
  if (what.type === 'ChangeRole' || what.type === 'RemoveMember') await noteWithdrawal(pool, workspaceId);
  await execute(store, workspace, workspaceId, what, contextOf(operator, workspaceId), { positions });
};

const zoneOf = (text: string): string => {
  if (!isTimezone(text)) throw new UsageError(`${JSON.stringify(text)} is no timezone such as Europe/Berlin.`);
  return text;
};

const nameOf = (text: string): string => {
  const name = text.trim();
  if (name === '' || name.length > 200) throw new UsageError('A name has 1 to 200 characters.');
  return name;
};

export const roleOf = (text: string): Role => {
  const role = roles.find((one) => one === text);
  if (role === undefined) throw new UsageError(`${JSON.stringify(text)} is no role: ${roles.join(', ')}.`);
  return role;
};

export const createWorkspace = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const made = await create(admin.operator, {
    name: nameOf(flag('name') ?? ''),
    timezone: zoneOf(flag('timezone') ?? 'UTC'),
    ownerName: nameOf(flag('owner') ?? 'Owner'),
  });
  await shown(admin);
  return made;
};

export const listWorkspaces = async (admin: Admin): Promise<CommandOutput> =>
  (await liveWorkspaces(admin)).map(({ id, name, timezone, members }) => ({
    workspaceId: id,
    name,
    timezone,
    members: Object.keys(members).length,
    testTwinId: testTwinIdOf(id),
  }));

/** Live first: if we die in between, the same command again changes the twin. */
export const renameWorkspace = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const now = await workspaceOf(admin, at(0));
  const name = nameOf(flag('name') ?? now.name);
  const timezone = zoneOf(flag('timezone') ?? now.timezone);
  const profile = { type: 'ChangeProfile', name, timezone } as const;
  await command(admin, now.id, profile);
  const twinId = testTwinIdOf(now.id);
  const twin = await admin.store.load(workspace, twinId);
  if (twin.state.status !== 'none') await command(admin, twinId, profile);
  await shown(admin);
  return { workspaceId: now.id, name, timezone };
};

export const addMember = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const name = nameOf(flag('name') ?? '');
  const role = roleOf(flag('role') ?? '');
  const { id: workspaceId } = await workspaceOf(admin, flag('workspace'));
  const memberId = uuidv7();
  await command(admin, workspaceId, { type: 'AddMember', memberId, name, role });
  await shown(admin);
  return { workspaceId, memberId, name, role };
};

export const listMembers = async (admin: Admin, { flag }: Given): Promise<CommandOutput> => {
  const { members } = await workspaceOf(admin, flag('workspace'));
  return Object.entries(members).map(([memberId, { name, role }]) => ({ memberId, name, role }));
};

export const changeRole = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const memberId = idOf(at(0), 'member');
  const role = roleOf(at(1));
  const { id: workspaceId } = await workspaceOfMember(admin, memberId);
  await command(admin, workspaceId, { type: 'ChangeRole', memberId, role });
  await shown(admin);
  return { workspaceId, memberId, role };
};

export const removeMember = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const memberId = idOf(at(0), 'member');
  const { id: workspaceId } = await workspaceOfMember(admin, memberId);
  await command(admin, workspaceId, { type: 'RemoveMember', memberId });
  await shown(admin);
  const now = new Date(admin.operator.clock()).toISOString();
  const left = await leftBehind(admin, { liveId: workspaceId, memberId, now });
  return { workspaceId, memberId, removed: true, left };
};

export const session = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const memberId = idOf(at(0), 'member');
  const { id: workspaceId } = await workspaceOfMember(admin, memberId);
  const { secrets, store, operator } = admin;
  const mode = modeOf(flag('mode') ?? 'live');
  const ids = { workspaceId, memberId, mode };
  const { token, expiresAt } = await mintSession({ store, secrets, clock: operator.clock }, ids);
  return { ...ids, expiresAt, secret: token };
};

export const endSessions = async (admin: Admin, { at }: Given): Promise<CommandOutput> => {
  const memberId = idOf(at(0), 'member');
  const { id: workspaceId } = await workspaceOfMember(admin, memberId);
  const now = admin.operator.clock();
  await endSealedSessions(admin.pool, memberId, new Date(now + sealedSessionMs).toISOString());
  return { workspaceId, memberId, ended: true };
};
