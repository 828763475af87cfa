/** What the sandbox tells of an account before a post is made. The faults are those of the account's name. */
import type pg from 'pg';
import {
  type AccountSource,
  type AskedAccount,
  type ChoicesAnswer,
  type FactsAnswer,
  maxChoices,
  type Unanswered,
} from '#contracts/ports/platform-account.ts';
import type { Platform } from '#schemas/common.ts';
import { type Fault, type FaultName, faultsOf } from './faults.ts';
import { imitations } from './imitations.ts';
import { Network } from './network.ts';
import { NetworkUnavailable } from './network-unavailable.ts';

const unavailable = (reason: string): Unanswered => ({ kind: 'unavailable', reason });

/** Faults of questions about an account, in the order in which they apply. */
const refusals: Readonly<Partial<Record<FaultName, (fault: Fault) => Unanswered>>> = {
  token_death: () => ({ kind: 'reauth_required', reason: 'The access token is no longer valid' }),
  rate_limit: ({ durationMs }) => ({
    kind: 'rate_limited',
    retryAt: new Date(Date.now() + (durationMs ?? 2000)).toISOString(),
  }),
  down: () => unavailable('503 Service Unavailable'),
};

export class SandboxAccounts implements AccountSource {
  readonly #network: Network;

  constructor(network: Network) {
    this.#network = network;
  }

  async choices(platform: Platform, account: AskedAccount, key: string, signal: AbortSignal): Promise<ChoicesAnswer> {
    const of = imitations[platform].choices?.[key];
    if (of === undefined) throw new Error(`${platform} tells nothing of ${key}`);
    return this.#ask(account, key, signal, () => {
      const choices = of({ username: account.username ?? '', externalId: account.externalId });
      return {
        kind: 'choices',
        choices: choices.slice(0, maxChoices),
        isCut: choices.length > maxChoices,
      };
    });
  }

  async facts(platform: Platform, account: AskedAccount, signal: AbortSignal): Promise<FactsAnswer> {
    const of = imitations[platform].facts;
    if (of === undefined) throw new Error(`${platform} does not say what an account may post`);
    const now = Date.now();
    return this.#ask(account, 'facts', signal, async () => {
      const known = { observedAt: new Date(now).toISOString(), ...of(account.username ?? '') };
      const capped = await this.#striking(account, 'facts', 'capped');
      const banned = capped === null ? await this.#striking(account, 'facts', 'banned') : null;
      const until = capped === null ? null : new Date(now + (capped.durationMs ?? 2000)).toISOString();
      return { kind: 'facts', facts: { ...known, canPostNow: capped === null && banned === null, until } };
    });
  }

  async #striking({ id, username }: AskedAccount, question: string, name: FaultName): Promise<Fault | null> {
    const fault = faultsOf('', username).find((one) => one.name === name);
    return fault !== undefined && (await this.#network.fires(`account/${id}/${question}`, fault)) ? fault : null;
  }

  async #ask<Answer>(
    account: AskedAccount,
    question: string,
    signal: AbortSignal,
    answer: () => Answer | Promise<Answer>,
  ): Promise<Answer | Unanswered> {
    try {
      for (const [name, refuse] of Object.entries(refusals) as [FaultName, (fault: Fault) => Unanswered][]) {
        const fault = await this.#striking(account, question, name);
        if (fault !== null) return refuse(fault);
      }
      return signal.aborted ? unavailable('no answer in time') : await answer();
    } catch (error) {
      if (error instanceof NetworkUnavailable) return unavailable(error.message);
      throw error;
    }
  }
}

/** For a process that makes no posts. @param pool its own: the network is asked and changes nothing but counts of faults */
export const sandboxAccounts = (pool: pg.Pool): AccountSource => new SandboxAccounts(new Network(pool));
