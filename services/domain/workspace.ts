import { isDeepStrictEqual } from 'node:util';
import type { CadenceRule } from '#schemas/cadence.ts';
import type { Mode, Platform, Role } from '#schemas/common.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import { withRule } from './cadence.ts';
import { type Decider, Rejection } from './decider.ts';

/** An agency. Its law: at least one Owner stays; the sandbox twin has no members of its own. */

export type WorkspaceState =
  | { readonly status: 'none' }
  | {
      readonly status: 'created';
      readonly name: string;
      readonly timezone: string;
      readonly mode: Mode;
      readonly twinOf: string | null;
      /** Targets that may be due in one month; null: as many as it likes. */
      readonly postingQuota: number | null;
      readonly cadence: readonly CadenceRule[];
      /** Milliseconds by which the clock of a sandbox twin is ahead of real time. */
      readonly aheadMs: number;
      readonly members: Readonly<Record<string, Member>>;
      /** By network: the version whose end was last reported, and what was reported of it. */
      readonly versions: Readonly<Partial<Record<Platform, ReportedVersion>>>;
    };

interface ReportedVersion {
  readonly version: string;
  readonly stages: readonly VersionStage[];
}

type VersionEnd = Extract<WorkspaceEvent, { readonly type: 'NetworkVersionEndReported' }>['data'];
type VersionStage = VersionEnd['stage'];

export interface Member {
  readonly name: string;
  readonly role: Role;
  /** The person who signs in as the member; absent for a member that an operator made for keys alone. */
  readonly personId?: string;
}

export type WorkspaceCommand =
  | {
      readonly type: 'Create';
      readonly name: string;
      readonly timezone: string;
      readonly owner: { readonly memberId: string; readonly name: string };
    }
  | { readonly type: 'CreateTwin'; readonly name: string; readonly timezone: string; readonly twinOf: string }
  | { readonly type: 'ChangeProfile'; readonly name: string; readonly timezone: string }
  | { readonly type: 'AddMember'; readonly memberId: string; readonly name: string; readonly role: Role }
  /** A person takes the member's place; a member that is not there yet is added first. */
  | {
      readonly type: 'Join';
      readonly memberId: string;
      readonly personId: string;
      readonly name: string;
      readonly role: Role;
    }
  | { readonly type: 'ChangeRole'; readonly memberId: string; readonly role: Role }
  | { readonly type: 'RemoveMember'; readonly memberId: string }
  | { readonly type: 'SetPostingQuota'; readonly limit: number | null }
  | { readonly type: 'SetCadence'; readonly rule: CadenceRule }
  /** The clock only goes ahead: one that is as far ahead already stays. */
  | { readonly type: 'MoveSandboxClock'; readonly aheadMs: number }
  /** Reported once for each version and stage. */
  | (VersionEnd & { readonly type: 'ReportVersionEnd' });

type Created = Extract<WorkspaceState, { status: 'created' }>;

const created = (state: WorkspaceState): Created => {
  if (state.status === 'none') throw new Rejection('not_found', 'There is no such workspace.');
  return state;
};

const otherOwners = (state: Created, memberId: string): number =>
  Object.entries(state.members).filter(([id, member]) => id !== memberId && member.role === 'owner').length;

