import type { Server } from 'node:http';
import type { Registry } from 'prom-client';
import { callerAddress, isProxy, noProxies, type TrustedProxies } from '#runtime/identity/proxies.ts';
import { Counter, Gauge } from '#runtime/process/metrics.ts';

/**
 * Limits the connections that the api accepts, so that one address cannot take all of them and all together cannot
 * exhaust the process.
 */

export interface ConnectionLimits {
  readonly maxConnections: number;
  /** Connections of one IPv4 address, or of the /64 of an IPv6 address. */
  readonly maxConnectionsPerAddress: number;
  /** Connections of all callers come from these addresses, so they have no limit of their own. */
  readonly trustedProxies: TrustedProxies;
}

export const limitConnections = (server: Server, limits: ConnectionLimits, registry: Registry | null): void => {
  const { maxConnections, maxConnectionsPerAddress, trustedProxies } = limits;
  const registers = registry === null ? [] : [registry];
  const held = new Gauge({ name: 'api_connections', help: 'Connections that callers hold.', registers });
  const refused = new Counter({
    name: 'api_connections_refused_total',
    help: 'Connections that were closed at once: their address, or all addresses together, held as many as allowed.',
    labelNames: ['limit'] as const,
    registers,
  });
  const open = new Map<string, number>();
  server.maxConnections = maxConnections;
  server.on('drop', () => refused.inc({ limit: 'all' }));
  server.on('connection', (socket) => {
    held.inc();
    socket.once('close', () => held.dec());
    if (isProxy(socket.remoteAddress, trustedProxies)) return;
    const address = callerAddress(socket.remoteAddress, undefined, noProxies);
    const before = open.get(address) ?? 0;
    if (before >= maxConnectionsPerAddress) {
      refused.inc({ limit: 'address' });
      socket.destroy();
      return;
    }
    open.set(address, before + 1);
    socket.once('close', () => {
      const left = (open.get(address) ?? 1) - 1;
      if (left === 0) open.delete(address);
      else open.set(address, left);
    });
  });
};
