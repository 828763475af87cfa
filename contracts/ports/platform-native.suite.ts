/**
 * The behaviour of every adapter with a network's own scheduler. The harness is that of the platform suite, and moves the
 * network's clock.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { capabilities, rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { type Cases, type Harness, RecordedSteps, runOn } from './platform.suite.ts';
import type {
  HandedOver,
  HandOverOutcome,
  HandOverRequest,
  NativeScheduler,
  PlatformAdapter,
  RescheduleOutcome,
  ReviseOutcome,
  UndoOutcome,
  VerifyOutcome,
} from './platform.ts';

export type NativeFault =
  | 'reject'
  | 'rate_limit'
  | 'down'
  | 'unreadable'
  | 'timeout_before'
  | 'timeout_after'
  | 'error_after'
  | 'late'
  | 'native_early'
  | 'native_never'
  | 'native_failed'
  | 'undo_timeout_before'
  | 'undo_timeout_after';

export interface NativeHarness extends Omit<Harness, 'scripted'> {
  /** A text that makes the fault strike once for its target. */
  scripted(fault: NativeFault, ms?: number): string;
  /** Whether the one post that the network has of a target has this text. */
  says(targetId: string, content: string): Promise<boolean>;
  /** By the network's clock, milliseconds since the epoch. */
  now(): Promise<number>;
  /** Moves the network's clock ahead. */
  pass(ms: number): Promise<void>;
}

type Outcome = HandOverOutcome | VerifyOutcome | UndoOutcome | RescheduleOutcome | ReviseOutcome;

/** Milliseconds that a case has before the network's window closes. */
const spareMs = 60_000;

