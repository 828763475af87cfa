import assert from 'node:assert/strict';
import pg from 'pg';
import type { Platform } from '#schemas/common.ts';
import { composer } from '#test/support/composing.ts';
import { startWorld } from '#test/support/http.ts';
import { afterFile, suite } from '#test/support/suite.ts';

/**
 * How many queries a post of ten targets makes, with all warnings in its answer. May only become fewer. Five are its own; the
 * key and the rules of the workspace are read again once in a while.
 */
const maxQueries = 7;

const platforms: readonly Platform[] = ['x', 'linkedin', 'facebook', 'threads', 'bluesky'];
const world = await startWorld({ audited: false });
afterFile(world.close);
const { tester } = world;
const composed = await composer(world, platforms);
const invite = await tester.post(`/clients/${composed.clientId}/connect-invites`, { platforms });
for (const platform of platforms) {
  const form = new URLSearchParams({ platform, username: 'second', timezone: '' });
  const answer = await fetch(String(invite.data.url), { method: 'POST', body: form });
  assert.equal(answer.status, 200, await answer.text());
}
await world.settled();

const post = async (more: Readonly<Record<string, unknown>> = {}) => {
  const answer = await tester.post('/posts', composed.body(more));
  assert.equal(answer.status, 200, answer.text);
  const { targets } = answer.data as unknown as { readonly targets: readonly unknown[] };
  assert.equal(targets.length, 10);
  const { warnings = [] } = (answer.body.meta ?? {}) as { readonly warnings?: readonly { readonly code: string }[] };
  return warnings.map(({ code }) => code);
};

/** The first words of each statement that a run sent to Postgres. */
const statementsOf = async (run: () => Promise<unknown>): Promise<readonly string[]> => {
  const sent: string[] = [];
  const { prototype } = pg.Client as unknown as { readonly prototype: { query: (...sent: unknown[]) => unknown } };
  const { query } = prototype;
  prototype.query = function (this: unknown, ...args: unknown[]) {
    const [first] = args;
    const text = typeof first === 'string' ? first : (first as { readonly text?: string }).text;
    sent.push(String(text).trim().replace(/\s+/g, ' ').slice(0, 120));
    return query.apply(this, args);
  };
  try {
    await run();
  } finally {
    prototype.query = query;
  }
  return sent;
};

suite('the queries of POST /posts', (t) => {
  t(`a post of ten targets makes at most ${maxQueries} queries, and still warns of the same text`, async () => {
    await post();
    await world.settled();
    // The api alone: what reads the log would be counted too. The posts before it are shown.
    await world.stopProjections();
    assert.deepEqual(await post(), ['duplicate_text']);
    let warned: readonly string[] = [];
    const sent = await statementsOf(async () => {
      warned = await post();
    });
    assert.deepEqual(warned, ['duplicate_text']);
    assert.ok(sent.length > 3 && sent.length <= maxQueries, `${sent.length} queries:\n${sent.join('\n')}`);
  });
});
