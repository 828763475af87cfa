/** Names that are promised already and that nothing appends or mints yet: the one place that calls a type planned. */

export const plannedEvents: readonly string[] = ['TargetHeld', 'TargetReleased'];

export const plannedPublicTypes: readonly string[] = [
  ...['post.submitted', 'post.released', 'post.returned_to_draft', 'post.recycled'],
  'post.recycle_changed',
  ...['target.held', 'target.released'],
  ...['approval.requested', 'approval.approved', 'approval.rejected', 'approval.changes_requested'],
  ...['approval.withdrawn', 'approval.link_created', 'approval.link_revoked'],
];
