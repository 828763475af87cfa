/**
 * An account of X from its connect link to a post, before a strict X: the api is killed at each moment of the consent, the
 * guest begins again, the account posts once, and its end is told to the network.
 */
import assert from 'node:assert/strict';
import { type Person, startX, type XNetwork } from '#test/support/networks/x/index.ts';
import type { Declare } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { allowed, isOut, type LiveWorld, type Place } from './world.ts';

export const accountOfX = (t: Declare, world: LiveWorld): Place => {
  let network: XNetwork;
  let person: Person;
  let clientId = '';
  const guest = world.guest();
  /** Of the connect link. */
  let link = '';

  world.join(async (redirectUri) => {
    network = await startX({ redirectUri });
    person = network.person();
    const { clientId: app, clientSecret } = network.state.app;
    const env = {
      ...{ X_API: network.origin, X_AUTHORIZE: `${network.origin}/i/oauth2/authorize` },
      ...{ X_CLIENT_ID: app, X_CLIENT_SECRET: clientSecret ?? '' },
    };
    return { origin: network.origin, env, close: () => network.close() };
  });

  const begin = () => guest.sent(link, { platform: 'x', way: 'consent', timezone: '' });
  const rows = () => world.http.get(`/accounts?clientId=${clientId}`).then((answer) => answer.rows);

  t('x: an api that dies before the browser leaves has connected nothing: the same form begins again', async () => {
    clientId = await world.client('Café on X');
    link = await world.link(clientId, ['x']);
    await world.api.stop();
    await world.startApi('connect:after-attempt');
    await world.died(begin());
    await world.startApi('connect:after-take');
    assert.match((await guest.get(link)).html, /Continue to X/);
  });

  t('x: an api that dies with the answer in hand has spent it: the page says how to go on', async () => {
    const back = await allowed(await begin(), person.id);
    await world.died(guest.get(back));
    await world.startApi('connect:after-finish');
    assert.equal(network.state.refresh.size, 0, 'the network was not asked');
    const again = await guest.get(back);
    assert.equal(again.status, 404);
    assert.match(again.html, /Open the link that you were sent/);
  });

  t('x: an api that dies with the tokens in hand has kept none: the guest allows it once more', async () => {
    const back = await allowed(await begin(), person.id);
    await world.died(guest.get(back));
    assert.equal(network.state.refresh.size, 1);
    await world.startApi('');
    assert.deepEqual(await rows(), []);
    const done = await guest.get(await allowed(await begin(), person.id));
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await world.accounts(clientId);
    assert.deepEqual(
      [account?.status, account?.externalId, account?.username],
      ['connected', person.id, person.username],
    );
  });

  t('x: it posts, once', async () => {
    const target = await world.target(await world.compose(clientId, { content: 'Fresh rolls' }), isOut);
    const [made, ...others] = network.state.creates;
    assert.deepEqual([made?.personId, made?.body, others], [person.id, { text: 'Fresh rolls' }, []]);
    assert.equal(target.permalink, `https://x.com/${person.username}/status/${made?.postId}`);
  });

  t('x: a disconnected account ends its consent at the network', async () => {
    const [account] = await rows();
    const ended = network.state.refresh.size - 1;
    assert.equal((await world.http.post(`/accounts/${account?.id}/disconnect`, {})).status, 200);
    await until('the consent is revoked', () => network.state.refresh.size === ended);
    await world.nothingIsKept();
  });

  return {
    platform: 'x',
    connect: (to) => world.consent(to, 'x', network.person().id),
    shown: (words) => network.state.posts.filter(({ sent }) => sent === words).map(({ id }) => id),
  };
};
