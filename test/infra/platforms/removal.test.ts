/** A published post is deleted again, on each network with an adapter of its own. */
import assert from 'node:assert/strict';
import type { PlatformAdapter, PublishRequest, RemovalOutcome } from '#contracts/ports/platform.ts';
import { orMissing } from '#test/support/missing.ts';
import { blueskyWorld } from '#test/support/networks/bluesky-world.ts';
import { problems as problemsOfFacebook } from '#test/support/networks/facebook/index.ts';
import { facebookWorld } from '#test/support/networks/facebook/world.ts';
import { problems as problemsOfInstagram } from '#test/support/networks/instagram/index.ts';
import { instagramWorld } from '#test/support/networks/instagram/world.ts';
import { problems as answers } from '#test/support/networks/linkedin/index.ts';
import { linkedinWorld } from '#test/support/networks/linkedin/world.ts';
import { sharedPds } from '#test/support/networks/pds.ts';
import { problems as problemsOfPinterest } from '#test/support/networks/pinterest/index.ts';
import { heldFiles, pinterestWorld } from '#test/support/networks/pinterest/world.ts';
import { allScopes, problems as problemsOfThreads } from '#test/support/networks/threads/index.ts';
import { threadsWorld } from '#test/support/networks/threads/world.ts';
import { tiktokWorld } from '#test/support/networks/tiktok/world.ts';
import { problems } from '#test/support/networks/x/index.ts';
import { xWorld } from '#test/support/networks/x/world.ts';
import { problems as problemsOfYouTube, allScopes as scopesOfYouTube } from '#test/support/networks/youtube/index.ts';
import { youtubeWorld } from '#test/support/networks/youtube/world.ts';
import { suite } from '#test/support/suite.ts';
import { telegramWorld } from './telegram/world.ts';

const opened = await orMissing(sharedPds().then((pds) => ({ pds })));

const removed = (
  adapter: PlatformAdapter,
  platform: 'x' | 'threads' | 'pinterest' | 'bluesky' | 'telegram' | 'linkedin' | 'youtube' | 'facebook' | 'instagram',
  account: PublishRequest['account'],
  externalId: string,
): Promise<RemovalOutcome> => {
  assert.ok(adapter.removePost !== undefined);
  return adapter.removePost({ platform, account, externalId }, AbortSignal.timeout(3_000));
};
const why = (outcome: RemovalOutcome): string => {
  assert.ok(outcome.kind === 'not_removed', 'it was removed');
  return outcome.failure.category;
};

suite('the removal of a post on x', (t) => {
  t('deletes the account’s own post and no other, and repeats without harm', async () => {
    const world = await xWorld();
    const { adapter, network } = world;
    const account = await world.account();
    const other = await world.account();
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    assert.equal(why(await removed(adapter, 'x', other, externalId)), 'permission');
    assert.ok(network.state.post(externalId) !== null);
    network.script({ route: 'DELETE /2/tweets/:id', then: 'drop_before' });
    assert.equal(why(await removed(adapter, 'x', account, externalId)), 'platform_down');
    network.script({ route: 'DELETE /2/tweets/:id', then: { answer: problems.too_many_requests } });
    assert.equal(why(await removed(adapter, 'x', account, externalId)), 'rate_limited');
    network.script({ route: 'DELETE /2/tweets/:id', then: { answer: problems.unauthorized } });
    assert.deepEqual(await removed(adapter, 'x', account, externalId), { kind: 'removed' });
    assert.equal(network.state.post(externalId), null);
    assert.deepEqual(await removed(adapter, 'x', account, externalId), { kind: 'removed' });
    assert.equal(why(await removed(adapter, 'x', account, '1/../../users')), 'invalid_content');
    network.close();
  });
});

