/** Names that are promised already and that nothing appends or mints yet: the one place that calls a type planned. */

export const plannedEvents: readonly string[] = [
  'AccountProfileChanged',
  'TargetHeld',
  'TargetReleased',
  'TargetRevised',
  'TargetFirstCommentPosted',
  'TargetFirstCommentFailed',
];

export const plannedPublicTypes: readonly string[] = [
  ...['post.submitted', 'post.released', 'post.returned_to_draft', 'post.revised', 'post.recycled'],
  ...['post.recycle_changed', 'post.campaign_changed'],
  ...['target.held', 'target.released', 'target.revised'],
  ...['target.first_comment_posted', 'target.first_comment_failed'],
  ...['approval.requested', 'approval.approved', 'approval.rejected', 'approval.changes_requested'],
  'approval.withdrawn',
  ...['campaign.created', 'campaign.updated', 'campaign.shifted', 'campaign.deleted'],
];
