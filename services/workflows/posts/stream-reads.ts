import type { PostAsset } from '#domain/post/compose.ts';
import { mediaIdsOf } from '#domain/post/content.ts';
import type { CadenceSource } from '../cadence/check.ts';
import { cadenceRefusal } from '../cadence/refusal.ts';
import { liveCampaign } from '../campaigns/live.ts';
import { accountFromStream, clientFromStream, type SelectedAccount, type StreamsOfWorkspace } from './accounts.ts';
import type { PostReads } from './compose.ts';
import { assetFromStream } from './media.ts';

/** What the checks of a post read, from streams alone: a worker has no caller whose writes it could wait for. */

/** Streams that are read at the same time. */
const readAtOnce = 16;

export interface StreamReads extends PostReads {
  readonly accounts: (ids: readonly string[]) => Promise<readonly (SelectedAccount | null)[]>;
}

const inBatches = async <Value>(ids: readonly string[], read: (id: string) => Promise<Value>): Promise<Value[]> => {
  const found: Value[] = [];
  for (let at = 0; at < ids.length; at += readAtOnce) {
    found.push(...(await Promise.all(ids.slice(at, at + readAtOnce).map(read))));
  }
  return found;
};

export const streamReads = (streams: StreamsOfWorkspace, source: () => Promise<CadenceSource>): StreamReads => ({
  client: (id) => clientFromStream(streams, id),
  cadence: async (wanted, own) => cadenceRefusal(await source(), wanted, own),
  campaign: (id) => liveCampaign(streams, id),
  accounts: (ids) => inBatches(ids, (id) => accountFromStream(streams, id)),
  assets: async (body) => {
    const found = await inBatches(mediaIdsOf(body), async (id) => [id, await assetFromStream(streams, id)] as const);
    return new Map(found.filter((one): one is readonly [string, PostAsset] => one[1] !== null));
  },
});
