import {
  type CadenceAccount,
  cadenceFault,
  cadenceOf,
  callsOf,
  isLimited,
  type PostingLimits,
  reachOf,
  type Slot,
} from '#domain/cadence.ts';
import { Rejection } from '#domain/decider.ts';
import type { ContentBody } from '#domain/post/content.ts';
import type { CadenceRule } from '#schemas/cadence.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';

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

interface Timed {
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

/** Refuses times at which accounts would publish too often. */

export interface TimedAccount {
  readonly account: CadenceAccount & { readonly id: string };
  readonly dueAt: string;
  readonly calls: number;
}

export const oftenRejection = (errors: readonly Issue[]): Rejection =>
  new Rejection('cadence_exceeded', 'An account would publish too often.', { errors });

/**
 * Why these times are refused: `cadence_exceeded` with one entry for each account; null: they are not.
 * @param own targets whose present times do not count
 */
export const cadenceRefusal = async (
  source: CadenceSource,
  wanted: readonly TimedAccount[],
  own: ReadonlySet<string>,
): Promise<Rejection | null> => {
  const faults = await Promise.all(
    wanted.map(({ account, dueAt, calls }) =>
      faultAt(
        source,
        { accountId: account.id, account, at: Date.parse(dueAt), calls },
        ({ targetId }) => !own.has(targetId),
      ),
    ),
  );
  const errors = wanted.flatMap(({ account: { id: accountId, platform } }, index): Issue[] => {
    const message = faults[index] ?? null;
    return message === null ? [] : [{ path: '/schedule', code: 'cadence_exceeded', message, accountId, platform }];
  });
  return errors.length === 0 ? null : oftenRejection(errors);
};

/** The calls of a target on each network, counted once. */
export const callsFor = (body: ContentBody): ((platform: Platform) => number) => {
  const known = new Map<Platform, number>();
  return (platform) => {
    const calls = known.get(platform) ?? callsOf(body, platform);
    known.set(platform, calls);
    return calls;
  };
};