suite('the removal of a post on linkedin', (t) => {
  t('deletes the account’s own post and no other, and repeats without harm', async () => {
    const world = await linkedinWorld();
    const { adapter, network } = world;
    for (const account of [await world.member(), await world.organization()]) {
      const { outcome } = await world.publish(world.request(account));
      assert.ok(outcome.kind === 'published');
      const { externalId } = outcome;
      assert.equal(why(await removed(adapter, 'linkedin', await world.member(), externalId)), 'permission');
      assert.ok(network.state.post(externalId) !== null);
      const route = 'DELETE /rest/posts/:id';
      network.script({ route, then: 'drop_before' });
      assert.equal(why(await removed(adapter, 'linkedin', account, externalId)), 'platform_down');
      network.script({ route, then: { answer: answers.member_day } });
      assert.equal(why(await removed(adapter, 'linkedin', account, externalId)), 'rate_limited');
      network.script({ route, then: { answer: answers.token_expired } });
      assert.deepEqual(await removed(adapter, 'linkedin', account, externalId), { kind: 'removed' });
      assert.equal(network.state.post(externalId), null);
      assert.deepEqual(await removed(adapter, 'linkedin', account, externalId), { kind: 'removed' });
      network.script({ route, then: { answer: answers.not_found } });
      assert.deepEqual(await removed(adapter, 'linkedin', account, externalId), { kind: 'removed' });
      assert.equal(why(await removed(adapter, 'linkedin', account, 'urn:li:share:1/../../me')), 'invalid_content');
    }
    network.close();
  });
});

suite('the removal of a video on youtube', (t) => {
  t('deletes the account’s own video and no other, and repeats without harm', async () => {
    const world = await youtubeWorld();
    const { adapter, network } = world;
    const account = await world.account();
    const other = await world.account();
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    const route = 'DELETE /youtube/v3/videos';
    assert.equal(why(await removed(adapter, 'youtube', other, externalId)), 'permission');
    const channel = network.state.channels.get(account.externalId);
    assert.ok(channel !== undefined && network.state.video(externalId) !== null);
    const few = await world.accountOf(
      channel,
      scopesOfYouTube.filter((one) => !one.endsWith('force-ssl')),
    );
    assert.equal(why(await removed(adapter, 'youtube', few, externalId)), 'permission');
    network.script({ route, then: 'drop_before' });
    assert.equal(why(await removed(adapter, 'youtube', account, externalId)), 'platform_down');
    network.script({ route, then: { answer: problemsOfYouTube.user_rate } });
    assert.equal(why(await removed(adapter, 'youtube', account, externalId)), 'rate_limited');
    network.script({ route, then: { answer: problemsOfYouTube.auth_error } });
    assert.deepEqual(await removed(adapter, 'youtube', account, externalId), { kind: 'removed' });
    assert.equal(network.state.video(externalId), null);
    assert.deepEqual(await removed(adapter, 'youtube', account, externalId), { kind: 'removed' });
    assert.equal(why(await removed(adapter, 'youtube', account, 'AAAAAAAAAA/')), 'invalid_content');
    world.close();
  });
});

suite('the removal of a post on facebook', (t) => {
  t('deletes the page’s own post and no other, and repeats without harm', async () => {
    const world = await facebookWorld();
    const { adapter, network } = world;
    const [account, other] = [await world.account(), await world.account()];
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    // Another page does not see it: there is nothing to delete for it.
    assert.deepEqual(await removed(adapter, 'facebook', other, externalId), { kind: 'removed' });
    assert.ok(network.state.find(externalId) !== null);
    network.script({ route: 'DELETE /:id', then: 'drop_before' });
    assert.equal(why(await removed(adapter, 'facebook', account, externalId)), 'platform_down');
    network.script({ route: 'DELETE /:id', then: { answer: problemsOfFacebook.pages_limited } });
    assert.equal(why(await removed(adapter, 'facebook', account, externalId)), 'rate_limited');
    network.script({ route: 'DELETE /:id', then: { answer: problemsOfFacebook.token_ended } });
    assert.deepEqual(await removed(adapter, 'facebook', account, externalId), { kind: 'removed' });
    assert.equal(network.state.find(externalId), null);
    assert.deepEqual(await removed(adapter, 'facebook', account, externalId), { kind: 'removed' });
    assert.equal(why(await removed(adapter, 'facebook', account, '1/2')), 'invalid_content');
    world.close();
  });
});

