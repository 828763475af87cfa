import { BoundedMap } from '#contracts/base/bounded-map.ts';
import { type ApiVersions, stageOf, type VersionStage } from '#contracts/ports/api-version.ts';
import { workspace } from '#domain/workspace.ts';
import { beforeAllWorkspaces, workspacesOnNetwork } from '#projections/models/accounts.ts';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { causedByNewest, serviceContext } from '#runtime/eventing/service-context.ts';
import { versionsOfUse } from '#runtime/work/api-versions.ts';
import { readNetworkRests } from '#runtime/work/network-rests.ts';
import type { Platform } from '#schemas/common.ts';
import { Resting } from './resting.ts';
import { alone, type RoundDeps, runRounds, type SweptKind } from './rounds.ts';

/**
 * Reports to each workspace that has live accounts on a network when the network ends the version of its API that this
 * installation asks for: 90 days before, 30 days before, and when it answers no more.
 */

export interface VersionsDeps extends RoundDeps {
  readonly store: DomainStore;
  /** Of the networks that this installation offers, as it asks for them. */
  readonly versions: ApiVersions;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly resting?: Resting;
  readonly onFailure?: (kind: SweptKind) => void;
  /** What this process has reported: a workspace is read once for each. */
  readonly reported?: Map<string, true>;
}

interface Ending {
  readonly platform: Platform;
  readonly version: string;
  readonly endsAt: string | null;
  readonly stage: VersionStage;
}

/** What a network says of a version counts more than the day that it had named. */
const endingsOf = async ({ pool, versions, now }: VersionsDeps): Promise<readonly Ending[]> => {
  const at = now();
  const ended = (await readNetworkRests(pool)).filter(
    ({ network, until }) => network.startsWith('live/') && until > at,
  );
  return versionsOfUse(versions).flatMap(([platform, one]): Ending[] => {
    const hasEnded = ended.some(({ network }) => network === `live/${platform}`);
    const stage = hasEnded ? 'ended' : stageOf(one, at);
    return stage === null ? [] : [{ platform, version: one.version.slice(0, 200), endsAt: one.endsAt, stage }];
  });
};

const report = async ({ store, now }: VersionsDeps, workspaceId: string, ending: Ending): Promise<void> => {
  const { events } = await store.load(workspace, workspaceId);
  // Its birth is not here yet, or an older copy of the store has lost it.
  if (events.length === 0) return;
  const context = serviceContext('versions', causedByNewest(events, workspaceId, workspaceId), now());
  await execute(store, workspace, workspaceId, { type: 'ReportVersionEnd', ...ending }, context);
};

/** One round over all networks. If we die in it, the next one begins anew, and a repeat yields no event. */
export const reportVersions = async (deps: VersionsDeps, signal: AbortSignal): Promise<void> => {
  const { pool, logger, resting = new Resting(), onFailure, reported = new Map<string, true>() } = deps;
  for (const ending of await endingsOf(deps)) {
    const { platform, version, stage } = ending;
    for (let after: string | undefined = beforeAllWorkspaces; after !== undefined; ) {
      const ids: readonly string[] = await workspacesOnNetwork(pool, platform, after);
      for (const id of ids) {
        if (signal.aborted) return;
        const key = `${id} ${platform} ${version} ${stage}`;
        if (reported.has(key)) continue;
        await alone({ logger, resting, signal, onFailure }, 'workspace', id, async () => {
          await report(deps, id, ending);
          reported.set(key, true);
        });
      }
      after = ids.at(-1);
    }
  }
};

const maxReported = 100_000;
/** Between two rounds, milliseconds: a version ends by the day. */
const usualMs = 300_000;

export const runVersions = (given: VersionsDeps, signal: AbortSignal): Promise<void> => {
  const deps = { resting: new Resting(), reported: new BoundedMap<string, true>(maxReported), ...given };
  const rare = { ...deps, config: { ...deps.config, sweepIntervalMs: Math.max(usualMs, deps.config.sweepIntervalMs) } };
  return runRounds(rare, 'versions', (stop) => reportVersions(deps, stop), signal);
};
