import { Type } from 'typebox';
import { type EventOf, Mode, Nullable, Role, Uuid } from './common.ts';

/** A workspace is an agency: its members, their roles, its zone. Its sandbox twin holds what test keys make. */

export const Timezone = Type.String({ minLength: 1, maxLength: 100 });
const WorkspaceName = Type.String({ minLength: 1, maxLength: 200 });

const Member = Type.Object({ memberId: Uuid, name: Type.String({ maxLength: 200 }), role: Role });

export const workspaceEvents = {
  WorkspaceCreated: Type.Object({
    name: WorkspaceName,
    timezone: Timezone,
    mode: Mode,
    /** The live workspace this is the sandbox twin of. */
    twinOf: Nullable(Uuid),
  }),
  WorkspaceProfileChanged: Type.Object({ name: WorkspaceName, timezone: Timezone }),
  MemberAdded: Member,
  MemberRoleChanged: Type.Object({ memberId: Uuid, role: Role }),
  MemberRemoved: Type.Object({ memberId: Uuid }),
  /** Somebody wants fresh figures of these accounts and their posts. */
  AnalyticsRefreshRequested: Type.Object({ refreshId: Uuid, accountIds: Type.Array(Uuid, { maxItems: 10_000 }) }),
  /** Every account of the request was asked; what could be had is in the log before this. */
  AnalyticsRefreshed: Type.Object({
    refreshId: Uuid,
    /** Those that answered. An account of the request is here or among the failed ones, so that the event stays storable. */
    accountIds: Type.Array(Uuid, { maxItems: 10_000 }),
    /** Those that did not answer, or may not be asked now. */
    failedAccountIds: Type.Array(Uuid, { maxItems: 10_000 }),
  }),
} as const;
export type WorkspaceEvent = EventOf<typeof workspaceEvents>;
