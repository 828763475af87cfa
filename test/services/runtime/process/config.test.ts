import { deepEqual, equal, match, ok, throws } from 'node:assert/strict';
import { generateKeyPairSync } from 'node:crypto';
import { ConfigError, configHelp, readConfig, readFaults } from '#runtime/process/config.ts';
import { type Times, usualTimes } from '#runtime/process/settings/times.ts';
import { defaultPartitions } from '#schemas/topics.ts';
import { secretKey } from '#test/support/domain.ts';
import { suite } from '#test/support/suite.ts';

/** Every variable, with a value that is right and values that are wrong. Free texts have no wrong ones. */
const table: Readonly<Record<string, { readonly right: string; readonly wrong: readonly string[] }>> = {
  DATABASE_URL: { right: 'postgres://u:p@host/db', wrong: ['mysql://host/db', 'host:5432', 'postgres:'] },
  ESDB_URL: { right: 'esdb://one:2113,two:2113?tls=false', wrong: ['http://host:2113', 'host:2113', 'esdb://'] },
  CLICKHOUSE_URL: { right: 'http://u:p@ch:8123/postline', wrong: ['ch:8123', 'tcp://ch:9000'] },
  KAFKA_BROKERS: { right: 'a:9092, [::1]:9092', wrong: ['a', 'a:b', 'http://a:9092', 'a:99999'] },
  KAFKA_TOPIC_PREFIX: { right: 'blue.', wrong: ['blue/', 'a b'] },
  KAFKA_REPLICATION_FACTOR: { right: '2', wrong: ['0', '11', 'all'] },
  KAFKA_MIN_INSYNC_REPLICAS: { right: '1', wrong: ['0', '11'] },
  LOG_PARTITIONS: { right: '24', wrong: ['0', '1025', '1.5', 'twelve', '', ' ', '0x10', '1e2', '-1'] },
  SECRET_KEY: { right: `${secretKey(2)},${secretKey(1)}`, wrong: ['secret', 'v1:c2hvcnQ='] },
  HOST: { right: '0.0.0.0', wrong: [] },
  PORT: { right: '0', wrong: ['65536', '', '-1'] },
  OPS_PORT: { right: '9090', wrong: ['65536', 'http'] },
  OPS_HOST: { right: '0.0.0.0', wrong: [] },
  TRUSTED_PROXIES: { right: '10.0.0.0/8,::1', wrong: ['17', 'proxy.local', '0.0.0.0/0'] },
  MAX_CONNECTIONS: { right: '1', wrong: ['0'] },
  MAX_CONNECTIONS_PER_ADDRESS: { right: '1', wrong: ['0'] },
  BASE_URL: { right: 'https://api.example.com/v1/', wrong: ['api.example.com', 'ftp://example.com'] },
  AUTH_URL: { right: 'https://auth.example.com', wrong: ['auth.example.com', 'ftp://auth.example.com'] },
  MCP_URL: { right: 'https://mcp.example.com/mcp', wrong: ['/mcp'] },
  SMTP_URL: { right: 'smtps://user:secret@mail.example.com', wrong: ['https://mail.example.com', 'mail.example.com'] },
  MAIL_FROM: { right: 'Ann <ann@example.com>', wrong: ['Ann', '', 'ann@', 'a@b@c'] },
  CONSOLE_URL: { right: 'https://console.example.com', wrong: ['//example.com'] },
  DATA_DIR: { right: '/tmp/data', wrong: [] },
  LOG_FILE: { right: '/tmp/log', wrong: [] },
  LOG_FILE_BYTES: { right: '65536', wrong: ['65535', '1MB'] },
  ANALYTICS_LOST: { right: 'rebuild', wrong: ['maybe'] },
  LOG_FILES: { right: '1', wrong: ['0', '1001'] },
  LOG_LEVEL: { right: 'debug', wrong: ['verbose', 'INFO', ''] },
  DATABASE_POOL: { right: '2', wrong: ['1', '201', ''] },
  RATE_LIMIT_PER_MINUTE: { right: '1', wrong: ['0', 'none'] },
  RATE_LIMIT_WORKSPACE_KEYS: { right: '1', wrong: ['0'] },
  RATE_LIMIT_BURST: { right: '1', wrong: ['0'] },
  PRIVATE_TARGETS: {
    right: 'localhost:3000, [fd00::5]:8080',
    wrong: ['localhost', 'http://localhost:3000', '*:80', '*,a:1', 'a:1,*', 'a:99999', 'u@a:80', 'a:b'],
  },
  PROJECTIONS: { right: 'posts,clients', wrong: [] },
  LEASE_TTL_MS: { right: '300', wrong: ['299', '600001'] },
  PUBLISHING: { right: 'hold', wrong: ['', 'off'] },
  PUBLISH_CONCURRENCY: { right: '10000', wrong: ['0'] },
  BLUESKY_RESOLVER: { right: 'https://bsky.example.com', wrong: ['bsky.example.com', 'ftp://bsky.example.com'] },
  BLUESKY_DIRECTORY: { right: 'http://127.0.0.1:2582', wrong: ['plc.example.com'] },
  BLUESKY_APP_VIEW: { right: 'https://view.example.com', wrong: ['view'] },
  TOUR_BLUESKY: {
    right: '@ann.bsky.social:abcd-efgh-ijkl-mnop',
    wrong: ['ann.bsky.social', ':secret', 'ann@x.com:secret'],
  },
  BLUESKY_OAUTH_KEYS: {
    right: JSON.stringify(
      generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ format: 'jwk' }),
    ).replace('{', '{"kid":"2026-11",'),
    wrong: ['a-key', '{"keys":[]}', '{"kid":"1","kty":"EC","crv":"P-256","x":"","y":"","d":""}'],
  },
  INSTAGRAM_CLIENT_ID: { right: '990602627938098', wrong: [] },
  INSTAGRAM_CLIENT_SECRET: { right: 'a-secret', wrong: [] },
  INSTAGRAM_API: { right: 'https://instagram.example.com', wrong: ['graph.instagram.com'] },
  INSTAGRAM_AUTHORIZE: { right: 'https://instagram.example.com/oauth/authorize', wrong: ['instagram'] },
  INSTAGRAM_TOKENS: { right: 'https://instagram.example.com/tokens', wrong: ['x'] },
  INSTAGRAM_VERSION: { right: 'v26.0', wrong: ['v 26', 'v26/0'] },
  PINTEREST_CLIENT_ID: { right: '1480000', wrong: [] },
  PINTEREST_CLIENT_SECRET: { right: 'a-secret', wrong: [] },
  PINTEREST_API: { right: 'https://api-sandbox.pinterest.com/v5', wrong: ['api.pinterest.com'] },
  PINTEREST_APP_BUDGET: { right: '1000000', wrong: ['0', 'many'] },
  PINTEREST_AUTHORIZE: { right: 'https://pinterest.example.com/oauth/', wrong: ['pinterest'] },
  YOUTUBE_CLIENT_ID: { right: '1-a.apps.googleusercontent.com', wrong: [] },
  YOUTUBE_CLIENT_SECRET: { right: 'GOCSPX-a', wrong: [] },
  YOUTUBE_APP_BUDGET: { right: '1000', wrong: ['0', 'many'] },
  YOUTUBE_APP_UNITS: { right: '50000', wrong: ['0', 'many'] },
  YOUTUBE_API: { right: 'http://127.0.0.1:8091/youtube/v3', wrong: ['googleapis.com'] },
  YOUTUBE_AUTHORIZE: { right: 'https://google.example.com/auth', wrong: ['x'] },
  YOUTUBE_TOKENS: { right: 'https://google.example.com', wrong: ['x'] },
  YOUTUBE_UPLOADS: { right: 'https://google.example.com/upload', wrong: ['x'] },
  YOUTUBE_FIGURES: { right: 'https://google.example.com/v2', wrong: ['x'] },
  FACEBOOK_CLIENT_ID: { right: '1029384756', wrong: [] },
  FACEBOOK_CLIENT_SECRET: { right: 'a-secret', wrong: [] },
  FACEBOOK_VERSION: { right: 'v27.0', wrong: ['v 27', 'v27/0'] },
  FACEBOOK_SCOPES: { right: 'pages_show_list pages_manage_posts', wrong: ['pages_show_list,pages_manage_posts'] },
  FACEBOOK_API: { right: 'http://127.0.0.1:8091', wrong: ['graph.facebook.com'] },
  FACEBOOK_AUTHORIZE: { right: 'https://facebook.example.com', wrong: ['x'] },
  FACEBOOK_UPLOADS: { right: 'https://facebook.example.com/uploads', wrong: ['x'] },
  LINKEDIN_CLIENT_ID: { right: '86abc', wrong: [] },
  LINKEDIN_CLIENT_SECRET: { right: 'WPL_AP1.a/=', wrong: [] },
  LINKEDIN_VERSION: { right: '202611', wrong: ['2026 11', 'a'.repeat(21)] },
  LINKEDIN_APP_BUDGET: { right: '100000', wrong: ['0', 'many'] },
  LINKEDIN_SCOPES: { right: 'openid profile w_member_social', wrong: ['openid,profile', 'openid  profile'] },
  LINKEDIN_API: { right: 'http://127.0.0.1:8091/rest', wrong: ['api.linkedin.com'] },
  LINKEDIN_AUTHORIZE: { right: 'https://linkedin.example.com/authorization', wrong: ['x'] },
  LINKEDIN_TOKENS: { right: 'https://linkedin.example.com/oauth', wrong: ['x'] },
  LINKEDIN_LOGIN: { right: 'https://linkedin.example.com/v2', wrong: ['x'] },
  LINKEDIN_UPLOADS: { right: 'https://linkedin.example.com/uploads', wrong: ['x'] },
  X_CLIENT_ID: { right: 'TXlBcHA6MTpjaQ', wrong: [] },
  X_CLIENT_SECRET: { right: 'a-secret', wrong: [] },
  X_API: { right: 'http://127.0.0.1:8090', wrong: ['api.x.com'] },
  X_AUTHORIZE: { right: 'https://x.example.com/authorize', wrong: ['x'] },
  X_MONTHLY_READS: { right: '0', wrong: ['-1', 'many'] },
  TELEGRAM_BOT_TOKEN: { right: `123456789:${'A'.repeat(35)}`, wrong: ['a-token', '123:'] },
  TELEGRAM_API: { right: 'http://127.0.0.1:8081', wrong: ['api.telegram.org'] },
  TIKTOK_CLIENT_ID: { right: 'aw1234567890', wrong: [] },
  TIKTOK_CLIENT_SECRET: { right: 'a-secret', wrong: [] },
  TIKTOK_API: { right: 'https://tiktok.example.com/v2', wrong: ['open.tiktokapis.com'] },
  TIKTOK_APP_BUDGET: { right: '1000', wrong: ['0', 'many'] },
  TIKTOK_AUTHORIZE: { right: 'https://tiktok.example.com/v2/auth/authorize/', wrong: ['tiktok'] },
  TIKTOK_SITE_PROOF: {
    right: 'MrYmGFtSFSb0FMQcrgGYRdJnZDueUoXT, W80hyQC60hi75H7MTNlTpbTyCipci1gZ',
    wrong: ['tiktok.txt', '../x'],
  },
  THREADS_CLIENT_ID: { right: '990602627938098', wrong: [] },
  THREADS_CLIENT_SECRET: { right: 'a-secret', wrong: [] },
  THREADS_API: { right: 'https://graph.threads.com', wrong: ['graph.threads.com'] },
  THREADS_AUTHORIZE: { right: 'https://threads.com/oauth/authorize', wrong: ['threads'] },
  THREADS_VERSION: { right: 'v1.0', wrong: ['v 1', 'v1/0'] },
  INSIGHTS_CONCURRENCY: { right: '1', wrong: ['0', '257'] },
  WEBHOOK_PER_ENDPOINT: { right: '1', wrong: ['0'] },
  WEBHOOK_PER_TENANT: { right: '1', wrong: ['0'] },
  WEBHOOK_CONCURRENCY: { right: '1', wrong: ['0'] },
  WEBHOOK_PER_HOST: { right: '1', wrong: ['0'] },
  WEBHOOK_HOST_FAILURES: { right: '1', wrong: ['0'] },
  REPORT_WAIT_MS: { right: '0', wrong: ['-1', '6h'] },
  WEBHOOKS_PER_WORKSPACE: { right: '1', wrong: ['0', '10001'] },
  BLOB_DIR: { right: '/srv/blobs', wrong: [] },
  S3_ENDPOINT: { right: 'http://s3:7070', wrong: ['s3:7070', 'ftp://s3'] },
  S3_PUBLIC_ENDPOINT: { right: 'https://files.example', wrong: ['files.example'] },
  S3_BUCKET: { right: 'media', wrong: [] },
  S3_REGION: { right: 'eu-central-1', wrong: [] },
  S3_ACCESS_KEY_ID: { right: 'key', wrong: [] },
  S3_SECRET_ACCESS_KEY: { right: 'secret', wrong: [] },
  FFMPEG_PATH: { right: '/usr/bin/ffmpeg', wrong: [] },
  OUTDATED_FFMPEG: { right: 'take', wrong: ['yes'] },
  MEDIA_CONCURRENCY: { right: '1', wrong: ['0', '65'] },
  MEDIA_DOWNLOADS: { right: '1', wrong: ['0', '1025'] },
  MEDIA_DOWNLOADS_PER_WORKSPACE: { right: '1', wrong: ['0', '1025'] },
  MEDIA_QUOTA_BYTES: { right: '1', wrong: ['0', '1GiB'] },
  MEDIA_TEMP_DIR: { right: '/var/tmp/media', wrong: [] },
};

