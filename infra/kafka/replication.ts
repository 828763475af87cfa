import { LogError } from '#contracts/ports/log.ts';

/** How many brokers hold each record, and how many must have it before it is acknowledged. */
export interface Replication {
  readonly factor: number;
  readonly minInSync: number;
}

export interface ReplicationOptions {
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
