/**
 * A night of 100,000 accounts, 10,000 of each of ten networks, by a simulated clock: what it asks of each network's app. One row
 * for each network of the kit, from its own tables: its calls, its prices, its limits and its steps of a refresh. The adapters,
 * the budgets, the pace of refreshes and the minute of each account are ours; the network answers at once, and says nothing.
 */
import { randomUUID } from 'node:crypto';
import type { NetworkCall, NetworkHttp } from '#contracts/ports/network-http.ts';
import type { NetworkApp } from '#infra/platforms/kit/app.ts';
import { appSetOf } from '#infra/platforms/kit/app.ts';
import { type NetworkParts, networkOf } from '#infra/platforms/kit/network.ts';
import { kitNetworks } from '#infra/platforms/live.ts';
import type { Platform } from '#schemas/common.ts';
import { nextNight } from '#services/insights/schedule.ts';
import { HourlyPace, usualRules } from '#services/outcomes/credentials.ts';
import { MemoryAppLimits } from '#test/support/networks/memory-app-limits.ts';
import { MemoryCredentials } from '#test/support/networks/memory-credentials.ts';
import type { BenchRow } from '../row.ts';

const [minuteMs, hourMs, dayMs] = [60_000, 3_600_000, 86_400_000];
const networks = 10;
const nightHours = 8;
const midnight = Date.parse('2026-11-30T00:00:00.000Z');
/** Members that networks must name of an account and of a token; all else an answer lacks. */
const said = {
  ...{ id: '1', username: 'u', data: { id: '1', public_metrics: { followers_count: 1 } } },
  ...{ access_token: 'access', refresh_token: 'refresh', token_type: 'bearer', expires_in: 5_184_000, scope: '' },
  ...{ refresh_expires_in: 15_552_000, refresh_token_expires_in: 31_536_000, open_id: '1' },
};

const iso = (at: number): string => new Date(at).toISOString();
const many = (count: number): string => count.toLocaleString('en');

/** The largest number of instants within one window. @param at ascending, milliseconds */
const most = (at: readonly number[], windowMs: number): number => {
  let [from, peak] = [0, 0];
  for (const [to, instant] of at.entries()) {
    while ((at[from] ?? 0) <= instant - windowMs) from += 1;
    peak = Math.max(peak, to - from + 1);
  }
  return peak;
};

class Night {
  now = midnight;
  readonly platform: Platform;
  readonly calls: NetworkCall[] = [];
  readonly credentials = new MemoryCredentials();
  readonly network: ReturnType<typeof networkOf>;
  readonly #accounts: string[] = [];

  constructor(platform: Platform, parts: NetworkParts, app: NetworkApp) {
    this.platform = platform;
    const http: NetworkHttp = {
      send: async (call) => {
        this.calls.push(call);
        const headers = { 'content-type': 'application/json', date: new Date(this.now).toUTCString() };
        return { kind: 'answered', status: 200, headers, body: Buffer.from(JSON.stringify(said)) };
      },
    };
    const tools = { http, credentials: this.credentials, appLimits: new MemoryAppLimits(), clock: () => this.now };
    this.network = networkOf(parts, tools, app);
  }

  get secret() {
    return {
      ...{ accessToken: 'access', refreshToken: 'refresh' },
      ...{ accessFrom: iso(this.now - 30 * dayMs), accessUntil: iso(this.now + 2 * dayMs) },
    };
  }

  async account() {
    const id = randomUUID();
    const owner = { accountId: id, workspaceId: randomUUID(), clientId: randomUUID(), platform: this.platform };
    await this.credentials.keep(owner, { secret: this.secret, expiresAt: null });
    this.#accounts.push(id);
    return { id, externalId: 'urn:li:organization:1', username: 'u', workspaceId: owner.workspaceId, scopes: [] };
  }

  /** Whether the account has its figures. */
  async pulls(account: Awaited<ReturnType<Night['account']>>): Promise<boolean> {
    const { source } = this.network;
    const { kind } = await source.fetchAccountInsights(this.platform, account, AbortSignal.timeout(60_000));
    return kind === 'reported';
  }
}

const appFor = (platform: Platform): NetworkApp => ({ ...appSetOf(platform, {}), id: 'app', secret: 'secret' });
const unbounded = ({ budget: _, units: __, ...app }: NetworkApp): NetworkApp => app;

