import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import {
  type AccountSource,
  type ChoicesAnswer,
  type FactsAnswer,
  maxChoices,
} from '#contracts/ports/platform-account.ts';
import type { AccountFacts } from '#schemas/account.ts';
import type { Platform } from '#schemas/common.ts';
import { questionTurns } from '#services/api/call/call-queue.ts';
import { AskedAccounts, type Asking } from '#services/workflows/accounts/asked.ts';
import { suite } from '#test/support/suite.ts';
import { until } from '#test/support/until.ts';

/** How networks are asked for callers: seldom, side by side within bounds, and never for longer than a caller waits. */

const facts = (more: Partial<AccountFacts>): FactsAnswer => ({
  kind: 'facts',
  facts: {
    ...{ observedAt: '2026-05-02T08:00:00.000Z', allows: {}, maxDurationMs: null, canPostNow: true, until: null },
    ...more,
  },
});

/** A network that answers what it is told to, when it is told to. */
class SlowNetwork implements AccountSource {
  /** Accounts that were asked about, in their order. */
  readonly asked: string[] = [];
  /** Of the questions that wait for an answer, by account. */
  readonly waiting = new Map<string, (answer: ChoicesAnswer) => void>();
  isSlow = false;
  answer: ChoicesAnswer = { kind: 'choices', choices: [{ value: '1', label: 'One', about: null }], isCut: false };
  fault: Error | null = null;
  readonly factsAsked: string[] = [];
  said: FactsAnswer = facts({});

  async facts(_platform: Platform, account: { readonly id: string }): Promise<FactsAnswer> {
    this.factsAsked.push(account.id);
    return this.said;
  }

  async choices(_platform: Platform, account: { readonly id: string }): Promise<ChoicesAnswer> {
    this.asked.push(account.id);
    if (this.fault !== null) throw this.fault;
    if (!this.isSlow) return this.answer;
    const { promise, resolve } = Promise.withResolvers<ChoicesAnswer>();
    this.waiting.set(account.id, resolve);
    return promise;
  }
}

const world = (more: { readonly answerMs?: number; readonly isSetUp?: boolean } = {}) => {
  const networks = { pinterest: new SlowNetwork(), tiktok: new SlowNetwork() };
  const clock = { at: Date.parse('2026-05-02T08:00:00.000Z') };
  const errors: unknown[] = [];
  const questions = new AskedAccounts({
    turn: questionTurns(),
    sourceOf: (network, platform) =>
      network === 'sandbox' || more.isSetUp === false ? null : networks[platform as 'pinterest' | 'tiktok'],
    clock: () => clock.at,
    logger: { error: (said: unknown) => errors.push(said) } as never,
    ...(more.answerMs === undefined ? {} : { answerMs: more.answerMs }),
  });
  return { ...networks, clock, errors, questions };
};
const account = (more: Partial<Asking> = {}): Asking => ({
  ...{ id: randomUUID(), workspaceId: randomUUID(), platform: 'pinterest', network: 'live' },
  ...{ externalId: '9', username: 'acme', ...more },
});

