/** The simulated YouTube is strict: a call that its documents do not have fails. */
import assert from 'node:assert/strict';
import { isHeld } from '#test/support/networks/youtube/contract.ts';
import { allScopes, startYouTube, type YouTubeNetwork } from '#test/support/networks/youtube/index.ts';
import { suite } from '#test/support/suite.ts';

suite('the simulated youtube', (t) => {
  let network: YouTubeNetwork;
  t.before.each(async () => {
    network = await startYouTube();
  });
  t.after.each(() => network.close());

  const call = async (method: string, path: string, given: RequestInit & { readonly token?: string } = {}) => {
    const { token, ...init } = given;
    const authorization = `Bearer ${token ?? network.grant(network.channel()).accessToken}`;
    const url = path.startsWith('http') ? path : `${network.origin}${path}`;
    const answer = await fetch(url, { ...init, method, headers: { authorization, ...init.headers } });
    return { status: answer.status, text: await answer.text(), headers: answer.headers };
  };
  const tokenOf = () => network.grant(network.channel()).accessToken;
  const json = { 'content-type': 'application/json' };
  const begin = (token: string, resource: object, bytes = 300_000) =>
    call('POST', '/upload/youtube/v3/videos?uploadType=resumable&part=snippet,status', {
      ...{ token, body: JSON.stringify(resource) },
      headers: { ...json, 'x-upload-content-type': 'video/mp4', 'x-upload-content-length': String(bytes) },
    });
  const put = (token: string, session: string, range: string, bytes: number) =>
    call('PUT', session, {
      ...{ token, headers: { 'content-range': range, ...(bytes === 0 ? {} : { 'content-type': 'video/mp4' }) } },
      ...(bytes === 0 ? {} : { body: Buffer.alloc(bytes) }),
    });

  t('makes a video with the last byte and no sooner, one of a session, and says where a session is', async () => {
    const token = tokenOf();
    const { headers } = await begin(token, { snippet: { title: 'Hi' } });
    const session = headers.get('location') ?? '';
    const first = await put(token, session, 'bytes */300000', 0);
    assert.deepEqual([first.status, first.headers.get('range')], [308, null]);
    const part = await put(token, session, 'bytes 0-262143/300000', 262_144);
    assert.deepEqual([part.status, part.headers.get('range')], [308, 'bytes=0-262143']);
    assert.deepEqual(network.state.videos, []);
    const last = await put(token, session, 'bytes 262144-299999/300000', 37_856);
    assert.equal(last.status, 201);
    for (const again of [
      await put(token, session, 'bytes */300000', 0),
      await put(token, session, 'bytes 262144-299999/300000', 37_856),
    ]) {
      assert.deepEqual([again.status, JSON.parse(again.text).id], [200, JSON.parse(last.text).id]);
    }
    assert.equal(network.state.videos.length, 1);
  });

  t(
    'refuses parts of another size, of another length than their range, and of a session that it does not know',
    async () => {
      const token = tokenOf();
      const session = (await begin(token, { snippet: { title: 'Hi' } }, 900_000)).headers.get('location') ?? '';
      assert.equal((await put(token, session, 'bytes 0-99/900000', 100)).status, 400);
      assert.equal((await put(token, session, 'bytes 0-262143/900000', 100)).status, 400);
      assert.equal((await put(token, session, 'bytes */900001', 0)).status, 400);
      assert.equal((await put(token, session, 'bytes 0-262143/900000', 262_144)).status, 308);
      assert.equal((await put(token, session, 'bytes 262144-786431/900000', 524_288)).status, 400);
      assert.equal((await put(token, `${session}x`, 'bytes */900000', 0)).status, 404);
      assert.equal((await put(tokenOf(), session, 'bytes */900000', 0)).status, 403);
    },
  );

  t('refuses words that are none, and members that nobody may set', async () => {
    const token = tokenOf();
    for (const [resource, reason] of [
      [{ snippet: {} }, 'invalidTitle'],
      [{ snippet: { title: 'a<b' } }, 'invalidTitle'],
      [{ snippet: { title: 'x'.repeat(101) } }, 'invalidTitle'],
      [{ snippet: { title: 'a', description: 'é'.repeat(2_501) } }, 'invalidDescription'],
      [{ snippet: { title: 'a', tags: Array.from({ length: 60 }, () => 'a tag ab') } }, 'invalidTags'],
      [{ snippet: { title: 'a', categoryId: '44' } }, 'invalidCategoryId'],
      [{ snippet: { title: 'a' }, status: { publishAt: '2027-01-01T00:00:00Z' } }, 'invalidPublishAt'],
      [{ snippet: { title: 'a' }, status: { madeForKids: true } }, 'invalidParameter'],
      [{ snippet: { title: 'a' }, statistics: {} }, 'invalidParameter'],
    ] as const) {
      const { status, text } = await begin(token, resource);
      assert.deepEqual([status >= 400, text.includes(reason)], [true, true], `${JSON.stringify(resource)}: ${text}`);
    }
  });

  t(
    'shows and takes by scope: who may upload alone may not read, and nobody comments without the permission',
    async () => {
      const channel = network.channel();
      const upload = network.grant(channel, [allScopes[1] ?? '']).accessToken;
      assert.equal((await call('GET', '/youtube/v3/videos?part=status&id=AAAAAAAAAAA', { token: upload })).status, 403);
      assert.equal((await begin(upload, { snippet: { title: 'Hi' } })).status, 200);
      const comment = { snippet: { channelId: channel.id, videoId: 'A', topLevelComment: {} } };
      const asked = { token: upload, headers: json, body: JSON.stringify(comment) };
      assert.equal((await call('POST', '/youtube/v3/commentThreads?part=snippet', asked)).status, 403);
      assert.equal((await call('GET', '/v2/reports?ids=channel==MINE', { token: upload })).status, 403);
    },
  );

  t('counts a day of California, and has no row of a report for two days', async () => {
    const own = await startYouTube({ quota: { inserts: 1, units: 3 } });
    const channel = own.channel();
    const { accessToken } = own.grant(channel);
    const get = (path: string) =>
      fetch(`${own.origin}${path}`, { headers: { authorization: `Bearer ${accessToken}` } });
    for (const status of [200, 200, 200, 403]) {
      assert.equal((await get('/youtube/v3/channels?part=id&mine=true')).status, status);
    }
    own.state.advance(25 * 3_600_000);
    assert.equal(own.state.takes('units', 1), true);
    const today = own.state.day();
    const fresh = own.grant(channel).accessToken;
    const report = await fetch(
      `${own.origin}/v2/reports?ids=channel==MINE&startDate=${today}&endDate=${today}&metrics=views`,
      { headers: { authorization: `Bearer ${fresh}` } },
    );
    assert.equal('rows' in ((await report.json()) as object), false);
    own.close();
  });

  t(
    isHeld
      ? 'a call that the discovery documents do not have is seen'
      : 'NETWORK_CONTRACTS names no folder with youtube.v3.json: calls are not held against it',
    async () => {
      await call('GET', '/youtube/v3/fishes?part=id');
      await call('GET', '/youtube/v3/videos?part=status&id=AAAAAAAAAAA');
      const seen = network.state.unheld;
      assert.deepEqual(seen, isHeld ? ['GET /youtube/v3/fishes: no such method'] : []);
    },
  );
});
