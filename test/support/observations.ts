/** Observations as events, and what the grains of them are, counted in the plainest way there is. */
import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@clickhouse/client';
import { interactionsOf } from '#domain/engagement.ts';
import { columnOf, tableOf } from '#projections/analytics/tables.ts';
import type { Platform } from '#schemas/common.ts';
import { type Counter, counters, type PostFigures } from '#schemas/metrics.ts';
import type { Given } from './projecting.ts';

export interface Seen {
  readonly workspaceId: string;
  readonly postId: string;
  readonly targetId: string;
  readonly clientId: string;
  readonly accountId: string;
  readonly platform: Platform;
  readonly day: string;
  /** ISO 8601 */
  readonly observedAt: string;
  readonly figures: PostFigures;
  readonly removedAt?: string;
}

export const observed = (seen: Seen): Given => ({
  stream: `targetmetrics-${seen.targetId}`,
  type: 'TargetMetricsObserved',
  data: {
    accountId: seen.accountId,
    clientId: seen.clientId,
    platform: seen.platform,
    observedAt: seen.observedAt,
    day: seen.day,
    source: 'test/1',
    raw: { of: seen.figures },
    targetId: seen.targetId,
    postId: seen.postId,
    externalId: `x-${seen.targetId}`,
    publishedAt: '2026-01-01T00:00:00.000Z',
    figures: seen.figures,
    platformRemovedAt: seen.removedAt ?? null,
  },
});

/** Same seed, same numbers: mulberry32. */
export const randomOf = (seed: number): (() => number) => {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
};

export interface HistoryOptions {
  readonly targets: number;
  readonly days: number;
  readonly workspaceId?: string;
}

const from = Date.parse('2026-02-01T00:00:00.000Z');
const platforms: readonly Platform[] = ['instagram', 'linkedin', 'youtube'];
/** Told by everybody, by few, with gaps: absent, null and 0 all happen. */
const told: readonly Counter[] = [
  'impressions',
  'likes',
  'comments',
  'shares',
  'saves',
  'totalInteractions',
  'videoViews',
];

/** Lifetime figures that grow, stand still, and are corrected downwards; some days are not observed, some twice. */
export const history = (random: () => number, options: HistoryOptions): Seen[] => {
  const { targets, days, workspaceId = randomUUID() } = options;
  const pick = <T>(all: readonly T[]): T => all[Math.floor(random() * all.length)] as T;
  const clients = [randomUUID(), randomUUID()];
  const accounts = Array.from({ length: 3 }, (_, n) => ({
    accountId: randomUUID(),
    clientId: pick(clients),
    platform: platforms[n] as Platform,
  }));
  const all: Seen[] = [];
  for (let n = 0; n < targets; n += 1) {
    const ids = { workspaceId, postId: randomUUID(), targetId: randomUUID(), ...pick(accounts) };
    const life: Partial<Record<Counter, number>> = {};
    const moved = random() < 0.1 ? Math.floor(random() * days) : null;
    for (let day = 0; day < days; day += 1) {
      if (random() < 0.3) continue;
      const looks = random() < 0.15 ? 2 : 1;
      for (let look = 0; look < looks; look += 1) {
        const at = from + day * 86_400_000 + (look * 8 + 2) * 3_600_000 + Math.floor(random() * 3_600_000);
        const figures: Record<string, unknown> = {};
        for (const one of told) {
          const dice = random();
          if (dice < 0.15) continue;
          if (dice < 0.3) figures[one] = null;
          else {
            const before = life[one] ?? 0;
            const next =
              dice < 0.4 ? Math.floor(before * 0.9) : dice < 0.5 ? before : before + Math.floor(random() * 500);
            life[one] = next;
            figures[one] = next;
          }
        }
        const clientId = moved !== null && day >= moved && look === 1 ? clients[0] : ids.clientId;
        const observedAt = new Date(at).toISOString();
        all.push({ ...ids, clientId: clientId as string, day: observedAt.slice(0, 10), observedAt, figures });
      }
    }
  }
  return all;
};

/** By column. */
export type Sums = Record<string, number | null>;

/** Each as it was fetched last. */
export const foldedFigures = (seen: readonly Seen[]): PostFigures =>
  Object.assign({}, ...seen.toSorted((a, b) => (a.observedAt < b.observedAt ? -1 : 1)).map(({ figures }) => figures));

