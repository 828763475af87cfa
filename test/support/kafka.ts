/**
 * A real Kafka broker for tests: the given one (KAFKA_BROKERS, or TEST_KAFKA_BROKERS of the run), else a container,
 * else the jars from Maven Central. `private` asks for one that the test may kill, which is never the given one.
 */
import { Kafka, logLevel } from 'kafkajs';
import { silenceNegativeTimeouts } from '#infra/kafka/client.ts';
import { engineAnswers } from './container-engine.ts';
import { type JavaBroker, javaBroker, missingTools } from './kafka/java-broker.ts';

export interface Broker {
  readonly brokers: readonly string[];
  /** Its origin, for the line that a test world prints. */
  readonly source: 'environment' | 'docker' | 'jars';
  /** kill -9, data kept. Throws on a broker that was given. */
  kill9(): Promise<void>;
  /** Up again on the same port and data; resolves when it answers. */
  start(): Promise<void>;
  /** Stops it and deletes its data. Leaves a given one alone. */
  stop(): Promise<void>;
}

const answers = async (broker: string): Promise<boolean> => {
  silenceNegativeTimeouts();
  const client = new Kafka({
    brokers: [broker],
    logLevel: logLevel.NOTHING,
    connectionTimeout: 1000,
    requestTimeout: 2000,
    retry: { retries: 0 },
  });
  const admin = client.admin();
  try {
    await admin.connect();
    return (await admin.describeCluster()).brokers.length > 0;
  } catch {
    return false;
  } finally {
    await admin.disconnect().catch(() => undefined);
  }
};

const given = (brokers: string): Broker => {
  const notOurs = async (): Promise<never> => {
    throw new Error('this broker was given by the environment: it is not ours to kill');
  };
  return {
    brokers: brokers.split(','),
    source: 'environment',
    kill9: notOurs,
    start: notOurs,
    stop: async () => undefined,
  };
};

const named = (): string | undefined => process.env.TEST_KAFKA_BROKERS ?? process.env.KAFKA_BROKERS;

/** Why no broker is available, without starting one; null when one is. */
export const kafkaMissing = async (options?: { private?: boolean }): Promise<string | null> => {
  if (named() && options?.private !== true) return null;
  return (await engineAnswers()) ? null : missingTools();
};

/**
 * On ports that were free a moment ago. When another program took one of them the broker does not start: make another.
 */
const started = async (make: typeof javaBroker): Promise<JavaBroker> => {
  const broker = await make(answers);
  try {
    await broker.start();
    return broker;
  } catch (error) {
    await broker.stop();
    throw error;
  }
};

export const kafkaBroker = async (options?: { private?: boolean }): Promise<Broker | { readonly skip: string }> => {
  const shared = named();
  if (shared && options?.private !== true) return given(shared);
  const docker = await engineAnswers();
  const missing = docker ? null : await missingTools();
  if (missing !== null) return { skip: missing };
  const make = docker ? (await import('./kafka/docker-broker.ts')).dockerBroker : javaBroker;
  const broker = await started(make).catch(() => started(make));
  return { ...broker, source: docker ? 'docker' : 'jars' };
};
