import { deepEqual, equal } from 'node:assert/strict';
import { approval } from '#domain/approval.ts';
import type { ApprovalEvent } from '#schemas/approval.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

suite('a request for approval', (t) => {
  const { given, state } = deciding(approval);
  const decidedBy = { type: 'apikey', id: 'k1' } as const;
  const about = {
    ...{ postId: 'p1', clientId: 'c1', request: 1, postRevision: 1, contentHash: 'a'.repeat(64) },
    requestedBy: { type: 'apikey', id: 'k2' } as const,
    scheduledAt: '2026-03-02T08:00:00.000Z',
  };
  const requested: ApprovalEvent = { type: 'ApprovalRequested', data: about };
  const decide = (decision: 'approve' | 'reject' | 'request_changes', comment: string | null) =>
    ({ type: 'Decide', decision, decidedBy, comment }) as const;
  const approved: ApprovalEvent = { type: 'ApprovalApproved', data: { decidedBy, comment: null } };
  const rejected: ApprovalEvent = { type: 'ApprovalRejected', data: { decidedBy, comment: 'No.' } };
  const sentBack: ApprovalEvent = { type: 'ApprovalChangesRequested', data: { decidedBy, comment: 'Shorter.' } };
  const withdraw = { type: 'Withdraw', reason: 'post_changed' } as const;
  const withdrawn: ApprovalEvent = { type: 'ApprovalWithdrawn', data: { reason: 'post_changed' } };

  t('is made once', () => {
    given([]).when({ type: 'Request', about }).then([requested]);
    for (const later of [approved, rejected, sentBack, withdrawn]) {
      given([requested, later]).when({ type: 'Request', about }).then([]);
    }
  });

  t('is decided once; whoever comes later reads who decided', () => {
    const again = { again: 'approval_not_pending' };
    given([requested]).when(decide('approve', null)).then([approved], again);
    given([requested]).when(decide('reject', 'No.')).then([rejected], again);
    given([requested]).when(decide('request_changes', 'Shorter.')).then([sentBack], again);
    given([requested, withdrawn]).when(decide('approve', null)).refused('approval_not_pending', 'withdrawn');
    given([]).when(decide('approve', null)).refused('not_found');
    try {
      approval.decide(decide('reject', 'No.'), state([requested, { ...approved, at: '2026-01-01T00:00:09.000Z' }]));
      equal(true, false, 'it was not refused');
    } catch (error) {
      deepEqual((error as { extra?: unknown }).extra, {
        approvalStatus: 'approved',
        decidedBy,
        decidedAt: '2026-01-01T00:00:09.000Z',
      });
    }
  });

  t('is withdrawn while it is pending, and where it was approved; other decisions stand', () => {
    given([requested]).when(withdraw).then([withdrawn]);
    given([requested, approved]).when(withdraw).then([withdrawn]);
    given([requested, rejected]).when(withdraw).then([]);
    given([requested, sentBack]).when(withdraw).then([]);
    given([]).when(withdraw).refused('not_found');
    equal(state([requested, approved, withdrawn]).status, 'withdrawn');
  });
});
