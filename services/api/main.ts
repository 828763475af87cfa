import { openAdapters, warnOfSilent } from '#infra/adapters.ts';
import { liveNetworks } from '#infra/platforms/live.ts';
import { sandboxAccounts, sandboxAhead, sandboxInboxes, sandboxProfile } from '#infra/platforms/sandbox/index.ts';
import { useReadModels } from '#projections/engine/use.ts';
import { ensureWeeks } from '#projections/webhooks/tables.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { aborted, runProcess } from '#runtime/process/lifecycle.ts';
import { frontParts } from '#services/front/parts.ts';
import { openDoor } from './server.ts';
import { apiReads, baseUrlOf, startApi } from './start.ts';

await runProcess({
  name: 'api',
  summary: 'the REST API and the invite page',
  reads: apiReads,
  async main({ config, logger, registry, readiness, report, signal, ready, onClose }) {
    const secrets = new Secrets(config.secretKey ?? '');
    const door = await openDoor({ ...config, setting: 'PORT', registry });
    onClose(door.close);
    const adapters = await openAdapters({
      name: 'api',
      config,
      secrets,
      logger,
      baseUrl: () => baseUrlOf(config, door),
    });
    onClose(adapters.close);
    warnOfSilent(adapters, logger);
    const codec = new EventCodec(adapters.dataKeys);
    onClose((await useReadModels({ ...adapters, codec, logger, signal })).stop);
    await ensureWeeks(adapters.pool);
    const api = await startApi({
      adapters,
      door,
      config,
      secrets,
      logger,
      readiness,
      report,
      sandboxProfile,
      sandboxAhead,
      sandboxAccounts,
      sandboxInboxes,
      liveOf: (options) => liveNetworks({ ...options, stores: adapters }),
      parts: frontParts(config, registry),
    });
    onClose(api.stop);
    ready({ port: api.port, baseUrl: api.baseUrl });
    await aborted(signal);
  },
});