/** What the limits of the app leave to figures, in accounts; and what one account costs of them. */
const allowedOf = async (platform: Platform, parts: NetworkParts, accounts: number) => {
  const app = appFor(platform);
  const free = new Night(platform, parts, unbounded(app));
  if (!(await free.pulls(await free.account()))) throw new Error(`${platform} reports nothing`);
  const calls = free.calls.length;
  // The same account, with more of the budget each time, until it has all its figures: what it costs is seen, not told.
  const costs = async (of: 'budget' | 'units'): Promise<number | null> => {
    const limit = app[of];
    if (limit === undefined) return null;
    for (let price = 0; price <= 100; price += 1) {
      // Half is for what is optional.
      const night = new Night(platform, parts, { ...unbounded(app), [of]: 2 * price });
      if ((await night.pulls(await night.account())) && night.calls.length === calls) return price;
    }
    throw new Error(`${platform}: an account costs more than 100 of ${of}`);
  };
  const bounds: number[] = [];
  const prices: string[] = [];
  for (const member of ['budget', 'units'] as const) {
    const price = await costs(member);
    if (price === null || price === 0) continue;
    bounds.push(Math.floor(Math.floor((app[member] ?? 0) / 2) / price));
    prices.push(
      `${price} of ${many(app[member] ?? 0)} ${member === 'budget' ? 'calls' : 'units'} a day, of which half is for posts`,
    );
  }
  return { app, calls, prices, allowed: Math.min(accounts, ...bounds) };
};

const pull = async (platform: Platform, parts: NetworkParts, accounts: number): Promise<BenchRow> => {
  const { app, calls, prices, allowed } = await allowedOf(platform, parts, accounts);
  const night = new Night(platform, parts, app);
  const due = await Promise.all(
    Array.from({ length: accounts }, async () => {
      const account = await night.account();
      return { account, at: nextNight(midnight, 'UTC', account.id) };
    }),
  );
  due.sort((a, b) => a.at - b.at);
  const asked: number[] = [];
  let figures = 0;
  for (const { account, at } of due) {
    night.now = at;
    const before = night.calls.length;
    // One that met the end of a budget in the midst has a part of them.
    if ((await night.pulls(account)) && night.calls.length - before === calls) figures += 1;
    asked.push(...night.calls.slice(before).map(() => at));
  }
  const peak = most(
    due.map(({ at }) => at),
    minuteMs,
  );
  return {
    name: `${platform}: ${many(accounts)} accounts due in a night, with all figures`,
    unit: 'accounts',
    ours: figures,
    limit: allowed,
    goal: '≥ 0.8 × limit',
    ok: figures >= 0.8 * allowed && figures <= allowed,
    note: `${calls} calls an account; ${prices.join(', ') || 'its app has no budget in our tables'}; ${many(asked.length)} calls; at most ${peak} accounts in a minute, ${(accounts / 180).toFixed(0)} on average`,
  };
};

const renew = async (platform: Platform, parts: NetworkParts, accounts: number): Promise<BenchRow | null> => {
  const night = new Night(platform, parts, appFor(platform));
  const { refresher, refreshWindowMs = 0 } = night.network;
  // A token of a page does not end: nobody renews it at night.
  if (refresher === undefined || parts.tables.oauth.refresh === null) return null;
  const pace = new HourlyPace(usualRules.perHour, () => night.now);
  const asked: number[] = [];
  const kinds = new Map<string, number>();
  for (let one = 0; one < accounts; one += 1) {
    night.now += pace.take();
    const owner = { accountId: randomUUID(), workspaceId: randomUUID(), clientId: randomUUID(), platform };
    const former = { secret: night.secret, expiresAt: iso(night.now + hourMs), version: 1 };
    const { kind } = await refresher(former, AbortSignal.timeout(60_000), owner);
    kinds.set(kind, (kinds.get(kind) ?? 0) + 1);
    asked.push(night.now);
  }
  const hours = ((asked.at(-1) ?? 0) - midnight) / hourMs;
  const [ofHour, ofMinute] = [most(asked, hourMs), most(asked, minuteMs)];
  const even = usualRules.perHour / 60;
  return {
    name: `${platform}: ${many(accounts)} accounts refreshed in a night, most in an hour`,
    unit: 'accounts',
    ours: ofHour,
    limit: usualRules.perHour,
    goal: `≤ limit, ≤ ${even} a minute, within ${nightHours} hours`,
    ok: ofHour <= usualRules.perHour && ofMinute <= even && hours <= nightHours && kinds.get('refreshed') === accounts,
    note: `${hours.toFixed(1)} hours; ${(night.calls.length / accounts).toFixed(0)} calls each; at most ${ofMinute} in a minute; begun ${(refreshWindowMs / hourMs).toFixed(1)} hours before the end; ${[...kinds].map(([kind, count]) => `${many(count)} ${kind}`).join(', ')}`,
  };
};

export const nights = async (quick: boolean): Promise<readonly BenchRow[]> => {
  const accounts = (quick ? 10_000 : 100_000) / networks;
  const rows: BenchRow[] = [];
  for (const [platform, parts] of Object.entries(kitNetworks) as [Platform, NetworkParts][]) {
    const renewed = await renew(platform, parts, accounts);
    if (renewed !== null) rows.push(renewed);
    rows.push(await pull(platform, parts, accounts));
  }
  return rows;
};
