import { account } from '#domain/account.ts';
import { type ApprovalState, approval } from '#domain/approval.ts';
import { campaign } from '#domain/campaign.ts';
import { client } from '#domain/client.ts';
import type { Decider } from '#domain/decider.ts';
import { type Intent, type PostState, post, publishedAtOf, statusOf } from '#domain/post/post.ts';
import { type WebhookState, webhook } from '#domain/webhook.ts';
import { type WorkspaceState, workspace } from '#domain/workspace.ts';
import { applyEvent, type Model, type Row } from '#projections/engine/model.ts';
import { apiKeys } from '#projections/models/apikeys.ts';
import { postTargets, renderTarget, type TargetRow } from '#projections/models/targets.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { foldEvents } from '#runtime/eventing/domain-store.ts';
import type { PostBody } from '#schemas/post.ts';

/**
 * The things whose history is shown: how each is folded from its stream, and which of its members are shown. A view names
 * what it shows, so that a new member of a state, such as the hash of a secret, is not shown before somebody adds it.
 */

type Members = Readonly<Record<string, unknown>>;

export interface Viewing {
  /** The credential is limited to clients. */
  readonly isLimited: boolean;
  /** Of a member: the stream is that of the whole workspace. */
  readonly id: string;
}

export interface Noun {
  /** As `resource` of an answer. */
  readonly resource: string;
  /** As refusals name it. */
  readonly word: string;
  readonly kind: string;
  readonly initial: unknown;
  readonly step: (state: unknown, event: DecodedEvent) => unknown;
  /** Null: the thing is not there. */
  readonly view: (state: unknown, viewing: Viewing) => Members | null;
  /** Members of which nothing is shown any more, whatever the events say, as the newest state has it. */
  readonly blanked?: (newest: Members) => readonly string[];
}

const byDecider = <State extends { readonly status: string }, Command, Event extends { readonly type: string }>(
  decider: Decider<State, Command, Event>,
  view: (state: Exclude<State, { readonly status: 'none' }>, viewing: Viewing) => Members | null,
): Pick<Noun, 'kind' | 'initial' | 'step' | 'view'> => ({
  kind: decider.kind,
  initial: decider.initial,
  step: (state, event) => foldEvents(decider, [event], state as State),
  view: (state, viewing) => {
    const known = state as State;
    return known.status === 'none' ? null : view(known as Exclude<State, { readonly status: 'none' }>, viewing);
  },
});

/** Where the read model keeps what the decider does not need. */
const byModel = <Own extends object>(
  model: Model<Own>,
  view: (row: Row<Own>) => Members,
): Pick<Noun, 'kind' | 'initial' | 'step' | 'view'> => ({
  kind: model.kind,
  initial: null,
  step: (row, event) => applyEvent(model, event.stream.slice(model.kind.length + 1), row as Row<Own> | null, event),
  view: (row) => (row === null ? null : view(row as Row<Own>)),
});

/** A post may have named accounts of other clients before: a limited credential gets no ids of them. */
const bodyOf = ({ targetSelection, ...body }: PostBody, { isLimited }: Viewing): Members =>
  isLimited ? body : { ...body, targetSelection };

const intentOf = ({ kind, targetIds, skipped, ...more }: Intent): Members => ({
  kind,
  targetIds,
  skipped,
  reason: 'reason' in more ? more.reason : null,
});

const postView = (state: Exclude<PostState, { status: 'none' }>, viewing: Viewing): Members => {
  const live = state.status === 'live' ? state : null;
  const { recycle } = state;
  return {
    status: statusOf(state),
    clientId: state.clientId,
    createdBy: state.createdBy,
    ...bodyOf(state.body, viewing),
    /** What a held revise asks for, until it is released. */
    pendingRevision: live?.asked ? bodyOf(live.asked.body, viewing) : null,
    plan: live?.plan.number ?? null,
    approval: live?.approval && { id: live.approval.id, status: live.approval.status, contentHash: live.approval.hash },
    ...(viewing.isLimited
      ? {}
      : {
          intents: Object.fromEntries((live?.intents ?? []).map((one) => [one.revision, intentOf(one)])),
          targets: Object.fromEntries(Object.entries(live?.targets ?? {}).map(([id, { outcome }]) => [id, outcome])),
        }),
    publishedAt: publishedAtOf(state),
    recycledFrom: state.recycledFrom?.postId ?? null,
    recycle: recycle && {
      enabled: recycle.enabled,
      settings: recycle.settings,
      setBy: recycle.setBy,
      posted: recycle.posted,
      next: recycle.next,
      stoppedReason: recycle.stoppedReason,
    },
  };
};

