/** Names outside of the code that are no events and no tables; `*` stands for what a template puts in. */

export const metadata =
  'workspaceId partitionKey actor:{type:member|apikey|service|guest|admin|person id grantId?} $correlationId $causationId commandId occurredAt schemaVersion keyHmac? fingerprint?';

export const topics: readonly string[] = ['workspace', 'posts', 'media', 'metrics', 'webhooks', 'reports'];

/** Every stream kind; null travels on none. */
export const topicOfKind: Readonly<Record<string, string | null>> = {
  workspace: 'workspace',
  apikey: 'workspace',
  client: 'workspace',
  grant: 'workspace',
  clientname: 'workspace',
  externalref: null,
  targetcalls: null,
  quota: null,
  invite: 'workspace',
  account: 'workspace',
  post: 'posts',
  target: 'posts',
  approval: 'posts',
  campaign: 'posts',
  media: 'media',
  webhook: 'webhooks',
  targetmetrics: 'metrics',
  accountmetrics: 'metrics',
  refresh: 'workspace',
  report: 'reports',
  request: null,
  teaminvite: 'workspace',
  person: null,
  personemail: null,
  session: null,
};

export const consumerGroups: readonly string[] = [
  "'projection-' || p.name || '-v' || p.live",
  'analytics-v*',
  'archives',
  'media',
  'media-fill',
  'metrics',
  'outcomes',
  'projection-*-v*',
  'reports',
  'webhooks',
];

export const leaseKinds: readonly string[] = [
  'clean-up',
  'cores',
  'listen',
  'media',
  'metrics',
  'report',
  'sweep',
  'target',
];

export const notifyChannels: readonly string[] = ['*', '*_events', 'webhook_queue'];

export const advisoryCalls: readonly string[] = [
  'pg_advisory_lock(hashtextextended($1, 0))',
  'pg_advisory_unlock(hashtextextended($1, 0))',
  'pg_advisory_unlock_all()',
  'pg_advisory_xact_lock($1, hashtext($2))',
  'pg_advisory_xact_lock(*)',
  "pg_advisory_xact_lock(hashtextextended('event store *', 0))",
  "pg_advisory_xact_lock(hashtextextended('grant ' || r_platform || ' ' || r_grant, 0))",
  'pg_try_advisory_lock(hashtextextended($1, 0))',
  "pg_try_advisory_lock(hashtextextended('analytics ' || $1 || ' ' || id, 0))",
  'pg_try_advisory_xact_lock($1)',
];

export const advisoryKeys: readonly string[] = [
  '7070707',
  '7070717',
  '7070718',
  '7070719',
  '7070720',
  'analytics',
  'event store tables *',
  'log * *',
  'oauth signing keys',
  'rebuild *',
  'workspace index',
  'workspace index *',
];

/** Purpose and the first 8 bytes of what the key of the test gives. */
export const derivedKeys: Readonly<Record<string, string>> = {
  secrets: '5004222ddd00cc8f',
  cursors: '93392ca3889fad76',
  'blob-urls': '16524eb258fd3f37',
  fingerprints: 'cb8e94c4fbafa021',
  wrapping: '8c64502ee20bda73',
  consistency: 'd34e94ce9152e389',
  sessions: 'c07d56576723cc7f',
  'import-urls': '70b216c21e4fb6ff',
  'key-check': 'e587b0ec9dbb7ff8',
  consents: '7b08b19974e9e37d',
  'oauth-cookies': '3c3491c97c8d5062',
  'oauth-keys': '5aa8bde74e006514',
  'client-secrets': '3a9a2265090d0ffc',
  emails: '79f22e367cff64e8',
  'second-factors': '774d92f0c31ceb5b',
  'person-links': 'c4d5b46263c812be',
  forms: '99153922acaf1826',
};

/** What an HMAC that is stored or shown is made of. */
export const signedTexts: readonly string[] = [
  '*\\n*',
  'approval\\n*\\n*',
  'invite\\n*',
  'postline engine *',
  'postline key check *',
  'team mail\\n*',
  'team\\n*',
  'token of forms\\n*',
  'webhook\\n*\\n*',
];

export const blobKeys: { readonly media: string; readonly report: string } = {
  media: '11111111-1111-4111-8111-111111111111/22222222-2222-4222-8222-222222222222/original-01234567.png',
  report:
    '11111111-1111-4111-8111-111111111111/reports/22222222-2222-4222-8222-222222222222/report-0123456789abcdef.csv',
};

export const blobKeyForms: readonly string[] = ['*/*/*-*.*', '*/*/upload', '*/reports/*/report-*.*'];

/** For the arguments in the test. */
export const derivedIds: Readonly<Record<string, string>> = {
  target: '342579ad-3300-5dd8-9c1f-0ca9c6b04902',
  recycled: '68d0566d-a273-5b57-b1bf-03cc71863ecf',
  account: 'bdd8218e-7487-574d-8254-f2d61e3b84f8',
  keyed: '01bb4315-dfd0-5070-a320-d08b8d4b5f48',
  nextKeyed: '44ada134-b9af-5ae8-b3ff-ad238c39dc8d',
  clientName: '9ee2e3a7-8fb8-5c27-92d3-9625ff756981',
  externalRef: '4253b351-3b35-510d-90c6-c3978fe1020a',
  quota: '870d793d-9384-5a06-bfd1-fe2d63d9c6c2',
  testTwin: 'e2de242d-e2c0-543e-bfa0-979ff769c5a1',
  caused: '73182e67-196d-5cfc-b446-9b4c0d298b60',
  envelope: '91018b71-7c7c-5386-9086-24487616df57',
  delivery: '2f7c0eca-d187-50e5-a29b-225b8bea0243',
  replayedDelivery: '222c5a1e-018b-5aec-8a99-1ea44c18bdd5',
};

