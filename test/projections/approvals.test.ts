import { approvals } from '#projections/models/approvals.ts';
import { everyEventIsProjected, given, ids, instant, on } from '#test/support/projecting.ts';
import { readModelsPool } from '#test/support/read-models.ts';
import { suite } from '#test/support/suite.ts';

const pool = await readModelsPool();

suite('read models: approvals', (t) => {
  const { postId, clientId } = ids('postId', 'clientId');
  const requestedBy = { type: 'apikey', id: 'k1' };
  const decidedBy = { type: 'member', id: 'm1' };
  const about = { postId, clientId, request: 1, postRevision: 1, contentHash: 'a'.repeat(64), requestedBy };

  t('approvals: requested, decided by somebody, withdrawn with the decision kept', async () => {
    const { id } = ids('id');
    const approval = on('approval', id);
    const requested = approval('ApprovalRequested', { ...about, scheduledAt: instant(9) });
    const pending = {
      ...{ id, post_id: postId, client_id: clientId, status: 'pending', post_revision: 1 },
      ...{ content_hash: 'a'.repeat(64), requested_by: requestedBy, decided_by: null, decided_at: null },
      ...{ comment: null, withdrawn_reason: null },
    };
    await given(requested).project(pool, approvals).sees([pending]);
    for (const [type, status] of [
      ['ApprovalApproved', 'approved'],
      ['ApprovalRejected', 'rejected'],
      ['ApprovalChangesRequested', 'changes_requested'],
    ] as const) {
      await given(requested, approval(type, { decidedBy, comment: 'Why.' }))
        .project(pool, approvals)
        .sees([{ ...pending, status, decided_by: decidedBy, decided_at: instant(1), comment: 'Why.' }]);
    }
    // The guest's name is personal: it is read from the stream.
    const { linkId } = ids('linkId');
    await given(
      requested,
      approval('ApprovalLinkCreated', { linkId, expiresAt: instant(9), keyVersion: 'v1' }),
      approval('ApprovalLinkRevoked', { linkId }),
      approval('ApprovalGuestNamed', { clientId, linkId, name: 'Zoë' }),
    )
      .project(pool, approvals)
      .sees([pending]);
    await given(
      requested,
      approval('ApprovalApproved', { decidedBy, comment: null }),
      approval('ApprovalWithdrawn', { reason: 'post_changed' }),
    )
      .project(pool, approvals)
      .sees([
        {
          ...{ ...pending, status: 'withdrawn', decided_by: decidedBy, decided_at: instant(1) },
          withdrawn_reason: 'post_changed',
        },
      ]);
  });

  everyEventIsProjected(t, 'approval');
});
