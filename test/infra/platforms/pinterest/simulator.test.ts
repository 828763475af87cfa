/** That the simulated Pinterest refuses what Pinterest does not take, so that a test on it proves something. */
import assert from 'node:assert/strict';
import { contractHeld, isHeld } from '#test/support/networks/pinterest/contract.ts';
import {
  allScopes,
  type Person,
  type PinterestNetwork,
  startPinterest,
} from '#test/support/networks/pinterest/index.ts';
import { mp4Of, pngOf } from '#test/support/networks/pinterest/world.ts';
import { suite } from '#test/support/suite.ts';

suite('the simulated pinterest', (t) => {
  let network: PinterestNetwork;
  let person: Person;
  let token = '';
  t.before.each(async () => {
    network = await startPinterest();
    person = network.person();
    token = network.grant(person).accessToken;
  });
  t.after.each(() => network.close());

  const call = async (method: string, path: string, json?: unknown, by = token) => {
    const answer = await fetch(`${network.api}${path}`, {
      method,
      headers: { authorization: `Bearer ${by}`, ...(json === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(json === undefined ? {} : { body: JSON.stringify(json) }),
    });
    const text = await answer.text();
    return { status: answer.status, headers: answer.headers, body: text === '' ? null : JSON.parse(text) };
  };
  const picture = { source_type: 'image_base64', content_type: 'image/png', data: pngOf(300, 450).toString('base64') };
  const pin = (over: object = {}) => ({ board_id: network.board(person).id, media_source: picture, ...over });

  t('takes a pin with what is needed, and keeps it', async () => {
    const { status, body } = await call('POST', '/pins', pin({ title: 'T', description: 'D', alt_text: 'A' }));
    assert.equal(status, 201, JSON.stringify(body));
    assert.match(body.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d$/);
    assert.equal((await call('GET', `/pins/${body.id}`)).body.title, 'T');
    assert.equal((await call('DELETE', `/pins/${body.id}`)).status, 204);
    assert.equal((await call('GET', `/pins/${body.id}`)).body.code, 50);
  });

  t('refuses members, parameters and values that the reference does not have', async () => {
    const wrong: readonly (readonly [object, RegExp])[] = [
      [pin({ note: 'x' }), /body\.note' is not a member/],
      [pin({ title: 'x'.repeat(101) }), /longer than 100/],
      [pin({ board_id: 12 }), /is not a string/],
      [pin({ board_id: 'abc' }), /does not match/],
      [pin({ link: 'example.com' }), /does not match/],
      [{ board_id: '1' }, /media_source' is required/],
      [pin({ media_source: { ...picture, content_type: 'image/webp' } }), /not one of image\/jpeg, image\/png/],
      [pin({ media_source: { ...picture, data: 'a-b_c' } }), /does not match/],
      [pin({ media_source: { source_type: 'video_url', url: 'x' } }), /is not one of image_base64/],
      [pin({ media_source: { source_type: 'multiple_image_base64', items: [picture] } }), /minItems=2/],
      [pin({ media_source: { ...picture, data: Buffer.from('RIFF').toString('base64') } }), /format of the image/],
    ];
    for (const [body, message] of wrong) {
      const answer = await call('POST', '/pins', body);
      assert.equal(answer.status, 400, JSON.stringify(body));
      assert.match(answer.body.message, message);
    }
    assert.equal((await call('GET', '/boards?page_size=251')).status, 400);
    assert.equal((await call('GET', '/boards?limit=1')).status, 400);
    assert.equal((await call('PATCH', '/pins/1')).status, 404);
    assert.equal(network.state.pins.length, 0);
    network.state.violations.length = 0;
  });

  t('refuses a token that ended or lacks a scope', async () => {
    assert.deepEqual((await call('POST', '/pins', pin(), 'pina_none')).body, {
      code: 2,
      message: 'Authentication failed.',
    });
    for (const missing of allScopes.filter((one) => one !== 'user_accounts:read')) {
      const { accessToken } = network.grant(
        person,
        allScopes.filter((one) => one !== missing),
      );
      assert.deepEqual([(await call('POST', '/pins', pin(), accessToken)).body.code, missing], [3, missing]);
    }
    network.state.advance(30 * 86_400_000);
    assert.equal((await call('GET', '/user_account')).status, 401);
  });

  t('ends a consent whose refresh token is used twice, as two processes with copies of it would', async () => {
    const { refreshToken } = network.grant(person);
    const basic = Buffer.from('1480000:app%3Asecret').toString('base64');
    const refresh = async () => {
      const body = new URLSearchParams({ grant_type: 'refresh_token', refresh_token: refreshToken });
      const type = 'application/x-www-form-urlencoded';
      const headers = { authorization: `Basic ${basic}`, 'content-type': type };
      const answer = await fetch(`${network.api}/oauth/token`, { method: 'POST', body: body.toString(), headers });
      return { status: answer.status, body: (await answer.json()) as { access_token?: string; code?: number } };
    };
    const before = network.state.refresh.size;
    const [first, second] = [await refresh(), await refresh()];
    assert.equal(first.status, 200, JSON.stringify(first.body));
    assert.deepEqual([second.status, second.body.code], [401, 283]);
    assert.equal(network.state.refresh.size, before - 1);
    assert.equal((await call('GET', '/user_account', undefined, first.body.access_token)).status, 401);
  });

  t('stores a video with its fields in their order, once its policy lasts, and for nobody with a token', async () => {
    const { body } = await call('POST', '/media', { media_type: 'video' });
    assert.equal((await call('GET', `/media/${body.media_id}`)).body.status, 'registered');
    const store = async (fields: readonly (readonly [string, string])[], more: Record<string, string> = {}) => {
      const form = new FormData();
      for (const [name, value] of fields) form.append(name, value);
      form.append('file', new Blob([new Uint8Array(mp4Of(100))], { type: 'video/mp4' }));
      const head = new Request(body.upload_url, { method: 'POST', body: form });
      const type = head.headers.get('content-type') ?? '';
      const sent = Buffer.from(await head.arrayBuffer());
      const headers = { 'content-type': type, ...more };
      return (await fetch(body.upload_url, { method: 'POST', headers, body: sent })).status;
    };
    const fields = Object.entries(body.upload_parameters as Record<string, string>);
    assert.equal(await store(fields.toReversed()), 403);
    assert.equal(await store(fields.slice(1)), 403);
    assert.equal(await store(fields, { authorization: `Bearer ${token}` }), 400);
    const source = { source_type: 'video_id', media_id: body.media_id, cover_image_key_frame_time: 0 };
    assert.equal((await call('POST', '/pins', pin({ media_source: source }))).status, 400, 'it is not there');
    assert.equal(await store(fields), 204);
    for (const status of ['processing', 'processing', 'succeeded']) {
      assert.equal((await call('GET', `/media/${body.media_id}`)).body.status, status);
    }
    const { cover_image_key_frame_time: _, ...bare } = source;
    assert.match((await call('POST', '/pins', pin({ media_source: bare }))).body.message, /needs one cover/);
    assert.equal((await call('POST', '/pins', pin({ media_source: source }))).status, 201);
    network.state.advance(3_600_000);
    assert.equal(await store(fields), 403, 'the policy ended');
  });

  t('counts calls of a category by the minute, and says so in the form that was measured', async () => {
    const { headers } = await call('GET', '/user_account');
    assert.match(
      headers.get('x-ratelimit-limit') ?? '',
      /^1000, 100;w=1;name="safety_net_app_id_user_id", 1000;w=60;name="org_read_app_id_user_id"$/,
    );
    assert.equal(headers.get('x-ratelimit-remaining'), '999');
    assert.ok(Number(headers.get('x-ratelimit-reset')) <= 60);
  });
});

suite('the contract of pinterest', (t) => {
  if (!isHeld) {
    return t.skipExtra(
      'each call and each answer is held against the OpenAPI description of Pinterest',
      'NETWORK_CONTRACTS names no folder with pinterest-openapi.json',
    );
  }
  const json = { authorization: 'Bearer x', 'content-type': 'application/json' };
  const asked = (method: string, path: string, body?: unknown, headers: Record<string, string> = json) => ({
    ...{ method, path: `/v5${path}`, headers, body: Buffer.from(body === undefined ? '' : JSON.stringify(body)) },
    query: new URL(`http://x/${path}`).searchParams,
  });
  const bearer = { authorization: 'Bearer x' };
  const picture = { source_type: 'image_url', url: 'https://files.example/1.png' };

  t('finds what a call has that is not described, and what it lacks', () => {
    const faults = (...given: Parameters<typeof asked>) => contractHeld(asked(...given), [], null);
    assert.deepEqual(faults('POST', '/pins', { board_id: '1', media_source: picture }), []);
    const wrong: readonly (readonly [Parameters<typeof asked>, RegExp])[] = [
      [['POST', '/pins', { board_id: '1', note: 'x', media_source: picture }], /body\.note is not described/],
      [['POST', '/pins', { board_id: 'x', media_source: picture }], /board_id does not match/],
      [['POST', '/pins', { board_id: '1', media_source: { ...picture, data: 'x' } }], /media_source/],
      [['POST', '/pins', { board_id: '1', alt_text: 'x'.repeat(501), media_source: picture }], /longer than 500/],
      [['POST', '/pins', { board_id: '1', media_source: { source_type: 'video_id' } }], /media_id is missing/],
      [['POST', '/media', { media_type: 'image' }], /is not one of video/],
      [['POST', '/pinz', {}], /no such operation/],
      [['GET', '/pins/1', undefined, { ...bearer, 'x-more': '1' }], /header x-more/],
      [['GET', '/pins/1', undefined, {}], /authorization is none/],
      [['GET', '/pins/x', undefined, bearer], /path pin_id does not match/],
      [['GET', '/pins/1', { a: 1 }, bearer], /the call has a body/],
    ];
    for (const [given, fault] of wrong) {
      const found = faults(...given);
      assert.ok(
        found.some((one) => fault.test(one)),
        `${JSON.stringify(given)}: ${found.join('; ')}`,
      );
    }
    const query = (text: string) => ({
      ...asked('GET', '/boards', undefined, bearer),
      query: new URLSearchParams(text),
    });
    assert.deepEqual(contractHeld(query('page_size=250&bookmark=b'), [], null), []);
    assert.match(contractHeld(query('page_size=251'), [], null).join(), /out of its range/);
    assert.match(contractHeld(query('limit=2'), [], null).join(), /query limit is not described/);
  });

  t('finds what an answer has that is not described, and scopes that it was taken without', () => {
    const call = asked('GET', '/user_account', undefined, bearer);
    const faults = (status: number, body: unknown, scopes = allScopes) => contractHeld(call, scopes, { status, body });
    assert.deepEqual(faults(200, { id: '1', username: 'a', account_type: 'BUSINESS', business_name: null }), []);
    assert.match(faults(200, { id: 1 }).join(), /id is no string/);
    assert.match(faults(200, { id: '1', handle: 'a' }).join(), /handle is not described/);
    assert.match(faults(200, { id: '1', account_type: 'OTHER' }).join(), /is not one of/);
    assert.match(faults(201, {}).join(), /201 is not described/);
    assert.match(faults(404, { message: 'x' }).join(), /code is missing/);
    assert.match(faults(200, { id: '1' }, []).join(), /was taken without user_accounts:read/);
  });
});