suite('the removal of a post on threads', (t) => {
  t('deletes the account’s own post and no other, and repeats without harm', async () => {
    const world = await threadsWorld();
    const { adapter, network } = world;
    const account = await world.account();
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    // What Threads does not show to another account is not there for it.
    assert.deepEqual(await removed(adapter, 'threads', await world.account(), externalId), { kind: 'removed' });
    assert.ok(network.state.post(externalId) !== null);
    const scopes = allScopes.filter((one) => one !== 'threads_delete');
    const person = network.state.people.get(account.externalId);
    const unpermitted = await world.account(person, scopes);
    assert.equal(why(await removed(adapter, 'threads', unpermitted, externalId)), 'permission');
    network.script({ route: 'DELETE /:id', then: 'drop_before' });
    assert.equal(why(await removed(adapter, 'threads', account, externalId)), 'platform_down');
    network.script({ route: 'DELETE /:id', then: { answer: problemsOfThreads.user_limited } });
    assert.equal(why(await removed(adapter, 'threads', account, externalId)), 'rate_limited');
    network.script({ route: 'DELETE /:id', then: 'drop_after' });
    assert.equal(why(await removed(adapter, 'threads', account, externalId)), 'platform_down');
    assert.equal(network.state.post(externalId), null);
    assert.deepEqual(await removed(adapter, 'threads', account, externalId), { kind: 'removed' });
    assert.equal(why(await removed(adapter, 'threads', account, '1/../../me')), 'invalid_content');
    world.close();
  });
});

suite('the removal of a post on instagram', (t) => {
  t(
    'deletes the post of an account that came by Facebook, repeats without harm, and leaves those of the others',
    async () => {
      const world = await instagramWorld();
      const { adapter, network } = world;
      const posted = async (by: 'ig' | 'fb') => {
        const account = await world.account({ by });
        const { outcome } = await world.publish(world.request(account, { media: [world.media()] }));
        assert.ok(outcome.kind === 'published');
        return { account, externalId: outcome.externalId };
      };
      const [own, behind] = [await posted('ig'), await posted('fb')];
      assert.deepEqual([await adapter.canRemove(own.account), await adapter.canRemove(behind.account)], [false, true]);
      const calls = network.state.calls.length;
      assert.equal(why(await removed(adapter, 'instagram', own.account, own.externalId)), 'permission');
      assert.equal(network.state.calls.length, calls, 'its own login has no such call');
      const { account, externalId } = behind;
      // Another account does not see it: there is nothing to delete for it.
      const other = await world.account({ by: 'fb' });
      assert.deepEqual(await removed(adapter, 'instagram', other, externalId), { kind: 'removed' });
      assert.ok(network.state.post(externalId) !== null);
      network.script({ route: 'DELETE /:id', then: 'drop_before' });
      assert.equal(why(await removed(adapter, 'instagram', account, externalId)), 'platform_down');
      network.script({ route: 'DELETE /:id', then: { answer: problemsOfInstagram.account_limited } });
      assert.equal(why(await removed(adapter, 'instagram', account, externalId)), 'rate_limited');
      assert.deepEqual(await removed(adapter, 'instagram', account, externalId), { kind: 'removed' });
      assert.equal(network.state.post(externalId), null);
      assert.deepEqual(await removed(adapter, 'instagram', account, externalId), { kind: 'removed' });
      assert.equal(why(await removed(adapter, 'instagram', account, '1/media')), 'invalid_content');
      world.close();
    },
  );
});

