import { bestTimes, comparedAgeMs } from '#domain/best-times.ts';
import { livePlatforms } from '#projections/accounts.ts';
import { readEngaged } from '#projections/analytics/read-posts.ts';
import { getClient } from '#projections/clients.ts';
import { postKinds } from '#projections/post-kinds.ts';
import { BestTime, BestTimesQuery } from '#schemas/http/analytics.ts';
import { bestTimeExample } from '../analytics/examples.ts';
import { storeOf, timezoneOf } from '../analytics/read.ts';
import { operation } from '../operation.ts';

const lookBackMs = 90 * 86_400_000;

export const listBestTimes = operation({
  id: 'listBestTimes',
  method: 'GET',
  path: '/best-times',
  tag: 'analytics',
  summary: 'When to post: the slots of the week, the strongest first',
  description:
    'All 168, on one page. From the interactions that the posts of the last 90 days had when they were 7 days old, compared with what their accounts usually get with posts of the same kind (feed, reel or story); where there are few, from assumptions about the network: see `basis` and `sampleSize`.',
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
