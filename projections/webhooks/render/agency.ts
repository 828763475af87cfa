import type { AccountEvent } from '#schemas/account.ts';
import type { ClientEvent, ClientFields } from '#schemas/client.ts';
import type { Platform, Role } from '#schemas/common.ts';
import type { accountPublic } from '#schemas/http/webhook-events/account.ts';
import type { clientPublic } from '#schemas/http/webhook-events/client.ts';
import type { teamPublic } from '#schemas/http/webhook-events/team.ts';
import type { webhookPublic } from '#schemas/http/webhook-events/webhook.ts';
import type { workspacePublic } from '#schemas/http/webhook-events/workspace.ts';
import type { WebhookEvent } from '#schemas/webhook.ts';
import type { WorkspaceEvent } from '#schemas/workspace.ts';
import type { Publisher } from '../../engine/publisher.ts';

/** The agency itself: its clients, their accounts, its members, its webhook endpoints. */

type Shown = Omit<ClientFields, 'rules' | 'brandVoice'>;

const shownOf = ({ name, type, defaultPostMode, timezone, approvalRequired }: Shown): Shown => ({
  name,
  type,
  defaultPostMode,
  timezone,
  approvalRequired,
});

export const clientPublisher: Publisher<typeof clientPublic, ClientEvent, Shown> = {
  rules: {
    ClientCreated: [{ type: 'client.created', ofEvent: ({ id, data }) => ({ clientId: id, ...shownOf(data) }) }],
    ClientUpdated: [
      {
        type: 'client.updated',
        ofStream: ({ id, data }, subject) => ({ clientId: id, changed: Object.keys(data), ...subject }),
      },
    ],
    ClientArchived: [{ type: 'client.archived', ofEvent: ({ id }) => ({ clientId: id }) }],
    ClientNameClaimLapsed: 'a step of claiming a name; the other events of the client show who has it',
    ClientErased: [{ type: 'client.erased', ofEvent: ({ id }) => ({ clientId: id }) }],
  },
  evolve: (subject, event) => {
    if (event.type === 'ClientCreated') return shownOf(event.data);
    if (subject === null || event.type !== 'ClientUpdated') return subject;
    return shownOf({ ...subject, ...event.data });
  },
};

interface Account {
  readonly clientId: string;
  readonly platform: Platform;
}

interface Grant {
  readonly timezone: string | null;
  readonly expiresAt: string | null;
  readonly inviteId: string | null;
}
const grantOf = ({ timezone, expiresAt, inviteId }: Grant): Grant => ({ timezone, expiresAt, inviteId });

export const accountPublisher: Publisher<typeof accountPublic, AccountEvent, Account> = {
  rules: {
    AccountConnected: [
      {
        type: 'account.connected',
        ofEvent: ({ id, data }) => ({
          accountId: id,
          clientId: data.clientId,
          platform: data.platform,
          ...grantOf(data),
        }),
      },
    ],
    AccountReauthorized: [
      {
        type: 'account.reauthorized',
        ofStream: ({ id, data }, subject) => ({ accountId: id, ...subject, ...grantOf(data) }),
      },
    ],
    AccountReauthRequired: [
      {
        type: 'account.reauth_required',
        ofStream: ({ id, data }, subject) => ({ accountId: id, ...subject, reason: data.reason }),
      },
    ],
    AccountDisconnected: [
      {
        type: 'account.disconnected',
        ofStream: ({ id, data }, subject) => ({ accountId: id, ...subject, reason: data.reason }),
      },
    ],
    AccountLimitsObserved: [
      {
        type: 'account.limits_observed',
        ofStream: ({ id, data }, subject) => ({ accountId: id, ...subject, windows: data.windows }),
      },
    ],
    AccountProfileChanged: [
      { type: 'account.updated', ofStream: ({ id }, subject) => ({ accountId: id, ...subject }) },
    ],
  },
  evolve: (subject, event) => {
    if (event.type !== 'AccountConnected') return subject;
    const { clientId, platform } = event.data;
    return { clientId, platform };
  },
};

interface Team {
  /** Roles by member id. */
  readonly roles: Readonly<Record<string, Role>>;
  /** The role before the last change or removal. */
  readonly ended: Role;
}

export const workspacePublisher: Publisher<typeof workspacePublic & typeof teamPublic, WorkspaceEvent, Team> = {
  rules: {
    WorkspaceCreated: 'the workspace cannot have an endpoint yet',
    WorkspaceProfileChanged: [
      {
        type: 'workspace.updated',
        ofEvent: ({ id, data: { name, timezone } }) => ({ workspaceId: id, clientId: null, name, timezone }),
      },
    ],
    MemberAdded: [
      {
        type: 'team.member_added',
        ofEvent: ({ data }) => ({ memberId: data.memberId, clientId: null, role: data.role }),
      },
    ],
    MemberIdentified: 'who signs in as a member is no concern of receivers',
    MemberRoleChanged: [
      {
        type: 'team.role_changed',
        ofStream: ({ data }, { ended }) => ({
          memberId: data.memberId,
          clientId: null,
          role: data.role,
          previousRole: ended,
        }),
      },
    ],
    MemberRemoved: [
      {
        type: 'team.member_removed',
        ofStream: ({ data }, { ended }) => ({ memberId: data.memberId, clientId: null, role: ended }),
      },
    ],
    CadenceSet: [
      { type: 'cadence.changed', ofEvent: ({ id, data }) => ({ workspaceId: id, clientId: null, ...data }) },
    ],
    NetworkVersionEndReported: [
      { type: 'network.version_ending', ofEvent: ({ id, data }) => ({ workspaceId: id, clientId: null, ...data }) },
    ],
    PostingQuotaSet: [
      {
        type: 'quota.changed',
        ofEvent: ({ id, data: { limit } }) => ({ workspaceId: id, clientId: null, limit }),
      },
    ],
    SandboxClockMoved: 'the caller has the answer; what the move made due tells of itself',
  },
  evolve: (subject, event) => {
    if (event.type === 'WorkspaceCreated') return { roles: {}, ended: 'viewer' };
    if (subject === null || !('memberId' in event.data) || event.type === 'MemberIdentified') return subject;
    const { memberId } = event.data;
    const { [memberId]: before = subject.ended, ...others } = subject.roles;
    if (event.type === 'MemberRemoved') return { roles: others, ended: before };
    return { roles: { ...others, [memberId]: event.data.role }, ended: before };
  },
};

export const webhookPublisher: Publisher<typeof webhookPublic, WebhookEvent, null> = {
  rules: {
    WebhookRegistered: 'the caller has the answer; other endpoints need not know each other',
    WebhookUpdated: 'the caller has the answer; other endpoints need not know each other',
    WebhookSecretRotated: 'the caller has the answer; the deliveries carry both signatures',
    WebhookDisabled: [
      {
        type: 'webhook.disabled',
        ofEvent: ({ id, data }) => ({ webhookId: id, clientId: null, by: data.by, reason: data.reason }),
      },
    ],
    WebhookEnabled: [{ type: 'webhook.enabled', ofEvent: ({ id }) => ({ webhookId: id, clientId: null }) }],
    WebhookDeleted: 'the caller has the answer; other endpoints need not know each other',
    WebhookTestRequested: 'only the tested endpoint gets a delivery: a sample of the requested type',
    WebhookResendRequested: 'a resend repeats a published event',
    WebhookReplayRequested: 'a replay repeats published events',
    WebhookReplayCanceled: 'a replay repeats published events',
  },
  evolve: () => null,
};
