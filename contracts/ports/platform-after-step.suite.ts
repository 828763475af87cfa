/**
 * The behaviour of every adapter whose network takes something of a post only once it is out. The harness is that of the platform
 * suite.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { type Cases, type Harness, RecordedSteps, type ScriptedFault, sideBySide } from './platform.suite.ts';
import type { AfterStepOutcome, AfterStepRequest, PlatformAdapter, PublishMedia, PublishRequest } from './platform.ts';

export interface AfterStepHarness extends Harness {
  /** A file that the network takes as a cover; another one at each call. */
  cover(platform: Platform): Promise<PublishMedia>;
  /** `sha256` of the covers that the network has of a target's post: it shows the last. */
  covers(targetId: string): Promise<readonly string[]>;
  /** A text of a post with which the fault strikes once, at the call that sets the cover. */
  scriptedAfter(fault: ScriptedFault, ms?: number): string;
  /** An account that may set no cover; null: the network lets each. */
  coverless(platform: Platform): AfterStepRequest['account'] | null;
}

const kind = <K extends AfterStepOutcome['kind']>(outcome: AfterStepOutcome, wanted: K) => {
  assert.equal(outcome.kind, wanted, JSON.stringify(outcome));
  return outcome as Extract<AfterStepOutcome, { kind: K }>;
};

export function afterStepSuite(t: Cases, start: () => Promise<AfterStepHarness>): void {
  let harness: AfterStepHarness;
  let adapter: PlatformAdapter;
  t.before(async () => {
    harness = await start();
    adapter = await harness.open();
  });
  t.after(() => harness?.close());

  /** On every platform whose rules have a cover follow, side by side: each is a network of its own. */
  const each = (run: (platform: Platform) => Promise<void>) => async () => {
    const some = harness.platforms.filter((platform) => rulesOf(platform).media.coverAfter !== undefined);
    assert.notEqual(some.length, 0, 'no network has a cover follow');
    assert.ok(adapter.afterStep !== undefined, 'the adapter has no such call');
    await sideBySide(some, run);
  };
  /** A published post, and its cover. */
  const published = async (
    platform: Platform,
    content = 'Look',
    account = harness.account(platform),
  ): Promise<AfterStepRequest> => {
    const asked: PublishRequest = {
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform, content, account },
      ...{ overrides: harness.overrides(platform), aiDisclosure: false, media: await harness.media(platform) },
      ...{ cover: null, coverFrameMs: null, thread: null, checkpoints: [] },
    };
    const outcome = await adapter.publish(asked, new RecordedSteps(asked, adapter.boundaryDeadlineMs));
    assert.ok(outcome.kind === 'published', JSON.stringify(outcome));
    const { targetId } = asked;
    const { externalId } = outcome;
    return { step: 'cover', targetId, platform, account, externalId, content, cover: await harness.cover(platform) };
  };
  const set = async (asked: AfterStepRequest, signal = AbortSignal.timeout(adapter.boundaryDeadlineMs)) => {
    const outcome = await adapter.afterStep?.(asked, signal);
    assert.ok(outcome !== undefined);
    return outcome;
  };

  t(
    'a cover is set on the post, and makes no other post',
    each(async (platform) => {
      const asked = await published(platform);
      assert.deepEqual(await harness.covers(asked.targetId), []);
      kind(await set(asked), 'done');
      assert.deepEqual(await harness.covers(asked.targetId), [asked.cover.sha256]);
      assert.deepEqual(await harness.posts(asked.targetId), [asked.externalId]);
    }),
  );

  t(
    'a cover that is set again, by another worker, leaves what one call leaves',
    each(async (platform) => {
      const asked = await published(platform);
      kind(await set(asked), 'done');
      const other = await harness.open();
      const again = await other.afterStep?.(asked, AbortSignal.timeout(adapter.boundaryDeadlineMs));
      assert.equal(again?.kind, 'done');
      assert.equal((await harness.covers(asked.targetId)).at(-1), asked.cover.sha256);
      assert.equal(new Set(await harness.covers(asked.targetId)).size, 1);
      assert.deepEqual(await harness.posts(asked.targetId), [asked.externalId]);
    }),
  );

  t(
    'a refusal names its category and who can act, and sets nothing; the post stays',
    each(async (platform) => {
      const table = [
        ['reject', 'failed', 'invalid_content', 'user'],
        ['token_death', 'failed', 'reauth_required', 'user'],
        ['down', 'deferred', 'platform_down', 'platform'],
      ] as const;
      for (const [fault, wanted, category, actor] of table) {
        if (harness.without?.includes(fault) === true) continue;
        const asked = await published(platform, harness.scriptedAfter(fault));
        const { failure } = kind(await set(asked), wanted);
        assert.deepEqual([failure.category, failure.actor], [category, actor], fault);
        assert.deepEqual(await harness.covers(asked.targetId), []);
        assert.deepEqual(await harness.posts(asked.targetId), [asked.externalId]);
      }
    }),
  );

  t(
    'a cover over the rate limit names its time, and is set by a later call',
    each(async (platform) => {
      const asked = await published(platform, harness.scriptedAfter('rate_limit', 2000));
      const { retryAt, failure } = kind(await set(asked), 'rate_limited');
      assert.equal(failure.category, 'rate_limited');
      assert.ok(Date.parse(retryAt) > Date.now() - 1000);
      assert.deepEqual(await harness.covers(asked.targetId), []);
      kind(await set(asked), 'done');
      assert.deepEqual(await harness.covers(asked.targetId), [asked.cover.sha256]);
    }),
  );

  t(
    'a call without an answer may be made again by its deadline, whether it had effect or not',
    each(async (platform) => {
      for (const [fault, made] of [
        ['timeout_before', 0],
        ['timeout_after', 1],
        ['error_after', 1],
      ] as const) {
        if (harness.without?.includes(fault) === true) continue;
        const asked = await published(platform, harness.scriptedAfter(fault));
        const since = performance.now();
        const { failure } = kind(await set(asked), 'deferred');
        assert.equal(failure.retryable, true);
        const took = performance.now() - since;
        assert.ok(took < adapter.boundaryDeadlineMs + 1500, `the call ends at its deadline, not after ${took} ms`);
        assert.equal((await harness.covers(asked.targetId)).length, made);
        kind(await set(asked), 'done');
        assert.equal(new Set(await harness.covers(asked.targetId)).size, 1);
      }
    }),
  );

  t(
    'a call that was aborted before it began sets nothing',
    each(async (platform) => {
      const asked = await published(platform);
      kind(await set(asked, AbortSignal.abort()), 'deferred');
      // The next call on the same network ends after everything that the aborted call could still send.
      kind(await set(await published(platform)), 'done');
      assert.deepEqual(await harness.covers(asked.targetId), []);
    }),
  );

  t(
    'an account that may set no cover publishes, and its cover is refused for good',
    each(async (platform) => {
      const account = harness.coverless(platform);
      if (account === null) return;
      const asked = await published(platform, 'Look', account);
      const { failure } = kind(await set(asked), 'failed');
      assert.deepEqual([failure.category, failure.actor, failure.retryable], ['permission', 'user', false]);
      assert.deepEqual(await harness.covers(asked.targetId), []);
    }),
  );

  t(
    'the cover of a post that the network does not have is refused',
    each(async (platform) => {
      const asked = await published(platform);
      kind(await set({ ...asked, externalId: `${asked.externalId}9` }), 'failed');
      assert.deepEqual(await harness.covers(asked.targetId), []);
    }),
  );
}
