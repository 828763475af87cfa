import { BestTime, BestTimesQuery } from '#schemas/http/best-times.ts';
import { bestTimeExample } from '../analytics/examples.ts';
import { pageOfSlots, rankedSlots, type SlotKey, slotKey } from '../analytics/slots.ts';
import { listPage } from '../cursor.ts';
import { operation } from '../operation.ts';

export const listBestTimes = operation({
  id: 'listBestTimes',
  method: 'GET',
  path: '/best-times',
  tag: 'analytics',
  summary: 'List the slots of the week, the best time to post first',
  description:
    'All 168 slots of the week, each an hour of a weekday. The ranking compares the interactions that each post of the last 90 days had after 7 days with the usual result of its account for posts of the same kind (feed, reel or story). With few such posts it rests on assumptions about the network: see `basis` and `sampleSize`.',
  scope: 'besttimes.read',
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
