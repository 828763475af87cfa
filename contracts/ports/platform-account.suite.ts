/**
 * What every network tells of an account before a post. An adapter's test passes a harness: accounts on a network whose
 * faults the harness controls.
 */
import assert from 'node:assert/strict';
import { checkOverride, choicesOf, overrideRules, rulesOf } from '#domain/platforms/index.ts';
import type { AccountFacts } from '#schemas/account.ts';
import type { Platform } from '#schemas/common.ts';
import type { Cases } from './platform.suite.ts';
import { type AccountSource, type AskedAccount, type Choice, maxChoices } from './platform-account.ts';

/** How the network fails when it is asked about an account. */
export type AccountFault = 'down' | 'rate_limit' | 'token_death';

export interface AccountHarness {
  readonly source: AccountSource;
  readonly platforms: readonly Platform[];
  close(): Promise<void>;
  /** An account; `fault` strikes at the next question about it. */
  account(platform: Platform, fault?: AccountFault): AskedAccount | Promise<AskedAccount>;
  /** Another account, with other choices where the network has choices of one account alone. */
  other(platform: Platform): AskedAccount | Promise<AskedAccount>;
  /** What the network has for an account: the label by the value. */
  has(platform: Platform, account: AskedAccount, key: string): ReadonlyMap<string, string>;
  /** An account that has more of a key than one answer holds; null: the network has no such key. */
  crowded(platform: Platform): Promise<{ readonly account: AskedAccount; readonly key: string } | null>;
  /** Of a network that is to be asked first: what it lets an account post. */
  readonly facts?: {
    has(platform: Platform, account: AskedAccount): Pick<AccountFacts, 'allows' | 'maxDurationMs'>;
    /** An account that may post nothing now: until an instant, or until its owner does something; null: it is never so. */
    stopped(platform: Platform, until: 'an instant' | 'its owner'): Promise<AskedAccount | null>;
  };
}

const instant = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;
const never = new AbortController().signal;

