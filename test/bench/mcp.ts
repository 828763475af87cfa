/**
 * A call of a tool beside the REST call of the same operation, turn by turn on the same server: what the protocol, the
 * schemas of the tools and the words of the answers cost. One caller on one connection; modern messages, whose answers
 * are JSON. The credential may not read accounts, so that `post_status` asks for nothing beside the post.
 *
 * Run alone: node test/bench/mcp.ts (QUICK=1 for the short form).
 */
import { mcpPart } from '#services/mcp/part.ts';
import { composer } from '#test/support/composing.ts';
import { startWorld } from '#test/support/http.ts';
import { sharedServer } from '#test/support/postgres.ts';
import { environment } from './environment.ts';
import { Connection } from './load.ts';
import { type BenchRow, percentile, printRows } from './row.ts';

const goalMs = 3;

interface Pair {
  readonly name: string;
  readonly path: string;
  readonly tool: string;
  readonly args: Readonly<Record<string, unknown>>;
}

export const run = async ({ quick }: { readonly quick: boolean }): Promise<BenchRow[]> => {
  const turns = quick ? 300 : 2_000;
  const server = await sharedServer();
  for (const line of await environment(server.url)) console.log(line);
  const world = await startWorld({ parts: [mcpPart()] });
  const { port, host } = new URL(world.origin());
  const connection = await Connection.open(Number(port));
  try {
    const { clientId, body } = await composer(world, ['x', 'bluesky']);
    const { data: post } = await world.tester.post('/posts', body());
    const scopes = ['clients.read', 'posts.read'];
    const { secret } = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', scopes });
    const pairs: readonly Pair[] = [
      { name: 'post_status', path: `/v1/posts/${post.id}`, tool: 'post_status', args: { postId: post.id } },
      { name: 'find_clients', path: '/v1/clients?limit=10', tool: 'find_clients', args: {} },
      { name: 'find_posts', path: `/v1/posts?limit=10&clientId=${clientId}`, tool: 'find_posts', args: { clientId } },
    ];
    const rest = ({ path }: Pair) => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${secret}\r\n\r\n`;
    const call = ({ tool, args }: Pair, id: number) => {
      const _meta = {
        'io.modelcontextprotocol/protocolVersion': '2026-07-28',
        'io.modelcontextprotocol/clientCapabilities': {},
      };
      const message = { jsonrpc: '2.0', id, method: 'tools/call', params: { name: tool, arguments: args, _meta } };
      const text = JSON.stringify(message);
      const head = [
        ...['POST /mcp HTTP/1.1', `Host: ${host}`, `Authorization: Bearer ${secret}`],
        ...['Content-Type: application/json', 'Accept: application/json, text/event-stream'],
        ...['Mcp-Protocol-Version: 2026-07-28', 'Mcp-Method: tools/call', `Mcp-Name: ${tool}`],
        `Content-Length: ${Buffer.byteLength(text)}`,
      ];
      return `${head.join('\r\n')}\r\n\r\n${text}`;
    };
    const timed = async (request: string): Promise<number> => {
      const begun = performance.now();
      const { status, body: text } = await connection.send(request);
      const ms = performance.now() - begun;
      const failed = status !== 200 || text.includes('"isError":true');
      if (failed) throw new Error(`answered with ${status}: ${text.toString('utf8').slice(0, 500)}`);
      return ms;
    };
    const rows: BenchRow[] = [];
    for (const pair of pairs) {
      const [ours, limit]: [number[], number[]] = [[], []];
      for (let turn = -50; turn < turns; turn += 1) {
        const one = await timed(rest(pair));
        const other = await timed(call(pair, turn + 51));
        if (turn < 0) continue;
        limit.push(one);
        ours.push(other);
      }
      const [median, beside] = [percentile(ours, 0.5), percentile(limit, 0.5)];
      rows.push({
        name: `mcp: ${pair.name} beside GET`,
        unit: 'ms p50',
        ours: median,
        limit: beside,
        goal: `≤ ${goalMs} more`,
        ok: median - beside <= goalMs,
        note: `${(median - beside).toFixed(2)} ms more; p99 ${percentile(ours, 0.99).toFixed(1)} beside ${percentile(limit, 0.99).toFixed(1)}; ${turns} turns`,
      });
    }
    return rows;
  } finally {
    connection.close();
    await world.close();
    await server.stop();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
