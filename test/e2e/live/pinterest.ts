/**
 * An account of Pinterest from its connect link to a pin that is read from the network, not from us, before a strict
 * Pinterest. The picture is uploaded as a caller does, and the pin shows its very bytes.
 */
import assert from 'node:assert/strict';
import sharp from 'sharp';
import {
  type Board,
  type Person,
  type PinterestNetwork,
  startPinterest,
} from '#test/support/networks/pinterest/index.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import { allowed, type LiveWorld, type Place } from './world.ts';

export const accountOfPinterest = (t: Declare, world: LiveWorld): Place => {
  let network: PinterestNetwork;
  let person: Person;
  let board: Board;
  let clientId = '';
  const guest = world.guest();

  world.join(async (redirectUri) => {
    network = await startPinterest({ redirectUri });
    person = network.person({ businessName: 'Café' });
    board = network.board(person, { name: 'Rolls' });
    const { clientId: app, clientSecret } = network.state.app;
    const env = {
      ...{ PINTEREST_API: network.api, PINTEREST_AUTHORIZE: network.authorize },
      ...{ PINTEREST_CLIENT_ID: app, PINTEREST_CLIENT_SECRET: clientSecret },
    };
    return { origin: network.origin, env, close: () => network.close() };
  });

  const pictureOf = async (width: number, height: number) => {
    const background = { r: width % 256, g: height % 256, b: 80 };
    const body = await sharp({ create: { width, height, channels: 3, background } })
      .png()
      .toBuffer();
    const offer = await uploaded(world.http, { fileName: 'rolls.png', contentType: 'image/png', body });
    const id = String(offer.data.assetId);
    const made = await world.http.post('/media', { assetId: id, platforms: ['pinterest'] });
    assert.equal(made.status, 200, made.text);
    await until(
      'the picture is ready',
      async () => {
        const { publishable, failure } = (await world.http.get(`/media/${id}`)).data;
        assert.equal(failure, null, JSON.stringify(failure));
        return publishable === true;
      },
      sparing,
    );
    return { id, body };
  };
  const post = async (content: string, mediaIds: readonly string[], overrides: object) => {
    const id = await world.compose(clientId, { content, mediaIds, variants: [{ platform: 'pinterest', overrides }] });
    return world.target(id, ({ status }) => ['published', 'failed'].includes(String(status)), sparing);
  };

  t('pinterest: a guest connects it on the page of Pinterest', async () => {
    clientId = await world.client('Café on Pinterest');
    const link = await world.link(clientId, ['pinterest']);
    assert.match((await guest.get(link)).html, /Continue to Pinterest/);
    const page = await guest.sent(link, { platform: 'pinterest', way: 'consent', timezone: '' });
    const done = await guest.get(await allowed(page, person.id));
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await world.accounts(clientId);
    assert.deepEqual(
      [account?.platform, account?.status, account?.externalId, account?.username, account?.displayName],
      ['pinterest', 'connected', person.id, person.username, 'Café'],
    );
  });

  t('pinterest: it pins a picture to the board, once, and as it was uploaded', async () => {
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

  t('pinterest: a pin whose answer is lost is found on its board, and is not made again', async () => {
    const [one, two] = [await pictureOf(800, 1_200), await pictureOf(1_000, 1_500)];
    network.script({ route: 'POST /v5/pins', then: 'drop_after' });
    const target = await post('Two of them', [one.id, two.id], { boardId: board.id });
    const [, pin, ...others] = network.state.pins;
    assert.deepEqual([target.status, others.length], ['published', 0]);
    assert.equal(target.permalink, `https://www.pinterest.com/pin/${pin?.id}/`);
    assert.deepEqual(pin?.pictures, [one.body, two.body]);
    assert.equal(network.state.creates.length, 2);
  });

  t('pinterest: without a board it fails, and Pinterest is not asked', async () => {
    const { id } = await pictureOf(900, 900);
    const target = await post('Where to?', [id], {});
    assert.equal(target.status, 'failed');
    assert.match(JSON.stringify(target), /pinterest_board_required/);
    assert.equal(network.state.creates.length, 2);
  });

  t('pinterest: a disconnected account has no tokens left, though Pinterest takes none back', async () => {
    const { rows } = await world.http.get(`/accounts?clientId=${clientId}`);
    assert.equal((await world.http.post(`/accounts/${rows[0]?.id}/disconnect`, {})).status, 200);
    await world.nothingIsKept();
    const asked = network.state.calls.filter(({ path }) => path === '/v5/oauth/token/revoke');
    assert.deepEqual(
      asked.map(({ status }) => status),
      [403, 403],
    );
  });

  return {
    platform: 'pinterest',
    connect: (link) => {
      person = network.person({ businessName: 'Café' });
      board = network.board(person, { name: 'Rolls' });
      return world.consent(link, 'pinterest', person.id);
    },
    overrides: () => ({ boardId: board.id }),
    shown: (words) => network.state.pins.filter(({ body }) => body.description === words).map(({ id }) => id),
  };
};
