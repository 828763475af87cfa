import { Type } from 'typebox';
import { CadenceRule } from './cadence.ts';
import { type EventOf, Mode, Nullable, Platform, Role, Uuid } from './common.ts';
import { PostingQuota } from './quota.ts';

/** A workspace is an agency: its members, their roles, its time zone. Its sandbox twin holds the data of test keys. */

export const Timezone = Type.String({ minLength: 1, maxLength: 100 });
const WorkspaceName = Type.String({ minLength: 1, maxLength: 200 });

const Member = Type.Object({ memberId: Uuid, name: Type.String({ maxLength: 200 }), role: Role });

/** How far the clock of a sandbox twin may be ahead of real time in all, milliseconds. */
export const maxAheadMs = 400 * 86_400_000;

/** How near the end is. `ended`: the network answers the version no longer. */
export const NetworkVersionStage = Type.Union([
  Type.Literal('ends_in_90_days'),
  Type.Literal('ends_in_30_days'),
  Type.Literal('ended'),
]);

export const workspaceEvents = {
  WorkspaceCreated: Type.Object({
    name: WorkspaceName,
    timezone: Timezone,
    mode: Mode,
    /** The live workspace of this sandbox twin. */
    twinOf: Nullable(Uuid),
  }),
  WorkspaceProfileChanged: Type.Object({ name: WorkspaceName, timezone: Timezone }),
  MemberAdded: Member,
  /** The member is this person, who signs in as it. */
  MemberIdentified: Type.Object({ memberId: Uuid, personId: Uuid }),
  MemberRoleChanged: Type.Object({ memberId: Uuid, role: Role }),
  MemberRemoved: Type.Object({ memberId: Uuid }),
  /** How often each account of the workspace may publish, on one network or, where `platform` is null, on the others. */
  CadenceSet: CadenceRule,
  /** A network on which the workspace has accounts ends the version of its API that this installation asks for. */
  NetworkVersionEndReported: Type.Object({
    platform: Platform,
    version: Type.String({ maxLength: 200 }),
    /** The last day; null: the network said that it has ended, and had named no day. */
    endsAt: Nullable(Type.String({ maxLength: 30 })),
    stage: NetworkVersionStage,
  }),
  /** Targets that may be due in one month of the workspace's zone; null: as many as it likes. */
  PostingQuotaSet: Type.Object({ limit: Nullable(PostingQuota) }),
  /** Of a sandbox twin: milliseconds by which its clock is ahead of real time from then on. */
  SandboxClockMoved: Type.Object({ aheadMs: Type.Integer({ minimum: 1, maximum: maxAheadMs }) }),
} as const;
export type WorkspaceEvent = EventOf<typeof workspaceEvents>;
