/**
 * The behaviour of every platform adapter. An adapter's test passes a harness: adapters over one network, and a query
 * for the posts that this network really has. Each case has its own targets, so the network need not be empty.
 */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { capabilities, rulesOf, windowAt } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import type {
  Checkpoint,
  CommentOutcome,
  CommentRequest,
  FindRequest,
  Json,
  PlatformAdapter,
  PublishMedia,
  PublishOutcome,
  PublishRequest,
  PublishSteps,
  ReconcileOutcome,
} from './platform.ts';

/** A fault that the network shows for one target's calls. */
export type ScriptedFault =
  | 'rate_limit'
  | 'reject'
  | 'token_death'
  | 'duplicate'
  | 'down'
  | 'timeout_before'
  | 'timeout_after'
  | 'error_after'
  | 'late';

export interface Harness {
  /**
   * Another adapter on the same network, as another worker would hold it. The harness closes the adapters it opened.
   */
  open(): Promise<PlatformAdapter>;
  close(): Promise<void>;
  /** Ids of the posts that the network made for a target, hidden ones included. */
  posts(targetId: string): Promise<readonly string[]>;
  /** Ids of the comments that the network made for a target's post. */
  comments(targetId: string): Promise<readonly string[]>;
  /** A text that makes the fault strike once for its target; `ms` is its duration where it has one. */
  scripted(fault: ScriptedFault, ms?: number): string;
  readonly platforms: readonly Platform[];
  /** Faults that this network has not, or not at the call that the suite makes; the adapter's own tests have the rest. */
  readonly without?: readonly ScriptedFault[];
  /** The network shows no posts, so `reconcile` decides nothing. */
  readonly isUnreadable?: true;
  /** The network refuses a text that the account has posted just before. */
  readonly refusesRepeats?: true;
  /** The network may not know yet what it has just made: a comment on such a post is tried again. */
  readonly knowsLate?: true;
  account(platform: Platform): CommentRequest['account'];
  /** An account whose posts the network shows to us not at all, though it may list those of others; absent: there is none. */
  unreadable?(platform: Platform): CommentRequest['account'] | null;
  /**
   * An adapter that asks for a version of the network's API which the network has ended, on the same network. Absent: its
   * calls name no version, or none can be ended.
   */
  ended?(platform: Platform): Promise<PlatformAdapter>;
  /** An account that may post twice in a day, or whose app may, as the network counts days. Absent: none can be made so. */
  dayLimited?(platform: Platform): CommentRequest['account'];
  /**
   * Of a network that fetches pictures from addresses alone that are the operator's by a file there: a post whose picture it does
   * not take once, since it finds no such file. Absent, and null: it takes the bytes, or any address.
   */
  unproven?(platform: Platform): Promise<Pick<PublishRequest, 'content' | 'media'> | null>;
  /** An account whose owner did not grant the permission to comment; null: the network has no such permission. */
  silent(platform: Platform): CommentRequest['account'] | null;
  /** Overrides without which the platform publishes nothing. */
  overrides(platform: Platform): { readonly [key: string]: Json };
  /** Files without which the platform publishes nothing; none where it takes text alone. */
  media(platform: Platform): Promise<readonly PublishMedia[]>;
}

/** The part of the runner's `t` that the suite uses. */
export interface Cases {
  (name: string, run: () => Promise<void>): void;
  before(run: () => Promise<void>): void;
  after(run: () => Promise<void>): void;
}

/** The publisher's side of one try: records the reported steps in order, and can refuse or crash at a step. */
export class RecordedSteps implements PublishSteps {
  readonly log: string[] = [];
  readonly checkpoints: Checkpoint[];
  readonly worker = new AbortController();
  readonly signal = this.worker.signal;
  refuse: 'checkpoint' | 'boundary' | null = null;
  /** Called before the boundary's signal is given, so that the network may be gone by the call. */
  atBoundary: () => void = () => {};
  /** The call's own signal, once the boundary is appended. */
  call: AbortSignal | null = null;
  boundaryAt = 0;
  bytes = 0;
  /** Appends the boundary, and its time is over: no call of it may leave. */
  lateAtBoundary = false;
  readonly #attempt: number;
  readonly #deadlineMs: number;

