import type { TargetCommand, TargetState } from '#domain/post-target/target.ts';
import { faultOfMove } from '#services/workflows/cadence/move.ts';
import { oftenRejection } from '#services/workflows/cadence/refusal.ts';
import type { Call } from '../operation.ts';
import { readingOwnWrites } from './check.ts';

/**
 * Refuses to move a target to a time at which its account would publish too often.
 * @throws Rejection `cadence_exceeded`
 */
export const requireCadence = async (
  call: Pick<Call, 'deps' | 'workspaceId' | 'behind'>,
  state: TargetState,
  command: TargetCommand,
): Promise<void> => {
  if (state.status === 'none') return;
  const { accountId, platform, targetId } = state.common;
  const source = await readingOwnWrites(call);
  const message = await faultOfMove(call.deps.store, source, state, command, new Set([targetId]));
  if (message !== null) throw oftenRejection([{ path: '', code: 'cadence_exceeded', message, accountId, platform }]);
};
