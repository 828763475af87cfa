/** The simulated Instagram refuses what its documents do not have. */
import assert from 'node:assert/strict';
import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  type InstagramNetwork,
  type Person,
  scopesOf,
  startInstagram,
} from '#test/support/networks/instagram/index.ts';
import type { Host } from '#test/support/networks/instagram/state.ts';
import { suite } from '#test/support/suite.ts';

type Params = Readonly<Record<string, string>>;

suite('the simulated instagram', (t) => {
  let network: InstagramNetwork;
  let person: Person;
  let tokens: Readonly<Record<Host, string>>;
  let files: Server;
  let at = '';
  t.before(async () => {
    files = createServer(({ url }, response) => {
      const type = { '/png': 'image/png', '/video': 'video/mp4' }[url ?? ''] ?? 'image/jpeg';
      response.writeHead(url === '/none' ? 404 : 200, { 'content-type': type }).end('bytes');
    });
    await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
    at = `http://127.0.0.1:${(files.address() as AddressInfo).port}`;
  });
  t.after(() => files.close());
  t.before.each(async () => {
    network = await startInstagram({ quota: 2 });
    person = network.person();
    const of = (host: Host) =>
      network.state.grant({ host, personId: person.id, holderId: null, scopes: scopesOf[host], isLong: true }, 86_400);
    tokens = { ig: of('ig'), fb: of('fb') };
  });
  t.after.each(() => network.close());

  const call = async (method: string, path: string, params: Params = {}, host: Host = 'ig', token = tokens[host]) => {
    const proof = createHmac('sha256', network.state.metaApp.clientSecret).update(token).digest('hex');
    const isForm = method === 'POST';
    const query = new URLSearchParams({
      ...(isForm ? {} : params),
      ...(host === 'fb' ? { appsecret_proof: proof } : {}),
    });
    const answer = await fetch(`${network.origin}/${host}/v27.0/${path}?${query}`, {
      ...{ method, headers: { authorization: `Bearer ${token}` } },
      ...(isForm ? { body: new URLSearchParams(params) } : {}),
    });
    const { error, ...body } = (await answer.json()) as Record<string, unknown> & {
      error?: { code: number; error_subcode?: number; message: string };
    };
    const code = [error?.code, error?.error_subcode].filter((one) => one !== undefined).join('/');
    return { status: answer.status, body, code, said: error?.message ?? '' };
  };
  const create = (params: Params, host: Host = 'ig') => call('POST', `${person.id}/media`, params, host);
  const made = async (params: Params, host: Host = 'ig') => {
    const { status, body, said } = await create(params, host);
    assert.equal(status, 200, said);
    return String(body.id);
  };
  const publish = (id: string) => call('POST', `${person.id}/media_publish`, { creation_id: id });
  const look = async (id: string) => (await call('GET', id, { fields: 'status_code,status' })).body.status_code;

  t('refuses a parameter, a value or a mixture that the documents lack', async () => {
    const picture = { image_url: `${at}/jpeg` };
    const reel = { media_type: 'REELS', video_url: `${at}/video` };
    const story = { media_type: 'STORIES', image_url: `${at}/jpeg` };
    const item = { is_carousel_item: 'true', image_url: `${at}/jpeg` };
    const wrong: readonly Params[] = [
      ...[{}, { caption: 'Words alone' }, { ...picture, more: '1' }, { ...picture, video_url: `${at}/video` }],
      ...[
        { media_type: 'VIDEO', video_url: `${at}/video` },
        { media_type: 'IMAGE', ...picture },
      ],
      ...[
        { ...picture, share_to_feed: 'true' },
        { ...picture, cover_url: `${at}/jpeg` },
        { ...picture, thumb_offset: '1' },
      ],
      ...[
        { ...reel, image_url: `${at}/jpeg` },
        { ...reel, alt_text: 'A cup' },
        { ...reel, thumb_offset: '-1' },
      ],
      ...[
        { ...story, caption: 'a' },
        { ...story, alt_text: 'a' },
        { ...story, collaborators: '["ada"]' },
      ],
      ...[
        { ...item, caption: 'a' },
        { ...item, collaborators: '["ada"]' },
        { ...item, is_ai_generated: 'true' },
      ],
      ...[
        { ...item, media_type: 'REELS' },
        { is_carousel_item: 'true', video_url: `${at}/video` },
      ],
      ...[
        { ...picture, collaborators: '["@ada"]' },
        { ...picture, collaborators: 'ada' },
      ],
      ...[
        { ...picture, user_tags: '[{"username":"ada"}]' },
        { ...reel, user_tags: '[{"username":"ada","x":0.5,"y":0.5}]' },
      ],
      ...[
        { ...picture, user_tags: '[{"username":"ada","x":2,"y":0.5}]' },
        { ...picture, location_id: 'Berlin' },
      ],
      ...[
        { ...picture, is_ai_generated: 'yes' },
        { ...picture, caption: 'a'.repeat(2_201) },
      ],
      { ...picture, is_paid_partnership: 'true' },
    ];
    for (const params of wrong) assert.equal((await create(params)).status, 400, JSON.stringify(params));
    assert.equal(network.state.containers.size, 0);
    await made({ ...picture, is_paid_partnership: 'true' }, 'fb');
  });

  t('takes JPEG alone, and says so where an address gives nothing', async () => {
    assert.equal((await create({ image_url: `${at}/png` })).code, '9004/2207052');
    assert.equal((await create({ image_url: `${at}/none` })).code, '9004/2207052');
    const broken = await made({ media_type: 'REELS', video_url: `${at}/none` });
    for (let looks = 0; looks < 2; looks += 1) assert.equal(await look(broken), 'IN_PROGRESS');
    assert.equal(await look(broken), 'ERROR');
    assert.match(String((await call('GET', broken, { fields: 'status' })).body.status), /error code 2207052$/);
  });

  t('publishes what is finished, once, and no child', async () => {
    const reel = await made({ media_type: 'REELS', video_url: `${at}/video` });
    assert.equal((await publish(reel)).code, '9007/2207027');
    while ((await look(reel)) !== 'FINISHED');
    assert.equal((await publish(reel)).status, 200);
    assert.equal((await publish(reel)).code, '24/2207006');
    assert.equal(await look(reel), 'PUBLISHED');
    const child = await made({ is_carousel_item: 'true', image_url: `${at}/jpeg` });
    assert.equal((await publish(child)).code, '24/2207006');
    const slow = await made({ is_carousel_item: 'true', media_type: 'VIDEO', video_url: `${at}/video` });
    const parent = { media_type: 'CAROUSEL', children: `${child},${slow}` };
    assert.equal((await create(parent)).code, '9007/2207027', 'a child that is not finished');
    while ((await look(slow)) !== 'FINISHED');
    assert.equal((await create({ ...parent, children: child })).code, '100/2207028');
    await made(parent);
  });

  t('has a quota, an end of containers, and permissions', async () => {
    const one = await made({ image_url: `${at}/jpeg` });
    network.state.advance(86_400_001);
    assert.equal(await look(one), undefined, 'the token has ended');
    const scopes = ['instagram_business_basic'];
    const grant = { host: 'ig', personId: person.id, holderId: null, scopes, isLong: true } as const;
    const token = network.state.grant(grant, 86_400);
    assert.equal((await call('GET', one, { fields: 'status_code' }, 'ig', token)).body.status_code, 'EXPIRED');
    const refused = await call('POST', `${person.id}/media`, { image_url: `${at}/jpeg` }, 'ig', token);
    assert.match(`${refused.code} ${refused.said}`, /^10 .*instagram_content_publish/);
  });

  t(
    'knows each token on its own host alone, wants the proof there, and closes to new apps what Meta closed',
    async () => {
      assert.equal((await call('GET', 'me', { fields: 'id' }, 'ig', tokens.fb)).code, '190');
      assert.equal((await call('GET', person.id, { fields: 'id' }, 'fb', tokens.ig)).code, '190');
      const bare = await fetch(`${network.origin}/fb/v27.0/${person.id}`, {
        headers: { authorization: `Bearer ${tokens.fb}` },
      });
      assert.equal(bare.status, 400);
      for (const params of [
        { ids: '1,2' },
        { date_format: 'U' },
        { method: 'DELETE' },
        { fields: 'id.as(a)' },
      ] as Params[]) {
        assert.equal((await call('GET', person.id, params)).status, 400, JSON.stringify(params));
      }
      assert.equal((await call('GET', `${person.id}/followers`)).status, 404);
      assert.equal((await call('GET', person.id, { fields: 'id,password' })).code, '100');
      const other = network.person();
      assert.equal((await call('POST', `${other.id}/media`, { image_url: `${at}/jpeg` })).code, '100/33');
    },
  );

  t('refuses a whole call of insights for one metric of another kind', async () => {
    const { body } = await publish(await made({ image_url: `${at}/jpeg` }));
    const insights = (params: Params, host: Host = 'ig') => call('GET', `${body.id}/insights`, params, host);
    assert.equal((await insights({ metric: 'views,reach' })).status, 200);
    assert.equal((await insights({ metric: 'views,impressions' })).code, '100');
    assert.equal((await insights({ metric: 'views,link_clicks' })).code, '100');
    assert.equal((await insights({ metric: 'views', breakdown: 'action_type' })).code, '100');
    assert.equal((await insights({ metric: 'profile_activity', breakdown: 'action_type' })).status, 200);
    const ofUser = (params: Params) => call('GET', `${person.id}/insights`, params);
    assert.equal((await ofUser({ metric: 'views', period: 'day' })).code, '100');
    const span = { period: 'day', metric_type: 'total_value', since: '1780000000', until: '1780086400' };
    assert.equal((await ofUser({ metric: 'views,accounts_engaged', ...span })).status, 200);
    assert.equal((await ofUser({ metric: 'impressions', ...span })).code, '100');
    assert.equal((await call('DELETE', String(body.id))).status, 400, 'no deletion by its own login');
    assert.equal((await call('DELETE', String(body.id), {}, 'fb')).status, 200);
  });
});