  constructor(request: PublishRequest, deadlineMs: number) {
    this.#attempt = request.attempt;
    this.#deadlineMs = deadlineMs;
    this.checkpoints = [...request.checkpoints];
  }

  moved(bytes: number): void {
    this.bytes += bytes;
  }

  async checkpoint(step: string, data: Json): Promise<void> {
    assert.notEqual(step, 'boundary', 'the name is reserved');
    assert.equal(this.call, null, 'no step after the boundary');
    this.log.push(`${step}:begin`);
    await new Promise((resolve) => setImmediate(resolve));
    if (this.refuse === 'checkpoint') throw new Error('claim lost');
    this.checkpoints.push({ attempt: this.#attempt, step, data, deadline: null });
    this.log.push(`${step}:end`);
  }

  async boundary(data: Json): Promise<AbortSignal> {
    this.log.push('boundary');
    assert.ok(!this.log.some((entry) => entry.endsWith(':begin') && !this.log.includes(entry.replace('begin', 'end'))));
    if (this.refuse === 'boundary') throw new Error('claim lost');
    assert.equal(this.call, null, 'the boundary is appended once');
    const deadline = new Date(Date.now() + this.#deadlineMs).toISOString();
    this.checkpoints.push({ attempt: this.#attempt, step: 'boundary', data, deadline });
    this.call = this.lateAtBoundary ? AbortSignal.abort() : AbortSignal.timeout(this.#deadlineMs);
    this.boundaryAt = performance.now();
    this.atBoundary();
    return this.call;
  }

  get crossed(): Checkpoint {
    const last = this.checkpoints.findLast(({ step }) => step === 'boundary');
    assert.ok(last, 'the boundary was appended');
    return last;
  }
}

/** A failure names its platform. */
export const runOn = async (platform: Platform, run: (platform: Platform) => Promise<void>): Promise<void> => {
  try {
    await run(platform);
  } catch (cause) {
    throw new Error(`${platform}: ${cause instanceof Error ? cause.message : String(cause)}`, { cause });
  }
};

/** On each of these platforms at once: each is a network of its own. */
export const sideBySide = async (
  some: readonly Platform[],
  run: (platform: Platform) => Promise<void>,
): Promise<void> => {
  await Promise.all(some.map((platform) => runOn(platform, run)));
};

export function platformSuite(t: Cases, start: () => Promise<Harness>): void {
  let harness: Harness;
  let adapter: PlatformAdapter;
  t.before(async () => {
    harness = await start();
    adapter = await harness.open();
  });
  t.after(() => harness?.close());

  const workspaceId = randomUUID();
  const request = async (platform: Platform, over: Partial<PublishRequest> = {}): Promise<PublishRequest> => ({
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
    ...over,
  });
  const attempt = async (asked: PublishRequest, prepare: (steps: RecordedSteps) => void = () => {}, by = adapter) => {
    const steps = new RecordedSteps(asked, adapter.boundaryDeadlineMs);
    prepare(steps);
    const outcome = await by.publish(asked, steps);
    return { outcome, steps };
  };
  const next = (asked: PublishRequest, steps: RecordedSteps): PublishRequest => ({
    ...asked,
    attempt: asked.attempt + 1,
    checkpoints: steps.checkpoints,
  });
  type Outcome = PublishOutcome | ReconcileOutcome | CommentOutcome;
  const kind = <K extends Outcome['kind']>(outcome: Outcome, wanted: K) => {
    assert.equal(outcome.kind, wanted, JSON.stringify(outcome));
    return outcome as Extract<Outcome, { kind: K }>;
  };
  /** Null: the network shows no posts, and the adapter says so. */
  const present = async (asked: PublishRequest, steps: RecordedSteps, by = adapter) => {
    const seen = await by.reconcile(next(asked, steps), steps.crossed);
    if (harness.isUnreadable !== true) return kind(seen, 'present');
    assert.equal(kind(seen, 'undecided').failure?.category, 'unknown');
    return null;
  };
  /** On every platform, side by side: each is a network of its own. */
  const each = (run: (platform: Platform) => Promise<void>) => () => sideBySide(harness.platforms, run);

  t(
    'publishes once: it appends every step before the next one, and the boundary last and once',
    each(async (platform) => {
      const asked = await request(platform);
      const { outcome, steps } = await attempt(asked);
      const { externalId, permalink, publishedAt } = kind(outcome, 'published');
      assert.deepEqual(await harness.posts(asked.targetId), [externalId]);
      assert.equal(steps.log.filter((entry) => entry === 'boundary').length, 1);
      assert.equal(steps.log.at(-1), 'boundary');
      assert.ok(permalink === null || URL.canParse(permalink));
      assert.match(publishedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
      const seen = await present(asked, steps);
      if (seen === null) return;
      assert.equal(seen.externalId, externalId);
      assert.equal(seen.permalink, permalink);
    }),
  );

  t(
    'is asked by account, content and time where nothing is known of a call, or says that it cannot be',
    each(async (platform) => {
      const asked = await request(platform, { content: `Lost ${randomUUID()}` });
      const { externalId } = kind((await attempt(asked)).outcome, 'published');
      const minuteMs = 60_000;
      const ask = (over: Partial<FindRequest> = {}) =>
        adapter.findPosts?.({
          ...{ ...asked, targetId: randomUUID(), from: new Date(Date.now() - minuteMs).toISOString() },
          ...{ until: new Date(Date.now() + minuteMs).toISOString(), ...over },
        });
      const seen = await ask();
      if (seen === undefined || seen.kind === 'not_askable') {
        assert.equal(adapter.listsOwnPosts(platform, asked.account), false);
        return;
      }
      const ids = (answer: Awaited<ReturnType<typeof ask>>): readonly string[] => {
        assert.ok(answer?.kind === 'listed', JSON.stringify(answer));
        return answer.posts.map((one) => one.externalId);
      };
      assert.deepEqual(ids(seen), [externalId]);
      assert.deepEqual(ids(await ask({ content: 'Another text' })), []);
      const [from, until] = [2, 1].map((hours) => new Date(Date.now() - hours * 60 * minuteMs).toISOString());
      assert.deepEqual(ids(await ask({ from: from ?? '', until: until ?? '' })), []);
      assert.equal((await harness.posts(asked.targetId)).length, 1, 'a question changes nothing');
    }),
  );

  t(
    'a worker that stops before the boundary makes no call',
    each(async (platform) => {
      const asked = await request(platform);
      await assert.rejects(
        attempt(asked, (steps) => steps.worker.abort(new Error('lease lost'))),
        /lease lost/,
      );
      assert.deepEqual(await harness.posts(asked.targetId), []);
    }),
  );

  t(
    'a worker that lost its claim at the boundary or before it makes no call',
    each(async (platform) => {
      const asked = await request(platform);
      const lost = (step: 'boundary' | 'checkpoint') =>
        attempt(asked, (steps) => {
          steps.refuse = step;
        });
      await assert.rejects(lost('boundary'), /claim lost/);
      assert.deepEqual(await harness.posts(asked.targetId), []);
      const outcome = await lost('checkpoint').then(
        () => 'no step before the boundary',
        () => 'lost',
      );
      assert.equal((await harness.posts(asked.targetId)).length, outcome === 'lost' ? 0 : 1);
    }),
  );

  t(
    'a call whose time is over before it left is known to have sent nothing; to a worker that died there it is as any other',
    each(async (platform) => {
      const asked = await request(platform);
      const { outcome, steps } = await attempt(asked, (one) => {
        one.lateAtBoundary = true;
      });
      // Nothing is awaited between the look at the clock and the call, and nobody else makes a call of this boundary.
      kind(outcome, 'nothing_sent');
      assert.deepEqual(await harness.posts(asked.targetId), []);
      // Had the worker died instead, its boundary would be all that the next one knows.
      const seen = await adapter.reconcile(next(asked, steps), steps.crossed);
      assert.ok(seen.kind === 'absent' || seen.kind === 'undecided', seen.kind);
      if (!adapter.absenceIsProof(platform, asked.account)) return;
      kind(seen, 'absent');
      const again = await attempt(next(asked, steps), () => {}, await harness.open());
      const { externalId } = kind(again.outcome, 'published');
      assert.deepEqual(await harness.posts(asked.targetId), [externalId]);
    }),
  );

  t(
    'a call that is accepted and not answered is unknown by the deadline, then present',
    each(async (platform) => {
      const asked = await request(platform, { content: harness.scripted('timeout_after') });
      const { outcome, steps } = await attempt(asked);
      kind(outcome, 'unknown');
      const took = performance.now() - steps.boundaryAt;
      assert.ok(took < adapter.boundaryDeadlineMs + 1500, `the call ends at its deadline, not after ${took} ms`);
      const posts = await harness.posts(asked.targetId);
      assert.equal(posts.length, 1);
      const seen = await present(asked, steps);
      if (seen !== null) assert.equal(seen.externalId, posts[0]);
    }),
  );

  t(
    'a call that is accepted and answered with an error is unknown, then present to another worker',
    each(async (platform) => {
      const asked = await request(platform, { content: harness.scripted('error_after') });
      const { outcome, steps } = await attempt(asked);
      kind(outcome, 'unknown');
      const other = await harness.open();
      await present(asked, steps, other);
      assert.equal((await harness.posts(asked.targetId)).length, 1);
    }),
  );

  t(
    'a call that is neither accepted nor answered is unknown and never present',
    each(async (platform) => {
      const asked = await request(platform, { content: harness.scripted('timeout_before') });
      const { outcome, steps } = await attempt(asked);
      kind(outcome, 'unknown');
      const seen = await adapter.reconcile(next(asked, steps), steps.crossed);
      assert.ok(seen.kind === 'absent' || seen.kind === 'undecided', seen.kind);
      assert.deepEqual(await harness.posts(asked.targetId), []);
    }),
  );

  t(
    'a network that lists the posts of an account says which of its calls made one',
    each(async (platform) => {
      if (!adapter.listsOwnPosts(platform, harness.account(platform))) return;
      const lost = await request(platform, { content: harness.scripted('timeout_before') });
      const made = await request(platform, { content: harness.scripted('error_after') });
      const calls = await Promise.all([attempt(lost), attempt(made)]);
      const [first, second] = calls.map(({ steps }) => steps);
      assert.ok(first && second);
      kind(await adapter.reconcile(next(lost, first), first.crossed), 'absent');
      kind(await adapter.reconcile(next(made, second), second.crossed), 'present');
    }),
  );

  t(
    'an account whose posts the network does not show: no outcome is found out, least of all by another call that publishes',
    each(async (platform) => {
      const account = harness.unreadable?.(platform) ?? null;
      if (account === null) return;
      assert.deepEqual(
        [adapter.listsOwnPosts(platform, account), adapter.absenceIsProof(platform, account)],
        [false, false],
      );
      for (const [fault, made] of [['error_after', 1] as const, ['timeout_before', 0] as const]) {
        if (harness.without?.includes(fault) === true) continue;
        const asked = await request(platform, { account, content: harness.scripted(fault) });
        const { outcome, steps } = await attempt(asked);
        kind(outcome, 'unknown');
        kind(await (await harness.open()).reconcile(next(asked, steps), steps.crossed), 'undecided');
        const span = { from: '2026-01-01T00:00:00.000Z', until: '2099-01-01T00:00:00.000Z' };
        const found = await adapter.findPosts?.({ ...asked, ...span });
        assert.ok(found === undefined || found.kind === 'not_askable', JSON.stringify(found));
        assert.equal((await harness.posts(asked.targetId)).length, made, 'the questions made no post');
      }
      kind((await attempt(await request(platform, { account }))).outcome, 'published');
    }),
  );

  t(
    'telegram has no such list',
    each(async (platform) => {
      if (platform === 'telegram') assert.equal(adapter.listsOwnPosts(platform, harness.account(platform)), false);
    }),
  );

  t(
    'a second crossing after one that made a post makes no other post where absence is proof',
    each(async (platform) => {
      const asked = await request(platform, { content: harness.scripted('error_after') });
      const first = await attempt(asked);
      const [made] = await harness.posts(asked.targetId);
      const second = await attempt(next(asked, first.steps));
      if (harness.refusesRepeats === true) {
        assert.equal(kind(second.outcome, 'failed').failure.category, 'duplicate');
        assert.deepEqual(await harness.posts(asked.targetId), [made]);
        return;
      }
      const { externalId } = kind(second.outcome, 'published');
      const posts = await harness.posts(asked.targetId);
      if (!adapter.absenceIsProof(platform, asked.account)) {
        assert.equal(posts.length, 2, 'the network hides no duplicate');
        return;
      }
      assert.equal(externalId, made);
      assert.deepEqual(posts, [made]);
      assert.deepEqual(
        (second.steps.crossed.data as { key?: Json }).key,
        (first.steps.crossed.data as { key?: Json }).key,
      );
    }),
  );

  t(
    'a segment of a thread is a post of its own in reply to the segment before, also after an unknown outcome',
    each(async (platform) => {
      if (!capabilities(platform).thread) return;
      const head = await request(platform, { thread: { index: 0, of: 2, replyTo: null } });
      const { externalId } = kind((await attempt(head)).outcome, 'published');
      const replyTo = { parent: externalId, head: externalId };
      const asked: PublishRequest = {
        ...head,
        content: harness.scripted('error_after'),
        checkpoints: [],
        thread: { index: 1, of: 2, replyTo },
      };
      const { outcome, steps } = await attempt(asked);
      kind(outcome, 'unknown');
      const other = await harness.open();
      const seen = kind(await other.reconcile(next(asked, steps), steps.crossed), 'present');
      assert.notEqual(seen.externalId, externalId);
      assert.deepEqual(await harness.posts(head.targetId), [externalId, seen.externalId]);
    }),
  );

  t(
    'a refusal names its category and who can act, and makes no post',
    each(async (platform) => {
      const table = [
        ['reject', 'failed', 'invalid_content', 'user'],
        ['token_death', 'failed', 'reauth_required', 'user'],
        ['duplicate', 'failed', 'duplicate', 'user'],
        ['down', 'deferred', 'platform_down', 'platform'],
      ] as const;
      for (const [fault, wanted, category, actor] of table) {
        if (harness.without?.includes(fault) === true) continue;
        const asked = await request(platform, { content: harness.scripted(fault) });
        const { outcome, steps } = await attempt(asked);
        const { failure } = kind(outcome, wanted);
        assert.equal(failure.category, category);
        assert.equal(failure.actor, actor);
        if (wanted === 'deferred') assert.ok(!steps.log.includes('boundary'), 'deferred is before the boundary');
        assert.deepEqual(await harness.posts(asked.targetId), []);
      }
    }),
  );

  t(
    'an address of a picture that is not proven to be the operator’s is theirs to mend: the post waits, and goes out then',
    each(async (platform) => {
      const over = await harness.unproven?.(platform);
      if (over == null) return;
      const asked = await request(platform, over);
      const { outcome, steps } = await attempt(asked);
      // A network that looks at the address within the call of the boundary says itself that it made nothing.
      const { failure } = kind(outcome, outcome.kind === 'nothing_sent' ? 'nothing_sent' : 'deferred');
      assert.deepEqual(
        [failure.actor, failure.retryable],
        ['service', true],
        'neither the author nor the account is at fault',
      );
      assert.equal(steps.log.includes('boundary'), outcome.kind === 'nothing_sent');
      assert.deepEqual(await harness.posts(asked.targetId), []);
      const { externalId } = kind((await attempt(next(asked, steps))).outcome, 'published');
      assert.deepEqual(await harness.posts(asked.targetId), [externalId]);
    }),
  );

  t(
    'a rate limit names its time, and the next attempt publishes',
    each(async (platform) => {
      const asked = await request(platform, { content: harness.scripted('rate_limit', 2000) });
      const { outcome, steps } = await attempt(asked);
      const { retryAt, failure } = kind(outcome, 'rate_limited');
      assert.equal(failure.category, 'rate_limited');
      assert.ok(Date.parse(retryAt) > Date.now() - 1000 && Date.parse(retryAt) < Date.now() + 3000);
      kind((await attempt(next(asked, steps))).outcome, 'published');
      assert.equal((await harness.posts(asked.targetId)).length, 1);
    }),
  );

  t(
    'a version of the API that the network has ended makes nothing, and is said of the network, not of the post',
    each(async (platform) => {
      if (harness.ended === undefined) return;
      const old = await harness.ended(platform);
      const asked = await request(platform);
      assert.notEqual(old.apiVersion?.(platform) ?? null, adapter.apiVersion?.(platform) ?? null);
      const said = async (outcome: object) => {
        assert.ok('failure' in outcome, JSON.stringify(outcome));
        const { code, actor, retryable } = outcome.failure as Failure;
        assert.deepEqual([code, actor, retryable], ['api_version_ended', 'service', true]);
      };
      const { outcome, steps } = await attempt(asked, () => {}, old);
      assert.notEqual(outcome.kind, 'unknown', 'the network refused: it made nothing');
      await said(outcome);
      assert.deepEqual(await harness.posts(asked.targetId), []);
      // Another attempt, by a worker that asks for a newer version.
      const { externalId } = kind((await attempt(next(asked, steps))).outcome, 'published');
      assert.deepEqual(await harness.posts(asked.targetId), [externalId]);
      if (!capabilities(platform).firstComment) return;
      const { targetId } = asked;
      const comment = { targetId, platform, account: harness.account(platform), externalId, content: 'First' };
      await said(await old.comment(comment, AbortSignal.timeout(adapter.boundaryDeadlineMs)));
      assert.deepEqual(await harness.comments(targetId), []);
    }),
  );

  t(
    'what a network allows in a day is used up before the boundary, for every worker, until the time that the post waits for',
    each(async (platform) => {
      const { appBudget, postsInWindow } = rulesOf(platform);
      const limited = harness.dayLimited?.(platform);
      if (limited === undefined || (appBudget === undefined && postsInWindow === undefined)) return;
      const own = randomUUID();
      const accountOf = () =>
        appBudget?.counts === 'accounts'
          ? { ...limited, id: randomUUID(), externalId: `${limited.externalId}1` }
          : limited;
      const day = appBudget === undefined ? null : windowAt(appBudget, Date.now());
      const first = await Promise.all(
        [accountOf(), accountOf()].map(async (account) => {
          const asked = await request(platform, { workspaceId: own, account, content: `Day ${randomUUID()}` });
          return attempt(asked);
        }),
      );
      for (const { outcome } of first) kind(outcome, 'published');
      const asked = await request(platform, { workspaceId: own, account: accountOf() });
      const { outcome, steps } = await attempt(asked, () => {}, await harness.open());
      // A day that ended meanwhile has given the app another two.
      if (day !== null && Date.now() >= day.ends) return;
      const { retryAt, failure } = kind(outcome, 'rate_limited');
      assert.ok(!steps.log.includes('boundary'), 'it is refused before the boundary');
      assert.equal(failure.category, 'rate_limited');
      assert.equal(failure.actor, day === null ? 'platform' : 'service');
      assert.deepEqual(await harness.posts(asked.targetId), []);
      const dayMs = 86_400_000;
      if (day !== null) assert.equal(retryAt, new Date(day.ends).toISOString());
      else
        assert.ok(Math.abs(Date.parse(retryAt) - Date.now() - dayMs) < 30_000, `${retryAt} is a day after the first`);
    }),
  );

  t(
    'a call that is accepted after its answer is unknown, not present, then present',
    each(async (platform) => {
      if (harness.isUnreadable === true) return;
      const asked = await request(platform, { content: harness.scripted('late', 700) });
      const { outcome, steps } = await attempt(asked);
      kind(outcome, 'unknown');
      const look = () => adapter.reconcile(next(asked, steps), steps.crossed);
      const early = await look();
      assert.notEqual(early.kind, 'present');
      const until = performance.now() + 10_000;
      let seen = early;
      while (seen.kind !== 'present' && performance.now() < until) {
        await new Promise((resolve) => setTimeout(resolve, 50));
        seen = await look();
      }
      kind(seen, 'present');
      assert.equal((await harness.posts(asked.targetId)).length, 1);
    }),
  );

  /** A published post, and a comment on it. */
  const published = async (
    platform: Platform,
    content = 'First',
    account = harness.account(platform),
  ): Promise<CommentRequest> => {
    const asked = await request(platform, { account });
    const { externalId } = kind((await attempt(asked)).outcome, 'published');
    return { targetId: asked.targetId, platform, account, externalId, content };
  };
  const comment = (asked: CommentRequest, signal = AbortSignal.timeout(adapter.boundaryDeadlineMs)) =>
    adapter.comment(asked, signal);
  /** On every platform that takes comments. */
  const eachCommented = (run: (platform: Platform) => Promise<void>) =>
    each(async (platform) => {
      if (capabilities(platform).firstComment) await run(platform);
    });

  t(
    'a comment is made once, has an id of its own and adds no post',
    eachCommented(async (platform) => {
      const asked = await published(platform);
      const { externalId } = kind(await comment(asked), 'posted');
      assert.notEqual(externalId, '');
      assert.notEqual(externalId, asked.externalId);
      assert.deepEqual(await harness.comments(asked.targetId), [externalId]);
      assert.deepEqual(await harness.posts(asked.targetId), [asked.externalId]);
    }),
  );

  t(
    'a refused comment names its category and who can act, and is not made; the post stays',
    eachCommented(async (platform) => {
      const table = [
        ['reject', 'failed', 'invalid_content', 'user'],
        ['token_death', 'failed', 'reauth_required', 'user'],
        ['duplicate', 'failed', 'duplicate', 'user'],
        ['down', 'deferred', 'platform_down', 'platform'],
      ] as const;
      for (const [fault, wanted, category, actor] of table) {
        if (harness.without?.includes(fault) === true) continue;
        const asked = await published(platform, harness.scripted(fault));
        const { failure } = kind(await comment(asked), wanted);
        assert.equal(failure.category, category);
        assert.equal(failure.actor, actor);
        assert.deepEqual(await harness.comments(asked.targetId), []);
        assert.deepEqual(await harness.posts(asked.targetId), [asked.externalId]);
      }
    }),
  );

  t(
    'a comment over the rate limit names its time, is not made, and is made by a later call',
    eachCommented(async (platform) => {
      const asked = await published(platform, harness.scripted('rate_limit', 2000));
      const { retryAt, failure } = kind(await comment(asked), 'rate_limited');
      assert.equal(failure.category, 'rate_limited');
      assert.ok(Date.parse(retryAt) > Date.now() - 1000 && Date.parse(retryAt) < Date.now() + 3000);
      assert.deepEqual(await harness.comments(asked.targetId), []);
      kind(await comment(asked), 'posted');
      assert.equal((await harness.comments(asked.targetId)).length, 1);
    }),
  );

  t(
    'a comment without an answer is unknown by the deadline, whether it was made or not',
    eachCommented(async (platform) => {
      for (const [fault, made] of [['timeout_before', 0] as const, ['timeout_after', 1] as const]) {
        const asked = await published(platform, harness.scripted(fault));
        const since = performance.now();
        kind(await comment(asked), 'unknown');
        const took = performance.now() - since;
        assert.ok(took < adapter.boundaryDeadlineMs + 1500, `the call ends at its deadline, not after ${took} ms`);
        assert.equal((await harness.comments(asked.targetId)).length, made);
      }
    }),
  );

  t(
    'a comment that is made and answered with an error is unknown',
    eachCommented(async (platform) => {
      const asked = await published(platform, harness.scripted('error_after'));
      kind(await comment(asked), 'unknown');
      assert.equal((await harness.comments(asked.targetId)).length, 1);
    }),
  );

  t(
    'a comment whose call was aborted before it began is not made, and the next try makes it',
    eachCommented(async (platform) => {
      const asked = await published(platform);
      kind(await comment(asked, AbortSignal.abort()), 'deferred');
      // The next call on the same network ends after everything that the aborted call could still send.
      kind(await comment(await published(platform)), 'posted');
      assert.deepEqual(await harness.comments(asked.targetId), []);
    }),
  );

  t(
    'a connection without the permission to comment publishes, and its comment is refused for good',
    eachCommented(async (platform) => {
      const account = harness.silent(platform);
      if (account === null) return;
      const asked = await published(platform, 'First', account);
      const { failure } = kind(await comment(asked), 'failed');
      assert.equal(failure.category, 'permission');
      assert.equal(failure.actor, 'user');
      assert.equal(failure.retryable, false);
      assert.deepEqual(await harness.comments(asked.targetId), []);
    }),
  );

  t(
    'a comment on a post that the network does not have is refused, or tried again, and is not made',
    eachCommented(async (platform) => {
      const asked = await published(platform);
      const outcome = await comment({ ...asked, externalId: `${asked.externalId}9` });
      kind(outcome, harness.knowsLate === true ? 'deferred' : 'failed');
      assert.deepEqual(await harness.comments(asked.targetId), []);
    }),
  );
}
