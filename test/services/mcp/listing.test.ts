import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { postStatuses } from '#schemas/post.ts';
import { cancelReasons, targetStatuses } from '#schemas/target.ts';
import { errors } from '#services/api/call/errors.ts';
import { operations } from '#services/api/operations.ts';
import { routes as consoleRoutes } from '#services/console/pages.ts';
import { tools } from '#services/mcp/tools/index.ts';
import type { World } from '#test/support/http.ts';
import { mcpWorld, send } from '#test/support/mcp.ts';
import { suite } from '#test/support/suite.ts';

/** What a model reads before its first call: it has room for so much. */

const maxBytes = 60_000;

/** What texts name in snake case that is neither a tool nor in a listed schema: keys of settings and warnings. */
const others = new Set(['reauth_required', 'not_needed']);

/** What the console has a page for, and its path: a text that names the console names one of these. */
const rooms = {
  'API keys': '/developers',
  team: '/team',
  apps: '/apps',
} as const;

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

  /** What the words of the tools may name beside tools: values and codes that stand in answers. */
  const known = (): ReadonlySet<string> => {
    const found = new Set<string>([...Object.keys(errors), ...targetStatuses, ...cancelReasons, ...postStatuses]);
    const collect = (value: unknown, name = ''): void => {
      if (Array.isArray(value)) for (const one of value) collect(one, name);
      else if (typeof value === 'object' && value !== null) {
        for (const [key, one] of Object.entries(value)) {
          found.add(key);
          collect(one, key);
        }
      } else if (name === 'enum' && typeof value === 'string') found.add(value);
    };
    for (const { inputSchema, outputSchema } of listed) collect([inputSchema, outputSchema]);
    return found;
  };

  /** Every text of the tools: of descriptions, schemas, refusals and answers. */
  const textsOf = (): readonly { readonly file: string; readonly text: string }[] => {
    const folder = fileURLToPath(new URL('../../../services/mcp/', import.meta.url));
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((one) => one.endsWith('.ts'));
    return files.flatMap((file) => {
      const code = readFileSync(path.join(folder, file), 'utf8').replace(/^import [^;]*;$/gm, '');
      // A text has a space; a word alone is a code or a name.
      const literals = code.match(/'(?:[^'\\\n]|\\.)* (?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)* (?:[^`\\]|\\.)*`/g) ?? [];
      return literals.map((text) => ({ file, text }));
    });
  };

  t('names no tool that does not exist, in no description, refusal or answer', () => {
    const names = new Set(tools.map(({ name }) => name));
    const values = known();
    for (const { file, text } of textsOf()) {
      for (const [word] of text.matchAll(/(?<![\w/.$-])[a-z]+(?:_[a-z]+)+(?![\w(])/g)) {
        assert.ok(names.has(word) || values.has(word) || others.has(word), `${file} names ${word}: ${text}`);
      }
    }
  });

  t('sends nobody to a page or a route that does not exist', () => {
    const routes = new Set(operations.map(({ method, path: at }) => `${method} ${at}`));
    const pages = new Set(consoleRoutes.map(({ path: at }) => at));
    for (const at of Object.values(rooms)) assert.ok(pages.has(at), at);
    const catalogue = Object.entries(errors).map(([file, { about }]) => ({ file, text: about }));
    for (const { file, text } of [...textsOf(), ...catalogue]) {
      for (const [route] of text.matchAll(/\b(?:GET|POST|PUT|PATCH|DELETE) \/[\w/{}-]+/g)) {
        assert.ok(routes.has(route), `${file} names ${route}: ${text}`);
      }
      const isOfConsole = /\bin the console\b/.test(text);
      assert.ok(!isOfConsole || Object.keys(rooms).some((one) => text.includes(one)), `${file}: ${text}`);
    }
  });

  t('stands in the guide, each tool once', () => {
    const guide = new URL('../../../services/pages/docs/guides/agents-and-apps.md', import.meta.url);
    const table = readFileSync(guide, 'utf8').split('| to | tools |')[1]?.split('\n\n')[0] ?? '';
    const named = [...table.matchAll(/`([a-z_]+)`/g)].map(([, name]) => name);
    assert.deepEqual(named.toSorted(), tools.map(({ name }) => name).toSorted());
  });
});
