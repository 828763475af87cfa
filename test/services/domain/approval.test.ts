import { deepEqual, equal } from 'node:assert/strict';
import { approval } from '#domain/approval.ts';
import type { ApprovalEvent } from '#schemas/approval.ts';
import { deciding } from '#test/support/deciding.ts';
import { suite } from '#test/support/suite.ts';

const about = {
  ...{ postId: 'p1', clientId: 'c1', request: 1, postRevision: 1, contentHash: 'a'.repeat(64) },
  requestedBy: { type: 'apikey', id: 'k2' } as const,
  scheduledAt: '2026-03-02T08:00:00.000Z',
};
const requested: ApprovalEvent = { type: 'ApprovalRequested', data: about };
const withdrawn: ApprovalEvent = { type: 'ApprovalWithdrawn', data: { reason: 'post_changed' } };

suite('a request for approval', (t) => {
  const { given, state } = deciding(approval);
  const decidedBy = { type: 'apikey', id: 'k1' } as const;
  const decide = (decision: 'approve' | 'reject' | 'request_changes', comment: string | null) =>
    ({ type: 'Decide', decision, decidedBy, comment }) as const;
  const approved: ApprovalEvent = { type: 'ApprovalApproved', data: { decidedBy, comment: null } };
  const rejected: ApprovalEvent = { type: 'ApprovalRejected', data: { decidedBy, comment: 'No.' } };
  const sentBack: ApprovalEvent = { type: 'ApprovalChangesRequested', data: { decidedBy, comment: 'Shorter.' } };
  const withdraw = { type: 'Withdraw', reason: 'post_changed' } as const;

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

  t('takes a decision without a comment', () => {
    given([requested])
      .when(decide('reject', null))
      .then([{ type: 'ApprovalRejected', data: { decidedBy, comment: '' } }], { again: 'approval_not_pending' });
  });

  t('ignores what came before the request, and a second request', () => {
    deepEqual(state([approved]), { status: 'none' });
    equal(state([requested, approved, requested]).status, 'approved');
  });
});

suite('a link of a request for approval', (t) => {
  const { given, state } = deciding(approval);
  const expiresAt = '2026-03-05T00:00:00.000Z';
  const before = '2026-03-04T23:59:59.999Z';
  const create = { type: 'CreateLink', linkId: 'l1', expiresAt, keyVersion: 'v1' } as const;
  const created: ApprovalEvent = { type: 'ApprovalLinkCreated', data: { linkId: 'l1', expiresAt, keyVersion: 'v1' } };
  const other: ApprovalEvent = { type: 'ApprovalLinkCreated', data: { linkId: 'l2', expiresAt, keyVersion: 'v1' } };
  const revoke = { type: 'RevokeLink', linkId: 'l1' } as const;
  const revoked: ApprovalEvent = { type: 'ApprovalLinkRevoked', data: { linkId: 'l1' } };
  const decidedBy = { type: 'guest', id: 'l1' } as const;
  const asGuest = (linkId: string, now: string) =>
    ({ type: 'Decide', decision: 'approve', decidedBy, comment: null, guest: { linkId, name: 'Gus', now } }) as const;
  const named: ApprovalEvent = { type: 'ApprovalGuestNamed', data: { clientId: 'c1', linkId: 'l1', name: 'Gus' } };
  const approved: ApprovalEvent = { type: 'ApprovalApproved', data: { decidedBy, comment: null } };

  t('is made once, while the request is pending', () => {
    given([requested]).when(create).then([created]);
    given([requested, created, withdrawn]).when(create).then([]);
    given([requested, withdrawn]).when(create).refused('approval_not_pending', 'withdrawn');
    given([]).when(create).refused('not_found', 'no such approval');
  });

  t('is revoked once, and the others stay', () => {
    given([requested, created, other]).when(revoke).then([revoked]);
    given([requested, withdrawn]).when(revoke).refused('not_found', 'no such link');
    given([]).when(revoke).refused('not_found', 'no such link');
    deepEqual(state([requested, created, other, revoked]), {
      ...{ status: 'pending', about, decided: null, guestName: null },
      links: {
        l1: { expiresAt, keyVersion: 'v1', isRevoked: true },
        l2: { expiresAt, keyVersion: 'v1', isRevoked: false },
      },
    });
    deepEqual(state([requested, created, { type: 'ApprovalLinkRevoked', data: { linkId: 'l9' } }]), {
      ...{ status: 'pending', about, decided: null, guestName: null },
      links: { l1: { expiresAt, keyVersion: 'v1', isRevoked: false } },
    });
  });

  t('lets its guest decide until it expires; the decision has the name that the guest gave', () => {
    const at = '2026-03-04T00:00:00.000Z';
    given([requested, created]).when(asGuest('l1', before)).then([named, approved], { again: 'approval_not_pending' });
    deepEqual(state([requested, created, named, { ...approved, at }]), {
      ...{ status: 'approved', about, guestName: 'Gus' },
      decided: { by: decidedBy, at, comment: null, guestName: 'Gus' },
      links: { l1: { expiresAt, keyVersion: 'v1', isRevoked: false } },
    });
  });

  t('that is unknown, revoked or expired is no link, also once the request is decided', () => {
    for (const some of [[requested], [requested, created, withdrawn]]) {
      given(some).when(asGuest('l2', before)).refused('not_found', 'no such link');
      given([...some, created, revoked])
        .when(asGuest('l1', before))
        .refused('not_found', 'no such link');
      given([...some, created])
        .when(asGuest('l1', expiresAt))
        .refused('not_found', 'no such link');
    }
    given([requested, created, withdrawn]).when(asGuest('l1', before)).refused('approval_not_pending', 'withdrawn');
  });
});