export function accountSuite(t: Cases, start: () => Promise<AccountHarness>): void {
  let harness: AccountHarness;
  t.before(async () => {
    harness = await start();
  });
  t.after(() => harness?.close());

  /** Every key of every network that has any. */
  const keys = (): readonly (readonly [Platform, string])[] => {
    const all = harness.platforms.flatMap((platform) =>
      Object.keys(choicesOf(platform)).map((key) => [platform, key] as const),
    );
    assert.ok(all.length > 0, 'no network of the harness has choices');
    return all;
  };
  const listed = async (platform: Platform, account: AskedAccount, key: string): Promise<readonly Choice[]> => {
    const answer = await harness.source.choices(platform, account, key, never);
    assert.ok(answer.kind === 'choices', `${platform} ${key}: ${JSON.stringify(answer)}`);
    assert.equal(answer.isCut, false);
    return answer.choices;
  };

  t('tells all that an account may choose, as the network has it, each value once', async () => {
    for (const [platform, key] of keys()) {
      for (const account of [await harness.account(platform), await harness.other(platform)]) {
        const choices = await listed(platform, account, key);
        const found = new Map(choices.map(({ value, label }) => [value, label]));
        assert.equal(found.size, choices.length, `${platform} ${key}: a value twice`);
        const byValue = (all: ReadonlyMap<string, string>) => [...all].toSorted(([a], [b]) => (a < b ? -1 : 1));
        assert.deepEqual(byValue(found), byValue(harness.has(platform, account, key)), `${platform} ${key}`);
        for (const { value, label } of choices) assert.ok(value !== '' && label !== '', `${platform} ${key}`);
      }
    }
  });

  t('tells values that the setting takes', async () => {
    for (const [platform, key] of keys()) {
      const rule = overrideRules(platform)[key];
      if (rule === undefined) continue;
      for (const { value } of await listed(platform, await harness.account(platform), key)) {
        assert.equal(checkOverride(platform, rule, value), null, `${platform} ${key} ${value}`);
      }
    }
  });

  t('a question changes nothing: the next one has the same answer', async () => {
    for (const [platform, key] of keys()) {
      const account = await harness.account(platform);
      assert.deepEqual(await listed(platform, account, key), await listed(platform, account, key));
    }
  });

  t('says that it was refused, and why, and never that there is nothing to choose', async () => {
    for (const [platform, key] of keys()) {
      const ask = async (fault: AccountFault) =>
        harness.source.choices(platform, await harness.account(platform, fault), key, never);
      const limited = await ask('rate_limit');
      assert.ok(limited.kind === 'rate_limited', `${platform}: ${JSON.stringify(limited)}`);
      assert.match(limited.retryAt, instant);
      assert.ok(Date.parse(limited.retryAt) > Date.now() - 1_000);
      const dead = await ask('token_death');
      assert.ok(dead.kind === 'reauth_required' && dead.reason !== '', `${platform}: ${JSON.stringify(dead)}`);
      const down = await ask('down');
      assert.ok(down.kind === 'unavailable' && down.reason !== '', `${platform}: ${JSON.stringify(down)}`);
    }
  });

  t('a question that is given up is without an answer', async () => {
    for (const [platform, key] of keys()) {
      const account = await harness.account(platform);
      const answer = await harness.source.choices(platform, account, key, AbortSignal.abort());
      assert.equal(answer.kind, 'unavailable', `${platform}: ${JSON.stringify(answer)}`);
    }
  });

  t('of more choices than an answer holds it tells as many, and that there are more', async () => {
    for (const platform of harness.platforms) {
      const crowd = await harness.crowded(platform);
      if (crowd === null) continue;
      const answer = await harness.source.choices(platform, crowd.account, crowd.key, never);
      assert.ok(answer.kind === 'choices', JSON.stringify(answer));
      assert.equal(answer.choices.length, maxChoices);
      assert.equal(new Set(answer.choices.map(({ value }) => value)).size, maxChoices);
      assert.equal(answer.isCut, true);
    }
  });

  /** Every network that is to be asked first. */
  const askedFirst = (): readonly Platform[] => harness.platforms.filter((one) => rulesOf(one).asksFirst === true);
  const said = async (platform: Platform, account: AskedAccount): Promise<AccountFacts> => {
    const answer = await harness.source.facts?.(platform, account, never);
    assert.ok(answer?.kind === 'facts', `${platform}: ${JSON.stringify(answer)}`);
    return answer.facts;
  };

  t('says what an account may post now, as the network has it, in values that its settings take', async () => {
    for (const platform of askedFirst()) {
      for (const account of [await harness.account(platform), await harness.other(platform)]) {
        const { observedAt, allows, maxDurationMs, canPostNow, until } = await said(platform, account);
        assert.match(observedAt, instant);
        assert.ok(Math.abs(Date.parse(observedAt) - Date.now()) < 5_000, 'by our own clock');
        assert.deepEqual({ allows, maxDurationMs }, harness.facts?.has(platform, account), platform);
        assert.deepEqual([canPostNow, until], [true, null]);
        for (const [key, values] of Object.entries(allows)) {
          const rule = overrideRules(platform)[key];
          assert.ok(rule !== undefined, `${platform} has no setting ${key}`);
          for (const value of values) assert.equal(checkOverride(platform, rule, value), null, `${key} ${value}`);
        }
      }
    }
  });

  t('says of an account that may post nothing until when, and names no time where none helps', async () => {
    for (const platform of askedFirst()) {
      const capped = await harness.facts?.stopped(platform, 'an instant');
      if (capped != null) {
        const { canPostNow, until } = await said(platform, capped);
        assert.equal(canPostNow, false);
        assert.ok(Date.parse(until ?? '') > Date.now() - 1_000, `${platform}: ${until}`);
      }
      const banned = await harness.facts?.stopped(platform, 'its owner');
      if (banned != null) {
        const { canPostNow, until } = await said(platform, banned);
        assert.deepEqual([canPostNow, until], [false, null]);
      }
    }
  });

  t('facts that are refused or given up are no facts', async () => {
    for (const platform of askedFirst()) {
      const kinds: Readonly<Record<AccountFault, string>> = {
        ...{ down: 'unavailable', rate_limit: 'rate_limited', token_death: 'reauth_required' },
      };
      for (const [fault, kind] of Object.entries(kinds) as [AccountFault, string][]) {
        const answer = await harness.source.facts?.(platform, await harness.account(platform, fault), never);
        assert.equal(answer?.kind, kind, `${platform} ${fault}: ${JSON.stringify(answer)}`);
      }
      const account = await harness.account(platform);
      const answer = await harness.source.facts?.(platform, account, AbortSignal.abort());
      assert.equal(answer?.kind, 'unavailable', `${platform}: ${JSON.stringify(answer)}`);
    }
  });
}
