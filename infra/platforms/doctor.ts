/** Examines the set-up of this installation for each network, without an account and without a database. */
import { type ApiVersion, type ApiVersions, daysLeftOf, stageOf } from '#contracts/ports/api-version.ts';
import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { examineBluesky } from './bluesky/doctor.ts';
import { appSetOf } from './kit/app.ts';
import { examineApp } from './kit/doctor.ts';
import { kitNetworks, type LiveOptions } from './live.ts';
import { found } from './shared/findings.ts';
import { examineTelegram } from './telegram/doctor.ts';

/** The version of each network's API that its adapter speaks, and when the network ends it: as the operator has set it. */
const allVersionsOf = (config: Partial<LiveOptions['config']>): ApiVersions => ({
  ...Object.fromEntries(
    Object.entries(kitNetworks).map(([platform, { tables }]) => [
      ...[platform, tables.version(appSetOf(platform as Platform, config).version)],
    ]),
  ),
  bluesky: {
    version: 'lexicons com.atproto.* and app.bsky.*',
    endsAt: null,
    source: 'github.com/bluesky-social/atproto, August 2026: a lexicon has no versions',
  },
  telegram: { version: 'Bot API 10.3', endsAt: null, source: 'core.telegram.org/bots/api-changelog, August 2026' },
});

/** Without settings: the versions that the adapters are written for. */
export const apiVersions = allVersionsOf({});

/** @param networks those that this installation offers */
export const versionsOf = (config: Partial<LiveOptions['config']>, networks: readonly string[]): ApiVersions =>
  Object.fromEntries(Object.entries(allVersionsOf(config)).filter(([network]) => networks.includes(network)));

export interface DoctorOptions {
  readonly http: NetworkHttp;
  /** Milliseconds since the epoch. */
  readonly clock: () => number;
  readonly config: LiveOptions['config'];
  /** Host of the pages behind links, as browsers reach it; null: the operator has not said. */
  readonly origin: string | null;
  /** Default: those of the adapters. */
  readonly versions?: ApiVersions;
}

interface ExaminedNetwork {
  readonly network: Platform;
  /** Null: it has no adapter. */
  readonly findings: readonly Finding[] | null;
}

/** Milliseconds for all questions to one network. */
const patienceMs = 20_000;

type Examine = (options: DoctorOptions, signal: AbortSignal) => Promise<readonly Finding[]>;

const examinations: Readonly<Partial<Record<Platform, Examine>>> = {
  ...Object.fromEntries(
    Object.entries(kitNetworks).map(([platform, { tables }]): [string, Examine] => [
      platform,
      (options, signal) => examineApp(tables, options, signal),
    ]),
  ),
  bluesky: examineBluesky,
  telegram: examineTelegram,
};

/** What the table of versions says at this instant. */
const versionOf = (network: Platform, one: ApiVersion, now: number): Finding => {
  const about = 'API version';
  const { version, endsAt, source } = one;
  if (endsAt === null) return found('ok', about, `${version}: no end is announced (${source}).`);
  const isSet = rulesOf(network).app?.version !== undefined;
  const remedy = isSet
    ? `Set ${network.toUpperCase()}_VERSION to a newer version, and start the processes anew: until then posts wait.`
    : 'Install a release of Postline with a newer adapter.';
  switch (stageOf(one, now)) {
    case 'ended':
      return found('fix', about, `${version} ended on ${endsAt} (${source}).`, remedy);
    case null:
      return found('ok', about, `${version} works until ${endsAt} (${source}).`);
    default:
      return found('warn', about, `${version} ends on ${endsAt}, in ${daysLeftOf(one, now)} days (${source}).`, remedy);
  }
};

/** In the order of the networks, one after the other's answers or not: none waits for another. */
export const examineNetworks = async (
  options: DoctorOptions,
  signal: AbortSignal,
): Promise<readonly ExaminedNetwork[]> => {
  const { clock, config, versions = allVersionsOf(config) } = options;
  return Promise.all(
    platforms.map(async (network) => {
      const examine = examinations[network];
      if (examine === undefined) return { network, findings: null };
      const findings = await examine(options, AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]));
      const version = versions[network];
      return {
        network,
        findings: version === undefined ? findings : [...findings, versionOf(network, version, clock())],
      };
    }),
  );
};
