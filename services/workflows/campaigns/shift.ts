import type { Pool } from 'pg';
import { campaign } from '#domain/campaign.ts';
import { Rejection } from '#domain/decider.ts';
import { NotShifted, type ShiftSkipReason, target } from '#domain/post-target/target.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { CommandContext, DomainStore, Positions } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import type { CampaignEvent } from '#schemas/campaign.ts';
import type { CadenceSource } from '../cadence/check.ts';
import { faultOfMove } from '../cadence/move.ts';
import { contextOf, inGroups } from '../fan-out.ts';
import { tendPlaces } from '../quota/give-back.ts';
import { executeWithPlace, type QuotaRules } from '../quota/reserve.ts';

/**
 * Carries out a shift of a campaign: moves each of its targets, and then completes the shift. Any process may run this
 * any number of times, at the same time too: actor, time and ids of its events follow from CampaignShifted, and a target
 * that the shift has moved already yields no event. If we die after CampaignShifted, between two targets or before the
 * completion, the shift is open in the campaign's row and the sweeper runs this again. A completed shift is never run
 * again: it would move a target that it passed over, and that a person retries later.
 */

export type ShiftData = Extract<CampaignEvent, { type: 'CampaignShifted' }>['data'];
export type CompletedShift = Extract<CampaignEvent, { type: 'CampaignShiftCompleted' }>['data'];

const completionOf = (events: readonly DecodedEvent[], { revision }: DecodedEvent): DecodedEvent | undefined =>
  events.find(({ type, data }) => type === 'CampaignShiftCompleted' && data.shiftRevision === revision);

/** What limits the times of the targets. */
interface ShiftRules extends QuotaRules {
  readonly cadence: CadenceSource;
}

const passingOver = (error: unknown): ShiftSkipReason | null => {
  if (error instanceof NotShifted) return error.reason;
  return error instanceof Rejection && error.code === 'quota_exceeded' ? error.code : null;
};

/**
 * @param events of the campaign, with the shift among them
 * @param rules of its workspace; a target for whose new time they leave no room is passed over
 * @returns the event that completes the shift, of this run or of another
 */
export const carryOutShift = async (
  { store, pool }: { readonly store: DomainStore; readonly pool: Pool },
  campaignId: string,
  { decided, events }: { readonly decided: DecodedEvent; readonly events: readonly DecodedEvent[] },
  rules: ShiftRules,
  options: { readonly positions?: Positions; readonly giveUpAt?: number } = {},
): Promise<DecodedEvent | undefined> => {
  const done = completionOf(events, decided);
  if (done !== undefined) return done;
  const { minutes, days, targetIds } = decided.data as ShiftData;
  const { positions, giveUpAt } = options;
  const given = positions === undefined ? {} : { positions };
  const context: CommandContext = {
    ...contextOf(decided),
    ...{ causeEventId: decided.id, causationId: decided.id },
    ...(giveUpAt === undefined ? {} : { giveUpAt }),
  };
  const { commandId, now } = context;
  const passedOver = new Map<string, ShiftSkipReason>();
  const together = new Set(targetIds);
  await inGroups(targetIds, async (targetId) => {
    const loaded = await store.load(target, targetId);
    const partitionKey = loaded.state.status === 'none' ? '' : loaded.state.common.postId;
    const command = { type: 'Shift', commandId, now, minutes, days } as const;
    const moving = { store, pool, context, rules };
    try {
      const often = await faultOfMove(store, rules.cadence, loaded.state, command, together);
      if (often !== null) throw new NotShifted('cadence_exceeded');
      const { appended } = await executeWithPlace(moving, targetId, command, { partitionKey, loaded, ...given });
      faultPoint('campaign:before-give-back');
      if (appended.length > 0 && rules.quota !== null) await tendPlaces(moving, partitionKey, [targetId]);
    } catch (error) {
      const reason = passingOver(error);
      if (reason === null) throw error;
      passedOver.set(targetId, reason);
    }
    faultPoint('campaign:between-targets');
  });
  faultPoint('campaign:before-completion');
  const late = targetIds.flatMap((targetId) => {
    const reason = passedOver.get(targetId);
    return reason === undefined ? [] : [{ targetId, reason }];
  });
  const complete = { type: 'CompleteShift', shiftRevision: decided.revision, late } as const;
  const after = await execute(store, campaign, campaignId, complete, context, given);
  return completionOf(after.events, decided);
};
