import { Rejection } from '#domain/decider.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { readClosed, reopenWorkspaces } from '#runtime/work/closed-workspaces.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { idOf } from './find.ts';

/** Ends of workspaces, and the way back. */

/** One statement, which decides it for every process within a second. */
export const restoreWorkspace = async (admin: Admin, { at, has }: Given): Promise<CommandOutput> => {
  const { pool, confirm } = admin;
  const workspaceId = idOf(at(0), 'workspace');
  const closed = await readClosed(pool);
  const ids = [workspaceId, testTwinIdOf(workspaceId)].filter((id) => closed.has(id));
  if (ids.length === 0)
    throw new Rejection('not_found', 'No workspace of this id is closed: there is nothing to restore.');
  const isMoved = ids.some((id) => closed.get(id)?.why === 'moved');
  const asked = 'Was it imported nowhere, or is it deleted there? Else both installations publish what is scheduled.';
  if (isMoved && !has('yes') && (await confirm?.(asked)) !== true)
    throw new UsageError(`Nothing was opened. ${asked} Say --yes where nobody can be asked.`);
  await reopenWorkspaces(pool, ids);
  return { workspaceId, open: true };
};
