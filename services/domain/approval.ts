import type { ApprovalEvent, ApprovalRequest, ApprovalStatus, WithdrawReason } from '#schemas/approval.ts';
import type { Actor } from '#schemas/common.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * A request for approval. Its law: only a pending request is decided, once; a request for a content that no longer goes
 * out is withdrawn, also where it was approved. Whether the post may go out is decided in the post's own stream.
 */

export interface ApprovalLink {
  readonly expiresAt: string;
  readonly keyVersion: string;
  readonly isRevoked: boolean;
}

interface Decided {
  readonly by: Actor;
  readonly at: string;
  readonly comment: string | null;
  /** Who the guest says that they are; null: a member decided, or the client was erased. */
  readonly guestName: string | null;
}

export type ApprovalState =
  | { readonly status: 'none' }
  | {
      readonly status: ApprovalStatus;
      readonly about: ApprovalRequest;
      readonly decided: Decided | null;
      /** By id. */
      readonly links: Readonly<Record<string, ApprovalLink>>;
      /** Named in the append of the decision that follows. */
      readonly guestName: string | null;
    };

export const decisions = ['approve', 'reject', 'request_changes'] as const;
export type Decision = (typeof decisions)[number];

export type ApprovalCommand =
  | { readonly type: 'Request'; readonly about: ApprovalRequest }
  | {
      readonly type: 'Decide';
      readonly decision: Decision;
      readonly decidedBy: Actor;
      readonly comment: string | null;
      /** Through whose link a guest decides, and when. Absent: a member does. */
      readonly guest?: { readonly linkId: string; readonly name: string; readonly now: string };
    }
  | { readonly type: 'Withdraw'; readonly reason: WithdrawReason }
  | { readonly type: 'CreateLink'; readonly linkId: string; readonly expiresAt: string; readonly keyVersion: string }
  | { readonly type: 'RevokeLink'; readonly linkId: string };

const unknown = (): Rejection => new Rejection('not_found', 'There is no such approval.');
const unknownLink = (): Rejection => new Rejection('not_found', 'There is no such link.');

/** Callers cannot tell unknown, revoked and expired links apart. */
export const isUsableLink = (link: ApprovalLink | undefined, now: string): link is ApprovalLink =>
  link !== undefined && !link.isRevoked && link.expiresAt > now;

const notPending = ({ status, decided }: Exclude<ApprovalState, { status: 'none' }>): Rejection =>
  new Rejection('approval_not_pending', `The request for approval is ${status}.`, {
    extra: { approvalStatus: status, decidedBy: decided?.by ?? null, decidedAt: decided?.at ?? null },
  });

const decide = (command: ApprovalCommand, state: ApprovalState): readonly ApprovalEvent[] => {
  switch (command.type) {
    case 'Request':
      return state.status === 'none' ? [{ type: 'ApprovalRequested', data: { ...command.about } }] : [];
    case 'Decide': {
      if (state.status === 'none') throw unknown();
      const { guest } = command;
      if (guest !== undefined && !isUsableLink(state.links[guest.linkId], guest.now)) throw unknownLink();
      if (state.status !== 'pending') throw notPending(state);
      if (guest === undefined) return [decisionEvent(command)];
      const { linkId, name } = guest;
      const { clientId } = state.about;
      return [{ type: 'ApprovalGuestNamed', data: { clientId, linkId, name } }, decisionEvent(command)];
    }
    case 'Withdraw':
      if (state.status === 'none') throw unknown();
      if (state.status !== 'pending' && state.status !== 'approved') return [];
      return [{ type: 'ApprovalWithdrawn', data: { reason: command.reason } }];
    case 'CreateLink': {
      if (state.status === 'none') throw unknown();
      const { linkId, expiresAt, keyVersion } = command;
      if (state.links[linkId] !== undefined) return [];
      if (state.status !== 'pending') throw notPending(state);
      return [{ type: 'ApprovalLinkCreated', data: { linkId, expiresAt, keyVersion } }];
    }
    case 'RevokeLink': {
      const link = state.status === 'none' ? undefined : state.links[command.linkId];
      if (link === undefined) throw unknownLink();
      return link.isRevoked ? [] : [{ type: 'ApprovalLinkRevoked', data: { linkId: command.linkId } }];
    }
  }
};

const decisionEvent = ({
  decision,
  decidedBy,
  comment,
}: Extract<ApprovalCommand, { type: 'Decide' }>): ApprovalEvent => {
  if (decision === 'approve') return { type: 'ApprovalApproved', data: { decidedBy, comment } };
  const data = { decidedBy, comment: comment ?? '' };
  return decision === 'reject' ? { type: 'ApprovalRejected', data } : { type: 'ApprovalChangesRequested', data };
};

const decidedStatus = {
  ApprovalApproved: 'approved',
  ApprovalRejected: 'rejected',
  ApprovalChangesRequested: 'changes_requested',
} as const;

export const approval: Decider<ApprovalState, ApprovalCommand, ApprovalEvent> = {
  kind: 'approval',
  initial: { status: 'none' },
  decide,
  evolve: (state, event, { occurredAt: at }) => {
    if (event.type === 'ApprovalRequested') {
      const fresh = { status: 'pending', about: event.data, decided: null, links: {}, guestName: null } as const;
      return state.status === 'none' ? fresh : state;
    }
    if (state.status === 'none') return state;
    switch (event.type) {
      case 'ApprovalWithdrawn':
        return { ...state, status: 'withdrawn' };
      case 'ApprovalLinkCreated': {
        const { linkId, expiresAt, keyVersion } = event.data;
        return { ...state, links: { ...state.links, [linkId]: { expiresAt, keyVersion, isRevoked: false } } };
      }
      case 'ApprovalLinkRevoked': {
        const link = state.links[event.data.linkId];
        if (link === undefined) return state;
        return { ...state, links: { ...state.links, [event.data.linkId]: { ...link, isRevoked: true } } };
      }
      case 'ApprovalGuestNamed':
        return { ...state, guestName: event.data.name };
      default: {
        const { decidedBy: by, comment } = event.data;
        const { guestName } = state;
        return { ...state, status: decidedStatus[event.type], decided: { by, at, comment, guestName } };
      }
    }
  },
};
