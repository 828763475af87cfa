import { within } from '#contracts/base/pause.ts';
import type { RefusedConnect } from '#contracts/ports/connector.ts';
import { rulesOf } from '#domain/platforms/index.ts';
import type { Platform } from '#schemas/common.ts';
import { CallQueue } from '#services/api/call/call-queue.ts';
import type { CallPatience, Deps } from '#services/api/call/deps.ts';
import { Refusal } from '#services/api/call/refusal.ts';

/** What the pages of a connect link share. */
export interface InviteTools {
  readonly deps: Deps;
  readonly patience: CallPatience;
  /** Calls a network while a guest waits. @throws Refusal where too many guests of the workspace wait */
  readonly ask: <T>(workspaceId: string, call: (signal: AbortSignal) => Promise<T>) => Promise<T>;
}

/** Milliseconds for a network's answers while a guest waits, and then for a connector to give up. */
const networkMs = 10_000;
const graceMs = 1_000;

export const refuse = (message: string): Refusal => new Refusal('validation_failed', message);

export const inviteTools = (deps: Deps, patience: CallPatience): InviteTools => {
  // Guests of one workspace who wait for a silent network leave room for those of the others.
  const queue = new CallQueue({ noun: 'guests', each: 5, total: 200, waiting: 20, waitMs: 3_000 });
  const late = (): never => {
    throw refuse('The network does not answer now. Try again in a few minutes.');
  };
  return {
    deps,
    patience,
    ask: (workspaceId, call) =>
      queue.run(workspaceId, () => within(networkMs + graceMs, call(AbortSignal.timeout(networkMs)), late)),
  };
};

/** A network's refusal, for the guest. What only an operator can mend goes to the operator's log alone. */
export const refusedBy = (
  { logger }: Pick<Deps, 'logger'>,
  platform: Platform,
  { words, operator }: RefusedConnect,
): Refusal => {
  if (operator === undefined) return refuse(words);
  logger.warn({ platform, operator: operator.slice(0, 500) }, 'a network refuses this installation');
  const { name } = rulesOf(platform);
  return refuse(
    `Accounts of ${name} cannot be connected here now, and trying again does not help. Tell the people who sent you the link.`,
  );
};
