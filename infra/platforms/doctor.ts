/** Examines the set-up of this installation for each network, without an account and without a database. */
import { type ApiVersion, type ApiVersions, daysLeftOf, stageOf } from '#contracts/ports/api-version.ts';
import type { Finding } from '#contracts/ports/finding.ts';
import type { NetworkHttp } from '#contracts/ports/network-http.ts';
import { rulesOf, siteProofOfTikTok } from '#domain/platforms/index.ts';
import { type Platform, platforms } from '#schemas/common.ts';
import { examineBluesky } from './bluesky/doctor.ts';
import { appSetOf } from './kit/app.ts';
import { examineApp } from './kit/doctor.ts';
import { appOfLogin } from './kit/logins.ts';
import { kitNetworks, type LiveOptions, loginsOf } from './live.ts';
import { found, nobody } from './shared/findings.ts';
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
  readonly config: LiveOptions['config'] & { readonly tiktokSiteProof?: readonly string[] };
  /** Host of the pages behind links, as browsers reach it; null: the operator has not said. */
  readonly origin: string | null;
  /** Where the api serves files of its own, without a slash at the end; null: the operator has not said. */
  readonly files: string | null;
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

/** The app of the network, and where accounts come by the login of another one, that they do: its app is examined there. */
const examineLogins = async (
  parts: NonNullable<(typeof kitNetworks)[Platform]>,
  options: DoctorOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const own = await examineApp(parts.tables, options, signal);
  const others = loginsOf(parts).flatMap(({ tables }) =>
    tables.appOf === undefined || appOfLogin(tables, options.config) === null ? [] : [rulesOf(tables.appOf).name],
  );
  const { name } = rulesOf(parts.tables.platform);
  const also = others.map((by) =>
    found('ok', `login of ${by}`, `Accounts of ${name} come by ${by} too, whose app is examined there.`),
  );
  return [...own.filter(({ verdict }) => verdict !== 'off' || also.length === 0), ...also];
};

const examinations: Readonly<Partial<Record<Platform, Examine>>> = {
  ...Object.fromEntries(
    Object.entries(kitNetworks).map(([platform, parts]): [string, Examine] => [
      platform,
      (options, signal) => examineLogins(parts, options, signal),
    ]),
  ),
  bluesky: examineBluesky,
  telegram: examineTelegram,
};

/** Whether TikTok can see that the addresses of our media are the operator's: it fetches pictures from no other. */
const examineFiles = async (
  { http, config, files }: DoctorOptions,
  signal: AbortSignal,
): Promise<readonly Finding[]> => {
  const about = 'media addresses';
  const tokens = config.tiktokSiteProof ?? [];
  if (tokens.length === 0) return [];
  const begins = URL.parse(files ?? '');
  if (begins?.protocol !== 'https:' || /^[\d.]+$|^\[/.test(begins.hostname)) {
    const words = `TikTok fetches files by https from a host with a name, and they lie at ${files ?? 'no address that is set'}.`;
    return [found('fix', about, words, 'Set BASE_URL to such an address.')];
  }
  for (const { name, text } of tokens.map(siteProofOfTikTok)) {
    const url = `${files}/${name}`;
    const call = { method: 'GET', url, headers: { accept: 'text/plain' }, body: [], subject: nobody } as const;
    const result = await http.send(call, signal);
    if (result.kind === 'answered' && result.status === 200 && result.body.toString('utf8').trim() === text) continue;
    const said =
      result.kind === 'answered'
        ? `answers ${result.status}, and not the proof`
        : `cannot be reached from here (${result.reason})`;
    const remedy = 'Start the API with the same TIKTOK_SITE_PROOF, and let a proxy pass the file on to it.';
    return [found(result.kind === 'answered' ? 'fix' : 'cannot_tell', about, `${url} ${said}.`, remedy)];
  }
  return [found('ok', about, `TikTok finds the proof below ${files}/, where the addresses of files begin.`)];
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
      const own = AbortSignal.any([signal, AbortSignal.timeout(patienceMs)]);
      if (examine === undefined) return { network, findings: null };
      const ofFiles = network === 'tiktok' ? await examineFiles(options, own) : [];
      const findings = [...(await examine(options, own)), ...ofFiles];
      const version = versions[network];
      return {
        network,
        findings: version === undefined ? findings : [...findings, versionOf(network, version, clock())],
      };
    }),
  );
};
