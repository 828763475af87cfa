/** The simulated X refuses what the published contract does not have. */
import assert from 'node:assert/strict';
import { type Person, problems, startX, type XNetwork } from '#test/support/networks/x/index.ts';
import { suite } from '#test/support/suite.ts';

suite('the simulated x', (t) => {
  let network: XNetwork;
  let person: Person;
  let token = '';
  t.before.each(async () => {
    network = await startX();
    person = network.person();
    token = network.grant(person).accessToken;
  });
  t.after.each(() => network.close());

  const call = async (method: string, path: string, body?: unknown, as = token) => {
    const answer = await fetch(network.origin + path, {
      method,
      headers: { authorization: `Bearer ${as}`, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text.startsWith('{') ? JSON.parse(text) : text };
  };
  const create = async (body: unknown, as = token) => (await call('POST', '/2/tweets', body, as)).status;
  const form = async (path: string, fields: Readonly<Record<string, string | Blob>>) => {
    const data = new FormData();
    for (const [name, value] of Object.entries(fields)) data.set(name, value);
    const answer = await fetch(network.origin + path, {
      ...{ method: 'POST', body: data, headers: { authorization: `Bearer ${token}` } },
    });
    return answer.status;
  };

  t('refuses a member, a value or a mixture of a create that the contract lacks', async () => {
    const media = { media_ids: ['1'] };
    const poll = { options: ['a', 'b'], duration_minutes: 5 };
    const bodies: readonly unknown[] = [
      ...[{}, [], { text: 1 }, { text: 'a', unknown: 1 }, { text: 'a', reply_settings: 'everyone' }],
      ...[
        { text: 'a', quote_tweet_id: 'x' },
        { text: 'a', quote_tweet_id: 1 },
        { text: 'a', made_with_ai: 'true' },
      ],
      ...[{ text: 'a', media: {} }, { media: { media_ids: [] } }, { media: { media_ids: ['1', '2', '3', '4', '5'] } }],
      ...[
        { text: 'a', media: { ...media, more: 1 } },
        { text: 'a', media, poll },
        { text: 'a', media },
      ],
      ...[
        { text: 'a', poll: { ...poll, duration_minutes: 4 } },
        { text: 'a', reply: { in_reply_to: '1' } },
      ],
    ];
    for (const body of bodies) assert.equal(await create(body), 400, JSON.stringify(body));
    assert.equal(await create({ text: 'a', poll }), 201);
    assert.equal(network.state.posts.length, 1);
  });

  t('weighs a text, refuses the same one twice, and takes it again once the first is deleted', async () => {
    for (const [text, status] of [
      ['a'.repeat(280), 201],
      ['a'.repeat(281), 403],
      [`${'a'.repeat(256)} https://example.com/${'b'.repeat(300)}`, 201],
      ['👩‍👩‍👧‍👦'.repeat(140), 201],
      ['👩‍👩‍👧‍👦'.repeat(141), 403],
    ] as const) {
      assert.equal(await create({ text }), status, text);
    }
    const made = await call('POST', '/2/tweets', { text: 'Once' });
    assert.deepEqual(Object.keys(made.body.data), ['id', 'text', 'edit_history_tweet_ids']);
    const again = await call('POST', '/2/tweets', { text: 'Once' });
    assert.deepEqual([again.status, again.body], [403, problems.duplicate.body]);
    const other = network.person();
    assert.equal(
      (await call('DELETE', `/2/tweets/${made.body.data.id}`, undefined, network.grant(other).accessToken)).status,
      403,
    );
    assert.deepEqual((await call('DELETE', `/2/tweets/${made.body.data.id}`)).body, { data: { deleted: true } });
    assert.equal(await create({ text: 'Once' }), 201);
    assert.deepEqual(
      network.state.creates.map(({ status }) => status),
      [201, 403, 201, 201, 403, 201, 403, 201],
    );
  });

  t('takes a reply to a stranger only where they were named, and a quote from an enterprise alone', async () => {
    const other = network.person({ tier: 'enterprise' });
    const theirs = network.grant(other).accessToken;
    const post = async (text: string) => (await call('POST', '/2/tweets', { text }, theirs)).body.data.id as string;
    const reply = async (to: string) => create({ text: `To ${to}`, reply: { in_reply_to_tweet_id: to } });
    const plain = await post('Plain');
    assert.equal(await reply(plain), 403);
    assert.equal(await reply(await post(`Hi @${person.username}`)), 201);
    assert.equal(await reply('7'), 404);
    assert.equal(await create({ text: 'Q', quote_tweet_id: plain }), 403);
    assert.equal(await create({ text: 'Q', quote_tweet_id: plain }, theirs), 201);
  });

  t('asks for a scope, a token that has not ended, and a known address', async () => {
    const without = (scope: string) => {
      const scopes = ['tweet.read', 'tweet.write', 'users.read', 'media.write'].filter((one) => one !== scope);
      return network.grant(person, scopes).accessToken;
    };
    assert.equal(await create({ text: 'a' }, without('tweet.write')), 403);
    const config = { media_type: 'video/mp4', total_bytes: 3, media_category: 'tweet_video' };
    assert.equal((await call('POST', '/2/media/upload/initialize', config, without('media.write'))).status, 403);
    assert.equal(await create({ text: 'a' }, 'unknown'), 401);
    assert.equal((await call('GET', '/2/nothing')).status, 404);
    network.state.advance(7_200_000);
    assert.equal(await create({ text: 'a' }), 401);
  });

  t('takes the steps of an upload in their order alone', async () => {
    const upload = '/2/media/upload';
    const config = { media_type: 'video/mp4', total_bytes: 6, media_category: 'tweet_video' };
    for (const wrong of [
      { ...config, more: 1 },
      { ...config, total_bytes: '6' },
      { ...config, media_type: 'video/x' },
    ]) {
      assert.equal((await call('POST', `${upload}/initialize`, wrong)).status, 400);
    }
    const { id } = (await call('POST', `${upload}/initialize`, config)).body.data as { id: string };
    const segment = (index: string, more = {}) =>
      form(`${upload}/${id}/append`, { segment_index: index, media: new Blob(['abc']), ...more });
    assert.equal((await call('POST', `${upload}/${id}/finalize`)).status, 400);
    assert.equal(await segment('1'), 200);
    assert.equal((await call('POST', `${upload}/${id}/finalize`)).status, 400, 'a segment is missing');
    for (const index of ['x', '-1', '1000']) assert.equal(await segment(index), 400);
    assert.equal(await segment('0', { command: 'APPEND' }), 400);
    assert.equal(await segment('0'), 200);
    assert.equal((await call('POST', `${upload}/${id}/finalize`)).body.data.processing_info.state, 'pending');
    assert.equal(await segment('0'), 400, 'it is finalized');
    assert.equal(await create({ media: { media_ids: [id] } }), 400, 'it is being processed');
    const states = [];
    for (let poll = 0; poll < 2; poll += 1) {
      const { body } = await call('GET', `${upload}?command=STATUS&media_id=${id}`);
      states.push(body.data.processing_info.state);
    }
    assert.deepEqual(states, ['in_progress', 'succeeded']);
    assert.equal(await create({ media: { media_ids: [id, id] } }), 400);
    assert.equal(await create({ media: { media_ids: [id] } }), 201);
  });

  t('a lookup has the fields that were asked for by their names, and refuses others', async () => {
    const { id } = (await call('POST', '/2/tweets', { text: 'See https://example.com/a & b' })).body.data;
    for (const query of [
      '',
      '?ids=x',
      '?ids=1&fields=text',
      '?ids=1&tweet.fields=nothing',
      '?ids=1&post.fields=text',
    ]) {
      assert.equal((await call('GET', `/2/tweets${query}`)).status, 400, query);
    }
    const plain = (await call('GET', `/2/tweets?ids=${id}`)).body.data[0];
    assert.deepEqual(Object.keys(plain), ['id', 'text', 'edit_history_tweet_ids']);
    assert.match(plain.text, /^See https:\/\/t\.co\/\w+ &amp; b$/);
    const asked = await call('GET', `/2/tweets?ids=${id},7&tweet.fields=non_public_metrics`);
    assert.equal(asked.body.data[0].non_public_metrics.engagements, 66);
    assert.match(asked.body.errors[0].type, /resource-not-found$/);
    network.state.advance(31 * 86_400_000);
    token = network.grant(person).accessToken;
    const old = await call('GET', `/2/tweets?ids=${id}&tweet.fields=non_public_metrics`);
    assert.match(old.body.errors[0].type, /not-authorized-for-field$/);
    for (const query of ['max_results=4', 'max_results=101', 'start_time=2026-01-01', 'more=1']) {
      assert.equal((await call('GET', `/2/users/${person.id}/tweets?${query}`)).status, 400, query);
    }
  });
});
