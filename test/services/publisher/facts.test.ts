import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { PlatformAdapter } from '#contracts/ports/platform.ts';
import type { AccountSource, FactsAnswer } from '#contracts/ports/platform-account.ts';
import type { AccountFacts } from '#schemas/account.ts';
import { preparedDatabase } from '#test/support/postgres.ts';
import { PublishingWorld } from '#test/support/publishing.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** What an account may post now, asked before a post goes out: TikTok wants it, and in the sandbox it answers by its name. */

suite('facts of an account before a post', { timeoutMs: 180_000, waits: true }, (t) => {
  let world: PublishingWorld;
  t.before(async () => {
    world = await PublishingWorld.open((await preparedDatabase()).url);
  });
  t.after(() => world?.close());

  /** Calls of adapters that publish, by target; and questions about accounts. */
  const published: string[] = [];
  const asked: string[] = [];
  const watched = (): PlatformAdapter =>
    new Proxy(world.sandbox, {
      get: (its, name) => {
        const member: unknown = Reflect.get(its, name, its);
        if (typeof member !== 'function') return member;
        if (name !== 'publish') return member.bind(its);
        return (...given: Parameters<PlatformAdapter['publish']>) => {
          published.push(given[0].targetId);
          return its.publish(...given);
        };
      },
    });
  const counted = (): AccountSource => ({
    choices: (...given) => world.sandbox.choices(...given),
    facts: (...given) => {
      asked.push(given[1].id);
      return world.sandbox.facts(...given);
    },
  });
  const publisher = (deps: Parameters<typeof world.publisher>[1] = {}) =>
    world.publisher({}, { adapterOf: watched, accountsOf: counted, ...deps });
  const schedule = async (name: string, privacyLevel = 'SELF_ONLY', accounts = 1) => {
    const clientId = await world.client();
    const account = await world.connect(clientId, 'tiktok', name);
    const variants = [
      { platform: 'tiktok' as const, contentOverride: null, mediaIdsOverride: null, overrides: { privacyLevel } },
    ];
    const ids: string[] = [];
    for (let at = 0; at < accounts; at += 1) {
      const { targetIds } = await world.schedule([account], { text: `Word ${randomUUID()}`, variants });
      ids.push(...targetIds);
    }
    return { accountId: account.id, ids, id: ids[0] ?? '' };
  };
  const named = (prefix: string): string => `${prefix}${randomUUID().slice(0, 8)}`;
  const failureOf = async (id: string) => {
    const [state] = await world.all([id], 'failed');
    assert.ok(state?.status === 'failed');
    return state.failure;
  };

  t('what the account does not allow now fails before anything is prepared, and says what it allows', async () => {
    const running = publisher();
    const { id } = await schedule(named('private-'), 'PUBLIC_TO_EVERYONE');
    const failure = await failureOf(id);
    assert.deepEqual(
      [failure.code, failure.category, failure.actor],
      ['override_not_granted', 'invalid_content', 'user'],
    );
    assert.equal(
      failure.message,
      'privacyLevel must be one of those that the account allows now: FOLLOWER_OF_CREATOR, MUTUAL_FOLLOW_FRIENDS, SELF_ONLY',
    );
    const brief = await schedule(named('brief-'));
    const long = await failureOf(brief.id);
    assert.equal(long.code, 'media_too_long');
    assert.equal(long.mediaId, (await world.clip()).id);
    assert.match(long.message, /^TikTok takes videos of at most 1 s of this account; this one has [\d.]+ s$/);
    for (const one of [id, brief.id]) {
      assert.equal(published.includes(one), false);
      assert.deepEqual(await world.story(`target-${one}`), ['TargetScheduled', 'TargetPublishStarted', 'TargetFailed']);
    }
    await running.stop();
  });

  t('an account that may post nothing until an instant waits for it; one that its owner must mend fails', async () => {
    const running = publisher();
    const { id } = await schedule(named('capped-once-'));
    const [state] = await world.all([id], 'published');
    assert.ok(state?.status === 'published');
    const limited = (await world.store.readStream(`target-${id}`)).filter(({ type }) => type === 'TargetRateLimited');
    assert.equal(limited.length, 1);
    const [{ metadata, data }] = limited as [(typeof limited)[0]];
    const waits = Date.parse(String(data.retryAt)) - Date.parse(metadata.occurredAt);
    assert.ok(waits > 500 && waits <= 2_500, `${waits} ms`);
    assert.deepEqual(published.filter((one) => one === id).length, 1, 'nothing is prepared for a post that waits');
    const banned = await schedule(named('banned-'));
    const failure = await failureOf(banned.id);
    assert.deepEqual(
      [failure.code, failure.category, failure.retryable],
      ['account_not_permitted', 'permission', true],
    );
    assert.equal(published.includes(banned.id), false);
    await running.stop();
  });

  t('a network that does not answer defers the post; one that refuses the account ends its connection', async () => {
    // Its retries come sooner here than a silent network is asked again.
    const running = publisher({ factsKeptMs: 0 });
    const { id } = await schedule(named('down-once-'));
    await world.all([id], 'published');
    const deferred = (await world.store.readStream(`target-${id}`)).filter(
      ({ type }) => type === 'TargetPublishDeferred',
    );
    const codes = deferred.map(({ data }) => (data.failure as { readonly code: string }).code);
    assert.ok(codes.length >= 1 && codes.every((code) => code === 'network_down'), codes.join());
    const dead = await schedule(named('token-death-'));
    assert.equal((await failureOf(dead.id)).category, 'reauth_required');
    assert.equal(published.includes(dead.id), false);
    await until('the account is reported', async () => {
      const story = await world.story(`account-${dead.accountId}`);
      return story.join() === 'AccountConnected,AccountReauthRequired';
    });
    await running.stop();
  });

  t('of several posts of an account within a minute one asks, and other networks are asked nothing', async () => {
    const running = publisher();
    const { accountId, ids } = await schedule(named('acme-'), 'SELF_ONLY', 3);
    await world.all(ids, 'published');
    assert.equal(asked.filter((one) => one === accountId).length, 1);
    const other = await world.connect(await world.client(), 'bluesky', named('acme-'));
    const { targetIds } = await world.schedule([other], { text: `Word ${randomUUID()}` });
    await world.all(targetIds, 'published');
    assert.equal(asked.includes(other.id), false);
    await running.stop();
  });

  t(
    'facts that are a minute old at the boundary are asked again: what is allowed no more does not go out',
    async () => {
      const said: FactsAnswer[] = [];
      const fresh = (more: Partial<AccountFacts>): FactsAnswer => ({
        kind: 'facts',
        facts: {
          ...{ observedAt: new Date().toISOString(), allows: {}, maxDurationMs: null, canPostNow: true, until: null },
          ...more,
        },
      });
      const changing: AccountSource = {
        choices: async () => ({ kind: 'unavailable', reason: 'none' }),
        facts: async () => said.shift() ?? fresh({ allows: { privacyLevel: ['SELF_ONLY'] } }),
      };
      said.push(fresh({ allows: { privacyLevel: ['PUBLIC_TO_EVERYONE'] } }));
      const running = publisher({ accountsOf: () => changing, factsKeptMs: 0 });
      const { id } = await schedule(named('acme-'), 'PUBLIC_TO_EVERYONE');
      assert.equal((await failureOf(id)).code, 'override_not_granted');
      assert.ok(published.includes(id), 'it was prepared');
      assert.equal((await world.sandbox.creates(id)).length, 0);
      const steps = (await world.store.readStream(`target-${id}`)).map(({ data }) => data.step);
      assert.equal(steps.includes('boundary'), false);
      said.push(fresh({}), fresh({ canPostNow: false, until: new Date(Date.now() + 300).toISOString() }), fresh({}));
      const later = await schedule(named('acme-'));
      const [state] = await world.all([later.id], 'published');
      assert.ok(state?.status === 'published' && state.common.attempts === 2);
      assert.equal(await world.created(later.id), 1);
      await running.stop();
    },
  );

  t('a network that nobody can ask is left to its adapter', async () => {
    const running = publisher({ accountsOf: () => null });
    const { id } = await schedule(named('capped-'));
    await world.all([id], 'published');
    await running.stop();
  });
});
