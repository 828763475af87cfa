import type { Pool } from 'pg';
import { campaign } from '#domain/campaign.ts';
import { shiftRules } from '#projections/cadence-slots.ts';
import { beforeAllCampaigns, type ShiftingCampaign, shiftingBefore } from '#projections/campaign-targets.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { carryOutShift } from '#services/workflows/campaigns/shift.ts';

/** Shifts of campaigns whose api crashed before it had moved every target. */

/** A shift that is younger is left to the api that decided it, milliseconds. */
const restMs = 10_000;

const finish = async (store: DomainStore, pool: Pool, id: string): Promise<void> => {
  const { state, events } = await store.load(campaign, id);
  if (state.status === 'none') return;
  for (const { eventId } of state.shifts) {
    const decided = events.find((event) => event.id === eventId);
    if (decided === undefined) continue;
    const rules = await shiftRules(pool, decided.metadata.workspaceId);
    await carryOutShift({ store, pool }, id, { decided, events }, rules);
  }
};

/** @param alone runs one campaign, so that its failure delays no other */
export const finishShifts = async (
  { store, pool, now = Date.now }: { readonly store: DomainStore; readonly pool: Pool; readonly now?: () => number },
  alone: (id: string, work: () => Promise<void>) => Promise<void>,
  signal: AbortSignal,
): Promise<void> => {
  const before = new Date(now() - restMs);
  for (let after: ShiftingCampaign | undefined = beforeAllCampaigns; after !== undefined; ) {
    const campaigns: readonly ShiftingCampaign[] = await shiftingBefore(pool, before, after);
    for (const { id } of campaigns) {
      if (signal.aborted) return;
      await alone(id, () => finish(store, pool, id));
    }
    after = campaigns.at(-1);
  }
};