const weekMs = 604_800_000;

/** Every time that a test may set, with a value that is right and values that are wrong. */
const times: Readonly<Record<keyof Times, { readonly right: unknown; readonly wrong: readonly unknown[] }>> = {
  boundaryDeadlineMs: { right: 100, wrong: [99, '100', 100.5, null, 600_001] },
  settleWindowMs: { right: 0, wrong: [-1, '0', weekMs + 1] },
  reconcileDelaysMs: { right: [0, 100], wrong: ['0,100', [0, 'soon'], [weekMs + 1], 5] },
  deferDelaysMs: { right: [1], wrong: [[-1], 1] },
  maxRateLimits: { right: 0, wrong: [1_001, -1] },
  sweepIntervalMs: { right: 100, wrong: [99] },
  insightsYoungDelaysMs: { right: [0, 5_000], wrong: ['soon', [-1]] },
  webhookRetryDelaysMs: { right: [0, 5_000], wrong: [[0, 'soon'], [-1]] },
  webhookExchangeMs: { right: 60_000, wrong: [49, 60_001] },
  webhookLeaseMs: { right: 100, wrong: [99] },
  webhookBreakerFailures: { right: 1, wrong: [0, true] },
  webhookBreakerMs: { right: 10, wrong: [9] },
  webhookDisableAfterMs: { right: 100, wrong: [99] },
};

