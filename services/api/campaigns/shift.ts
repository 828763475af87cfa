import { campaign } from '#domain/campaign.ts';
import { openStatuses, type ShiftSkipReason } from '#domain/post-target/target.ts';
import { postsBehindOf, targetsIn, targetsNotIn } from '#projections/queries/campaign-targets.ts';
import { shiftRules } from '#projections/queries/posting-rules.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import { type CommandContext, Unavailable } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { requireRoom } from '#runtime/eventing/stream-room.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { maxShifted } from '#schemas/campaign.ts';
import { CampaignShift, CampaignShiftResult, maxShownSkips } from '#schemas/http/campaign-shift.ts';
import { IdParams } from '#schemas/http/common.ts';
import { type CompletedShift, carryOutShift, type ShiftData } from '#services/workflows/campaigns/shift.ts';
import { fanOut } from '#services/workflows/fan-out.ts';
import { isOf } from '../call/commands.ts';
import { type Call, type One, operation } from '../call/operation.ts';
import { invalid, notFound } from '../call/refusal.ts';
import { loadCampaign } from './assign.ts';
import { campaignsTag, shiftExample } from './examples.ts';

/** Moves the targets of a campaign to other times. */

type Shifting = Call<{ readonly id: string }, unknown, CampaignShift>;

interface Skip {
  readonly targetId: string;
  readonly reason: ShiftSkipReason;
}

interface Accepted {
  /** Of the campaign. */
  readonly revision: number;
  readonly shift: ShiftData;
  /** The first targets that no shift can move. */
  readonly skipped: readonly Skip[];
}

interface Finished {
  readonly revision: number;
  readonly minutes: number | null;
  readonly days: number | null;
  readonly shifted: number;
  readonly skippedCount: number;
  readonly skipped: readonly Skip[];
}

/** Posts that are fanned out first, at most. */
const maxBehind = 100;
/** Targets of a shift that count as one request. */
const targetsForRequest = 10;

/**
 * CampaignShifted names the targets, and each is then moved. If we die before its append, nothing was moved; after it,
 * the caller's repeat or the sweeper moves the rest by the same event, and completes the shift.
 */
const shiftPosts = async (call: Shifting): Promise<One<unknown>> => {
  const { minutes = null, days = null } = call.body;
  if ((minutes === null) === (days === null)) {
    throw invalid('', 'exclusive', 'exactly one of minutes and days must be sent');
  }
  const { result, replayed } = await call.once(
    () => accept(call, { minutes, days }),
    (accepted, context) => carryOut(call, accepted, context),
  );
  const { revision } = result;
  return { data: { object: 'campaign_shift', campaignId: call.params.id, ...result }, revision, replayed };
};

const accept = async (call: Shifting, by: Pick<ShiftData, 'minutes' | 'days'>): Promise<Accepted> => {
  const { deps, params, workspaceId, context, positions } = call;
  // The posts of the campaign are all of its client, but their targets may be of others.
  const { clientIds } = call.principal;
  const { revision, events } = await loadCampaign(call);
  requireRoom(events);
  if (await call.behind(['posts'])) throw new Unavailable('The read model of posts is behind.');
  const behind = await postsBehindOf(deps.pool, workspaceId, params.id, maxBehind + 1);
  if (behind.length > maxBehind) throw new Unavailable('Posts of the campaign are being scheduled.');
  const movable = new Set<string>();
  for (const postId of behind) {
    const { targets } = await fanOut(deps.store, postId, context, { positions });
    for (const [id, { state }] of targets) {
      if (state.status === 'none' || clientIds?.includes(state.common.clientId) === false) continue;
      if (openStatuses.some((status) => status === state.status)) movable.add(id);
    }
  }
  const rows = await targetsIn(deps.pool, workspaceId, params.id, openStatuses, maxShifted + 1, clientIds);
  for (const { id } of rows) movable.add(id);
  if (movable.size > maxShifted) {
    throw invalid(
      '',
      'too_many',
      `the campaign has more than ${maxShifted} targets that can be moved: shift their posts`,
    );
  }
  const others = await targetsNotIn(deps.pool, workspaceId, params.id, openStatuses, maxShownSkips, clientIds);
  await call.charge(Math.ceil(movable.size / targetsForRequest));
  const skipped = others.rows.map(({ id, status }) => ({ targetId: id, reason: status }));
  return { revision, shift: { ...by, targetIds: [...movable], skipped: others.count }, skipped };
};

const carryOut = async (call: Shifting, accepted: Accepted, context: CommandContext): Promise<Finished> => {
  const { deps, params, positions } = call;
  const { minutes, days, skipped } = accepted.shift;
  const done = await append(call, accepted, context);
  const nothing = { minutes, days, shifted: 0, skippedCount: skipped, skipped: accepted.skipped };
  if (done === null) return { revision: accepted.revision, ...nothing };
  faultPoint('campaign:after-shift');
  const { giveUpAt } = context;
  const patience = giveUpAt === undefined ? {} : { giveUpAt };
  const rules = await shiftRules(deps.pool, call.workspaceId);
  const completion = await carryOutShift(deps, params.id, done, rules, { positions, ...patience });
  if (completion === undefined) throw new Unavailable('The shift is not completed yet.');
  deps.store.note([done.decided, completion], positions);
  const { shifted, skipped: skippedCount, passedOver } = completion.data as CompletedShift;
  const late = passedOver.flatMap(({ reason, targetIds }) =>
    targetIds.map((targetId): Skip => ({ targetId, reason: reason as ShiftSkipReason })),
  );
  const shown = [...late, ...accepted.skipped].slice(0, maxShownSkips);
  return { revision: completion.revision, minutes, days, shifted, skippedCount, skipped: shown };
};

/** Appends the accepted shift, unless an earlier call under its key has. Null where it moves nothing. */
const append = async (
  { deps, params, positions }: Shifting,
  { shift }: Accepted,
  context: CommandContext,
): Promise<{ readonly decided: DecodedEvent; readonly events: readonly DecodedEvent[] } | null> => {
  const loaded = await deps.store.load(campaign, params.id);
  const command = { type: 'Shift', commandId: context.commandId, ...shift } as const;
  const known = loaded.events.find(isOf(context));
  if (known !== undefined) return { decided: known, events: loaded.events };
  if (loaded.state.status !== 'live') throw notFound('campaign');
  const written = await execute(deps.store, campaign, params.id, command, context, {
    positions,
    loaded,
    optional: true,
  });
  const decided = written.events.find(isOf(context));
  return decided === undefined ? null : { decided, events: written.events };
};

export const shiftCampaign = operation({
  id: 'shiftCampaign',
  method: 'POST',
  path: '/campaigns/{id}/shift',
  tag: campaignsTag,
  summary: 'Move the schedule of a campaign',
  description: [
    'Moves every target of its posts that is pending, held or rate-limited, by `minutes` or by `days`. Days keep the wall-clock time of each target in its own zone, also where the clocks change in between; a time that the clocks skip moves forward by the gap. Jitter stays. Drafts have no targets and stay as they are.',
    'All other targets are skipped with a reason, and so is one whose new time would be in the past or more than 18 months ahead; a skipped target stops no other. If the publisher takes a target at the same moment, either the former or the new time holds, and the answer says which.',
    'The shift is stored before the first target moves: if the call is cut off, the service moves the rest shortly after, and a repeat under the same Idempotency-Key answers what became of it. A campaign with more than 5,000 targets that can be moved is refused.',
    'Counts as one request for every ten targets, taken as debt.',
  ].join('\n\n'),
  scope: 'campaigns.manage',
  limited: 'ids',
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
