import { type CadenceAccount, callsOf } from '#domain/cadence.ts';
import type { ContentBody } from '#domain/content.ts';
import { Rejection } from '#domain/decider.ts';
import { cadenceSource } from '#projections/cadence-slots.ts';
import type { Platform } from '#schemas/common.ts';
import type { Issue } from '#schemas/issues.ts';
import { type CadenceSource, faultAt } from '#services/workflows/cadence/check.ts';
import type { Call } from '../operation.ts';

/** Whether accounts would publish too often. */

type Asking = Pick<Call, 'deps' | 'workspaceId' | 'behind'>;

export interface TimedAccount {
  readonly account: CadenceAccount & { readonly id: string };
  readonly dueAt: string;
  readonly calls: number;
}

/** The caller's own posts of a moment ago count. Only a limited account asks for slots, and waits for them. */
export const readingOwnWrites = async (call: Asking): Promise<CadenceSource> => {
  const { rules, slots } = await cadenceSource(call.deps.pool, call.workspaceId);
  return {
    rules,
    slots: async (asked) => {
      await call.behind(['posts']);
      return slots(asked);
    },
  };
};

export const oftenRejection = (errors: readonly Issue[]): Rejection =>
  new Rejection('cadence_exceeded', 'An account would publish too often.', { errors });

/** Why these times are refused: `cadence_exceeded` with one entry for each account; null: they are not. */
export const cadenceRefusal = async (
  call: Asking,
  wanted: readonly TimedAccount[],
  { path, own }: { readonly path: string; readonly own: ReadonlySet<string> },
): Promise<Rejection | null> => {
  const source = await readingOwnWrites(call);
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
    return message === null ? [] : [{ path, code: 'cadence_exceeded', message, accountId, platform }];
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