export const settings: readonly string[] = [
  'ANALYTICS_LOST',
  'AUTH_URL',
  'BASE_URL',
  'BLOB_DIR',
  'BLUESKY_APP_VIEW',
  'BLUESKY_DIRECTORY',
  'BLUESKY_OAUTH_KEYS',
  'BLUESKY_RESOLVER',
  'CLICKHOUSE_URL',
  'CONSOLE_URL',
  'DATABASE_POOL',
  'DATABASE_URL',
  'DATA_DIR',
  'ESDB_URL',
  'FFMPEG_PATH',
  'HOST',
  'INSIGHTS_CONCURRENCY',
  'KAFKA_BROKERS',
  'KAFKA_MIN_INSYNC_REPLICAS',
  'KAFKA_REPLICATION_FACTOR',
  'KAFKA_TOPIC_PREFIX',
  'LEASE_TTL_MS',
  'LOG_FILE',
  'LOG_FILES',
  'LOG_FILE_BYTES',
  'LOG_LEVEL',
  'LOG_PARTITIONS',
  'MAIL_FROM',
  'MAX_CONNECTIONS',
  'MAX_CONNECTIONS_PER_ADDRESS',
  'MCP_URL',
  'MEDIA_CONCURRENCY',
  'MEDIA_DOWNLOADS',
  'MEDIA_DOWNLOADS_PER_WORKSPACE',
  'MEDIA_QUOTA_BYTES',
  'MEDIA_TEMP_DIR',
  'OPS_HOST',
  'OPS_PORT',
  'OUTDATED_FFMPEG',
  'PORT',
  'PRIVATE_TARGETS',
  'PROJECTIONS',
  'PUBLISHING',
  'PUBLISH_CONCURRENCY',
  'RATE_LIMIT_BURST',
  'RATE_LIMIT_PER_MINUTE',
  'RATE_LIMIT_WORKSPACE_KEYS',
  'REPORT_WAIT_MS',
  'S3_ACCESS_KEY_ID',
  'S3_BUCKET',
  'S3_ENDPOINT',
  'S3_PUBLIC_ENDPOINT',
  'S3_REGION',
  'S3_SECRET_ACCESS_KEY',
  'SECRET_KEY',
  'SMTP_URL',
  'TELEGRAM_API',
  'TELEGRAM_BOT_TOKEN',
  'TOUR_BLUESKY',
  'TRUSTED_PROXIES',
  'WEBHOOKS_PER_WORKSPACE',
  'WEBHOOK_CONCURRENCY',
  'WEBHOOK_HOST_FAILURES',
  'WEBHOOK_PER_ENDPOINT',
  'WEBHOOK_PER_HOST',
  'WEBHOOK_PER_TENANT',
  'X_API',
  'X_AUTHORIZE',
  'X_CLIENT_ID',
  'X_CLIENT_SECRET',
  'X_MONTHLY_READS',
];

/** Set by tests alone. */
export const testSettings: readonly string[] = [
  'POSTLINE_COMMIT',
  'POSTLINE_FAULT',
  'POSTLINE_FAULT_ONCE',
  'POSTLINE_FAULT_SIGNAL',
  'POSTLINE_TIMES',
];

export const ownActors: readonly string[] = [
  'admin standalone',
  'service credentials',
  'service listener',
  'service media',
  'service metrics',
  'service nobody',
  'service oauth',
  'service outcomes',
  'service publisher',
  'service quota',
  'service recycle',
  'service reports',
  'service sweeper',
  'service webhooks',
];

export const prometheusNames: readonly string[] = [
  'api_connections',
  'api_connections_refused_total',
  'clock_offset_seconds',
  'consumer_lanes',
  'credential_refreshes_total',
  'insights_failures_total',
  'insights_fetched_total',
  'insights_in_work',
  'insights_lag_seconds',
  'insights_odd_figures_total',
  'insights_parked_total',
  'log_lines_dropped_total',
  'media_in_work',
  'media_queue_length',
  'media_step_seconds',
  'media_steps_total',
  'network_calls_kept_total',
  'network_calls_lost_total',
  'network_hearing',
  'network_hearing_failures_total',
  'oauth_repeats_total',
  'oauth_reuses_total',
  'parked_oldest_seconds',
  'parked_streams',
  'plans_behind',
  'plans_behind_oldest_seconds',
  'postline_build_info',
  'publish_processing_seconds',
  'publish_start_lateness_seconds',
  'relay_state',
  'relay_waiting_records',
  'report_queue_length',
  'report_run_seconds',
  'report_runs_total',
  'sweep_failures_total',
  'targets_overdue_total',
  'webhook_attempts_total',
  'webhook_breaker_open',
  'webhook_deliveries_total',
  'webhook_delivery_seconds',
  'webhook_in_flight',
  'webhook_queue_lag_seconds',
];

/** Their number, and the SHA-256 of their JSON: the stored rows name words by number. */
export const packingWords: readonly [number, string] = [
  1_641,
  '71497cd8dfc3bf0353b5e645cd05ebde42ac59b3a137dac09740fc93e7afb367',
];
