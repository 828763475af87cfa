/** Rebuilds the posts' read models beside all other work, then ends. */
import { setTimeout as delay } from 'node:timers/promises';
import { openAdapters } from '#infra/adapters.ts';
import { rebuild } from '#projections/engine/rebuild.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { runProcess } from '#runtime/process/lifecycle.ts';
import { stores } from '#runtime/process/settings/reads.ts';

await runProcess({
  name: 'rebuild',
  summary: 'rebuilds the read models of posts',
  ops: false,
  reads: stores,
  async main({ config, logger, signal, ready, onClose }) {
    const adapters = await openAdapters({ name: 'rebuild', config, secrets: new Secrets(config.secretKey ?? '') });
    onClose(adapters.close);
    const { pool, store, log } = adapters;
    ready();
    for (;;) {
      try {
        await rebuild({ pool, store, log, codec: new EventCodec(adapters.dataKeys), name: 'posts', logger, signal });
        return;
      } catch (error) {
        // The session of a killed rebuild lives until Postgres notices.
        if (!(error instanceof Error) || !/another rebuild/.test(error.message) || signal.aborted) throw error;
        await delay(100);
      }
    }
  },
});
