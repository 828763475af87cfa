/**
 * An account of Pinterest from its connect link to a pin that is read from the network, not from us: standalone in a process
 * of its own, before a strict Pinterest. The picture is uploaded as a caller does, and the pin shows its very bytes.
 */
import assert from 'node:assert/strict';
import sharp from 'sharp';
import { openPool } from '#infra/postgres/pool.ts';
import { Guest } from '#test/support/guest.ts';
import { type Caller, callerOf } from '#test/support/http.ts';
import {
  type Board,
  type Person,
  type PinterestNetwork,
  startPinterest,
} from '#test/support/networks/pinterest/index.ts';
import { freePort } from '#test/support/port.ts';
import { dataFolder, preparedDatabase } from '#test/support/postgres.ts';
import { type Process, start } from '#test/support/processes.ts';
import { suite } from '#test/support/suite.ts';
import { timesEnv } from '#test/support/times.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';

suite('an account of pinterest', { timeoutMs: 120_000 }, (t) => {
  let network: PinterestNetwork;
  let person: Person;
  let board: Board;
  let service: Process;
  let url = '';
  let base = '';
  let http: Caller;
  let clientId = '';
  const guest = new Guest(() => base);

  t.before(async () => {
    const own = await freePort();
    base = `http://127.0.0.1:${own}`;
    network = await startPinterest({ redirectUri: `${base}/connect/callback` });
    person = network.person({ businessName: 'Café' });
    board = network.board(person, { name: 'Rolls' });
    ({ url } = await preparedDatabase());
    const { clientId: app, clientSecret } = network.state.app;
    service = await start('services/standalone/main.ts', {
      args: ['--data', dataFolder().dataDir, '--port', String(own), '--no-tour'],
      env: {
        ...{ DATABASE_URL: url, CONSOLE_URL: base, PRIVATE_TARGETS: new URL(network.origin).host },
        ...{ PINTEREST_API: network.api, PINTEREST_AUTHORIZE: network.authorize },
        ...{ PINTEREST_CLIENT_ID: app, PINTEREST_CLIENT_SECRET: clientSecret },
        ...timesEnv({ sweepIntervalMs: 300, reconcileDelaysMs: [100, 300, 600] }),
      },
      readyAt: /^Data: /m,
    });
    http = callerOf(() => `${base}/v1`, /sk_live_\S+/.exec(service.output())?.[0] ?? '');
    ({ id: clientId } = (await http.post('/clients', { name: 'Café', type: 'brand' })).data);
  });
  t.after(async () => {
    await service?.stop();
    network?.close();
  });

  const pictureOf = async (width: number, height: number) => {
    const background = { r: width % 256, g: height % 256, b: 80 };
    const body = await sharp({ create: { width, height, channels: 3, background } })
      .png()
      .toBuffer();
    const offer = await uploaded(http, { fileName: 'rolls.png', contentType: 'image/png', body });
    const id = String(offer.data.assetId);
    const made = await http.post('/media', { assetId: id, platforms: ['pinterest'] });
    assert.equal(made.status, 200, made.text);
    await until(
      'the picture is ready',
      async () => {
        const { publishable, failure } = (await http.get(`/media/${id}`)).data;
        assert.equal(failure, null, JSON.stringify(failure));
        return publishable === true;
      },
      sparing,
    );
    return { id, body };
  };
  const post = async (content: string, mediaIds: readonly string[], overrides: object) => {
    const composed = await http.post('/posts', {
      ...{ clientId, content, mediaIds, targets: { mode: 'group', clientId }, schedule: { type: 'now' } },
      variants: [{ platform: 'pinterest', overrides }],
    });
    assert.equal(composed.status, 200, composed.text);
    return until(
      'its outcome',
      async () => {
        const [one] = (await http.get(`/posts/${composed.data.id}`)).data.targets as readonly Record<string, unknown>[];
        return ['published', 'failed'].includes(String(one?.status)) ? one : null;
      },
      sparing,
    );
  };

  t('a guest connects it on the page of Pinterest', async () => {
    const made = await http.post(`/clients/${clientId}/connect-invites`, { platforms: ['pinterest'] });
    assert.equal(made.status, 200, made.text);
    const link = new URL(String(made.data.url)).pathname;
    assert.match((await guest.get(link)).html, /Continue to Pinterest/);
    const page = new URL(await guest.sent(link, { platform: 'pinterest', way: 'consent', timezone: '' }));
    page.searchParams.set('as', person.id);
    const back = await fetch(page, { redirect: 'manual' });
    assert.equal(back.status, 302, await back.text());
    const done = await guest.get(back.headers.get('location') ?? '');
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await until('the account', async () => {
      const { rows } = await http.get(`/accounts?clientId=${clientId}`);
      return rows.length > 0 && rows;
    });
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.username, account?.displayName],
      ['pinterest', 'connected', person.id, person.username, 'Café'],
    );
  });

  t('it pins a picture to the board, once, and as it was uploaded', async () => {
    const { id, body } = await pictureOf(1_000, 1_500);
    const overrides = { boardId: board.id, title: 'Fresh', link: 'https://example.com/rolls' };
    const target = await post('Fresh rolls', [id], overrides);
    const [pin, ...others] = network.state.pins;
    assert.ok(pin !== undefined && others.length === 0, JSON.stringify(target));
    assert.equal(target.permalink, `https://www.pinterest.com/pin/${pin.id}/`);
    const { media_source: _, ...shown } = pin.body;
    assert.deepEqual(shown, {
      ...{ board_id: board.id, title: 'Fresh', description: 'Fresh rolls', link: 'https://example.com/rolls' },
    });
    assert.deepEqual([pin.personId, pin.kind, pin.pictures], [person.id, 'image', [body]]);
  });

  t('a pin whose answer is lost is found on its board, and is not made again', async () => {
    const [one, two] = [await pictureOf(800, 1_200), await pictureOf(1_000, 1_500)];
    network.script({ route: 'POST /v5/pins', then: 'drop_after' });
    const target = await post('Two of them', [one.id, two.id], { boardId: board.id });
    const [, pin, ...others] = network.state.pins;
    assert.deepEqual([target.status, others.length], ['published', 0]);
    assert.equal(target.permalink, `https://www.pinterest.com/pin/${pin?.id}/`);
    assert.deepEqual(pin?.pictures, [one.body, two.body]);
    assert.equal(network.state.creates.length, 2);
  });

  t('without a board it fails, and Pinterest is not asked', async () => {
    const { id } = await pictureOf(900, 900);
    const target = await post('Where to?', [id], {});
    assert.equal(target.status, 'failed');
    assert.match(JSON.stringify(target), /pinterest_board_required/);
    assert.equal(network.state.creates.length, 2);
  });

  t('a disconnected account has no tokens left, though Pinterest takes none back', async () => {
    const { rows } = await http.get(`/accounts?clientId=${clientId}`);
    assert.equal((await http.post(`/accounts/${rows[0]?.id}/disconnect`, {})).status, 200);
    const pool = openPool({ url });
    await until('its credentials are destroyed', async () => {
      const { rowCount } = await pool.query('select 1 from ops.network_credentials');
      return rowCount === 0;
    });
    await pool.end();
    const asked = network.state.calls.filter(({ path }) => path === '/v5/oauth/token/revoke');
    assert.deepEqual(
      asked.map(({ status }) => status),
      [403, 403],
    );
  });
});
