/**
 * What a network tells of an account before a post is made: the values that its owner may choose for a setting, and what it
 * may post now.
 */
import type { AccountFacts } from '#schemas/account.ts';
import type { Platform } from '#schemas/common.ts';
import type { InsightsAccount } from './platform-insights.ts';

/** The account that is asked about. */
export type AskedAccount = InsightsAccount;

export interface Choice {
  /** As the setting takes it; not empty. */
  readonly value: string;
  /** As the network shows it to people. */
  readonly label: string;
  /** What tells it from others of that name, such as who sees a board; null: the network tells nothing. */
  readonly about: string | null;
}

/** Choices in one answer: an adapter reads pages of the network until it has so many. */
export const maxChoices = 2_000;

export type Unanswered =
  /** `retryAt`: ISO 8601, by our own clock. */
  | { readonly kind: 'rate_limited'; readonly retryAt: string }
  | { readonly kind: 'reauth_required'; readonly reason: string }
  /** The network did not answer, or refuses for now: ask again later. */
  | { readonly kind: 'unavailable'; readonly reason: string };

export type ChoicesAnswer =
  | {
      readonly kind: 'choices';
      /** In any order, each value once; at most `maxChoices`. */
      readonly choices: readonly Choice[];
      /** The network has more than these. */
      readonly isCut: boolean;
    }
  | Unanswered;

/** `observedAt` of the facts: by our own clock. An `until` is as the network names it: who waits for it judges one past or far. */
export type FactsAnswer = { readonly kind: 'facts'; readonly facts: AccountFacts } | Unanswered;

/** Asks one network, or in the sandbox all of them. Changes nothing. */
export interface AccountSource {
  /**
   * @param key one of `choices` in the rules of the network
   * @param signal aborts the calls; the answer is then `unavailable`
   */
  choices(platform: Platform, account: AskedAccount, key: string, signal: AbortSignal): Promise<ChoicesAnswer>;
  /** What the account may post now. Absent: the network has no such question; one with `asksFirst` in its rules has it. */
  facts?(platform: Platform, account: AskedAccount, signal: AbortSignal): Promise<FactsAnswer>;
}
