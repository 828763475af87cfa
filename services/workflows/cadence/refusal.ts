import { type CadenceAccount, callsOf } from '#domain/cadence.ts';
import { Rejection } from '#domain/decider.ts';
import type { ContentBody } from '#domain/post/content.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import { type CadenceSource, faultAt } from './check.ts';

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
