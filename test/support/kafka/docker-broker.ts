/** The broker in a container, where an engine answers. The host port is fixed before the start: it must outlive kill -9. */
import { GenericContainer, getContainerRuntimeClient } from 'testcontainers';
import { freePort } from '../port.ts';
import type { JavaBroker } from './java-broker.ts';

export const dockerBroker = async (answers: (broker: string) => Promise<boolean>): Promise<JavaBroker> => {
  const port = await freePort();
  const broker = `127.0.0.1:${port}`;
  const container = await new GenericContainer('apache/kafka:4.1.0')
    .withExposedPorts({ container: 9092, host: port })
    .withEnvironment({
      KAFKA_NODE_ID: '1',
      KAFKA_PROCESS_ROLES: 'broker,controller',
      KAFKA_CONTROLLER_QUORUM_VOTERS: '1@localhost:9093',
      KAFKA_CONTROLLER_LISTENER_NAMES: 'CONTROLLER',
      KAFKA_LISTENER_SECURITY_PROTOCOL_MAP: 'CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT',
      KAFKA_LISTENERS: 'PLAINTEXT://0.0.0.0:9092,CONTROLLER://localhost:9093',
      KAFKA_ADVERTISED_LISTENERS: `PLAINTEXT://${broker}`,
      KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR: '1',
      KAFKA_TRANSACTION_STATE_LOG_MIN_ISR: '1',
      KAFKA_AUTO_CREATE_TOPICS_ENABLE: 'false',
      KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS: '1000',
      KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS: '0',
      KAFKA_HEAP_OPTS: '-Xmx512m -Xms256m',
    })
    .start();
  const engine = await getContainerRuntimeClient();
  const handle = engine.container.getById(container.getId());
  const ready = async (): Promise<void> => {
    const deadline = performance.now() + 60_000;
    while (!(await answers(broker))) {
      if (performance.now() > deadline) throw new Error('the Kafka container did not come up');
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
  };
  let running = true;
  return {
    brokers: [broker],
    kill9: async () => {
      await handle.kill({ signal: 'SIGKILL' });
      running = false;
    },
    start: async () => {
      if (!running) await handle.start();
      running = true;
      await ready();
    },
    stop: async () => {
      await container.stop();
    },
  };
};
