import type { ClickHouseClient } from '@clickhouse/client';
import { analyticsStore } from '#projections/analytics/live.ts';
import { analyticsReader } from '#projections/analytics/queries.ts';
import type { AnalyticsReader, Filters, Window } from '#projections/analytics/rollup.ts';
import type { AnalyticsStore } from '#projections/analytics/store.ts';
import type { PublishedFilters } from '#projections/models/published.ts';
import { getWorkspace } from '#projections/models/workspaces.ts';
import { Unavailable } from '#runtime/eventing/domain-store.ts';
import type { Platform } from '#schemas/common.ts';
import type { Comparison } from '#schemas/http/analytics.ts';
import type { Call } from '../call/operation.ts';
import { previousOf, windowOf } from './window.ts';

/** The first steps of every read of the analytics. */

type Asking = Pick<Call, 'deps' | 'workspaceId'>;

const stores = new WeakMap<ClickHouseClient, AnalyticsStore>();

/**
 * @throws Unavailable without a store for analytics. Called after the resource of the path was found, so that an
 * unknown id is 404.
 */
export const storeOf = ({ deps }: Asking): AnalyticsStore => {
  const { analytics: client, pool } = deps;
  if (client === null) throw new Unavailable('There is no analytics store.');
  const known = stores.get(client) ?? analyticsStore(client, pool);
  stores.set(client, known);
  return known;
};

export const readerOf = (call: Asking): AnalyticsReader => analyticsReader(storeOf(call));

export const timezoneOf = async ({ deps, workspaceId }: Asking): Promise<string> => {
  const workspace = await getWorkspace(deps.knex, workspaceId);
  if (workspace === null) throw new Unavailable('The read model of this workspace is behind.');
  return workspace.timezone;
};

/** The same filters over the read models. */
export const publishedFilters = ({ socialAccountId, ...filters }: Filters): PublishedFilters => ({
  ...filters,
  ...(socialAccountId === undefined ? {} : { accountId: socialAccountId }),
});

interface Asked {
  readonly from?: string;
  readonly to?: string;
  readonly platform?: readonly Platform[];
  readonly clientId?: string;
  readonly socialAccountId?: string;
  readonly compare?: Comparison;
}

export interface Question {
  readonly window: Window;
  /** The window that the first one is compared with. Null: none. */
  readonly previous: Window | null;
  readonly filters: Filters;
  readonly timezone: string;
  /** By the clock that dates the figures, milliseconds since the epoch. */
  readonly now: number;
}

/**
 * In the sandbox its clock dates the figures: by ours a workspace whose clock was moved ahead would see none of them in a
 * window without an end, and each day would stay provisional until our time came to it. Milliseconds since the epoch.
 */
const nowOf = async ({
  deps,
  workspaceId,
  principal,
  now,
}: Asking & Pick<Call, 'principal'> & { readonly now: string }): Promise<number> =>
  Date.parse(now) + (principal.mode === 'test' ? ((await deps.sandboxAhead?.(workspaceId)) ?? 0) : 0);

/** @throws Refusal 400 `invalid_parameter` */
export const questionOf = async (
  call: Asking & Pick<Call, 'principal'> & { readonly query: Asked; readonly now: string },
): Promise<Question> => {
  const { clientId, socialAccountId, platform, compare } = call.query;
  const [timezone, now] = await Promise.all([timezoneOf(call), nowOf(call)]);
  const window = windowOf(call.query, timezone, new Date(now).toISOString());
  return {
    timezone,
    now,
    window,
    previous: compare === undefined ? null : previousOf(window, compare),
    filters: {
      ...(platform === undefined ? {} : { platforms: [...new Set(platform)] }),
      ...(clientId === undefined ? {} : { clientId }),
      ...(socialAccountId === undefined ? {} : { socialAccountId }),
      ...(call.principal.clientIds === null ? {} : { postClientIds: call.principal.clientIds }),
    },
  };
};
