import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { view } from '#projections/shapes.ts';
import { composedWorld, composer, refused } from '#test/support/composing.ts';
import { type Answered, type Ask, startWorld } from '#test/support/http.ts';
import { suite } from '#test/support/suite.ts';

interface Problem {
  readonly code: string;
  readonly status: number;
  readonly correlationId: string;
  readonly errors?: readonly { readonly path: string; readonly code: string }[];
}
interface Outcome {
  readonly index: number;
  readonly status: string;
  readonly post?: Readonly<Record<string, unknown>> & { readonly id: string };
  readonly error?: Problem;
}
interface Result {
  readonly results: readonly Outcome[];
  readonly created: number;
  readonly rejected: number;
}

const { world, tester, composed: all } = await composedWorld(['x', 'bluesky', 'linkedin']);

suite('many posts in one call', (t) => {
  /** Sent as it is: an entry that does not fit is answered, so the client's own check of requests does not apply. */
  const bulk = (posts: readonly unknown[], ask: Ask = {}, by = tester): Promise<Answered> =>
    by.post('/posts/bulk', undefined, { ...ask, raw: JSON.stringify({ posts }) });
  const resultOf = (answer: Answered): Result => {
    assert.equal(answer.status, 200, answer.text.slice(0, 2_000));
    return answer.data as unknown as Result;
  };
  const reported = ({ results }: Result) =>
    results.map(({ status, error }) =>
      error === undefined ? status : `${error.code} ${error.errors?.map(({ path }) => path)}`,
    );
  const postsOf = ({ results }: Result) => results.flatMap(({ post }) => (post === undefined ? [] : [post]));

  t('creates each as POST /posts does, and answers what a later GET answers', async () => {
    const before = await world.head();
    const answer = await tester.post('/posts/bulk', {
      posts: [all.body({ content: 'One.' }), all.body({ content: 'Two.', saveDraft: true })],
    });
    const result = resultOf(answer);
    assert.deepEqual([result.created, result.rejected], [2, 0]);
    const types = (await world.eventsAfter(before)).map(({ type }) => type).sort();
    assert.deepEqual(types, [
      'PostDrafted',
      'PostScheduled',
      'RequestAccepted',
      'RequestCompleted',
      ...Array(3).fill('TargetScheduled'),
    ]);
    assert.deepEqual(
      postsOf(result).map((one) => one.content),
      ['One.', 'Two.'],
    );
    for (const one of postsOf(result)) {
      const read = await tester.get(`/posts/${one.id}`);
      assert.deepEqual(read.data, one);
    }
  });

  t('one bad entry harms no other, and its pointers lead into the entry', async () => {
    const wrong = [
      all.body({ content: '  ' }),
      all.body({ content: 7 }),
      7,
      null,
      all.body({ schedule: { type: 'at', scheduledAt: '2020-01-01T00:00:00Z' } }),
      all.body({ content: 'nul \0' }),
      all.body({ idempotencyKey: 'two words' }),
      all.body({ content: 'x', variants: Array(10_001).fill(1) }),
      all.body({ junk: 'x'.repeat(1_100_000) }),
      { ...all.body(), clientId: randomUUID() },
      all.body({ campaignId: randomUUID() }),
    ];
    const result = resultOf(await bulk([all.body({ content: 'first' }), ...wrong, all.body({ content: 'last' })]));
    assert.deepEqual(reported(result), [
      'created',
      'validation_failed /content,/content,/content',
      'validation_failed /content',
      'validation_failed ',
      'validation_failed ',
      'schedule_in_past /schedule,/schedule,/schedule',
      'validation_failed /content',
      'validation_failed /idempotencyKey',
      'too_many_values undefined',
      'payload_too_large undefined',
      'validation_failed /targets/clientId,/clientId',
      'validation_failed /campaignId',
      'created',
    ]);
    assert.deepEqual([result.created, result.rejected], [2, 11]);
    assert.deepEqual(
      result.results.map(({ index }) => index),
      [...result.results.keys()],
    );
    const problem = result.results[1]?.error;
    const alone = await tester.post('/posts', wrong[0]);
    assert.deepEqual({ ...problem, correlationId: '' }, { ...alone.body, correlationId: '' });
  });

  t('a body that is no list of posts refuses the call, and stores nothing', async () => {
    const before = await world.head();
    const key = randomUUID();
    const sent = (raw: string) => tester.post('/posts/bulk', undefined, { raw, key });
    const one = JSON.stringify(all.body());
    const cases: [string, number, string, string[]?][] = [
      ['{}', 422, 'validation_failed', ['/posts']],
      ['[]', 422, 'validation_failed', ['']],
      ['{"posts":{}}', 422, 'validation_failed', ['/posts']],
      ['{"posts":[]}', 422, 'validation_failed', ['/posts']],
      [`{"posts":[${Array(51).fill(one)}]}`, 422, 'validation_failed', ['/posts']],
      [`{"posts":[${one}`, 400, 'invalid_json'],
      [`{"posts":[${one}}]`, 400, 'invalid_json'],
      [`{"posts":[${one},]}`, 400, 'invalid_json'],
      [`{"posts":[${one.slice(0, -1)},}]}`, 400, 'invalid_json'],
      [`{"posts":[${one}],"more":[{"a":}]}`, 400, 'invalid_json'],
      [`{"posts":[${one}]} x`, 400, 'invalid_json'],
      [`{"posts":[${one.slice(0, -1)},"x":"\\ud800\xff"}]`, 400, 'invalid_json'],
      [`{"posts":[${one.slice(0, -1)},"x":[${Array(100_000).fill(1)}]}]}`, 413, 'too_many_values'],
    ];
    for (const [raw, status, code, paths] of cases) refused(await sent(raw), status, code, paths);
    assert.equal(await world.head(), before);
    const odd = `{"more":[{"a":"]}{"},{"b":"\\"]"}],"posts":[${one}],"x":{"posts":[{"at":3}]}}`;
    assert.deepEqual(reported(resultOf(await sent(odd))), ['created']);
    const marker = `{"posts":[{"at":0},${one}]}`;
    const result = resultOf(await tester.post('/posts/bulk', undefined, { raw: marker }));
    assert.match(reported(result).join(), /^validation_failed \/clientId.*,created$/);
  });

  t('a body of 16 MiB is read, and one byte more refuses the call', async () => {
    const before = await world.head();
    const most = 16 * 1024 * 1024;
    const open = `{"posts":[${JSON.stringify(all.body())}],"more":"`;
    const sized = (bytes: number) => `${open}${'x'.repeat(bytes - open.length - 2)}"}`;
    const key = randomUUID();
    refused(await tester.post('/posts/bulk', undefined, { raw: sized(most + 1), key }), 413, 'payload_too_large');
    assert.equal(await world.head(), before);
    assert.deepEqual(reported(resultOf(await tester.post('/posts/bulk', undefined, { raw: sized(most), key }))), [
      'created',
    ]);
  });

  t('a repeat answers the same, another body under the key is refused, ten callers make one set', async () => {
    const key = randomUUID();
    const posts = [all.body({ content: 'Same.' }), all.body({ content: '' }), all.body({ content: 'Same.' })];
    const answers = await Promise.all(Array.from({ length: 10 }, () => bulk(posts, { key })));
    const [first] = answers.map(resultOf);
    assert.deepEqual([first?.created, first?.rejected], [2, 1]);
    for (const one of answers) assert.deepEqual(resultOf(one), first);
    assert.equal(new Set(postsOf(first as Result).map(({ id }) => id)).size, 2);
    const [target] = (postsOf(first as Result)[0]?.targets ?? []) as { id: string }[];
    assert.equal((await tester.post(`/post-targets/${target?.id}/cancel`)).status, 200);
    const later = await bulk(posts, { key });
    assert.deepEqual([later.headers.get('idempotent-replayed'), resultOf(later)], ['true', first]);
    refused(await bulk(posts.slice(0, 2), { key }), 422, 'idempotency_key_reused');
    refused(await bulk([...posts.slice(0, 2), 7], { key }), 422, 'idempotency_key_reused');
    const { rows } = await world.pool.query(
      `select count(*)::int as n from ${view('posts')} where body ->> 'content' = 'Same.'`,
    );
    assert.equal(rows[0].n, 2);
  });

  t('an entry with a key of its own is the post of POST /posts under this key', async () => {
    const own = randomUUID();
    const body = all.body({ content: 'Keyed.' });
    const made = await tester.post('/posts', body, { key: own });
    const result = resultOf(
      await bulk([
        { ...body, idempotencyKey: own },
        { ...body, content: 'Other.', idempotencyKey: own },
      ]),
    );
    assert.deepEqual(reported(result), ['created', 'idempotency_key_reused undefined']);
    assert.deepEqual(result.results[0]?.post, made.data);
    const fresh = randomUUID();
    const twice = resultOf(
      await bulk([
        { ...body, idempotencyKey: fresh },
        { ...body, idempotencyKey: fresh },
        { ...body, content: 'Other.', idempotencyKey: fresh },
      ]),
    );
    assert.deepEqual(reported(twice), ['created', 'created', 'idempotency_key_reused undefined']);
    assert.equal(twice.results[0]?.post?.id, twice.results[1]?.post?.id);
    const again = await tester.post('/posts', body, { key: fresh });
    assert.deepEqual([again.headers.get('idempotent-replayed'), again.data], ['true', twice.results[0]?.post]);
    const moved = resultOf(
      await bulk([all.body({ content: 'Before.' }), { ...body, idempotencyKey: fresh }], { key: null }),
    );
    assert.equal(moved.results[1]?.post?.id, again.data.id);
  });

  t('of entries with one reference one is created, whatever else differs, and a repeat answers the same', async () => {
    const key = randomUUID();
    const externalRef = `ref ${key}`;
    const other = await composer(world, ['x']);
    const posts = [
      ...[1, 2, 3, 4, 5].map((n) => all.body({ content: `Ref ${n}.`, externalRef, saveDraft: n % 2 === 0 })),
      other.body({ externalRef }),
    ];
    const result = resultOf(await bulk(posts, { key }));
    assert.deepEqual([result.created, result.rejected], [2, 4]);
    const made = result.results.slice(0, 5).filter(({ status }) => status === 'created');
    assert.equal(made.length, 1);
    for (const { error } of result.results.slice(0, 5)) {
      if (error === undefined) continue;
      assert.equal(error.code, 'already_exists');
      assert.equal((error as { readonly postId?: string }).postId, made[0]?.post?.id);
    }
    assert.deepEqual(resultOf(await bulk(posts, { key })), result);
  });

  t('members that stand twice count as the last one, at every level', async () => {
    const first = JSON.stringify(all.body({ content: 'First.' }));
    const last = JSON.stringify(all.body({ content: 'Last.' }));
    const twice = `{"content":"Never.",${last.slice(1, -1)},"saveDraft":false,"saveDraft":true}`;
    const raw = `{"posts":[${first},${first}],"posts":[${twice}]}`;
    const result = resultOf(await tester.post('/posts/bulk', undefined, { raw }));
    assert.deepEqual(
      postsOf(result).map(({ content, status }) => [content, status]),
      [['Last.', 'draft']],
    );
    const deep = `{${last.slice(1, -1)},"junk":${'['.repeat(31)}${']'.repeat(31)}}`;
    refused(await tester.post('/posts/bulk', undefined, { raw: `{"posts":[${deep}]}` }), 400, 'invalid_json');
  });

  t('without a key each call makes its own posts, and nothing of the call is recorded', async () => {
    const before = await world.head();
    const [one, two] = [await bulk([all.body()], { key: null }), await bulk([all.body()], { key: null })].map(resultOf);
    assert.notEqual(one?.results[0]?.post?.id, two?.results[0]?.post?.id);
    const types = (await world.eventsAfter(before)).map(({ type }) => type);
    assert.ok(!types.some((type) => type.startsWith('Request')), types.join());
  });

  t('reads clients, accounts and files once for the whole call', async () => {
    const asked: string[] = [];
    const note = ({ sql }: { readonly sql: string }) => asked.push(sql);
    await world.settled();
    world.deps.knex.on('query', note);
    try {
      const named = { targets: { mode: 'selection', accountIds: [all.accounts.x, all.accounts.bluesky] } };
      const posts = Array.from({ length: 20 }, (_, n) => all.body({ content: `Post ${n}`, ...(n % 2 ? named : {}) }));
      assert.equal(resultOf(await bulk(posts)).created, 20);
      assert.equal(asked.filter((sql) => sql.includes('read.clients')).length, 1, asked.join('\n'));
      assert.equal(asked.filter((sql) => sql.includes('read') && sql.includes('accounts')).length, 2);
    } finally {
      world.deps.knex.removeListener('query', note);
    }
  });

  t('counts as one request for each entry, as debt', async () => {
    const limited = await startWorld({ rate: { perMinute: 600, burst: 40 } });
    try {
      const own = await composer(limited, ['x']);
      const left = (answer: Answered) => Number(/r=(\d+)/.exec(answer.headers.get('ratelimit') ?? '')?.[1]);
      // A window of its own for this call: the key is a new one.
      const fresh = await limited.keyOf(limited.workspaceId, limited.memberId, { mode: 'test' });
      const before = left(await fresh.caller.get('/agency'));
      const answer = await bulk([own.body(), own.body(), 7], {}, fresh.caller);
      assert.equal(resultOf(answer).created, 2);
      assert.equal(before - left(answer), 3);
    } finally {
      await limited.close();
    }
  });

  t('a heavy body is read while others are served', async () => {
    const posts = Array.from({ length: 16 }, (_, n) => all.body({ content: `Heavy ${n}`, junk: 'é'.repeat(480_000) }));
    let ended = false;
    const going = bulk(posts).finally(() => {
      ended = true;
    });
    let served = 0;
    while (!ended) {
      assert.equal((await tester.get('/agency')).status, 200);
      served += 1;
    }
    assert.equal(resultOf(await going).created, 16);
    assert.ok(served > 5, `${served} others were served meanwhile`);
  });

  t('ids of other workspaces are unknown, and a key may not be of another scope', async () => {
    const stranger = await world.agency('Stranger');
    const result = resultOf(await bulk([all.body()], {}, stranger.tester));
    assert.deepEqual(reported(result), ['validation_failed /clientId']);
    const reader = await world.keyOf(world.workspaceId, world.memberId, { mode: 'test', scopes: ['posts.read'] });
    refused(await bulk([all.body()], {}, reader.caller), 403, 'insufficient_scope');
  });
});
