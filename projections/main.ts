import { openParts } from '#infra/parts.ts';
import { EventCodec } from '#runtime/codec.ts';
import { migrate as migratePositions } from '#runtime/consume.ts';
import { runProcess } from '#runtime/lifecycle.ts';
import { Secrets } from '#runtime/secrets.ts';
import { runProjections } from './run.ts';
import { migrate as migrateReadModels } from './tables.ts';

await runProcess({
  name: 'projections',
  summary: 'builds the read models from the log: all of them, or those that PROJECTIONS names',
  async main({ config, logger, readiness, signal, ready, onClose }) {
    const parts = await openParts({ name: 'projections', config, secrets: new Secrets(config.secretKey ?? '') });
    onClose(parts.close);
    const { pool, log, store } = parts;
    await migratePositions(pool);
    await migrateReadModels(pool);
    const codec = new EventCodec(parts.dataKeys);
    const running = runProjections({ log, store, pool, codec, names: config.projections, signal, logger });
    readiness.add('log', async () => log.ping().then(() => null));
    readiness.add('projections', running.check);
    ready({ projections: running.status().map((one) => one.name) });
    await running.done;
  },
});
