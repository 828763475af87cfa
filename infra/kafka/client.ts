/** Shared by reader and writer: the kafkajs client, the topics, and calls that always settle. */
import { type Admin, Kafka, type KafkaConfig, type LogEntry, logLevel } from 'kafkajs';
import { within } from '#contracts/base/pause.ts';
import { type Lane, LogError } from '#contracts/ports/log.ts';
import { topics as allTopics, defaultPartitions } from '#schemas/topics.ts';

/** How many brokers hold each record, and how many must have it before it is acknowledged. */
interface Replication {
  readonly factor: number;
  readonly minInSync: number;
}

interface ReplicationOptions {
  /** Default: the number of brokers, up to 3. */
  readonly replicationFactor?: number;
  /** Default: one less than the factor (2 of 3), so that writes go on while one broker is down. */
  readonly minInSyncReplicas?: number;
}

const maxByDefault = 3;

/**
 * @throws LogError `fatal` for a factor or minimum that the cluster cannot give: such topics would refuse every write
 */
export const replicationOf = (brokers: number, options: ReplicationOptions): Replication => {
  const factor = options.replicationFactor ?? Math.min(maxByDefault, Math.max(1, brokers));
  const minInSync = options.minInSyncReplicas ?? Math.max(1, factor - 1);
  if (factor > brokers) {
    throw new LogError('fatal', `KAFKA_REPLICATION_FACTOR is ${factor}, the cluster has ${brokers} brokers: set fewer`);
  }
  if (minInSync > factor) {
    throw new LogError(
      'fatal',
      `KAFKA_MIN_INSYNC_REPLICAS is ${minInSync}, ${factor} brokers hold a record: set fewer`,
    );
  }
  return { factor, minInSync };
};

