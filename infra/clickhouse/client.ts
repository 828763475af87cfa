import { type ClickHouseClient, createClient } from '@clickhouse/client';

/** The client of the analytics store: a server, or the embedded engine behind its HTTP front. */

/** A recount of many days is the longest statement. */
const requestMs = 300_000;

const loopback: readonly string[] = ['127.0.0.1', 'localhost', '[::1]'];

/**
 * @param url with user and password, and the database as its path: `http://user:secret@host:8123/postline`. The
 * database must exist. Opening sends no request.
 */
export const openAnalytics = ({ url }: { readonly url: string }): ClickHouseClient => {
  const { hostname, pathname } = new URL(url);
  const compressed = !loopback.includes(hostname);
  const bare = new URL(url);
  bare.pathname = '/';
  return createClient({
    url: bare,
    database: pathname.slice(1) || 'default',
    application: 'postline',
    request_timeout: requestMs,
    max_open_connections: 8,
    // The server closes idle sockets after 10 s (3 s in old versions): a later use would fail.
    keep_alive: { enabled: true, idle_socket_ttl: 2_000 },
    compression: { request: compressed, response: compressed },
    // Errors reach the caller of each call; the client's own log would print the server's address to the terminal.
    log: { level: 127 },
    clickhouse_settings: {
      async_insert: 0,
      // A Nullable(Int64) beyond 2^53 must not be rounded on its way out.
      output_format_json_quote_64bit_integers: 1,
      date_time_output_format: 'simple',
      wait_end_of_query: 1,
    },
  });
};
