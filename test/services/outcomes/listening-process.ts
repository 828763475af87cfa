/**
 * The listener alone in a process, to be killed: `node listening-process.ts <database url> <SECRET_KEY> <origin of the Bot
 * API> <token>`.
 */
import { TelegramListener } from '#infra/platforms/telegram/index.ts';
import { PostgresConnectCodes } from '#infra/postgres/connect-codes.ts';
import { PostgresCredentials } from '#infra/postgres/credentials.ts';
import { PostgresDataKeys } from '#infra/postgres/data-keys.ts';
import { PostgresPushedPosts } from '#infra/postgres/pushed-posts.ts';
import { EgressGuard } from '#runtime/egress/guard.ts';
import { GuardedNetworkHttp } from '#runtime/egress/network-http.ts';
import { Secrets } from '#runtime/identity/secrets.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { createLogger } from '#runtime/process/telemetry.ts';
import { runListening } from '#services/outcomes/listening.ts';
import { drainSignal } from '#test/support/drain-signal.ts';
import { openPublishing } from '#test/support/publishing.ts';

const [url = '', key = '', api = '', token = ''] = process.argv.slice(2);
const { pool, store, close } = await openPublishing(url);
const credentials = new PostgresCredentials({ pool, keys: new PostgresDataKeys({ pool, secrets: new Secrets(key) }) });
const connectCodes = new PostgresConnectCodes({ pool, faultPoint });
const pushedPosts = new PostgresPushedPosts({ pool, faultPoint });
const http = new GuardedNetworkHttp(new EgressGuard({ privateTargets: ['*'], ownHosts: () => [] }));
const draining = drainSignal();
process.stdout.write('ready\n');
await runListening(
  {
    ...{ credentials, connectCodes, pushedPosts, pool, store, now: Date.now },
    listeners: { telegram: new TelegramListener({ http, api, token, codes: connectCodes, pushed: pushedPosts }) },
    config: { sweepIntervalMs: 200, leaseTtlMs: 900 },
    logger: createLogger('child', process.env.LOG_LEVEL ?? 'silent'),
  },
  draining,
);
await close();
process.stdin.destroy();
