import { randomUUID } from 'node:crypto';
import type { DomainStore } from '#runtime/eventing/domain-store.ts';
import type { Claimant } from '#services/workflows/clients/names.ts';

interface Claiming {
  readonly store: DomainStore;
  readonly workspaceId: string;
  /** Milliseconds since the epoch; all claimants of a test share it. */
  readonly time: { now: number };
  /** Of the call. Default: one of its own. */
  readonly key?: string;
  readonly fingerprint?: string;
  /** Called when the claimant waits so many milliseconds, after they have passed. */
  readonly waited?: (ms: number) => void | Promise<void>;
}

/** A caller who claims a name or a reference. To wait costs it no time, and passes time for everybody. */
export const claimantOf = ({ store, workspaceId, time, waited, ...call }: Claiming): Claimant => {
  const { key = randomUUID(), fingerprint = 'one' } = call;
  const commandId = randomUUID();
  return {
    store,
    context: {
      ...{ workspaceId, actor: { type: 'service', id: 'test' }, now: new Date(time.now).toISOString() },
      ...{ correlationId: commandId, causationId: commandId, commandId, keyHmac: key, fingerprint },
    },
    positions: new Map(),
    clock: () => time.now,
    wait: async (ms) => {
      time.now += ms;
      await waited?.(ms);
    },
  };
};
