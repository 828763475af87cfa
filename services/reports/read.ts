import { account } from '#domain/account.ts';
import { client } from '#domain/client.ts';
import { workspace } from '#domain/workspace.ts';
import type { Filters } from '#projections/analytics/rollup.ts';
import type { DomainStore, Loaded } from '#runtime/eventing/domain-store.ts';
import type { ReportDefinition } from '#schemas/report.ts';
import { settledSeries, type Unsettled } from './completeness.ts';
import { type Contents, maxTopPosts, type RunOf } from './contents.ts';
import type { ReportDeps } from './deps.ts';

/**
 * Reads the contents of a run once. Ids of another workspace find neither names nor figures. The caller has read
 * `uncounted` before: days that are counted meanwhile are in the figures.
 */
export const readContents = async (
  deps: Pick<ReportDeps, 'store' | 'analytics'>,
  { reportId, workspaceId }: { readonly reportId: string; readonly workspaceId: string },
  { name, kind, filters }: Pick<ReportDefinition, 'name' | 'kind' | 'filters'>,
  run: RunOf,
  { uncounted, now }: Omit<Unsettled, 'timezone'>,
): Promise<Contents> => {
  const { store } = deps;
  const [agency, owner, one] = await Promise.all([
    store.load(workspace, workspaceId),
    filters.clientId === null ? null : store.load(client, filters.clientId),
    filters.socialAccountId === null ? null : store.load(account, filters.socialAccountId),
  ]);
  const own = <S extends { readonly status: string }>(loaded: Loaded<S> | null) =>
    loaded?.events[0]?.metadata.workspaceId === workspaceId ? loaded.state : null;
  const [home, customer, place] = [own(agency), own(owner), own(one)];
  const { runId, from, to, requestedAt } = run;
  const timezone = home === null || home.status === 'none' ? 'UTC' : home.timezone;
  const [figures, topPosts] = await Promise.all([
    figuresOf(deps, workspaceId, { kind, filters }, { from, to }, now),
    deps.analytics.top(workspaceId, { from, to }, timezone, topFilters(filters), maxTopPosts),
  ]);
  return {
    ...{ reportId, runId, name, kind, filters, from, to, requestedAt },
    workspace: home === null || home.status === 'none' ? '' : home.name,
    timezone,
    client: customer === null || customer.status === 'none' ? null : customer.fields.name,
    platform: place === null || place.status === 'none' ? filters.platform : place.platform,
    ...figures,
    topPosts,
    ...settledSeries(figures.series, { uncounted, now, timezone }),
  };
};

const topFilters = ({ clientId, socialAccountId, platform }: ReportDefinition['filters']): Filters => ({
  ...(platform === null ? {} : { platforms: [platform] }),
  ...(clientId === null ? {} : { clientId }),
  ...(socialAccountId === null ? {} : { socialAccountId }),
});

type Figures = Pick<Contents, 'asOf' | 'totals' | 'byPlatform' | 'series' | 'audience' | 'demographics'>;

const figuresOf = async (
  { analytics }: Pick<ReportDeps, 'analytics'>,
  workspaceId: string,
  { kind, filters }: Pick<ReportDefinition, 'kind' | 'filters'>,
  window: { readonly from: string; readonly to: string },
  now: number,
): Promise<Figures> => {
  const { clientId, socialAccountId, platform } = filters;
  if (kind === 'account') {
    const { asOf, totals, series, audience, demographics } = await analytics.account(
      workspaceId,
      socialAccountId ?? '',
      window,
      { now },
    );
    const known = demographics === undefined ? {} : { demographics };
    return { asOf, totals, byPlatform: [], series, audience, ...known };
  }
  const narrowed: Filters = {
    ...(platform === null ? {} : { platforms: [platform] }),
    ...(socialAccountId === null ? {} : { socialAccountId }),
  };
  const { asOf, totals, byPlatform, series } = await (kind === 'client'
    ? analytics.client(workspaceId, clientId ?? '', window, narrowed, { now })
    : analytics.overview(workspaceId, window, { ...narrowed, ...(clientId === null ? {} : { clientId }) }, { now }));
  return { asOf, totals, byPlatform, series };
};

/**
 * Whether the client that a report is about was archived or erased; null: neither. Also null for a client of another
 * workspace, for whom a report finds neither names nor figures.
 */
export const endOf = async (
  store: DomainStore,
  workspaceId: string,
  clientId: string | null,
): Promise<'archived' | 'erased' | null> => {
  if (clientId === null) return null;
  const { state, events } = await store.load(client, clientId);
  if (state.status === 'none' || events[0]?.metadata.workspaceId !== workspaceId) return null;
  if (state.erased) return 'erased';
  return state.status === 'archived' ? 'archived' : null;
};