const decide = (command: WorkspaceCommand, state: WorkspaceState): readonly WorkspaceEvent[] => {
  switch (command.type) {
    case 'Create': {
      if (state.status === 'created') return [];
      const { name, timezone, owner } = command;
      return [
        { type: 'WorkspaceCreated', data: { name, timezone, mode: 'live', twinOf: null } },
        { type: 'MemberAdded', data: { ...owner, role: 'owner' } },
      ];
    }
    case 'CreateTwin': {
      if (state.status === 'created') return [];
      const { name, timezone, twinOf } = command;
      return [{ type: 'WorkspaceCreated', data: { name, timezone, mode: 'test', twinOf } }];
    }
    case 'ChangeProfile': {
      const now = created(state);
      const { name, timezone } = command;
      return now.name === name && now.timezone === timezone
        ? []
        : [{ type: 'WorkspaceProfileChanged', data: { name, timezone } }];
    }
    case 'AddMember': {
      const now = created(state);
      if (now.twinOf !== null) throw new Rejection('validation_failed', 'Members belong to the live workspace.');
      if (now.members[command.memberId] !== undefined) return [];
      const { memberId, name, role } = command;
      return [{ type: 'MemberAdded', data: { memberId, name, role } }];
    }
    case 'Join': {
      const now = created(state);
      if (now.twinOf !== null) throw new Rejection('validation_failed', 'Members belong to the live workspace.');
      const { memberId, personId, name, role } = command;
      const [known] = Object.entries(now.members).find(([, member]) => member.personId === personId) ?? [];
      if (known === memberId) return [];
      if (known !== undefined) throw new Rejection('already_exists', 'You are a member of this workspace already.');
      const member = now.members[memberId];
      if (member?.personId !== undefined) throw new Rejection('already_exists', 'Another person is this member.');
      const added: readonly WorkspaceEvent[] =
        member === undefined ? [{ type: 'MemberAdded', data: { memberId, name, role } }] : [];
      return [...added, { type: 'MemberIdentified', data: { memberId, personId } }];
    }
    case 'ChangeRole': {
      const now = created(state);
      const member = now.members[command.memberId];
      if (member === undefined) throw new Rejection('not_found', 'There is no such member.');
      if (member.role === command.role) return [];
      if (member.role === 'owner' && otherOwners(now, command.memberId) === 0) {
        throw new Rejection('validation_failed', 'A workspace keeps at least one Owner.');
      }
      return [{ type: 'MemberRoleChanged', data: { memberId: command.memberId, role: command.role } }];
    }
    case 'RemoveMember': {
      const now = created(state);
      const member = now.members[command.memberId];
      if (member === undefined) return [];
      if (member.role === 'owner' && otherOwners(now, command.memberId) === 0) {
        throw new Rejection('validation_failed', 'A workspace keeps at least one Owner.');
      }
      return [{ type: 'MemberRemoved', data: { memberId: command.memberId } }];
    }
    case 'SetCadence': {
      const { cadence } = created(state);
      const known = cadence.find(({ platform }) => platform === command.rule.platform);
      if (isDeepStrictEqual(known ?? { ...command.rule, minIntervalMinutes: null, perDay: null }, command.rule))
        return [];
      return [{ type: 'CadenceSet', data: command.rule }];
    }
    case 'ReportVersionEnd': {
      const { type: _, ...data } = command;
      const reported = created(state).versions[data.platform];
      const isReported = reported?.version === data.version && reported.stages.includes(data.stage);
      return isReported ? [] : [{ type: 'NetworkVersionEndReported', data }];
    }
    case 'MoveSandboxClock': {
      const { mode, aheadMs } = created(state);
      if (mode !== 'test')
        throw new Rejection('sandbox_only', 'A live workspace has real time: its clock is never moved.');
      return command.aheadMs <= aheadMs ? [] : [{ type: 'SandboxClockMoved', data: { aheadMs: command.aheadMs } }];
    }
    case 'SetPostingQuota': {
      const { limit } = command;
      return created(state).postingQuota === limit ? [] : [{ type: 'PostingQuotaSet', data: { limit } }];
    }
  }
};

const evolve = (state: WorkspaceState, event: WorkspaceEvent): WorkspaceState => {
  if (event.type === 'WorkspaceCreated') {
    return { status: 'created', ...event.data, members: {}, postingQuota: null, cadence: [], aheadMs: 0, versions: {} };
  }
  if (state.status === 'none') return state;
  switch (event.type) {
    case 'WorkspaceProfileChanged':
      return { ...state, ...event.data };
    case 'MemberAdded': {
      const { memberId, name, role } = event.data;
      return { ...state, members: { ...state.members, [memberId]: { name, role } } };
    }
    case 'MemberIdentified': {
      const { memberId, personId } = event.data;
      const member = state.members[memberId];
      return member === undefined
        ? state
        : { ...state, members: { ...state.members, [memberId]: { ...member, personId } } };
    }
    case 'MemberRoleChanged': {
      const { memberId, role } = event.data;
      const member = state.members[memberId];
      return member === undefined
        ? state
        : { ...state, members: { ...state.members, [memberId]: { ...member, role } } };
    }
    case 'MemberRemoved': {
      const { [event.data.memberId]: _removed, ...members } = state.members;
      return { ...state, members };
    }
    case 'CadenceSet':
      return { ...state, cadence: withRule(state.cadence, event.data) };
    case 'NetworkVersionEndReported': {
      const { platform, version, stage } = event.data;
      const reported = state.versions[platform];
      const stages = reported?.version === version ? [...reported.stages, stage] : [stage];
      return { ...state, versions: { ...state.versions, [platform]: { version, stages } } };
    }
    case 'PostingQuotaSet':
      return { ...state, postingQuota: event.data.limit };
    case 'SandboxClockMoved':
      return { ...state, aheadMs: event.data.aheadMs };
  }
};

export const workspace: Decider<WorkspaceState, WorkspaceCommand, WorkspaceEvent> = {
  kind: 'workspace',
  initial: { status: 'none' },
  decide,
  evolve,
};
