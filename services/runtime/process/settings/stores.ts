import {
  brokers,
  eventStoreUrl,
  integer,
  oneOf,
  optional,
  secretKeys,
  topicPrefix,
  url,
  variable,
} from '../config-values.ts';

/** The stores of the data, and the key that seals it. */
export const storesSettings = {
  databaseUrl: variable(
    'DATABASE_URL',
    optional(url('postgres:', 'postgresql:')),
    null as string | null,
    'Postgres for read models and operational tables. Standalone: none = an embedded server under the data folder',
  ),
  eventStoreUrl: variable(
    // Not EVENTSTORE_…: the server (24.10) reads every variable with that prefix and refuses to start at an unknown
    // one.
    'ESDB_URL',
    optional(eventStoreUrl),
    null as string | null,
    'EventStoreDB; none = the Postgres event store',
    'EVENTSTORE_URL',
  ),
  kafkaBrokers: variable(
    'KAFKA_BROKERS',
    brokers,
    [] as readonly string[],
    'host:port list; none = the embedded log over the Postgres event table',
  ),
  kafkaPrefix: variable('KAFKA_TOPIC_PREFIX', topicPrefix, '', 'put before every topic name'),
  kafkaReplicationFactor: variable(
    'KAFKA_REPLICATION_FACTOR',
    optional(integer(1, 10)),
    null as number | null,
    'brokers that hold each record of a topic made here; none = what the cluster has, up to 3',
  ),
  kafkaMinInSyncReplicas: variable(
    'KAFKA_MIN_INSYNC_REPLICAS',
    optional(integer(1, 10)),
    null as number | null,
    'brokers that must have a record before it counts as written; none = one less than KAFKA_REPLICATION_FACTOR, at least 1',
  ),
  partitions: variable(
    'LOG_PARTITIONS',
    integer(1, 1024),
    12,
    'partitions of each topic, stored at creation; a mismatch refuses to start',
  ),
  clickhouseUrl: variable(
    'CLICKHOUSE_URL',
    optional(url('http:', 'https:')),
    null as string | null,
    'ClickHouse over HTTP for analytics, http://user:password@host:8123/database; the database is there already. None = no analytics; standalone: an embedded engine under the data folder',
  ),
  analyticsLost: variable(
    'ANALYTICS_LOST',
    oneOf('wait', 'rebuild'),
    'wait' as 'wait' | 'rebuild',
    'what the projections do at their start where ClickHouse has lost its observations: wait for npm run admin -- rebuild analytics, or rebuild at once. Standalone rebuilds what its embedded engine lost',
  ),
  secretKey: variable(
    'SECRET_KEY',
    optional(secretKeys),
    null as string | null,
    'v2:<base64 of 32 bytes>,v1:…; the first is current. Standalone makes one under the data folder',
  ),
} as const;
