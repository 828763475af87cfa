/**
 * Accounts of LinkedIn from their connect link to their posts, before a strict LinkedIn: the guest chooses a profile and a
 * page, each posts once with its comment, and a version that ends stops the queue.
 */
import assert from 'node:assert/strict';
import { type LinkedInNetwork, startLinkedIn } from '#test/support/networks/linkedin/index.ts';
import type { Person } from '#test/support/networks/linkedin/state.ts';
import type { Declare } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';
import { allowed, isOut, type LiveWorld, type Place } from './world.ts';

export const accountsOfLinkedIn = (t: Declare, world: LiveWorld): Place => {
  let network: LinkedInNetwork;
  let person: Person;
  let clientId = '';
  const guest = world.guest();
  let page = '';
  let versions: readonly string[] = [];

  world.join(async (redirectUri) => {
    network = await startLinkedIn({ redirectUri });
    versions = network.state.versions;
    person = network.person('Ada Lovelace');
    page = network.organization(person).id;
    return { origin: network.origin, env: network.env, close: () => network.close() };
  });

  const targetsOf = (id: string) => world.targets(id);

  t('linkedin: a guest chooses a profile and a page', async () => {
    clientId = await world.client('Café on LinkedIn');
    const link = await world.link(clientId, ['linkedin'], { maxAccounts: 2 });
    const away = await guest.sent(link, { platform: 'linkedin', way: 'consent', timezone: '' });
    const choice = (await guest.get(await allowed(away, person.id))).next ?? '';
    assert.equal(
      await guest.sent(choice, [
        ['account', '0'],
        ['account', '1'],
      ]),
      link,
    );
    const all = await world.accounts(clientId, 2);
    assert.deepEqual(
      all.map(({ externalId }) => externalId).toSorted(),
      [`urn:li:organization:${page}`, `urn:li:person:${person.id}`].toSorted(),
    );
  });

  t('linkedin: each posts once, whole, with its comment', async () => {
    const content = 'Fresh rolls (from 7:00) [daily] #breakfast_1';
    const overrides = { visibility: 'PUBLIC', firstComment: 'Where (map): https://example.com/a_b' };
    const id = await world.compose(clientId, { content, variants: [{ platform: 'linkedin', overrides }] });
    const targets = await until('both are published', async () => {
      const all = await targetsOf(id);
      return all.length === 2 && all.every(isOut) && all;
    });
    await until('both comments are there', () => network.state.comments.length === 2);
    const { posts, comments, creates } = network.state;
    assert.deepEqual(
      posts.map(({ author }) => author).toSorted(),
      [`urn:li:organization:${page}`, `urn:li:person:${person.id}`].toSorted(),
    );
    for (const { text, visibility } of posts) {
      assert.deepEqual([text.shown, text.isCut, visibility], [content, false, 'PUBLIC']);
    }
    assert.deepEqual(new Set(comments.map(({ text }) => text)), new Set(['Where (map): https://example.com/a_b']));
    assert.deepEqual(new Set(comments.map(({ post }) => post)), new Set(posts.map((one) => one.id)));
    assert.equal(creates.length, 2);
    assert.deepEqual(
      targets.map(({ permalink }) => permalink).toSorted(),
      posts.map((one) => `https://www.linkedin.com/feed/update/${one.id}/`).toSorted(),
    );
  });

  t(
    'linkedin: 24: a version that has ended stops the queue: no target fails, and all go out once with a newer version',
    async () => {
      network.state.versions = ['209901'];
      const [before, answered] = [network.state.calls.length, network.state.posts.length];
      const first = await world.compose(clientId, { content: 'After the end' });
      const line = /live\/linkedin no longer answers version \d{6} of its API since .* is not active/;
      await until('the operator is told', async () =>
        line.test(await (await fetch(world.publisher.opsUrl('/readyz'))).text()),
      );
      const ids = [first, await world.compose(clientId, { content: 'Another one' })];
      // A target may be on its way when the network begins to rest; two are of the first post.
      const asked = network.state.calls.slice(before);
      assert.ok(asked.length >= 1 && asked.length <= 2, JSON.stringify(asked.map(({ path }) => path)));
      await world.publisher.stop();
      const waiting = (await Promise.all(ids.map(targetsOf))).flat();
      assert.equal(waiting.length, 4);
      assert.ok(
        waiting.every(({ status }) => status !== 'failed' && status !== 'published'),
        JSON.stringify(waiting),
      );
      const { rows } = await world.http.get(`/accounts?clientId=${clientId}`);
      assert.ok(rows.every(({ status }) => status === 'connected'));
      assert.equal(network.state.calls.length, before + asked.length);

      await world.startPublisher({ LINKEDIN_VERSION: '209901' });
      await until('all are published', async () => (await Promise.all(ids.map(targetsOf))).flat().every(isOut));
      assert.equal(network.state.posts.length, answered + 4);
      assert.ok(network.state.calls.slice(before + asked.length).every(({ version }) => version === '209901'));
    },
  );

  return {
    platform: 'linkedin',
    connect: (link) => {
      // Some processes still have the version with which they started.
      network.state.versions = [...versions, ...network.state.versions];
      return world.consent(link, 'linkedin', network.person('Grace Hopper').id);
    },
    shown: (words) => network.state.posts.filter(({ text }) => text.shown === words).map(({ id }) => id),
  };
};
