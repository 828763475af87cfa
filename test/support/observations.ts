/** Observations as events, and their expected grains, counted in the plainest way. */

import { randomUUID } from 'node:crypto';
import type { ClickHouseClient } from '@clickhouse/client';
import { Temporal } from 'temporal-polyfill';
import { interactionParts } from '#domain/engagement.ts';
import { columnOf, tableOf } from '#projections/analytics/tables.ts';
import type { Platform } from '#schemas/common.ts';
import { type CounterName, counters, type PostFigures } from '#schemas/insights.ts';
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
  /** Default: a month before everything. */
  readonly publishedAt?: string;
}

const publishedAtOf = ({ publishedAt = '2026-01-01T00:00:00.000Z' }: Seen): string => publishedAt;

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
    publishedAt: publishedAtOf(seen),
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
/** Reported by all networks, by few, with gaps: absent, null and 0 all occur. */
const reportedCounters: readonly CounterName[] = [
  'impressions',
  'likes',
  'comments',
  'shares',
  'saves',
  'totalInteractions',
  'videoViews',
];

/** Lifetime figures that grow, stand still, and are corrected downwards; some days have no observation, some two. */
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
    const publishedAt = new Date(from + Math.floor((random() * 4 - 1.5) * 86_400_000)).toISOString();
    const ids = { workspaceId, postId: randomUUID(), targetId: randomUUID(), ...pick(accounts), publishedAt };
    const life: Partial<Record<CounterName, number>> = {};
    const moved = random() < 0.1 ? Math.floor(random() * days) : null;
    for (let day = 0; day < days; day += 1) {
      if (random() < 0.3) continue;
      const looks = random() < 0.15 ? 2 : 1;
      for (let look = 0; look < looks; look += 1) {
        const at = from + day * 86_400_000 + (look * 8 + 2 * random()) * 3_600_000 + Math.floor(random() * 14_400_000);
        if (at < Date.parse(publishedAt)) continue;
        const figures: Record<string, unknown> = {};
        for (const one of reportedCounters) {
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

/** Each counter as it was last fetched. */
export const foldedFigures = (seen: readonly Seen[]): PostFigures =>
  Object.assign({}, ...seen.toSorted((a, b) => (a.observedAt < b.observedAt ? -1 : 1)).map(({ figures }) => figures));

/** A counter's value at an instant, milliseconds. */
interface CounterValue {
  readonly at: number;
  readonly value: number;
}

/** As the engine rounds: half to even. */
const rounded = (value: number): number => {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
};

const gapMs = 36 * 3_600_000;
type Span = readonly [start: number, end: number];

/** The gain between two observations, as far as it falls between two midnights; null: none of it does. */
const pieceOf = (from: CounterValue, to: CounterValue, [start, end]: Span): number | null => {
  const gained = to.value - from.value;
  if (to.at - from.at > gapMs) return to.at >= start && to.at < end ? gained : null;
  if (from.at >= end || to.at < start) return null;
  const until = (at: number): number =>
    rounded(gained * Math.min(1, Math.max(0, (at - from.at) / Math.max(1, to.at - from.at))));
  return until(end) - until(start);
};

const added = (values: readonly (number | null)[]): number | null => {
  const known = values.filter((one) => one !== null);
  return known.length === 0 ? null : known.reduce((sum, one) => sum + one, 0);
};

/** The gains of one target on a day, by counter. */
class Life {
  readonly #looks: readonly Seen[];
  readonly #published: number;

  constructor(seen: readonly Seen[]) {
    const byInstant = new Map(seen.map((one) => [one.observedAt, one]));
    this.#looks = [...byInstant.values()].sort((a, b) => (a.observedAt < b.observedAt ? -1 : 1));
    this.#published = Date.parse(publishedAtOf(this.#looks[0] as Seen));
  }

  valuesOf(counter: CounterName): readonly CounterValue[] {
    return this.#looks.flatMap(({ observedAt, figures }) => {
      const value = figures[counter] ?? null;
      return value === null ? [] : [{ at: Date.parse(observedAt), value }];
    });
  }

  /** @param after counts only observations after this */
  gained(counter: CounterName, span: Span, after = Number.NEGATIVE_INFINITY): number | null {
    const values = this.valuesOf(counter);
    const first = Date.parse(this.#looks[0]?.observedAt ?? '');
    const anchored = [{ at: Math.min(this.#published, first), value: 0 }, ...values];
    return added(values.map((to, at) => (to.at <= after ? null : pieceOf(anchored[at] as CounterValue, to, span))));
  }

  rated(span: Span): { readonly interactions: number | null; readonly impressions: number | null } {
    const since = (all: readonly CounterName[]): number =>
      Math.min(...all.flatMap((one) => this.valuesOf(one).map(({ at }) => at)), Number.POSITIVE_INFINITY);
    const made: readonly CounterName[] =
      since(interactionParts) < Number.POSITIVE_INFINITY ? interactionParts : ['totalInteractions'];
    const anchored = (at: number): number => (at - this.#published <= gapMs ? Number.NEGATIVE_INFINITY : at);
    const from = Math.max(anchored(since(['impressions'])), anchored(since(made)));
    const lifetime = (all: readonly CounterName[]): number | null =>
      added(all.map((one) => this.valuesOf(one).findLast(({ at }) => at <= from)?.value ?? null));
    const isFirst = from >= span[0] && from < span[1];
    const gainOf = (all: readonly CounterName[]): number | null =>
      added([...(isFirst ? [lifetime(all)] : []), ...all.map((one) => this.gained(one, span, from))]);
    return { interactions: gainOf(made), impressions: gainOf(['impressions']) };
  }

  /** The observation that decides a day's owner: the last on it, else the first after it. */
  shown([start, end]: Span): Seen | undefined {
    const at = ({ observedAt }: Seen): number => Date.parse(observedAt);
    return (
      this.#looks.findLast((one) => at(one) >= start && at(one) < end) ?? this.#looks.find((one) => at(one) >= end)
    );
  }

  within([start, end]: Span): readonly Seen[] {
    return this.#looks.filter(({ observedAt }) => Date.parse(observedAt) >= start && Date.parse(observedAt) < end);
  }

  /** Days on which it may have gained something. */
  days(zone: string): readonly string[] {
    const days = new Set<string>();
    for (const { observedAt } of this.#looks) {
      for (let back = 0; back <= gapMs; back += 3_600_000) days.add(dayAt(Date.parse(observedAt) - back, zone));
    }
    return [...days].sort();
  }

  get last(): Seen {
    return this.#looks.at(-1) as Seen;
  }
}

const dayAt = (at: number, zone: string): string =>
  Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(zone).toPlainDate().toString();
const midnightOf = (day: string, zone: string, days = 0): number =>
  Temporal.PlainDate.from(day).add({ days }).toZonedDateTime(zone).epochMilliseconds;

/** A target on a day of the zone: its gains, and the observations of the day. */
export interface TargetDay {
  readonly seen: Seen;
  readonly sums: Sums;
  /** ISO 8601: the newest observation that counts for the day. */
  readonly observedAt: string;
  /** Until when the next observation may change the day, milliseconds since the epoch; 0: none will. */
  readonly openUntil: number;
}

/** Interpolated between observations, counter by counter, in the plainest way. */
export const targetDays = (all: readonly Seen[], zone = 'UTC'): readonly TargetDay[] =>
  [...Map.groupBy(all, (seen) => seen.targetId).values()].flatMap((own) => {
    const life = new Life(own);
    return life.days(zone).flatMap((day) => {
      const span: Span = [midnightOf(day, zone), midnightOf(day, zone, 1)];
      const gains = counters.map((one) => [columnOf(one), life.gained(one, span)] as const);
      const looks = life.within(span);
      const seen = life.shown(span);
      if (seen === undefined || (looks.length === 0 && gains.every(([, gain]) => gain === null))) return [];
      const { interactions, impressions } = life.rated(span);
      const after = own
        .filter((one) => Date.parse(one.observedAt) >= span[1])
        .filter((one) => hasPiece(life, one, span));
      const counted = [...looks, ...after];
      const observedAt =
        counted
          .map((one) => one.observedAt)
          .sort()
          .at(-1) ?? seen.observedAt;
      const awaitsNext = looks.includes(life.last) && life.last.removedAt === undefined;
      const openUntil = awaitsNext ? nextLookBy(life.last) : 0;
      const rated = { rated_interactions: interactions, rated_impressions: impressions };
      const sums = { ...Object.fromEntries(gains), ...rated, fetched: fetchedIn(counted) };
      return [{ seen: { ...seen, day }, sums, observedAt, openUntil }];
    });
  });

/** A story is not observed after its 23rd hour, nor any post after 90 days. */
const nextLookBy = (seen: Seen): number => {
  const hourMs = 3_600_000;
  const [at, published] = [Date.parse(seen.observedAt), Date.parse(publishedAtOf(seen))];
  const age = at - published;
  const isLastDay = age >= 22.5 * hourMs && age < 24 * hourMs;
  return Math.min(at + gapMs, published + 90 * 24 * hourMs, isLastDay ? published + 26 * hourMs : Infinity);
};

/** Bit n: one of these observations fetched the n-th counter. */
const fetchedIn = (all: readonly Seen[]): number => {
  const names = new Set(all.flatMap(({ figures }) => Object.keys(figures)));
  return counters.reduce((bits, one, bit) => bits + (names.has(one) ? 2 ** bit : 0), 0);
};

/** Whether an observation after the day contributes to the day. */
const hasPiece = (life: Life, seen: Seen, span: Span): boolean => {
  const at = Date.parse(seen.observedAt);
  return counters.some((one) => {
    const values = life.valuesOf(one);
    const index = values.findIndex((other) => other.at === at);
    if (index < 0) return false;
    const first = Math.min(Date.parse(publishedAtOf(seen)), at);
    const from = values[index - 1] ?? { at: first, value: 0 };
    return pieceOf(from, values[index] as CounterValue, span) !== null;
  });
};

/** Added up by these keys. */
export const sumsBy = (days: readonly TargetDay[], keyOf: (seen: Seen) => string): ReadonlyMap<string, Sums> => {
  const grains = new Map<string, Sums>();
  for (const { seen, sums } of days) {
    const key = keyOf(seen);
    const grain = grains.get(key) ?? { targets: 0 };
    grains.set(key, grain);
    grain.targets = (grain.targets ?? 0) + 1;
    for (const [name, value] of Object.entries(sums)) {
      if (name === 'fetched') grain.fetched = (grain.fetched ?? 0) | (value ?? 0);
      else if (value !== null) grain[name] = (grain[name] ?? 0) + value;
      else grain[name] ??= null;
    }
  }
  return grains;
};

const cells = ['targets', ...counters.map(columnOf), 'rated_interactions', 'rated_impressions', 'fetched'];

/** The present content of a grain's table, `key` → sums; empty rows are left out. */
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