export function nativeSuite(t: Cases, start: () => Promise<NativeHarness>): void {
  let harness: NativeHarness;
  let adapter: PlatformAdapter;
  t.before(async () => {
    harness = await start();
    adapter = await harness.open();
  });
  t.after(() => harness?.close());

  const windowOf = (platform: Platform) => {
    const window = rulesOf(platform).nativeWindow;
    assert.ok(window, platform);
    return window;
  };
  const schedulerOf = (platform: Platform, by = adapter): NativeScheduler => {
    const scheduler = by.nativeScheduler?.(platform) ?? null;
    assert.ok(scheduler, `${platform} has a scheduler`);
    return scheduler;
  };
  const ahead = async (ms: number): Promise<string> => new Date((await harness.now()) + ms).toISOString();
  const workspaceId = randomUUID();
  const request = async (platform: Platform, over: Partial<HandOverRequest> = {}): Promise<HandOverRequest> => ({
    workspaceId,
    targetId: randomUUID(),
    attempt: 1,
    platform,
    account: harness.account(platform),
    content: 'Good morning',
    overrides: harness.overrides(platform),
    aiDisclosure: false,
    media: await harness.media(platform),
    cover: null,
    coverFrameMs: null,
    thread: null,
    checkpoints: [],
    dueAt: await ahead(windowOf(platform).minMs + spareMs),
    ...over,
  });
  const kind = <K extends Outcome['kind']>(outcome: Outcome, wanted: K) => {
    assert.equal(outcome.kind, wanted, JSON.stringify(outcome));
    return outcome as Extract<Outcome, { kind: K }>;
  };
  const attempt = async (asked: HandOverRequest, prepare: (steps: RecordedSteps) => void = () => {}) => {
    const steps = new RecordedSteps(asked, adapter.boundaryDeadlineMs);
    prepare(steps);
    const outcome = await schedulerOf(asked.platform).handOver(asked, steps);
    return { outcome, steps };
  };
  const handOver = async (asked: HandOverRequest): Promise<HandedOver & { readonly nativeId: string }> => {
    const { outcome, steps } = await attempt(asked);
    return { boundary: steps.crossed, nativeId: kind(outcome, 'handed_over').nativeId };
  };
  const verify = (asked: HandOverRequest, handed: HandedOver, by = adapter) =>
    schedulerOf(asked.platform, by).verify(asked, handed);
  const undo = (asked: HandOverRequest, { nativeId }: { readonly nativeId: string }) =>
    schedulerOf(asked.platform).undo(asked, nativeId);
  /** A scheduler that changes a time has this call; of another one the cases say nothing. */
  const reschedule = async (asked: HandOverRequest, { nativeId }: { readonly nativeId: string }) => {
    const outcome = await schedulerOf(asked.platform).reschedule?.(asked, nativeId);
    assert.ok(outcome, 'the scheduler changes no time');
    return outcome;
  };
  /** A scheduler that changes the words of a post has this call. @param former what the network has */
  const revise = async (
    asked: HandOverRequest,
    { nativeId }: { readonly nativeId: string },
    former: HandOverRequest,
  ) => {
    const outcome = await schedulerOf(asked.platform).revise?.(asked, nativeId, former);
    assert.ok(outcome, 'the scheduler changes no words');
    return outcome;
  };
  const until = async ({ dueAt }: HandOverRequest, beforeMs = 0) =>
    harness.pass(Math.max(1, Math.ceil(Date.parse(dueAt) - beforeMs - (await harness.now()) + 1)));

  const natives = () => harness.platforms.filter((platform) => adapter.nativeScheduler?.(platform));
  /** On every network with a scheduler, one after the other, because they share the network's clock. */
  const each = (run: (platform: Platform) => Promise<void>) => async () => {
    for (const platform of natives()) await runOn(platform, run);
  };

  const eachChanging = (run: (platform: Platform) => Promise<void>) =>
    each(async (platform) => {
      if (schedulerOf(platform).reschedule !== undefined) await run(platform);
    });

  const eachRevising = (run: (platform: Platform) => Promise<void>) =>
    each(async (platform) => {
      if (schedulerOf(platform).revise !== undefined) await run(platform);
    });

  t('an adapter has a scheduler exactly where the capabilities say so, with all three calls', () => {
    assert.deepEqual(
      natives(),
      harness.platforms.filter((platform) => capabilities(platform).native),
    );
    for (const platform of natives()) {
      const scheduler = schedulerOf(platform);
      for (const call of [scheduler.handOver, scheduler.verify, scheduler.undo]) assert.equal(typeof call, 'function');
    }
    return Promise.resolve();
  });

  t(
    'a handed-over post is scheduled until its time, then published once under an address',
    each(async (platform) => {
      const asked = await request(platform);
      const handed = await handOver(asked);
      assert.equal(kind(await verify(asked, handed), 'scheduled').nativeId, handed.nativeId);
      await until(asked);
      const { externalId, permalink, publishedAt } = kind(await verify(asked, handed), 'published');
      assert.deepEqual(await harness.posts(asked.targetId), [externalId]);
      assert.ok(permalink === null || URL.canParse(permalink));
      assert.equal(publishedAt, asked.dueAt);
    }),
  );

  t(
    'a time before the window or behind it is refused, and nothing is made',
    each(async (platform) => {
      const { minMs, maxMs } = windowOf(platform);
      for (const aheadMs of [minMs - 5_000, maxMs + spareMs]) {
        const asked = await request(platform, { dueAt: await ahead(aheadMs) });
        const { outcome } = await attempt(asked);
        assert.equal(kind(outcome, 'outside_window').failure.code, 'outside_native_window');
        assert.deepEqual(await harness.posts(asked.targetId), []);
      }
    }),
  );

  t(
    'a worker that lost its claim at the boundary makes no call',
    each(async (platform) => {
      const asked = await request(platform);
      const lost = attempt(asked, (steps) => {
        steps.refuse = 'boundary';
      });
      await assert.rejects(lost, /claim lost/);
      assert.deepEqual(await harness.posts(asked.targetId), []);
    }),
  );

  t(
    'a hand-over whose time is over before its call left sent nothing, and is absent to whoever asks',
    each(async (platform) => {
      const asked = await request(platform);
      const { outcome, steps } = await attempt(asked, (one) => {
        one.lateAtBoundary = true;
      });
      kind(outcome, 'nothing_sent');
      kind(await verify(asked, { boundary: steps.crossed, nativeId: null }), 'absent');
    }),
  );

  t(
    'a hand-over whose answer is lost is found by its boundary, by another worker too',
    each(async (platform) => {
      for (const fault of ['timeout_after', 'error_after'] as const) {
        const asked = await request(platform, { content: harness.scripted(fault) });
        const { outcome, steps } = await attempt(asked);
        kind(outcome, 'unknown');
        const seen = await verify(asked, { boundary: steps.crossed, nativeId: null }, await harness.open());
        assert.deepEqual(await harness.posts(asked.targetId), [kind(seen, 'scheduled').nativeId]);
      }
    }),
  );

  t(
    'a hand-over that the network never took is absent, and a late one appears',
    each(async (platform) => {
      const lost = await request(platform, { content: harness.scripted('timeout_before') });
      const first = await attempt(lost);
      kind(first.outcome, 'unknown');
      kind(await verify(lost, { boundary: first.steps.crossed, nativeId: null }), 'absent');
      const late = await request(platform, { content: harness.scripted('late', 700) });
      const second = await attempt(late);
      kind(second.outcome, 'unknown');
      const look = () => verify(late, { boundary: second.steps.crossed, nativeId: null });
      kind(await look(), 'absent');
      const limit = performance.now() + 10_000;
      let seen = await look();
      while (seen.kind === 'absent' && performance.now() < limit) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        seen = await look();
      }
      kind(seen, 'scheduled');
    }),
  );

  t(
    'a refusal, a rate limit and a network that is down make nothing',
    each(async (platform) => {
      const table = [
        ['reject', 'failed', 'invalid_content'],
        ['rate_limit', 'rate_limited', 'rate_limited'],
        ['down', 'deferred', 'platform_down'],
      ] as const;
      for (const [fault, wanted, category] of table) {
        const asked = await request(platform, { content: harness.scripted(fault) });
        const { outcome, steps } = await attempt(asked);
        assert.equal(kind(outcome, wanted).failure.category, category);
        if (wanted === 'deferred') assert.ok(!steps.log.includes('boundary'), 'deferred is before the boundary');
        assert.deepEqual(await harness.posts(asked.targetId), []);
      }
    }),
  );

  t(
    'an undone post is absent and never published; a second undo changes nothing',
    each(async (platform) => {
      const asked = await request(platform);
      const handed = await handOver(asked);
      kind(await undo(asked, handed), 'undone');
      kind(await verify(asked, handed), 'absent');
      kind(await undo(asked, handed), 'unknown');
      await until(asked);
      kind(await verify(asked, handed), 'absent');
    }),
  );

  t(
    'an undo whose answer is lost is found out by asking',
    each(async (platform) => {
      const done = await request(platform, { content: harness.scripted('undo_timeout_after') });
      const first = await handOver(done);
      kind(await undo(done, first), 'unknown');
      kind(await verify(done, first), 'absent');
      const not = await request(platform, { content: harness.scripted('undo_timeout_before') });
      const second = await handOver(not);
      kind(await undo(not, second), 'unknown');
      kind(await verify(not, second), 'scheduled');
      kind(await undo(not, second), 'undone');
    }),
  );

  t(
    'a published post, and one that is nearly published, cannot be undone',
    each(async (platform) => {
      const asked = await request(platform);
      const handed = await handOver(asked);
      await until(asked, 5_000);
      assert.equal(kind(await undo(asked, handed), 'too_late').failure.code, 'undo_too_late');
      kind(await verify(asked, handed), 'scheduled');
      await harness.pass(6_000);
      kind(await undo(asked, handed), 'too_late');
      kind(await verify(asked, handed), 'published');
    }),
  );

  t(
    'a post published too early, never, or refused at its time is reported as what it is',
    each(async (platform) => {
      const early = await request(platform, { content: harness.scripted('native_early', 1) });
      const first = await handOver(early);
      await harness.pass(10);
      const { publishedAt } = kind(await verify(early, first), 'published');
      assert.ok(publishedAt < early.dueAt);
      const never = await request(platform, { content: harness.scripted('native_never') });
      const second = await handOver(never);
      const failed = await request(platform, { content: harness.scripted('native_failed') });
      const third = await handOver(failed);
      kind(await verify(failed, third), 'scheduled');
      await until(failed);
      kind(await verify(never, second), 'scheduled');
      assert.equal(kind(await verify(failed, third), 'failed').failure.code, 'native_publish_failed');
    }),
  );

  t(
    'a post with another time, later or sooner, is the same post, which is published at that time and not at the former one',
    eachChanging(async (platform) => {
      const asked = await request(platform);
      const handed = await handOver(asked);
      const { minMs } = windowOf(platform);
      const later = { ...asked, dueAt: await ahead(minMs + 60 * spareMs) };
      kind(await reschedule(later, handed), 'rescheduled');
      await until(asked);
      kind(await verify(later, handed), 'scheduled');
      const sooner = { ...asked, dueAt: await ahead(minMs + spareMs) };
      kind(await reschedule(sooner, handed), 'rescheduled');
      kind(await reschedule(sooner, handed), 'rescheduled');
      await until(sooner);
      const seen = kind(await verify(sooner, handed), 'published');
      assert.equal(seen.publishedAt, sooner.dueAt);
      assert.deepEqual(await harness.posts(asked.targetId), [seen.externalId]);
    }),
  );

  t(
    'a time outside of the window is refused to a scheduled post too, which keeps its own',
    eachChanging(async (platform) => {
      const asked = await request(platform);
      const handed = await handOver(asked);
      const { minMs, maxMs } = windowOf(platform);
      for (const aheadMs of [minMs - 5_000, maxMs + spareMs]) {
        const outcome = await reschedule({ ...asked, dueAt: await ahead(aheadMs) }, handed);
        assert.equal(kind(outcome, 'outside_window').failure.code, 'outside_native_window');
      }
      await until(asked);
      assert.equal(kind(await verify(asked, handed), 'published').publishedAt, asked.dueAt);
    }),
  );

  t(
    'a published post, one that is nearly published, and one that is not there get no other time',
    eachChanging(async (platform) => {
      const asked = await request(platform);
      const handed = await handOver(asked);
      const later = async () => ({ ...asked, dueAt: await ahead(windowOf(platform).minMs + spareMs) });
      await until(asked, 5_000);
      assert.equal(kind(await reschedule(await later(), handed), 'too_late').failure.code, 'undo_too_late');
      await harness.pass(6_000);
      kind(await reschedule(await later(), handed), 'too_late');
      assert.equal(kind(await verify(asked, handed), 'published').publishedAt, asked.dueAt);
      const undone = await request(platform);
      const gone = await handOver(undone);
      kind(await undo(undone, gone), 'undone');
      kind(await reschedule(undone, gone), 'unknown');
      kind(await verify(undone, gone), 'absent');
    }),
  );

  t(
    'another time whose answer is lost may be asked for again, whether it had effect or not',
    eachChanging(async (platform) => {
      for (const fault of ['undo_timeout_before', 'undo_timeout_after'] as const) {
        const asked = await request(platform, { content: harness.scripted(fault) });
        const handed = await handOver(asked);
        const later = { ...asked, dueAt: await ahead(windowOf(platform).minMs + 10 * spareMs) };
        kind(await reschedule(later, handed), 'unknown');
        kind(await reschedule(later, handed), 'rescheduled');
        await until(later);
        assert.equal(kind(await verify(later, handed), 'published').publishedAt, later.dueAt);
        assert.equal((await harness.posts(asked.targetId)).length, 1);
      }
    }),
  );

  t(
    'a post with other words, at its time or at another one, is the same post, which is published with the last of them',
    eachRevising(async (platform) => {
      const asked = await request(platform, { content: `First ${randomUUID()}` });
      const handed = await handOver(asked);
      const better = { ...asked, content: `Better ${randomUUID()}` };
      kind(await revise(better, handed, asked), 'revised');
      assert.ok(await harness.says(asked.targetId, better.content));
      assert.equal(kind(await verify(better, handed), 'scheduled').nativeId, handed.nativeId);
      const { minMs } = windowOf(platform);
      const best = { ...asked, content: `Best ${randomUUID()}`, dueAt: await ahead(minMs + 60 * spareMs) };
      for (let times = 0; times < 2; times += 1) kind(await revise(best, handed, better), 'revised');
      await until(asked);
      kind(await verify(best, handed), 'scheduled');
      await until(best);
      const seen = kind(await verify(best, handed), 'published');
      assert.equal(seen.publishedAt, best.dueAt);
      assert.deepEqual(await harness.posts(asked.targetId), [seen.externalId]);
      assert.ok(await harness.says(asked.targetId, best.content));
    }),
  );

  t(
    'other words at the same time are taken when no hand-over would be, and at a time outside of the window they are not',
    eachRevising(async (platform) => {
      const asked = await request(platform, { content: `First ${randomUUID()}` });
      const handed = await handOver(asked);
      const better = { ...asked, content: `Better ${randomUUID()}` };
      const { minMs, maxMs } = windowOf(platform);
      for (const aheadMs of [minMs - 5_000, maxMs + spareMs]) {
        const outcome = await revise({ ...better, dueAt: await ahead(aheadMs) }, handed, asked);
        assert.equal(kind(outcome, 'outside_window').failure.code, 'outside_native_window');
      }
      assert.ok(await harness.says(asked.targetId, asked.content));
      await until(asked, Math.max(minMs - spareMs, 2 * spareMs));
      kind(await revise(better, handed, asked), 'revised');
      assert.ok(await harness.says(asked.targetId, better.content));
      await until(asked);
      assert.equal(kind(await verify(better, handed), 'published').publishedAt, asked.dueAt);
    }),
  );

  t(
    'a published post, one that is nearly published, and one that is not there get no other words',
    eachRevising(async (platform) => {
      const asked = await request(platform, { content: `First ${randomUUID()}` });
      const handed = await handOver(asked);
      const better = { ...asked, content: `Better ${randomUUID()}` };
      await until(asked, 5_000);
      assert.equal(kind(await revise(better, handed, asked), 'too_late').failure.code, 'undo_too_late');
      await harness.pass(6_000);
      kind(await revise(better, handed, asked), 'too_late');
      assert.ok(await harness.says(asked.targetId, asked.content));
      const undone = await request(platform);
      const gone = await handOver(undone);
      kind(await undo(undone, gone), 'undone');
      kind(await revise({ ...undone, content: 'Better' }, gone, undone), 'unknown');
      kind(await verify(undone, gone), 'absent');
    }),
  );

  t(
    'other words whose answer is lost may be asked for again; once the post is out, the answer says whether it has them',
    eachRevising(async (platform) => {
      for (const fault of ['undo_timeout_before', 'undo_timeout_after'] as const) {
        const asked = await request(platform, { content: `First ${randomUUID()}` });
        const handed = await handOver(asked);
        const better = { ...asked, content: harness.scripted(fault) };
        kind(await revise(better, handed, asked), 'unknown');
        const isTaken = fault === 'undo_timeout_after';
        assert.equal(await harness.says(asked.targetId, better.content), isTaken);
        await until(asked);
        kind(await verify(asked, handed), 'published');
        kind(await revise(better, handed, asked), isTaken ? 'revised' : 'too_late');
        assert.equal(await harness.says(asked.targetId, better.content), isTaken);
        assert.equal((await harness.posts(asked.targetId)).length, 1);
        const other = await request(platform, { content: `First ${randomUUID()}` });
        const again = await handOver(other);
        const wanted = { ...other, content: harness.scripted(fault) };
        kind(await revise(wanted, again, other), 'unknown');
        kind(await revise(wanted, again, other), 'revised');
        assert.ok(await harness.says(other.targetId, wanted.content));
      }
    }),
  );

  t(
    'a network that does not answer is undecided',
    each(async (platform) => {
      const asked = await request(platform, { content: harness.scripted('unreadable') });
      const handed = await handOver(asked);
      kind(await verify(asked, handed), 'undecided');
      kind(await verify(asked, handed), 'scheduled');
    }),
  );
}
