/**
 * A sender alone in a process: `node sender-process.ts <database url> <secret key>`. Says `ready`. It has the times of
 * `short`, or with SENDER_TIMES=patient those of `patient`.
 */
import { PostgresEventStore } from '#infra/postgres/event-store.ts';
import { openPool } from '#infra/postgres/pool.ts';
import { Exchange } from '#runtime/egress/exchange.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { EventCodec } from '#runtime/eventing/codec.ts';
import { DomainStore } from '#runtime/eventing/domain-store.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { readConfig } from '#runtime/process/config.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { Sender } from '#services/webhooks/sender.ts';
import { MemoryDataKeys } from '#test/support/domain.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { patient, short } from './short.ts';

const times = process.env.SENDER_TIMES === 'patient' ? patient : short;
const [url = '', key = ''] = process.argv.slice(2);
const pool = openPool({ url, max: 8 });
const events = await PostgresEventStore.open({ url });
const exchange = new Exchange(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }), {
  totalMs: times.webhookExchangeMs,
});
const sender = new Sender({
  databaseUrl: url,
  pool,
  store: new DomainStore(events, new EventCodec(new MemoryDataKeys()), defaultPartitions),
  secrets: new Secrets(key),
  exchange,
  config: { ...readConfig({}), ...times },
  logger: createLogger('child', process.env.LOG_LEVEL ?? 'silent'),
});
const draining = drainSignal();
process.stdout.write('ready\n');
await sender.run(draining);
await exchange.close();
await events.close();
await pool.end();
process.stdin.destroy();