suite('the removal of a pin of pinterest', (t) => {
  t('deletes the account’s own pin and no other, and repeats without harm', async () => {
    const world = await pinterestWorld();
    const files = heldFiles();
    const { adapter, network } = world;
    const account = await world.account();
    const other = await world.account();
    const { outcome } = await world.publish(world.request(account, { media: [files.picture()] }));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    const route = 'DELETE /v5/pins/:id';
    assert.equal(why(await removed(adapter, 'pinterest', other, externalId)), 'permission');
    assert.ok(network.state.pin(externalId) !== null);
    network.script({ route, then: 'drop_before' });
    assert.equal(why(await removed(adapter, 'pinterest', account, externalId)), 'platform_down');
    network.script({ route, then: { answer: problemsOfPinterest.too_many_requests } });
    assert.equal(why(await removed(adapter, 'pinterest', account, externalId)), 'rate_limited');
    network.script({ route, then: { answer: problemsOfPinterest.unauthorized } });
    assert.deepEqual(await removed(adapter, 'pinterest', account, externalId), { kind: 'removed' });
    assert.equal(network.state.pin(externalId), null);
    assert.deepEqual(await removed(adapter, 'pinterest', account, externalId), { kind: 'removed' });
    const calls = network.state.calls.length;
    assert.equal(why(await removed(adapter, 'pinterest', account, '1/../../boards/2')), 'invalid_content');
    assert.equal(network.state.calls.length, calls);
    files.remove();
    network.close();
  });
});

suite('the removal of a post on tiktok', (t) => {
  t('is nothing that its API can do: its adapter has no such call, and who asks for one is told so', async () => {
    const world = await tiktokWorld();
    assert.equal(world.adapter.removePost, undefined);
    world.close();
  });
});

suite('the removal of a message of telegram', (t) => {
  t('deletes the message of the account’s chat and no other, and repeats without harm', async () => {
    const world = await telegramWorld();
    const { adapter, network } = world;
    const bot = network.bot();
    const chat = network.chat({ username: 'acme_news' });
    const account = await world.account(chat, bot);
    const other = await world.account(network.chat(), bot);
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    assert.equal(why(await removed(adapter, 'telegram', other, externalId)), 'invalid_content');
    const tooOld = "Bad Request: message can't be deleted";
    network.arm('deleteMessage', { kind: 'refuse', code: 400, description: tooOld, parameters: {} });
    await removed(adapter, 'telegram', account, externalId).then(why);
    network.arm('deleteMessage', { kind: 'drop_before' });
    assert.equal(why(await removed(adapter, 'telegram', account, externalId)), 'platform_down');
    assert.equal(chat.messages.size, 1);
    assert.deepEqual(await removed(adapter, 'telegram', account, externalId), { kind: 'removed' });
    assert.equal(chat.messages.size, 0);
    assert.deepEqual(await removed(adapter, 'telegram', account, externalId), { kind: 'removed' });
    network.close();
  });
});

suite('the removal of a record of bluesky', { timeoutMs: 60_000 }, (t) => {
  if ('missing' in opened) return t.skip('runs against the real server', opened.missing);
  const { pds } = opened;
  t('deletes the account’s own record and no other, and repeats without harm', async () => {
    const world = await blueskyWorld(pds);
    const { adapter } = world;
    const account = await world.connected(await pds.identity());
    const other = await world.connected(await pds.identity());
    const { outcome } = await world.publish(world.request(account));
    assert.ok(outcome.kind === 'published');
    const { externalId } = outcome;
    assert.equal(why(await removed(adapter, 'bluesky', other, externalId)), 'unknown');
    assert.equal((await world.postsOf(account.externalId)).length, 1);
    assert.deepEqual(await removed(adapter, 'bluesky', account, externalId), { kind: 'removed' });
    assert.equal((await world.postsOf(account.externalId)).length, 0);
    assert.deepEqual(await removed(adapter, 'bluesky', account, externalId), { kind: 'removed' });
    await world.credentials.destroy(account.id);
    assert.equal(why(await removed(adapter, 'bluesky', account, externalId)), 'reauth_required');
  });
});
