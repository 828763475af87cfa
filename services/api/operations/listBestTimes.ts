import { bestTimes, comparedAgeMs } from '#domain/best-times.ts';
import { livePlatforms } from '#projections/accounts.ts';
import { readEngaged } from '#projections/analytics/read-posts.ts';
import { getClient } from '#projections/clients.ts';
import { postKinds } from '#projections/post-kinds.ts';
import { BestTime, BestTimesQuery } from '#schemas/http/best-times.ts';
import { bestTimeExample } from '../analytics/examples.ts';
import { storeOf, timezoneOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';

const lookBackMs = 90 * 86_400_000;

export const listBestTimes = operation({
  id: 'listBestTimes',
  method: 'GET',
  path: '/best-times',
  tag: 'analytics',
  summary: 'List the slots of the week, the best time to post first',
  description:
    'All 168 slots of the week, each an hour of a weekday, on one page. The ranking compares the interactions that each post of the last 90 days had after 7 days with the usual result of its account for posts of the same kind (feed, reel or story). With few such posts it rests on assumptions about the network: see `basis` and `sampleSize`.',
  scope: 'besttimes.read',
  idempotent: 'none',
  cost: 1,
  query: BestTimesQuery,
  answer: BestTime,
  list: true,
  codes: [],
  example: { data: bestTimeExample },
  handle: async (call) => {
    const { deps, workspaceId, query } = call;
    await call.behind(['workspace']);
    const { clientId, platform } = query;
    const client = clientId === undefined ? null : await getClient(deps.knex, workspaceId, clientId);
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
    const slots = bestTimes(posts, { timezone, platforms: [...new Set(platforms)] });
    const page = { hasMore: false, cursor: null, nextCursor: null };
    return { data: slots.map((slot) => ({ object: 'best_time', timezone, ...slot })), page };
  },
});
