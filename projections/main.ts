import { openAdapters, warnOfSilent } from '#infra/adapters.ts';
import { countConsumers } from '#runtime/consuming/lane-health.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { stores } from '#runtime/process/settings/reads.ts';
import { mendLost } from './analytics/mend.ts';
import { runAnalytics } from './analytics/run.ts';
import { runProjections } from './engine/run.ts';
import { migrate as migrateReadModels } from './engine/tables.ts';
import { signDaily } from './feed/daily.ts';
import { eraseInTime } from './feed/erasure.ts';
import { numberEvents } from './feed/number.ts';

/** @returns names of read models (empty = all, null = none), and whether the arguments name the analytics */
const chosen = (names: readonly string[]): { readonly models: readonly string[] | null; readonly counts: boolean } => {
  const models = names.filter((name) => name !== 'analytics');
  const counts = names.length === 0 || models.length < names.length;
  return { models: names.length > 0 && models.length === 0 ? null : models, counts };
};

await runProcess({
  name: 'projections',
  summary: 'builds the read models and the analytics from the log: all of them, or those that PROJECTIONS names',
  reads: [...stores, 'projections', 'analyticsLost'],
  async main({ config, logger, registry, readiness, signal, ready, onClose }) {
    const secrets = new Secrets(config.secretKey ?? '');
    const adapters = await openAdapters({ name: 'projections', config, logger, secrets });
    onClose(adapters.close);
    warnOfSilent(adapters, logger);
    const { pool, log, store, analytics: client } = adapters;
    await migrateReadModels(pool);
    const codec = new EventCodec(adapters.dataKeys);
    const deps = { log, store, pool, codec, signal, logger };
    const { models, counts } = chosen(config.projections);
    const running = models === null ? null : runProjections({ ...deps, names: models });
    const mend = config.analyticsLost === 'rebuild' ? { mend: mendLost } : {};
    const analytics = counts && client !== null ? runAnalytics({ ...deps, client, ...mend }) : null;
    countConsumers({ registry, readiness, pool }, 'projections', () => [
      ...(running?.consumers() ?? []),
      ...(analytics?.consumers() ?? []),
    ]);
    readiness.add('log', async () => log.ping().then(() => null));
    if (running !== null) readiness.add('projections', running.check);
    // /readyz reports it but stays ready: without ClickHouse everything else works.
    if (analytics !== null) readiness.add('analytics', async () => analytics.reason());
    const names = running?.status().map((one) => one.name) ?? [];
    ready({ projections: analytics === null ? names : [...names, 'analytics'] });
    const numbering = adapters.inOneProcess({ name: 'feed', signal, logger }, async (ending) => {
      const ended = new AbortController();
      const feed = { store, pool, logger, signal: AbortSignal.any([ending, ended.signal]) };
      const signing = signDaily({ ...feed, secrets });
      const { dataKeys, blobs, eraser } = adapters;
      const erasing = eraseInTime({
        ...{ ...feed, eventStore: store, analytics: client, clock: Date.now },
        ...{ secrets, dataKeys, blobs, eraser },
      });
      await numberEvents(feed).finally(async () => {
        ended.abort();
        await Promise.all([signing, erasing]);
      });
    });
    await Promise.all([
      ...[running?.done, analytics?.done, numbering],
      adapters.keepWorkspaceIndex({ signal, logger }),
    ]);
  },
});
