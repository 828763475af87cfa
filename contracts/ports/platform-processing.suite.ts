/**
 * The behaviour of every adapter whose network looks at posts before it shows them. The harness is that of the platform
 * suite.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Platform } from '#schemas/common.ts';
import { type Cases, type Harness, RecordedSteps, sideBySide } from './platform.suite.ts';
import type { PlatformAdapter, PublishOutcome, PublishRequest, ReconcileOutcome } from './platform.ts';

export interface ProcessingHarness extends Harness {
  /** A text that the network accepts, and that it shows or refuses so many milliseconds later. */
  processed(end: 'shown' | 'refused', ms: number): string;
}

/** Milliseconds that the network looks at a post. */
const lookMs = 2_000;

type Outcome = PublishOutcome | ReconcileOutcome;

const kind = <K extends Outcome['kind']>(outcome: Outcome, wanted: K) => {
  assert.equal(outcome.kind, wanted, JSON.stringify(outcome));
  return outcome as Extract<Outcome, { kind: K }>;
};

/** Looks until the network has decided. */
const decided = async (look: () => Promise<ReconcileOutcome>): Promise<ReconcileOutcome> => {
  const until = performance.now() + 20_000;
  for (;;) {
    const seen = await look();
    if (seen.kind !== 'processing' || performance.now() > until) return seen;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
};

export function processingSuite(t: Cases, start: () => Promise<ProcessingHarness>): void {
  let harness: ProcessingHarness;
  let adapter: PlatformAdapter;
  t.before(async () => {
    harness = await start();
    adapter = await harness.open();
  });
  t.after(() => harness?.close());

  /** On every platform that has a limit, side by side: each is a network of its own. */
  const each = (run: (platform: Platform) => Promise<void>) => async () => {
    const some = harness.platforms.filter((platform) => (adapter.processingLimitMs?.(platform) ?? 0) > lookMs);
    assert.notEqual(some.length, 0, 'a network that looks at posts has more time than the suite gives it');
    await sideBySide(some, run);
  };
  const publish = async (platform: Platform, content: string) => {
    const asked: PublishRequest = {
      ...{ workspaceId: randomUUID(), targetId: randomUUID(), attempt: 1, platform, content },
      ...{ account: harness.account(platform), overrides: harness.overrides(platform), aiDisclosure: false },
      ...{ media: await harness.media(platform), cover: null, coverFrameMs: null, thread: null, checkpoints: [] },
    };
    const steps = new RecordedSteps(asked, adapter.boundaryDeadlineMs);
    const outcome = await adapter.publish(asked, steps);
    const later = { ...asked, attempt: 2, checkpoints: steps.checkpoints };
    const look = (handle?: Extract<Outcome, { kind: 'accepted' }>['handle'], by = adapter) =>
      by.reconcile(later, steps.crossed, handle);
    return { outcome, look, posts: () => harness.posts(asked.targetId) };
  };

  t(
    'a post that it looks at is accepted, processing to every worker with its handle or without, then present, once',
    each(async (platform) => {
      const { outcome, look, posts } = await publish(platform, harness.processed('shown', lookMs));
      const { handle, askAt } = kind(outcome, 'accepted');
      assert.ok(JSON.stringify(handle).length <= 4_096);
      assert.match(askAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const other = await harness.open();
      for (const known of [handle, undefined]) {
        assert.deepEqual(kind(await look(known, other), 'processing').handle, handle);
      }
      const { externalId } = kind(await decided(() => look(handle)), 'present');
      assert.equal(kind(await look(undefined, other), 'present').externalId, externalId);
      assert.deepEqual(await posts(), [externalId]);
    }),
  );

  t(
    'a post that it refuses after it has looked at it is accepted, then failed by the user’s doing, and not there',
    each(async (platform) => {
      const { outcome, look, posts } = await publish(platform, harness.processed('refused', lookMs));
      const { handle } = kind(outcome, 'accepted');
      kind(await look(handle), 'processing');
      const { failure } = kind(await decided(() => look(handle)), 'failed');
      assert.deepEqual([failure.actor, failure.retryable], ['user', false]);
      assert.deepEqual(await posts(), []);
    }),
  );

  t(
    'a post that it looks at and whose answer is lost is unknown, then processing, then present, once',
    each(async (platform) => {
      const content = `${harness.processed('shown', lookMs)} ${harness.scripted('error_after')}`;
      const { outcome, look, posts } = await publish(platform, content);
      kind(outcome, 'unknown');
      kind(await look(), 'processing');
      kind(await decided(() => look()), 'present');
      assert.equal((await posts()).length, 1);
    }),
  );
}
