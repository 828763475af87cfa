import { bestTimes, comparedAgeMs, type Slot } from '#domain/best-times.ts';
import { readEngaged } from '#projections/analytics/read-posts.ts';
import { livePlatforms } from '#projections/models/accounts.ts';
import { getClient } from '#projections/models/clients.ts';
import { postKinds } from '#projections/models/sql.ts';
import type { Platform } from '#schemas/common.ts';
import { BestTime, BestTimesQuery } from '#schemas/http/best-times.ts';
import { listPage } from '../call/cursor.ts';
import { type Call, operation } from '../call/operation.ts';
import { analyticsTag, bestTimeExample } from './examples.ts';
import { storeOf, timezoneOf } from './read.ts';

/** The slots of the week, ranked by what the posts of a workspace or a client got. */

const lookBackMs = 90 * 86_400_000;

interface RankedSlot extends Slot {
  readonly timezone: string;
}

/** Empty for a client that is unknown or another workspace's. */
const rankedSlots = async (
  call: Pick<Call, 'deps' | 'workspaceId' | 'principal' | 'now'>,
  { clientId, platform }: { readonly clientId?: string; readonly platform?: readonly Platform[] },
): Promise<readonly RankedSlot[]> => {
  const { deps, workspaceId } = call;
  const client = clientId === undefined ? null : await getClient(deps.knex, workspaceId, clientId);
  if (client === null && clientId !== undefined) return [];
  const timezone = client?.timezone ?? (await timezoneOf(call));
  const platforms = platform ?? (await livePlatforms(deps.knex, workspaceId, clientId ?? null));
  const now = Date.parse(call.now);
  const range = {
    since: new Date(now - lookBackMs).toISOString(),
    until: new Date(now - comparedAgeMs).toISOString(),
    ageMs: comparedAgeMs,
  };
  const engaged = await readEngaged(storeOf(call), workspaceId, range, {
    ...(clientId === undefined ? {} : { clientId }),
    ...(platform === undefined ? {} : { platforms: platform }),
  });
  const targetIds = engaged.map(({ targetId }) => targetId);
  const kinds = await postKinds(deps.knex, workspaceId, targetIds);
  const posts = engaged.map((one) => ({ ...one, kind: kinds.get(one.targetId) ?? 'feed' }));
  return bestTimes(posts, { timezone, platforms: [...new Set(platforms)] }).map((slot) => ({ timezone, ...slot }));
};

/** Where a page of the ranking ended. */
type SlotKey = Pick<Slot, 'lift' | 'weekday' | 'hour'>;

const slotKey = ({ lift, weekday, hour }: Slot): SlotKey => ({ lift, weekday, hour });

const isBehind = (slot: Slot, after: SlotKey): boolean =>
  slot.lift === after.lift ? slot.weekday * 24 + slot.hour > after.weekday * 24 + after.hour : slot.lift < after.lift;

const pageOfSlots = (slots: readonly RankedSlot[], after: SlotKey | null, limit: number) => {
  const left = after === null ? slots : slots.filter((slot) => isBehind(slot, after));
  return { rows: left.slice(0, limit), hasMore: left.length > limit };
};

export const listBestTimes = operation({
  id: 'listBestTimes',
  method: 'GET',
  path: '/best-times',
  tag: analyticsTag,
  summary: 'List the slots of the week, the best time to post first',
  description:
    'All 168 slots of the week, each an hour of a weekday. The ranking compares the interactions that each post of the last 90 days had after 7 days with the usual result of its account for posts of the same kind (feed, reel or story). With few such posts it rests on assumptions about the network: see `basis` and `sampleSize`.',
  scope: 'besttimes.read',
  limited: 'one',
  idempotent: 'none',
  cost: 1,
  query: BestTimesQuery,
  answer: BestTime,
  list: true,
  codes: [],
  example: { data: bestTimeExample },
  handle: async (call) => {
    await call.behind(['workspace']);
    const slots = await rankedSlots(call, call.query);
    return listPage('listBestTimes', call, {
      rows: async (page: { readonly after: SlotKey | null; readonly limit: number }) =>
        pageOfSlots(slots, page.after, page.limit),
      keyOf: slotKey,
      show: (slot) => ({ object: 'best_time', ...slot }),
    });
  },
});