suite('questions about accounts', (t) => {
  t('an answer is kept for a minute, for one account and one key', async () => {
    const { pinterest, clock, questions } = world();
    const one = account();
    const first = await questions.choices(one, 'boardId');
    clock.at += 59_999;
    assert.equal(await questions.choices(one, 'boardId'), first);
    assert.equal(pinterest.asked.length, 1);
    clock.at += 1;
    await questions.choices(one, 'boardId');
    assert.equal(pinterest.asked.length, 2);
    await questions.choices(one, 'another');
    await questions.choices(account(), 'boardId');
    assert.equal(pinterest.asked.length, 4);
  });

  t('what many ask at once is asked once', async () => {
    const { pinterest, questions } = world();
    pinterest.isSlow = true;
    const one = account();
    const asking = Array.from({ length: 30 }, () => questions.choices(one, 'boardId'));
    await until('the network is asked', async () => pinterest.waiting.size === 1);
    pinterest.waiting.get(one.id)?.(pinterest.answer);
    const answers = await Promise.all(asking);
    assert.ok(answers.every((answer) => answer === answers[0]));
    assert.equal(pinterest.asked.length, 1);
  });

  t('a network that did not answer, or takes no questions, is left alone for a while', async () => {
    const { pinterest, clock, questions } = world();
    const silent = account();
    pinterest.answer = { kind: 'unavailable', reason: '503' };
    for (const [passedMs, calls] of [
      [0, 1],
      [4_999, 1],
      [1, 2],
    ] as const) {
      clock.at += passedMs;
      assert.equal((await questions.choices(silent, 'boardId')).kind, 'unavailable');
      assert.equal(pinterest.asked.length, calls);
    }
    const limited = account();
    pinterest.answer = { kind: 'rate_limited', retryAt: new Date(clock.at + 20_000).toISOString() };
    for (const [passedMs, calls] of [
      [0, 3],
      [19_999, 3],
      [1, 4],
    ] as const) {
      clock.at += passedMs;
      assert.equal((await questions.choices(limited, 'boardId')).kind, 'rate_limited');
      assert.equal(pinterest.asked.length, calls);
    }
    // A time that is far, or past, is the network's own word and no reason never to ask again.
    for (const retryAt of ['2030-01-01T00:00:00.000Z', '2020-01-01T00:00:00.000Z']) {
      const odd = account();
      pinterest.answer = { kind: 'rate_limited', retryAt };
      await questions.choices(odd, 'boardId');
      const before = pinterest.asked.length;
      clock.at += 60_000;
      await questions.choices(odd, 'boardId');
      assert.equal(pinterest.asked.length, before + 1);
    }
  });

  t('a network that hangs is given up in time, and holds up neither another nor another workspace', async () => {
    const { pinterest, tiktok, questions } = world({ answerMs: 300 });
    pinterest.isSlow = true;
    const workspaceId = randomUUID();
    const own = Array.from({ length: 6 }, () => account({ workspaceId }));
    const asking = own.map((one) => questions.choices(one, 'boardId'));
    await until('the share of the workspace is asked', async () => pinterest.asked.length === 4);
    const others = Array.from({ length: 6 }, () => account());
    asking.push(...others.map((one) => questions.choices(one, 'boardId')));
    await until('the share of the network is asked', async () => pinterest.asked.length === 8);
    const begun = performance.now();
    assert.equal((await questions.choices(account({ platform: 'tiktok' }), 'privacyLevel')).kind, 'choices');
    assert.ok(performance.now() - begun < 200, 'the other network answers at once');
    assert.equal(tiktok.asked.length, 1);
    const answers = await Promise.all(asking);
    assert.deepEqual([...new Set(answers.map(({ kind }) => kind))], ['unavailable']);
    assert.equal(pinterest.asked.length, 12);
  });

  t('of one workspace only so many wait; the rest is told to come again', async () => {
    const { pinterest, questions } = world({ answerMs: 1_000 });
    pinterest.isSlow = true;
    const workspaceId = randomUUID();
    const asking = Array.from({ length: 60 }, () =>
      questions.choices(account({ workspaceId }), 'boardId').then(
        () => 'answered',
        (error: { code: string; headers: Record<string, string> }) => `${error.code} ${error.headers['Retry-After']}`,
      ),
    );
    const refused = await Promise.all(asking.slice(-6));
    assert.deepEqual([...new Set(refused)], ['unavailable 2']);
    for (const answer of pinterest.waiting.values()) answer(pinterest.answer);
    await Promise.all(asking);
  });

  t(
    'an adapter that throws tells nothing, and the log says why; a network that nobody set up tells nothing',
    async () => {
      const { pinterest, errors, questions } = world();
      pinterest.fault = new Error('a fault of the adapter');
      const answer = await questions.choices(account(), 'boardId');
      assert.deepEqual(answer, { kind: 'unavailable', reason: 'its answer could not be read' });
      assert.equal(errors.length, 1);
      const none = await world({ isSetUp: false }).questions.choices(account(), 'boardId');
      assert.deepEqual(none, { kind: 'unavailable', reason: 'this installation is not set up for it' });
    },
  );

  t('of what a network says, only what a setting takes is kept, each value once, and names have a length', async () => {
    const { pinterest, questions } = world();
    const long = 'x'.repeat(201);
    const choices = [
      ['1', 'One'],
      ['', 'Nothing'],
      ['1', 'One again'],
      [long, 'Too long a value'],
      ['2', `${'y'.repeat(199)}😀 cut`],
      ['\ud800', 'No text'],
      ['3', ''],
      ['4', '\0'],
    ].map(([value = '', label = '']) => ({ value, label, about: null }));
    pinterest.answer = { kind: 'choices', choices, isCut: false };
    const answer = await questions.choices(account(), 'boardId');
    assert.ok(answer.kind === 'choices');
    assert.deepEqual(
      answer.choices.map(({ value, label }) => [value, label]),
      [
        ['1', 'One'],
        ['2', 'y'.repeat(199)],
        ['3', '3'],
        ['4', '4'],
      ],
    );
    const many = Array.from({ length: maxChoices + 1 }, (_, at) => ({ value: `${at}`, label: 'x', about: null }));
    pinterest.answer = { kind: 'choices', choices: many, isCut: false };
    const cut = await questions.choices(account(), 'boardId');
    assert.ok(cut.kind === 'choices' && cut.isCut && cut.choices.length === maxChoices);
  });

  t('what is kept of all accounts has a bound: the oldest answer goes first', async () => {
    const { pinterest, questions } = world();
    const many = Array.from({ length: maxChoices }, (_, at) => ({ value: `${at}`, label: 'x', about: null }));
    pinterest.answer = { kind: 'choices', choices: many, isCut: false };
    const accounts = Array.from({ length: 26 }, () => account());
    for (const one of accounts) await questions.choices(one, 'boardId');
    assert.equal(pinterest.asked.length, 26);
    await questions.choices(accounts[25] as (typeof accounts)[0], 'boardId');
    assert.equal(pinterest.asked.length, 26, 'the newest is kept');
    await questions.choices(accounts[0] as (typeof accounts)[0], 'boardId');
    assert.equal(pinterest.asked.length, 27, 'the oldest is gone');
  });

  t('no fact is older than a minute, and that nothing may go out no older than its instant', async () => {
    const { tiktok, clock, questions } = world();
    const one = account({ platform: 'tiktok' });
    await questions.facts(one);
    clock.at += 59_999;
    await questions.facts(one);
    assert.equal(tiktok.factsAsked.length, 1);
    clock.at += 1;
    tiktok.said = facts({ canPostNow: false, until: new Date(clock.at + 3_000).toISOString() });
    await questions.facts(one);
    clock.at += 2_999;
    await questions.facts(one);
    assert.equal(tiktok.factsAsked.length, 2);
    clock.at += 1;
    tiktok.said = facts({ canPostNow: false, until: null });
    await questions.facts(one);
    clock.at += 59_999;
    await questions.facts(one);
    assert.equal(tiktok.factsAsked.length, 3);
    // Choices of the account are another question.
    assert.equal(tiktok.asked.length, 0);
  });

  t('facts are read with care: an instant that is none is no ban, and texts and lists have a length', async () => {
    const { tiktok, questions } = world();
    const ask = async (said: Partial<AccountFacts>): Promise<AccountFacts> => {
      tiktok.said = facts(said);
      const answer = await questions.facts(account({ platform: 'tiktok' }));
      assert.ok(answer.kind === 'facts');
      return answer.facts;
    };
    assert.equal((await ask({ canPostNow: false, until: 'tomorrow' })).until, '2026-05-02T08:00:00.000Z');
    assert.equal((await ask({ canPostNow: false, until: null })).until, null);
    assert.equal((await ask({ canPostNow: true, until: '2026-05-02T09:00:00.000Z' })).until, null);
    assert.equal((await ask({ maxDurationMs: 0 })).maxDurationMs, null);
    const many = Array.from({ length: 200 }, () => 'x'.repeat(300));
    const { allows } = await ask({ allows: { privacyLevel: many } });
    assert.deepEqual([allows.privacyLevel?.length, allows.privacyLevel?.[0]], [100, 'x'.repeat(200)]);
    tiktok.said = { kind: 'rate_limited', retryAt: 'soon' };
    const limited = await questions.facts(account({ platform: 'tiktok' }));
    assert.deepEqual(limited, { kind: 'rate_limited', retryAt: '2026-05-02T08:00:00.000Z' });
  });
});
