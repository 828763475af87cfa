/** The simulated Threads refuses what its documents do not have. */
import assert from 'node:assert/strict';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { allScopes, type Person, startThreads, type ThreadsNetwork } from '#test/support/networks/threads/index.ts';
import { suite } from '#test/support/suite.ts';

type Params = Readonly<Record<string, string>>;

suite('the simulated threads', (t) => {
  let network: ThreadsNetwork;
  let person: Person;
  let token = '';
  let files: Server;
  let picture = '';
  t.before(async () => {
    files = createServer(({ url }, response) => {
      const type = url === '/text' ? 'text/html' : url === '/video' ? 'video/mp4' : 'image/jpeg';
      response.writeHead(url === '/none' ? 404 : 200, { 'content-type': type }).end('bytes');
    });
    await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
    picture = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  });
  t.after(() => files.close());
  t.before.each(async () => {
    network = await startThreads({ quota: { posts: 3, replies: 1 } });
    person = network.person();
    token = network.grant(person);
  });
  t.after.each(() => network.close());

  const call = async (method: string, path: string, params: Params = {}, as = token) => {
    const text = new URLSearchParams(params).toString();
    const isForm = method === 'POST';
    const answer = await fetch(`${network.origin}/v1.0/${path}${isForm || text === '' ? '' : `?${text}`}`, {
      ...{ method, headers: { authorization: `Bearer ${as}` } },
      ...(isForm ? { body: new URLSearchParams(params) } : {}),
    });
    const { error, ...body } = (await answer.json()) as Record<string, unknown> & {
      error?: { code: number; error_subcode?: number; message: string };
    };
    return { status: answer.status, body, code: [error?.code, error?.error_subcode].filter(Boolean).join('/') };
  };
  const create = (params: Params, as = token) => call('POST', 'me/threads', params, as);
  const made = async (params: Params) => {
    const { status, body } = await create(params);
    assert.equal(status, 200, JSON.stringify(params));
    return String(body.id);
  };
  const look = async (id: string) => (await call('GET', id, { fields: 'id,status,error_message' })).body.status;
  const publish = (id: string, as = token) => call('POST', 'me/threads_publish', { creation_id: id }, as);
  const published = async (params: Params) => {
    const { status, body } = await publish(await made(params));
    assert.equal(status, 200);
    return String(body.id);
  };

  t('refuses a parameter, a value or a mixture that the documents lack', async () => {
    const file = { media_type: 'IMAGE', image_url: picture };
    const wrong: readonly Params[] = [
      ...[{}, { media_type: 'TEXT' }, { media_type: 'GIF', text: 'a' }, { media_type: 'TEXT', text: 'a', more: '1' }],
      ...[
        { media_type: 'TEXT', text: 'a', image_url: picture },
        { media_type: 'TEXT', text: 'a', alt_text: 'b' },
      ],
      ...[
        { media_type: 'IMAGE', video_url: picture },
        { ...file, alt_text: 'a'.repeat(1_001) },
      ],
      ...[
        { ...file, is_carousel_item: 'false' },
        { ...file, is_carousel_item: 'true', text: 'a' },
      ],
      ...[
        { media_type: 'TEXT', text: 'a', is_carousel_item: 'true' },
        { media_type: 'CAROUSEL', children: '1' },
      ],
      ...[
        { media_type: 'TEXT', text: 'a', reply_control: 'nobody' },
        { media_type: 'TEXT', text: 'a'.repeat(501) },
      ],
      ...[
        { media_type: 'TEXT', text: 'a', auto_publish_text: 'true' },
        { media_type: 'TEXT', text: 'a', reply_to_id: 'x' },
      ],
    ];
    for (const params of wrong) assert.equal((await create(params)).code, '100', JSON.stringify(params));
    assert.equal((await create({ media_type: 'TEXT', text: 'a', reply_to_id: '17' })).code, '24/4279009');
    assert.equal((await create({ media_type: 'IMAGE', image_url: `${picture}/none` })).code, '1/2207052');
    assert.equal((await create({ media_type: 'IMAGE', image_url: `${picture}/text` })).code, '1/2207052');
    assert.equal(network.state.containers.size, 0);
  });

  t('publishes a container when it is finished, once, within a day, and for its owner alone', async () => {
    const id = await made({ media_type: 'VIDEO', video_url: `${picture}/video`, text: 'Film' });
    assert.equal((await publish(id)).code, '24/4279009');
    assert.deepEqual([await look(id), await look(id), await look(id)], ['IN_PROGRESS', 'IN_PROGRESS', 'FINISHED']);
    assert.equal((await publish(id, network.grant(network.person()))).code, '24/4279009');
    assert.equal((await publish(id)).status, 200);
    assert.equal(await look(id), 'PUBLISHED');
    assert.equal((await publish(id)).code, '24/4279009');
    const late = await made({ media_type: 'TEXT', text: 'a' });
    network.state.advance(86_400_001);
    assert.equal((await publish(late)).code, '24/4279009');
    assert.equal(await look(late), 'EXPIRED');
    const broken = await made({ media_type: 'VIDEO', video_url: `${picture}/none` });
    assert.deepEqual([await look(broken), await look(broken), await look(broken)].at(-1), 'ERROR');
    assert.deepEqual(
      network.state.publishes.map(({ status, postId }) => [status, postId !== null]),
      [
        [400, false],
        [400, false],
        [200, true],
        [400, false],
        [400, false],
      ],
    );
  });

  t('takes a carousel of finished children alone, and not before it is finished itself', async () => {
    const item = { media_type: 'IMAGE', image_url: picture, is_carousel_item: 'true' };
    const children = [await made(item), await made(item)];
    const carousel = { media_type: 'CAROUSEL', children: children.join(','), text: 'Two' };
    assert.equal((await create(carousel)).code, '24/4279004');
    for (const id of children) for (let at = 0; at < 2; at += 1) await look(id);
    assert.equal((await create({ ...carousel, children: `${children[0]},${children[0]}` })).code, '24/4279004');
    assert.equal((await publish(children[0] ?? '')).code, '24/4279009', 'a child is no post');
    const id = await made(carousel);
    assert.equal((await publish(id)).code, '24/4279009');
    for (let at = 0; at < 2; at += 1) await look(id);
    const { body } = await publish(id);
    const shown = (await call('GET', String(body.id), { fields: 'media_type,children,text' })).body;
    assert.equal((shown.children as { data: unknown[] }).data.length, 2);
  });

  t('counts posts and replies apart, and says how many are out', async () => {
    const head = await published({ media_type: 'TEXT', text: 'Head' });
    await published({ media_type: 'TEXT', text: 'Reply', reply_to_id: head });
    const second = await made({ media_type: 'TEXT', text: 'Again', reply_to_id: head });
    assert.equal((await publish(second)).code, '9/2207042');
    const asked = await call('GET', 'me/threads_publishing_limit', { fields: 'quota_usage,config,reply_quota_usage' });
    const config = { quota_total: 3, quota_duration: 86_400 };
    assert.deepEqual(asked.body, { data: [{ quota_usage: 1, config, reply_quota_usage: 1 }] });
    network.state.advance(86_400_000);
    await published({ media_type: 'TEXT', text: 'Again', reply_to_id: head });
  });

  t('shows lists a page at a time, by time, and to their owner alone', async () => {
    const ids = [];
    for (const text of ['a', 'b', 'c']) ids.unshift(await published({ media_type: 'TEXT', text }));
    const page = async (params: Params) =>
      (await call('GET', `${person.id}/threads`, { fields: 'id', ...params })).body;
    const first = await page({ limit: '2' });
    const idsOf = (body: Record<string, unknown>) => (body.data as { id: string }[]).map(({ id }) => id);
    assert.deepEqual(idsOf(first), ids.slice(0, 2));
    const { after = '' } = (first.paging as { cursors: Record<string, string> }).cursors;
    assert.deepEqual(idsOf(await page({ limit: '2', after })), ids.slice(2));
    const now = Math.floor(network.state.now() / 1_000);
    assert.deepEqual(idsOf(await page({ since: String(now + 60) })), []);
    for (const params of [{ limit: '101' }, { since: '9', until: '8' }, { order: 'asc' }, { fields: 'id,nothing' }]) {
      assert.equal((await call('GET', `${person.id}/threads`, params as Params)).code, '100', JSON.stringify(params));
    }
    const other = network.grant(network.person());
    assert.equal((await call('GET', `${person.id}/threads`, {}, other)).code, '100/33');
    assert.equal((await call('GET', String(ids[0]), {}, other)).code, '100/33');
  });

  t('asks for a permission, a token that has not ended, and a known address', async () => {
    const without = (scope: string) =>
      network.grant(
        person,
        allScopes.filter((one) => one !== scope),
      );
    const text = { media_type: 'TEXT', text: 'a' };
    assert.equal((await create(text, without('threads_content_publish'))).code, '10');
    const id = await published(text);
    assert.equal((await call('DELETE', id, {}, without('threads_delete'))).code, '10');
    assert.equal(
      (await call('GET', `${id}/insights`, { metric: 'views' }, without('threads_manage_insights'))).code,
      '10',
    );
    assert.equal((await create(text, 'unknown')).code, '190');
    assert.equal((await call('GET', 'me/nothing')).status, 404);
    assert.deepEqual((await call('DELETE', id)).body, { success: true, deleted_id: id });
    assert.equal((await call('DELETE', id)).code, '100/33');
    network.state.advance(61 * 86_400_000);
    assert.equal((await create(text)).code, '190/463');
  });

  t('tells figures by the metrics and the windows of its documents', async () => {
    const id = await published({ media_type: 'TEXT', text: 'a' });
    assert.equal((await call('GET', `${id}/insights`, { metric: 'views,reach' })).code, '100');
    const insights = async (params: Params) => (await call('GET', 'me/threads_insights', params)).code;
    const window = { since: '1772784000', until: '1772870400' };
    assert.equal(await insights({ metric: 'views,clicks', ...window }), '');
    for (const params of [
      ...[
        { metric: 'followers_count', ...window },
        { metric: 'follower_demographics' },
        { metric: 'views', since: '1' },
      ],
      ...[
        { metric: 'views', breakdown: 'age' },
        { metric: 'follower_demographics', breakdown: 'mood' },
      ],
    ]) {
      assert.equal(await insights(params as Params), '100', JSON.stringify(params));
    }
    const small = network.grant(network.person({ isLinked: false, followers: 99 }));
    const age = { metric: 'follower_demographics', breakdown: 'age' };
    assert.equal((await call('GET', 'me/threads_insights', age, small)).code, '801');
    assert.equal((await call('GET', 'me/threads_insights', { metric: 'followers_count' }, small)).code, '100');
  });
});
