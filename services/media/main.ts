import path from 'node:path';
import type { BlobStore } from '#contracts/ports/blob-store.ts';
import type { EventStore } from '#contracts/ports/event-store.ts';
import type { Log } from '#contracts/ports/log.ts';
import type { Transcoder } from '#contracts/ports/transcoder.ts';
import { openAdapters, warnOfSilent } from '#infra/adapters.ts';
import { findBinaries } from '#infra/ffmpeg/binaries.ts';
import { openTranscoder } from '#infra/ffmpeg/index.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { type HealthDeps, watchConsumers } from '#runtime/consuming/lane-health.ts';
import { download } from '#runtime/egress/download.ts';
import { type GuardSettings, guardOf } from '#runtime/egress/own-hosts.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { DatabaseClock } from '#runtime/postgres/database-clock.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { callsOut, stores } from '#runtime/process/settings/reads.ts';
import { WorkFolder } from '#runtime/process/work-folder.ts';
import { SandboxClocks } from '#runtime/work/sandbox-clocks.ts';
import { ImportUrls } from '#services/workflows/import-urls.ts';
import { MediaUsage } from '#services/workflows/media-usage.ts';
import type { FetchFile } from './deps.ts';
import { type MediaProcess, startMedia } from './media.ts';
import { usesOf } from './uses.ts';

/** Checks for /readyz of what the worker needs. */
export const watch = (
  deps: HealthDeps,
  { store, log, blobs }: { readonly store: EventStore; readonly log: Log; readonly blobs: BlobStore },
  transcoder: Transcoder,
  { consumers }: MediaProcess,
): void => {
  const { readiness } = deps;
  readiness.add('store', async () => store.ping().then(() => null));
  readiness.add('log', async () => log.ping().then(() => null));
  readiness.add('media files', async () => blobs.ping().then(() => null));
  readiness.add('transcoder', () => transcoder.describe());
  watchConsumers(deps, 'media consumers', () => consumers);
};

/** Imports go through the egress guard, like every address that a caller names. */
export const fetchThroughGuard = (config: GuardSettings): FetchFile => {
  const guard = guardOf(config);
  return (url, options) => download(guard, url, options);
};

await runProcess({
  name: 'media',
  summary: 'finds out what media files are, and makes of each what every network takes',
  reads: [
    ...stores,
    ...callsOut,
    'leaseTtlMs',
    'ffmpegPath',
    'outdatedFfmpeg',
    'mediaConcurrency',
    'mediaDownloads',
    'mediaDownloadsPerWorkspace',
    'mediaQuota',
    'mediaTempDir',
  ],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    // A program that the operator named must be there. A machine without any ffmpeg starts, and /readyz says so.
    if (config.ffmpegPath !== null) await findBinaries(config.ffmpegPath);
    const secrets = new Secrets(config.secretKey ?? '');
    const adapters = await openAdapters({ name: 'media', config, secrets, logger });
    onClose(adapters.close);
    warnOfSilent(adapters, logger);
    const { pool, log, blobs } = adapters;
    const codec = new EventCodec(adapters.dataKeys);
    const sandboxClocks = new SandboxClocks(adapters.pool);
    const store = new DomainStore(adapters.store, codec, config.partitions, { aheadOf: sandboxClocks.known });
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    const clock = await DatabaseClock.open({ pool, logger, registry, readiness });
    onClose(() => clock.close());
    const folder = await WorkFolder.open(
      path.join(config.mediaTempDir ?? path.join(config.dataDir, 'media-work'), 'media'),
    );
    onClose(() => folder.close());
    const transcoder = openTranscoder({
      ffmpegPath: config.ffmpegPath,
      workDir: await folder.of('transcoder'),
      outdated: config.outdatedFfmpeg,
      warn: (message) => logger.warn(message),
    });
    const time = { clock, now: clock.now };
    const importUrls = new ImportUrls(pool, secrets);
    const usage = new MediaUsage(pool, config.mediaQuota);
    const tools = {
      transcoder,
      fetchFile: fetchThroughGuard(config),
      importUrls,
      usage,
      uses: usesOf(pool, log),
      folder,
      blobs,
    };
    const deps = {
      log,
      eventStore: adapters.store,
      store,
      codec,
      pool,
      config,
      logger,
      registry,
      readiness,
      ...tools,
      ...time,
    };
    const media = startMedia(deps, signal);
    watch({ registry, readiness, pool }, adapters, transcoder, media);
    ready({ transcoder: await transcoder.describe().catch(() => null) });
    await media.done;
  },
});
