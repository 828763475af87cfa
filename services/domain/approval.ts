import type { ApprovalEvent, ApprovalRequest, ApprovalStatus, WithdrawReason } from '#schemas/approval.ts';
import type { Actor } from '#schemas/common.ts';
import { type Decider, Rejection } from './decider.ts';

/**
 * A request for approval. Its law: only a pending request is decided, once; a request for a content that no longer goes
 * out is withdrawn, also where it was approved. Whether the post may go out is decided in the post's own stream.
 */

interface Decided {
  readonly by: Actor;
  readonly at: string;
  readonly comment: string | null;
}

export type ApprovalState =
  | { readonly status: 'none' }
  | { readonly status: ApprovalStatus; readonly about: ApprovalRequest; readonly decided: Decided | null };

export const decisions = ['approve', 'reject', 'request_changes'] as const;
export type Decision = (typeof decisions)[number];

export type ApprovalCommand =
  | { readonly type: 'Request'; readonly about: ApprovalRequest }
  | {
      readonly type: 'Decide';
      readonly decision: Decision;
      readonly decidedBy: Actor;
      readonly comment: string | null;
    }
  | { readonly type: 'Withdraw'; readonly reason: WithdrawReason };

const unknown = (): Rejection => new Rejection('not_found', 'There is no such approval.');

const decide = (command: ApprovalCommand, state: ApprovalState): readonly ApprovalEvent[] => {
  switch (command.type) {
    case 'Request':
      return state.status === 'none' ? [{ type: 'ApprovalRequested', data: { ...command.about } }] : [];
    case 'Decide': {
      if (state.status === 'none') throw unknown();
      if (state.status !== 'pending') {
        const { decided } = state;
        throw new Rejection('approval_not_pending', `The request for approval is ${state.status}.`, {
          extra: { approvalStatus: state.status, decidedBy: decided?.by ?? null, decidedAt: decided?.at ?? null },
        });
      }
      return [decisionEvent(command)];
    }
    case 'Withdraw':
      if (state.status === 'none') throw unknown();
      if (state.status !== 'pending' && state.status !== 'approved') return [];
      return [{ type: 'ApprovalWithdrawn', data: { reason: command.reason } }];
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
      return state.status === 'none' ? { status: 'pending', about: event.data, decided: null } : state;
    }
    if (state.status === 'none') return state;
    if (event.type === 'ApprovalWithdrawn') return { ...state, status: 'withdrawn' };
    const { decidedBy: by, comment } = event.data;
    return { ...state, status: decidedStatus[event.type], decided: { by, at, comment } };
  },
};
