import { CampaignShift, CampaignShiftResult } from '#schemas/http/campaign-shift.ts';
import { IdParams } from '#schemas/http/common.ts';
import { shiftExample } from '../campaigns/examples.ts';
import { shiftPosts } from '../campaigns/shift.ts';
import { operation } from '../operation.ts';

export const shiftCampaign = operation({
  id: 'shiftCampaign',
  method: 'POST',
  path: '/campaigns/{id}/shift',
  tag: 'campaigns',
  summary: 'Move the schedule of a campaign',
  description: [
    'Moves every target of its posts that is pending, held or rate-limited, by `minutes` or by `days`. Days keep the wall-clock time of each target in its own zone, also where the clocks change in between; a time that the clocks skip moves forward by the gap. Jitter stays. Drafts have no targets and stay as they are.',
    'All other targets are skipped with a reason, and so is one whose new time would be in the past or more than 18 months ahead; a skipped target stops no other. If the publisher takes a target at the same moment, either the former or the new time holds, and the answer says which.',
    'The shift is stored before the first target moves: if the call is cut off, the service moves the rest shortly after, and a repeat under the same Idempotency-Key answers what became of it. A campaign with more than 5,000 targets that can be moved is refused.',
    'Counts as one request for every ten targets, taken as debt.',
  ].join('\n\n'),
  scope: 'campaigns.manage',
  idempotent: 'accepted',
  cost: 1,
  ifMatch: true,
  params: IdParams,
  body: CampaignShift,
  answer: CampaignShiftResult,
  codes: ['validation_failed', 'stream_full'],
  example: shiftExample,
  handle: (call) => shiftPosts(call),
});
