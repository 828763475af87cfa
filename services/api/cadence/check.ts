import { cadenceSource } from '#projections/queries/cadence-slots.ts';
import type { CadenceSource } from '#services/workflows/cadence/check.ts';
import type { Call } from '../operation.ts';

/** The caller's own posts of a moment ago count. Only a limited account asks for slots, and waits for them. */
export const readingOwnWrites = async (call: Pick<Call, 'deps' | 'workspaceId' | 'behind'>): Promise<CadenceSource> => {
  const { rules, slots } = await cadenceSource(call.deps.pool, call.workspaceId);
  return {
    rules,
    slots: async (asked) => {
      await call.behind(['posts']);
      return slots(asked);
    },
  };
};
