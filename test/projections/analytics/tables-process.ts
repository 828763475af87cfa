/** Makes the analytics tables of version 1, as their first use does. Argument: URL of the ClickHouse. */
import { openAnalytics } from '#infra/clickhouse/client.ts';
import { ensureTables } from '#projections/analytics/live.ts';

const [url = ''] = process.argv.slice(2);
const client = openAnalytics({ url });
await ensureTables(client, 1);
await client.close();
