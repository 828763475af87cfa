import type { Registry } from 'prom-client';
import { type ApiVersion, type ApiVersions, daysLeftOf, stageOf } from '#contracts/ports/api-version.ts';
import type { Platform } from '#schemas/common.ts';
import { Gauge } from '../process/metrics.ts';
import type { Readiness } from '../process/telemetry.ts';

/** Versions of networks' APIs that this installation asks for, and the warnings before each ends. */

/** Name of the check that names in its detail the versions which end within 90 days. */
const versionsCheck = 'network versions';

export const versionsOfUse = (versions: ApiVersions): readonly (readonly [Platform, ApiVersion])[] =>
  Object.entries(versions) as [Platform, ApiVersion][];

/** The line for /readyz; null: no version ends within 90 days. */
export const versionsLine = (versions: ApiVersions, now: number): string | null => {
  const lines = versionsOfUse(versions).flatMap(([platform, one]) => {
    const stage = stageOf(one, now);
    if (stage === null) return [];
    const when =
      stage === 'ended' ? `ended on ${one.endsAt}` : `ends on ${one.endsAt}, in ${daysLeftOf(one, now)} days`;
    return [`${platform}: ${one.version} ${when}`];
  });
  return lines.length === 0 ? null : `${lines.join('; ')}; set a newer version`;
};

export interface VersionWatch {
  /** Of the networks that this installation offers. */
  readonly versions: ApiVersions;
  /** Milliseconds since the epoch. */
  readonly now: () => number;
  readonly registry: Registry;
  readonly readiness: Readiness;
}

/** Warns in /readyz and in the metrics. */
export const watchVersions = ({ versions, now, registry, readiness }: VersionWatch): void => {
  readiness.add(versionsCheck, async () => versionsLine(versions, now()));
  new Gauge({
    name: 'network_version_days_left',
    help: 'days until the network ends the version of its API that this installation asks for; 0 or less: it has ended. Networks that have named no end are absent',
    labelNames: ['platform', 'version'],
    registers: [registry],
    collect() {
      this.reset();
      for (const [platform, one] of versionsOfUse(versions)) {
        const days = daysLeftOf(one, now());
        if (days !== null) this.set({ platform, version: one.version }, days);
      }
    },
  });
};