const help = configHelp();
const names = [...help.matchAll(/^ {2}([A-Z][A-Z0-9_]*)/gm)].map(([, name]) => name ?? '');

suite('config', (t) => {
  t('needs no variable: each has a default', () => {
    const config = readConfig({});
    equal(config.databaseUrl, null);
    deepEqual(config.kafkaBrokers, []);
    equal(config.partitions, defaultPartitions);
    equal(config.host, '127.0.0.1');
    deepEqual(readConfig({ UNRELATED: 'x', HOST: undefined }), config);
  });

  t('has exactly the variables of this test', () => deepEqual(names.sort(), Object.keys(table).sort()));

  t('reads a valid value of each', () => {
    const config = readConfig(Object.fromEntries(Object.entries(table).map(([name, { right }]) => [name, right])));
    deepEqual(config.kafkaBrokers, ['a:9092', '[::1]:9092']);
    deepEqual(config.projections, ['posts', 'clients']);
    deepEqual(config.privateTargets, ['localhost:3000', '[fd00::5]:8080']);
    deepEqual(readConfig({ PRIVATE_TARGETS: '*' }).privateTargets, ['*']);
    deepEqual(readConfig({}).privateTargets, []);
    equal(config.partitions, 24);
    equal(config.port, 0);
    equal(config.baseUrl, 'https://api.example.com/v1');
    // A page is called as it is written, and calls are below the others.
    equal(config.pinterestAuthorize, 'https://pinterest.example.com/oauth/');
    equal(
      readConfig({ PINTEREST_API: 'https://pinterest.example.com/v5/' }).pinterestApi,
      'https://pinterest.example.com/v5',
    );
  });

  for (const [name, { wrong }] of Object.entries(table)) {
    if (wrong.length === 0) continue;
    t(`names ${name} when it is invalid`, () => {
      for (const value of wrong) {
        throws(
          () => readConfig({ [name]: value }),
          (error) =>
            error instanceof ConfigError && error.message.startsWith(`${name} `) && / must /.test(error.message),
          `${name}=${JSON.stringify(value)}`,
        );
      }
    });
  }

  t('reads an empty value as none where none is possible', () => {
    const empty = {
      DATABASE_URL: '',
      ESDB_URL: '',
      KAFKA_BROKERS: '',
      SECRET_KEY: '',
      BASE_URL: '',
    };
    deepEqual(readConfig(empty), readConfig({}));
  });

  t('gives no setting a name with the prefix of the event store, which refuses to start at one', () => {
    // No variable of ours may have the server's prefix.
    for (const name of names) ok(!name.startsWith('EVENTSTORE_'), name);
  });

  t('shows an invalid value, unless it may hold a secret', () => {
    throws(() => readConfig({ PORT: 'eighty' }), /it is "eighty"/);
    for (const name of ['SECRET_KEY', 'DATABASE_URL', 'ESDB_URL']) {
      throws(
        () => readConfig({ [name]: 'wrong://user:canary-4711@host' }),
        (error: Error) => !error.message.includes('canary'),
        name,
      );
    }
  });

  t('explains name, meaning and default of each', () => {
    for (const name of names) match(help, new RegExp(`^ {2}${name} +\\S.*\\[.+\\]$`, 'm'));
    match(help, /PORT .*\[8080\]/);
    match(help, /DATABASE_URL .*\[none\]/);
    match(help, /INSIGHTS_CONCURRENCY .*\[8\]/);
    ok(!help.includes('undefined') && !help.includes('POSTLINE_'));
    for (const [, name = ''] of help.matchAll(/\b([A-Z]+_URL)\b/g)) {
      ok(names.includes(name), `${name} is no variable`);
    }
  });

  t('reads the times of a test, and leaves the others as they are', () => {
    const right = Object.fromEntries(Object.entries(times).map(([name, one]) => [name, one.right]));
    const read = readConfig({ POSTLINE_TIMES: JSON.stringify(right) });
    for (const [name, value] of Object.entries(right)) deepEqual(read[name as keyof Times], value, name);
    equal(read.settleWindowMs, 0);
    deepEqual(read.reconcileDelaysMs, [0, 100]);
    const { sweepIntervalMs, ...others } = readConfig({ POSTLINE_TIMES: '{"sweepIntervalMs":300}' });
    const { sweepIntervalMs: _usual, ...usual } = readConfig({});
    deepEqual([sweepIntervalMs, others], [300, usual]);
    deepEqual(Object.keys(usualTimes).sort(), Object.keys(times).sort());
    deepEqual(readConfig({}).deferDelaysMs, [30_000, 120_000, 600_000]);
  });

  t('refuses times of another form, by name', () => {
    const refused = (text: string, words: RegExp) =>
      throws(
        () => readConfig({ POSTLINE_TIMES: text }),
        (error) => error instanceof ConfigError && words.test(error.message),
        text,
      );
    for (const [name, { wrong }] of Object.entries(times)) {
      const words = new RegExp(`^POSTLINE_TIMES must have at ${name} a (list of )?whole numbers? from \\d+ to \\d+ `);
      for (const value of wrong) refused(JSON.stringify({ [name]: value }), words);
    }
    refused('{"leaseTtlMs":300}', /^POSTLINE_TIMES must not have the member leaseTtlMs: its members are boundary/);
    refused('{"toString":300}', /^POSTLINE_TIMES must not have the member toString/);
    for (const text of ['', 'soon', '5', '[]', 'null', '{']) refused(text, /^POSTLINE_TIMES must be a JSON object /);
  });

  t('takes no time from a variable of its own', () => {
    const former = Object.entries(times).map(([name, { right }]) => [
      name.replace(/[A-Z]/g, '_$&').toUpperCase(),
      String(right),
    ]);
    equal(former[0]?.[0], 'BOUNDARY_DEADLINE_MS');
    deepEqual(readConfig(Object.fromEntries(former)), readConfig({}));
    deepEqual(readConfig({ BOUNDARY_DEADLINE_MS: 'soon', METRICS_YOUNG_DELAYS_MS: '1' }), readConfig({}));
  });

  t('has no fault point unless a test names one', () => {
    deepEqual(readFaults({}), { at: [], onceDir: null, signal: 'SIGKILL' });
    const { at, signal } = readFaults({ POSTLINE_FAULT: 'a:b,c', POSTLINE_FAULT_SIGNAL: 'SIGSTOP' });
    deepEqual([at, signal], [['a:b', 'c'], 'SIGSTOP']);
  });
});
