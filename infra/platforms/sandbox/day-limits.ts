/**
 * What networks allow in a day beside the limits that their answers name: an operator's whole app in the calendar of the
 * network, or an account in the last 24 hours. An account whose name begins with `day-limit-` meets either after two posts.
 */
import type pg from 'pg';
import type { PublishOutcome, PublishRequest } from '#contracts/ports/platform.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import { PostgresAppLimits } from '#infra/postgres/app-limits.ts';
import { takeBudget } from '../shared/app-budgets.ts';
import { namedInstant } from '../shared/outcomes.ts';
import { refused } from './answers.ts';
import type { Network } from './network.ts';

const marked = 'day-limit-';
const early = 2;

export class DayLimits {
  readonly #network: Network;
  readonly #appLimits: PostgresAppLimits;

  constructor(network: Network, pool: pg.Pool) {
    this.#network = network;
    this.#appLimits = new PostgresAppLimits({ pool });
  }

  /** Right before the boundary. Null: the post may go out, and what it takes of the app's budget is taken. */
  async refusalOf(request: PublishRequest): Promise<PublishOutcome | null> {
    const { platform, account } = request;
    if (account.username?.startsWith(marked) !== true) return null;
    const { appBudget, postsInWindow } = rulesOf(platform);
    if (postsInWindow !== undefined) return this.#ofAccount(request, postsInWindow);
    if (appBudget === undefined) return null;
    return this.#ofApp(request, { ...appBudget, limit: Math.min(early, appBudget.limit) });
  }

  /** The network is asked how many of its posts are still in the window; the oldest of them leaves it first. */
  async #ofAccount(
    { platform, account }: PublishRequest,
    { limit, seconds }: { readonly limit: number; readonly seconds: number },
  ): Promise<PublishOutcome | null> {
    const [allowed, windowMs] = [Math.min(early, limit), seconds * 1_000];
    const posts = await this.#network.postsSince(platform, account.id, windowMs);
    const oldest = posts.at(-allowed);
    if (oldest === undefined) return null;
    const failure = { ...refused(platform, 'rate_limit'), platformMessage: `${posts.length} of ${allowed} posts` };
    return { kind: 'rate_limited', retryAt: namedInstant(oldest.getTime() + windowMs), failure };
  }

  /** Each workspace has an app of its own here: nobody spends the budget of another's tests. */
  async #ofApp(
    { platform, account, workspaceId }: PublishRequest,
    rule: Parameters<typeof takeBudget>[1],
  ): Promise<PublishOutcome | null> {
    const limits = { appLimits: this.#appLimits, clock: () => Date.now() };
    const caller = { app: `sandbox-${platform}:${workspaceId}`, workspaceId, accountId: account.id };
    const spent = await takeBudget(limits, rule, caller);
    if (spent === null) return null;
    const said = { actor: 'service', platformMessage: spent.reason } as const;
    const failure = { ...refused(platform, 'rate_limit'), ...said };
    return { kind: 'rate_limited', retryAt: spent.until ?? namedInstant(Date.now() + 60_000), failure };
  }
}
