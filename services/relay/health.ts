import { Gauge, type Registry } from '#runtime/process/metrics.ts';
import type { Readiness } from '#runtime/process/telemetry.ts';
import type { Relay } from './loop.ts';

/** The relay's state in /metrics and in /readyz. */

const states = ['standby', 'active', 'waiting', 'stopped'] as const;

const stateOf = (relay: Relay): (typeof states)[number] => {
  const { role, trouble } = relay.status();
  return role !== 'stopped' && trouble !== null ? 'waiting' : role;
};

export const watchRelay = (
  { registry, readiness }: { readonly registry: Registry; readonly readiness: Readiness },
  relay: Relay,
): void => {
  const registers = [registry];
  new Gauge({
    name: 'relay_state',
    help: '1 for what the relay does: stand by, copy, wait for a part that fails, or rest because it stopped',
    labelNames: ['state'],
    registers,
    collect() {
      for (const state of states) this.set({ state }, stateOf(relay) === state ? 1 : 0);
    },
  });
  new Gauge({
    name: 'relay_waiting_records',
    help: 'records that the relay has read and not yet begun to send',
    registers,
    collect() {
      this.set(relay.status().waiting);
    },
  });
  readiness.add('relay', async () => {
    const { role, reason, position, waiting, trouble } = relay.status();
    if (role === 'stopped') throw new Error(`stopped; retries after a rest: ${reason}`);
    const state = `${role} at ${position ?? 'the start'}, ${waiting} waiting`;
    if (trouble !== null) throw new Error(`${state}, but blocked: ${trouble}`);
    return state;
  });
};