const approvalView = ({ status, about, decided, links, guestName }: Exclude<ApprovalState, { status: 'none' }>) => ({
  ...about,
  status,
  decidedBy: decided?.by ?? null,
  decidedAt: decided?.at ?? null,
  comment: decided?.comment ?? null,
  guestName,
  // Without the version of the key from which their tokens follow.
  links: Object.fromEntries(
    Object.entries(links).map(([id, { expiresAt, isRevoked }]) => [id, { expiresAt, isRevoked }]),
  ),
});

const webhookView = (state: Exclude<WebhookState, { status: 'none' }>) => {
  const { status, url, events, description, clientIds, active, disabled, secrets, replays } = state;
  const signing = secrets.map(
    ({ generation, createdAt, expiresAt }) => [generation, { createdAt, expiresAt }] as const,
  );
  return {
    ...{ status, url, events, description, clientIds, active, disabled, replays },
    /** By generation: never a secret, and nothing from which one follows. */
    secrets: Object.fromEntries(signing),
  };
};

const memberView = (state: Exclude<WorkspaceState, { status: 'none' }>, { id }: Viewing) => {
  const member = state.members[id];
  return member === undefined ? null : { name: member.name, role: member.role, personId: member.personId ?? null };
};

const noContent = { content: '', mediaIds: [], variants: [], thread: null };

/** What a target has of its post stands with the post; the rest is no member of its own. */
const notOfTarget: readonly string[] = [
  ...['id', 'object', 'createdAt', 'updatedAt', 'revision'],
  ...['title', 'content', 'mediaIds', 'overrides', 'firstComment'],
];

const targetView = (row: TargetRow): Members => {
  const shown = Object.entries(renderTarget(row, noContent)).filter(([name]) => !notOfTarget.includes(name));
  return { ...Object.fromEntries(shown), postRevision: row.post_revision };
};

export const nouns = {
  post: { resource: 'post', word: 'post', ...byDecider(post, postView) },
  target: { resource: 'post_target', word: 'post target', ...byModel(postTargets, targetView) },
  approval: { resource: 'approval', word: 'approval', ...byDecider(approval, approvalView) },
  client: {
    ...{ resource: 'client', word: 'client' },
    ...byDecider(client, ({ status, fields, erased }) => ({ status, ...fields, erased })),
  },
  account: {
    ...{ resource: 'account', word: 'account' },
    ...byDecider(account, ({ observed, ...state }) => ({ ...state, observedLimits: observed })),
    // The picture is not sealed with the client's key. An owner who had the profile forgotten finds it nowhere either.
    blanked: ({ username, displayName }: Members) =>
      username === null && displayName === null ? ['username', 'displayName', 'avatarUrl'] : [],
  },
  campaign: {
    ...{ resource: 'campaign', word: 'campaign' },
    ...byDecider(campaign, ({ status, clientId, fields, shifts }) => ({
      ...{ status, clientId, ...fields },
      openShifts: Object.fromEntries(
        shifts.map(({ revision, minutes, days, targetIds }) => [
          revision,
          { minutes, days, targets: targetIds.length },
        ]),
      ),
    })),
  },
  webhook: { resource: 'webhook', word: 'webhook', ...byDecider(webhook, webhookView) },
  member: { resource: 'member', word: 'member', ...byDecider(workspace, memberView) },
  apiKey: {
    ...{ resource: 'api_key', word: 'API key' },
    ...byModel(apiKeys, (row) => ({
      ...{ memberId: row.member_id, name: row.name, prefix: row.prefix, scopes: row.scopes, mode: row.mode },
      ...{ clientIds: row.client_ids, expiresAt: row.expires_at },
      ...{ previousUntil: row.previous_until, revokedAt: row.revoked_at },
    })),
  },
} as const satisfies Readonly<Record<string, Noun>>;
