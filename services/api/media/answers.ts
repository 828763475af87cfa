import { rowOf } from '#projections/engine/model.ts';
import { media } from '#projections/models/media.ts';
import type { DecodedEvent } from '#runtime/eventing/codec.ts';
import type { Call } from '../operation.ts';
import { writtenRow } from '../rows.ts';
import { showMedia } from './show.ts';

/** The asset as these events leave it, rendered by the read model's own fold, and what to wait for. */
export const acceptedMedia = async (call: Pick<Call, 'deps' | 'now'>, events: readonly DecodedEvent[]) => {
  const row = writtenRow(rowOf(media, events));
  return { ...(await showMedia(call, row)), readyEvent: 'media.ready' as const };
};
