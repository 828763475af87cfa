/**
 * Questions about the past: a post of 50 events, and a list of 100 posts of one target each, as of the middle of their time,
 * beside the same GET of now (limit). Run alone: `node test/bench/asof.ts`.
 */
import { composer } from '#test/support/composing.ts';
import { startWorld } from '#test/support/http.ts';
import { startNumbering } from '#test/support/numbering.ts';
import { type BenchRow, percentile, printRows } from './row.ts';

export const run = async ({ quick }: { readonly quick: boolean }): Promise<readonly BenchRow[]> => {
  const [posts = 0, changes = 0, rounds = 0, listRounds = 0] = quick ? [30, 10, 20, 5] : [100, 49, 300, 60];
  const world = await startWorld({ rate: { perMinute: 10_000_000, burst: 1_000_000 } });
  const numbering = startNumbering(world);
  try {
    const own = await composer(world, ['x']);
    const by = world.tester;
    const made: string[] = [];
    for (let n = 0; n < posts; n += 1) {
      made.push((await by.post('/posts', own.body({ content: `Post ${n}.` }))).data.id);
    }
    const { data: draft } = await by.post('/posts', own.body({ saveDraft: true }));
    for (let n = 0; n < changes; n += 1) {
      const { clientId: _client, ...body } = own.body({ content: `Draft ${n}.` });
      const put = await by.patch(`/posts/${draft.id}`, body);
      if (put.status !== 200) throw new Error(put.text);
    }
    await world.settled();
    await numbering.numbered();
    const { rows } = await world.pool.query('select max(sequence)::int as n from ops.feed_events');
    const then = Number(rows[0].n);
    // Everything changes once more, so that nothing of then stands in a row.
    for (const id of [...made]) await by.post(`/posts/${id}/revise`, { content: 'Later.' });
    await world.settled();
    await numbering.numbered();
    const timed = async (path: string, times: number): Promise<readonly number[]> => {
      const taken: number[] = [];
      for (let n = 0; n < times + 10; n += 1) {
        const started = performance.now();
        const answered = await by.get(path);
        if (answered.status !== 200) throw new Error(answered.text);
        if (n >= 10) taken.push(performance.now() - started);
      }
      return taken.toSorted((a, b) => a - b);
    };
    const row = (name: string, taken: readonly number[], now: readonly number[], goal: number): BenchRow => {
      const p99 = percentile(taken, 0.99);
      const note = `median ${percentile(taken, 0.5).toFixed(1)}`;
      return {
        name,
        unit: 'ms p99',
        ours: p99,
        limit: percentile(now, 0.99),
        goal: `≤ ${goal}`,
        ok: p99 <= goal,
        note,
      };
    };
    const list = `/posts?clientId=${own.clientId}&limit=100`;
    return [
      row(
        'a post of 50 events as of then',
        await timed(`/posts/${draft.id}?asOf=${then}`, rounds),
        await timed(`/posts/${draft.id}`, rounds),
        15,
      ),
      row(
        'a list of 100 as of then',
        await timed(`${list}&asOf=${then}`, listRounds),
        await timed(list, listRounds),
        200,
      ),
    ];
  } finally {
    await numbering.stop();
    await world.close();
  }
};

if (import.meta.main) printRows(await run({ quick: process.env.QUICK === '1' }));