/** The daily grain of each of these keys, `key` → sums, from the observations alone. */
export const bruteForce = (all: readonly Seen[], keyOf: (seen: Seen) => string): ReadonlyMap<string, Sums> => {
  const grains = new Map<string, Sums>();
  const byTarget = Map.groupBy(all, (seen) => seen.targetId);
  const add = (sums: Sums, name: string, value: number | null): void => {
    if (value !== null) sums[name] = (sums[name] ?? 0) + value;
    else sums[name] ??= null;
  };
  for (const seen of byTarget.values()) {
    const byDay = Map.groupBy(seen, (one) => one.day);
    const known: Partial<Record<Counter, number>> = {};
    const rated = { interactions: 0, impressions: 0 };
    let folded: readonly Seen[] = [];
    const newest = (day: string): Seen =>
      (byDay.get(day) ?? []).toSorted((a, b) => (a.observedAt < b.observedAt ? -1 : 1)).at(-1) as Seen;
    for (const day of [...byDay.keys()].sort((a, b) => (newest(a).observedAt < newest(b).observedAt ? -1 : 1))) {
      const last = newest(day);
      folded = seen.filter(({ observedAt }) => observedAt <= last.observedAt);
      const key = keyOf(last);
      const sums = grains.get(key) ?? { targets: 0, rated_interactions: null, rated_impressions: null };
      grains.set(key, sums);
      sums.targets = (sums.targets ?? 0) + 1;
      const figures = foldedFigures(byDay.get(day) ?? []);
      for (const one of counters) {
        const value = figures[one] ?? null;
        add(sums, columnOf(one), value === null ? null : value - (known[one] ?? 0));
        if (value !== null) known[one] = value;
      }
      const lifetime = foldedFigures(folded);
      const interactions = interactionsOf(lifetime);
      const impressions = lifetime.impressions ?? null;
      if (interactions !== null && impressions !== null) {
        add(sums, 'rated_interactions', interactions - rated.interactions);
        add(sums, 'rated_impressions', impressions - rated.impressions);
        Object.assign(rated, { interactions, impressions });
      }
    }
  }
  return grains;
};

const cells = ['targets', ...counters.map(columnOf), 'rated_interactions', 'rated_impressions'];

/** What a grain's table shows now, `key` → sums; rows that are empty are left out. */
export const shownGrain = async (
  client: ClickHouseClient,
  name: 'workspace_days' | 'client_days' | 'account_days',
  version = 1,
): Promise<ReadonlyMap<string, Sums>> => {
  const own = { workspace_days: 'platform', client_days: 'client_id, platform', account_days: 'account_id' }[name];
  const keys = `workspace_id, day, ${own}`;
  const query = `select ${keys}, ${cells.join(', ')} from (
    select * from ${tableOf(name, version)} order by ${keys}, version desc limit 1 by ${keys}) where targets > 0`;
  const rows = await (await client.query({ query, format: 'JSONCompactEachRow' })).json<(string | number | null)[]>();
  const width = keys.split(', ').length;
  return new Map(
    rows.map((row) => [
      row.slice(0, width).join(' '),
      Object.fromEntries(cells.map((one, at) => [one, row[width + at] === null ? null : Number(row[width + at])])),
    ]),
  );
};

export const keys = {
  workspace_days: (seen: Seen) => `${seen.workspaceId} ${seen.day} ${seen.platform}`,
  client_days: (seen: Seen) => `${seen.workspaceId} ${seen.day} ${seen.clientId} ${seen.platform}`,
  account_days: (seen: Seen) => `${seen.workspaceId} ${seen.day} ${seen.accountId}`,
} as const;

/** What was gained by each target on each day of `post_days`, `target day` → gains by the counters' columns. */
export const shownGains = async (
  client: ClickHouseClient,
  workspaceId: string,
  version = 1,
): Promise<ReadonlyMap<string, Sums>> => {
  const columns = counters.map(columnOf);
  const query = `select target_id, day, ${columns.map((one) => `gain_${one}`).join(', ')}
    from ${tableOf('post_days', version)} where workspace_id = '${workspaceId}'
    order by target_id, day, version desc limit 1 by target_id, day`;
  const rows = await (await client.query({ query, format: 'JSONCompactEachRow' })).json<(string | null)[]>();
  return new Map(
    rows.map(([targetId, day, ...gains]) => [
      `${targetId} ${day}`,
      Object.fromEntries(columns.map((one, at) => [one, gains[at] === null ? null : Number(gains[at])])),
    ]),
  );
};
