import type { Platform } from '#schemas/common.ts';
import type { Failure } from '#schemas/target.ts';
import { refused, versionEnded } from './answers.ts';
import type { Fault, FaultName } from './faults.ts';
import type { Network } from './network.ts';
import { answers, refusals } from './script.ts';

/** What the calls behind a publication have in common: a comment, and a step such as a cover. */

/** A fault that is scripted and strikes now. */
type Striking = (name: FaultName) => Promise<Fault | null>;

/** @param about the call: its faults that strike once are counted by it */
export const strikingOf =
  (network: Network, about: string, faults: readonly Fault[]): Striking =>
  async (name) => {
    const fault = faults.find((one) => one.name === name);
    return fault !== undefined && (await network.fires(about, fault)) ? fault : null;
  };

/** The scripted answer to the call, or its absence; null: the usual one. */
export const answerOf = async (striking: Striking): Promise<(typeof answers)[number] | null> => {
  let answer: (typeof answers)[number] | null = null;
  for (const name of answers) if (answer === null && (await striking(name)) !== null) answer = name;
  return answer;
};

type Refusal =
  | { readonly kind: 'failed'; readonly failure: Failure }
  | { readonly kind: 'rate_limited'; readonly retryAt: string; readonly failure: Failure };

const failed = (failure: Failure): Refusal => ({ kind: 'failed', failure });
const later = (ms: number): string => new Date(Date.now() + ms).toISOString();

interface Asked {
  readonly platform: Platform;
  readonly account: { readonly id: string };
  /** Id of the post. */
  readonly externalId: string;
}

/** Null: the network takes the call. @param forbidden what the account may not do @param missing said where the post is gone */
export const refusalOf = async (
  network: Network,
  { platform, account, externalId }: Asked,
  striking: Striking,
  forbidden: Failure | null,
  missing: string,
): Promise<Refusal | null> => {
  const ended = await network.endedVersion(platform);
  if (ended !== null) return { kind: 'rate_limited', retryAt: later(900_000), failure: versionEnded(ended) };
  if (forbidden !== null) return failed(forbidden);
  for (const name of refusals) {
    const fault = await striking(name);
    if (fault === null) continue;
    const failure = refused(platform, name);
    if (name !== 'rate_limit') return failed(failure);
    return { kind: 'rate_limited', retryAt: later(fault.durationMs ?? 2_000), failure };
  }
  if (await network.shows(platform, account.id, externalId)) return null;
  return failed({ ...refused(platform, 'reject'), platformMessage: missing });
};
