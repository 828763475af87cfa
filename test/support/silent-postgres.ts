/** A test database behind a proxy that can fall silent. */
import { preparedDatabase } from './postgres.ts';
import { type TcpProxy, tcpProxy } from './tcp-proxy.ts';

export interface ProxiedDatabase {
  /** Straight to the server. */
  readonly direct: string;
  /** A separate proxy to the same database: its faults affect no other test. */
  way(): Promise<{ readonly url: string; readonly proxy: TcpProxy }>;
  close(): Promise<void>;
}

export const proxiedDatabase = async (): Promise<ProxiedDatabase> => {
  const database = await preparedDatabase();
  const direct = new URL(database.url);
  const proxies: TcpProxy[] = [];
  return {
    direct: database.url,
    way: async () => {
      const proxy = await tcpProxy({ host: direct.hostname, port: Number(direct.port || 5432) });
      proxies.push(proxy);
      const url = new URL(database.url);
      url.hostname = '127.0.0.1';
      url.port = String(proxy.port);
      return { url: url.href, proxy };
    },
    close: async () => {
      await Promise.all(proxies.map((proxy) => proxy.close()));
      await database.drop();
    },
  };
};
