/**
 * An account of Threads before a strict Threads: connected by its link, a carousel whose files Threads fetches from our
 * address, a first comment, a thread with a container that Threads loses, an answer that is lost. What is out is read from
 * the network, not from us.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gradient } from '#test/support/media/pictures.ts';
import { type Person, problems, startThreads, type ThreadsNetwork } from '#test/support/networks/threads/index.ts';
import type { Declare } from '#test/support/suite.ts';
import { sparing, until } from '#test/support/until.ts';
import { uploaded } from '#test/support/uploads.ts';
import { allowed, isOut, type LiveWorld, type Place } from './world.ts';

const publish = 'POST /:id/threads_publish';

export const accountOfThreads = (t: Declare, world: LiveWorld): Place & { hold(): () => void } => {
  let network: ThreadsNetwork;
  let person: Person;
  let clientId = '';
  const guest = world.guest();

  world.join(async (redirectUri) => {
    network = await startThreads({ redirectUri });
    network.state.processing.IMAGE = 0;
    person = network.person();
    const { clientId: app, clientSecret } = network.state.app;
    const env = {
      ...{ THREADS_API: network.origin, THREADS_AUTHORIZE: `${network.origin}/oauth/authorize` },
      ...{ THREADS_CLIENT_ID: app, THREADS_CLIENT_SECRET: clientSecret },
    };
    return { origin: network.origin, env, close: () => network.close() };
  });

  /** The target of a post, once it is out. */
  const targetOf = async (body: Readonly<Record<string, unknown>>) =>
    world.target(
      await world.compose(clientId, body),
      (one) => {
        assert.notEqual(one.status, 'failed', JSON.stringify(one));
        return isOut(one);
      },
      { ...sparing, withinMs: 60_000 },
    );
  /** What the network has, in the order in which it came: text, parent, files. */
  const postsOf = (from: number) =>
    network.state.posts.slice(from).map(({ text, parent, files }) => [text, parent, files.map(({ type }) => type)]);

  t('threads: is connected by its link', async () => {
    clientId = await world.client('Café on Threads');
    const link = await world.link(clientId, ['threads']);
    const page = await guest.sent(link, { platform: 'threads', way: 'consent', timezone: '' });
    const done = await guest.get(await allowed(page, person.id));
    assert.deepEqual([done.status, done.next], [303, link]);
    const [account] = await world.accounts(clientId);
    assert.deepEqual([account?.status, account?.externalId], ['connected', person.id]);
  });

  t('threads: posts a carousel, whose files Threads fetches, and comments on it', async () => {
    const picture = async (altText: string): Promise<string> => {
      const body = await gradient(640, 480).jpeg().toBuffer();
      const offer = await uploaded(world.http, { fileName: `${altText}.jpg`, contentType: 'image/jpeg', body });
      const assetId = String(offer.data.assetId);
      assert.equal((await world.http.post('/media', { assetId, altText })).status, 200);
      await until(
        'the picture',
        async () => (await world.http.get(`/media/${assetId}`)).data.publishable === true,
        sparing,
      );
      return assetId;
    };
    const mediaIds = [await picture('A cup'), await picture('A plate')];
    const overrides = { replyControl: 'mentioned_only', firstComment: 'And a word below.' };
    const target = await targetOf({ content: 'Fresh rolls', mediaIds, variants: [{ platform: 'threads', overrides }] });
    await until('the comment', () => network.state.posts.length > 1, sparing);
    const [post] = network.state.posts;
    assert.deepEqual(postsOf(0), [
      ['Fresh rolls', null, ['IMAGE', 'IMAGE']],
      ['And a word below.', post?.id, []],
    ]);
    assert.deepEqual(
      [post?.personId, post?.replyControl, post?.files.map(({ altText }) => altText)],
      [person.id, 'mentioned_only', ['A cup', 'A plate']],
    );
    assert.ok(network.state.fetched.every((address) => address.startsWith(`${world.base}/`)));
    assert.deepEqual(
      [target.externalId, target.permalink],
      [post?.id, `https://www.threads.com/@${person.username}/post/${post?.code}`],
    );
  });

  t('threads: posts a thread, one post after the other, also where Threads loses a container', async () => {
    const from = network.state.posts.length;
    network.script({ route: publish, says: 'Second', times: 2, then: { answer: problems.media_not_found } });
    const segments = ['First of three', 'Second of three', 'Third of three'].map((content) => ({
      content,
      mediaIds: [],
    }));
    await targetOf({ content: 'First of three', thread: { segments } });
    const [first, second] = network.state.posts.slice(from);
    assert.deepEqual(postsOf(from), [
      ['First of three', null, []],
      ['Second of three', first?.id, []],
      ['Third of three', second?.id, []],
    ]);
    const containers = [...network.state.containers.values()].filter(({ params }) => params.text === 'Second of three');
    assert.equal(containers.length, 3);
  });

  t('threads: an answer that is lost is found on the network, and nothing is out twice', async () => {
    const from = network.state.posts.length;
    network.script({ route: publish, says: 'Lost', then: 'drop_after' });
    const target = await targetOf({ content: 'Lost and found' });
    assert.deepEqual(postsOf(from), [['Lost and found', null, []]]);
    assert.equal(target.externalId, network.state.posts.at(-1)?.id);
    assert.equal(network.state.publishes.filter(({ postId }) => postId === target.externalId).length, 1);
  });

  t(
    'threads: an operator checks it with a file of the machine, which Threads fetches from our address, and which ends',
    async () => {
      const [account] = (await world.http.get(`/accounts?clientId=${clientId}`)).rows;
      const folder = mkdtempSync(path.join(tmpdir(), 'postline-check-'));
      try {
        const file = path.join(folder, 'cup.jpg');
        writeFileSync(file, await gradient(640, 480).jpeg().toBuffer());
        const settings = ['--media', file, '--set', 'replyControl=mentioned_only'];
        const said = await world.admin(
          'network',
          'check',
          'threads',
          '--account',
          String(account?.id),
          '--yes',
          ...settings,
        );
        const post = network.state.posts.at(-1);
        assert.ok(post !== undefined);
        assert.deepEqual([post.files.map(({ type }) => type), post.replyControl], [['IMAGE'], 'mentioned_only']);
        assert.ok(network.state.deleted.has(post.id));
        assert.match(String(said.published), new RegExp(`/post/${post.code}$`));
        const gone = await fetch(network.state.fetched.at(-1) ?? '');
        assert.equal(gone.status, 404, 'the address has ended');
      } finally {
        rmSync(folder, { recursive: true, force: true });
      }
    },
  );

  t('threads: a disconnected account leaves no token behind', async () => {
    const [account] = (await world.http.get(`/accounts?clientId=${clientId}`)).rows;
    assert.equal((await world.http.post(`/accounts/${account?.id}/disconnect`, {})).status, 200);
    await world.nothingIsKept();
  });

  return {
    platform: 'threads',
    /** No picture is ready before it is let go. */
    hold: () => {
      network.state.processing.IMAGE = Number.POSITIVE_INFINITY;
      return () => {
        network.state.processing.IMAGE = 0;
        for (const container of network.state.containers.values()) container.looks = 0;
      };
    },
    connect: (link) => world.consent(link, 'threads', network.person().id),
    shown: (words) => network.state.posts.filter(({ text }) => text === words).map(({ id }) => id),
  };
};
