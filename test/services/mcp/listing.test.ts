import assert from 'node:assert/strict';
import { tools } from '#services/mcp/tools/index.ts';
import type { World } from '#test/support/http.ts';
import { mcpWorld, send } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** What a model reads before its first call: it has room for so much. */

const maxBytes = 60_000;

interface Listed {
  readonly name: string;
  readonly description: string;
  readonly inputSchema: object;
  readonly outputSchema: object;
}

suite('the list of tools', (t) => {
  let world: World;
  let listed: readonly Listed[] = [];
  let bytes = 0;
  t.before(async () => {
    world = await mcpWorld();
    const { text } = await send(world, world.testKey.secret, { jsonrpc: '2.0', id: 1, method: 'tools/list' });
    const message = text.startsWith('{') ? text : (/^data: (.*)$/m.exec(text)?.[1] ?? '');
    bytes = Buffer.byteLength(message);
    listed = (JSON.parse(message) as { result: { tools: Listed[] } }).result.tools;
  });
  t.after(() => world?.close());

  t(`has at most ${maxBytes} bytes`, () => {
    const sizeOf = (one: unknown): number => Buffer.byteLength(JSON.stringify(one));
    const table = listed
      .map((one) => ({ one, size: sizeOf(one) }))
      .toSorted((a, b) => b.size - a.size)
      .map(({ one, size }) => {
        const { name, description, inputSchema, outputSchema } = one;
        const parts = [size, sizeOf(description), sizeOf(inputSchema), sizeOf(outputSchema)];
        return `${name.padEnd(20)}${parts.map((part) => String(part).padStart(8)).join('')}`;
      });
    process.stdout.write(
      `${[`${'tool'.padEnd(20)}     all   words      in     out`, ...table, `in all ${bytes}`].join('\n')}\n`,
    );
    assert.equal(listed.length, tools.length);
    assert.ok(bytes <= maxBytes, `${bytes} bytes`);
  });
});
