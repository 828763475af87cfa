import { rowOf } from '#projections/engine/model.ts';
import { campaigns, getCampaign, renderCampaign } from '#projections/models/campaigns.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Call } from '../operation.ts';
import { writtenRow } from '../rows.ts';

/**
 * A campaign as its stored events leave it, for the answer to a command. Its posts are other streams: their number is
 * that of the read model.
 */
export const showWritten = async (
  { deps, workspaceId }: Pick<Call, 'deps' | 'workspaceId'>,
  events: readonly DecodedEvent[],
) => {
  const row = writtenRow(rowOf(campaigns, events));
  const counted = await getCampaign(deps.knex, workspaceId, row.id);
  return renderCampaign({ ...row, post_count: counted?.post_count ?? 0 });
};