/** The methods of a pino logger that are used. */
interface KafkaLogger {
  error(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  info(fields: object, message: string): void;
  debug(fields: object, message: string): void;
}

/** The replication is for topics made here; existing topics keep theirs. */
export interface KafkaOptions extends ReplicationOptions {
  readonly brokers: readonly string[];
  /** Default: every topic of the schemas. */
  readonly topics?: readonly string[];
  /** Default 12. Topics that exist with another count refuse to start. */
  readonly partitions?: number;
  /** Prefix of topic and group names, so that several systems can share a broker. Default none. */
  readonly prefix?: string;
  readonly clientId?: string;
  /** CloudEvents source. Default `/eventstore`. */
  readonly source?: string;
  /** Without one kafkajs is silent: what matters reaches the caller as errors. */
  readonly logger?: KafkaLogger;
  readonly ssl?: KafkaConfig['ssl'];
  readonly sasl?: KafkaConfig['sasl'];
  /** Makes the sockets. Default: `node:net` and `node:tls`. */
  readonly socketFactory?: KafkaConfig['socketFactory'];
  /** A member without a heartbeat for this long loses its lanes, milliseconds. Default 10,000. */
  readonly sessionTimeoutMs?: number;
  /** Batches applied at once, each of another lane. Default 4. */
  readonly concurrency?: number;
  /** How long `send` retries before it throws `unavailable`, milliseconds. Default 30,000. */
  readonly patienceMs?: number;
}

export interface Connection {
  readonly kafka: Kafka;
  readonly options: KafkaOptions;
  readonly partitions: number;
  readonly topics: readonly string[];
  /** Name of our topic on the broker, and back. */
  topicName(topic: string): string;
  topicOf(name: string): string;
  /** One admin call with a deadline. @throws LogError `unavailable` */
  admin<T>(call: (admin: Admin) => Promise<T>): Promise<T>;
  /** First retained offset and next offset to be written, by lane. */
  bounds(topics: readonly string[]): Promise<ReadonlyMap<Lane, { readonly first: bigint; readonly end: bigint }>>;
  close(): Promise<void>;
}

export const laneOf = (topic: string, partition: number): Lane => `${topic}-${partition}`;

const adminDeadlineMs = 10_000;
const disconnectDeadlineMs = 5000;

/** kafkajs' disconnect may never settle; an abandoned one ends with its socket. */
export const disconnect = (client: { disconnect(): Promise<void> }): Promise<void> =>
  within(disconnectDeadlineMs, client.disconnect()).catch(() => undefined);

/** A broker that has just started answers that it leads nothing yet. */
const isStarting = (error: unknown): boolean =>
  error instanceof Error && 'type' in error && 'retriable' in error && error.retriable === true;
const startingPauseMs = 200;

let silenced = false;
/** kafkajs 2.2.4 sets negative time-outs on every request and Node 24 warns. Only that warning is dropped. */
export const silenceNegativeTimeouts = (): void => {
  if (silenced) return;
  silenced = true;
  const emit = process.emitWarning.bind(process) as (...args: unknown[]) => void;
  process.emitWarning = ((...args: unknown[]) => {
    if (args[1] === 'TimeoutNegativeWarning' && new Error().stack?.includes('kafkajs')) return;
    emit(...args);
  }) as typeof process.emitWarning;
};

const logTo =
  (logger: KafkaLogger) =>
  () =>
  ({ level, log: { message, ...fields } }: LogEntry): void => {
    // Errors that kafkajs logs are those it retries; one that ends a subscription or a send reaches the caller as
    // LogError.
    if (level === logLevel.ERROR || level === logLevel.WARN) logger.warn(fields, message);
    else logger.debug(fields, message);
  };

const ensureTopics = async (connection: Connection): Promise<void> => {
  const names = connection.topics.map(connection.topicName);
  const existing = new Set(await connection.admin((admin) => admin.listTopics()));
  const missing = names.filter((name) => !existing.has(name));
  if (missing.length > 0) {
    const { brokers } = await connection.admin((admin) => admin.describeCluster());
    const { factor, minInSync } = replicationOf(brokers.length, connection.options);
    const configEntries = [
      { name: 'cleanup.policy', value: 'delete' },
      { name: 'min.insync.replicas', value: String(minInSync) },
    ];
    const wanted = { numPartitions: connection.partitions, replicationFactor: factor, configEntries };
    // False when another process created them first; the check below covers both cases.
    await connection.admin((admin) =>
      admin.createTopics({ waitForLeaders: true, topics: missing.map((topic) => ({ topic, ...wanted })) }),
    );
  }
  const { topics } = await connection.admin((admin) => admin.fetchTopicMetadata({ topics: names }));
  for (const { name, partitions } of topics) {
    if (partitions.length !== connection.partitions) {
      const counts = `${partitions.length} partitions, configured are ${connection.partitions}`;
      throw new LogError('partition_mismatch', `topic ${name} has ${counts}: keys would change their partition`);
    }
  }
};

/**
 * Connects and creates missing topics.
 * @throws LogError `partition_mismatch` where a topic exists with another count, `fatal` for a replication that the
 * cluster cannot give, `unavailable` when no broker answers
 */
export const connect = async (options: KafkaOptions): Promise<Connection> => {
  silenceNegativeTimeouts();
  const prefix = options.prefix ?? '';
  const kafka = new Kafka({
    clientId: options.clientId ?? 'log',
    brokers: [...options.brokers],
    connectionTimeout: 3000,
    requestTimeout: 10_000,
    retry: { retries: 5, initialRetryTime: 100, maxRetryTime: 2000 },
    logLevel: options.logger === undefined ? logLevel.NOTHING : logLevel.INFO,
    ...(options.logger === undefined ? {} : { logCreator: logTo(options.logger) }),
    ...(options.ssl === undefined ? {} : { ssl: options.ssl }),
    ...(options.sasl === undefined ? {} : { sasl: options.sasl }),
    ...(options.socketFactory === undefined ? {} : { socketFactory: options.socketFactory }),
  });

  let current: Promise<Admin> | null = null;
  const opened = (): Promise<Admin> => {
    const admin = kafka.admin();
    return admin.connect().then(() => admin);
  };
  const drop = async (): Promise<void> => {
    const old = current;
    current = null;
    await old?.then(disconnect, () => undefined);
  };

  const connection: Connection = {
    kafka,
    options,
    partitions: options.partitions ?? defaultPartitions,
    topics: options.topics ?? allTopics,
    topicName: (topic) => prefix + topic,
    topicOf: (name) => name.slice(prefix.length),
    admin: async (call) => {
      const end = performance.now() + adminDeadlineMs;
      for (;;) {
        current ??= opened();
        try {
          const left = Math.max(1, end - performance.now());
          return await within(left, current.then(call));
        } catch (cause) {
          // A client that failed once may keep failing after its broker came back.
          await drop();
          if (!isStarting(cause) || performance.now() + startingPauseMs > end) {
            throw new LogError('unavailable', 'the log does not answer', { cause });
          }
        }
        await new Promise((resolve) => setTimeout(resolve, startingPauseMs));
      }
    },
    bounds: async (topics) => {
      const found = new Map<Lane, { first: bigint; end: bigint }>();
      for (const topic of topics) {
        const offsets = await connection.admin((admin) => admin.fetchTopicOffsets(connection.topicName(topic)));
        for (const { partition, low, high } of offsets) {
          found.set(laneOf(topic, partition), { first: BigInt(low), end: BigInt(high) });
        }
      }
      return found;
    },
    close: drop,
  };
  try {
    await ensureTopics(connection);
  } catch (error) {
    await drop();
    throw error;
  }
  return connection;
};
