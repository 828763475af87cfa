import {
  type CadenceAccount,
  cadenceFault,
  cadenceOf,
  isLimited,
  type PostingLimits,
  reachOf,
  type Slot,
} from '#domain/cadence.ts';
import type { CadenceRule } from '#schemas/cadence.ts';

/**
 * Whether an account would publish too often. The api asks when a post is composed or moved, and a shift when it moves a
 * target; the publisher has its own question at the claim. An account that nothing limits costs no query.
 */

/** What a process reads for it. */
export interface CadenceSource {
  /** Null: no rule was ever set. */
  readonly rules: readonly CadenceRule[] | null;
  /** The targets of an account that go out, or went out, between two times, both excluded. Milliseconds since the epoch. */
  readonly slots: (asked: {
    readonly accountId: string;
    readonly from: number;
    readonly to: number;
  }) => Promise<readonly Slot[]>;
}

export interface Timed {
  readonly accountId: string;
  readonly account: CadenceAccount;
  /** Milliseconds since the epoch. */
  readonly at: number;
  readonly calls: number;
}

const slotsAround = async (
  { slots }: CadenceSource,
  { accountId, at }: Timed,
  cadence: PostingLimits,
  counts: (slot: Slot) => boolean,
): Promise<readonly Slot[]> => {
  const reach = reachOf(cadence);
  return (await slots({ accountId, from: at - reach, to: at + reach })).filter(counts);
};

/** The limit that a target at this time would break, in words; null: none. @param counts leaves targets out */
export const faultAt = async (
  source: CadenceSource,
  timed: Timed,
  counts: (slot: Slot) => boolean,
): Promise<string | null> => {
  const cadence = cadenceOf(timed.account, source.rules ?? []);
  if (!isLimited(cadence)) return null;
  return cadenceFault(cadence, await slotsAround(source, timed, cadence, counts), timed);
};
