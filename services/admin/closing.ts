import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Rejection } from '#domain/decider.ts';
import { testTwinIdOf } from '#domain/ids.ts';
import { beginErasure, eraseWorkspace, erasureOf } from '#projections/feed/erasure.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { closeWorkspaces, readClosed, reopenWorkspaces } from '#runtime/work/closed-workspaces.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { idOf, workspaceOf } from './find.ts';
import { numbered } from './move-export.ts';

/** Ends of workspaces, and the way back. */

const graceDays = 30;
const maxGraceDays = 365;
const dayMs = 86_400_000;

/** The live workspace and its sandbox twin. */
const bothOf = (workspaceId: string): readonly string[] => [workspaceId, testTwinIdOf(workspaceId)];

/** @throws UsageError */
const daysOf = (text: string | undefined): number => {
  const days = text === undefined ? graceDays : Number(text);
  if (!Number.isInteger(days) || days < 0 || days > maxGraceDays)
    throw new UsageError(`--days is a number of days from 0 to ${maxGraceDays}; without it ${graceDays}.`);
  return days;
};

/**
 * Closes a workspace, and erases it once its time is over, unless the projections process has: then it answers the receipt. One
 * row decides the first, which every process sees within a second; the second goes on after any death.
 */
export const deleteWorkspace = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const { pool, operator } = admin;
  const workspaceId = idOf(at(0), 'workspace');
  const days = daysOf(flag('days'));
  const begun = await erasureOf(admin, workspaceId);
  const closed = (await readClosed(pool)).get(workspaceId);
  // Once it has begun the name may be erased.
  if (begun === null) {
    const { name } = await workspaceOf(admin, workspaceId);
    if (flag('name') !== name)
      throw new UsageError(
        `The workspace ${workspaceId} has another name: nothing was closed. Say it by --name "NAME".`,
      );
    if (closed === undefined || closed.why === 'moved') return close(admin, workspaceId, days);
    if (closed.eraseAt !== null && Date.parse(closed.eraseAt) > operator.clock())
      return { workspaceId, closed: true, eraseAt: closed.eraseAt, next: nextOf(workspaceId) };
  }
  // An event without its number would leave no leaf.
  await numbered(admin);
  const erasing = { ...admin, clock: operator.clock };
  await beginErasure(erasing, bothOf(workspaceId));
  const receipts: string[] = [];
  for (const id of bothOf(workspaceId)) receipts.push(await eraseWorkspace(erasing, id));
  const file = flag('receipt');
  if (file !== undefined)
    for (const [index, receipt] of receipts.entries()) writeFileSync(fileOf(file, index), receipt);
  return { workspaceId, erased: true, receipt: receipts[0] ?? '', receiptOfTwin: receipts[1] ?? '' };
};

const fileOf = (file: string, index: number): string => path.resolve(index === 0 ? file : `${file}.twin`);

const nextOf = (workspaceId: string): string =>
  `to take it back: npm run admin -- workspace restore ${workspaceId}; behind that instant the projections process erases it, and the same command answers the receipt`;

const close = async ({ pool, operator }: Admin, workspaceId: string, days: number): Promise<CommandOutput> => {
  const eraseAt = new Date(operator.clock() + days * dayMs).toISOString();
  await closeWorkspaces(pool, bothOf(workspaceId), { why: 'deleting', by: operator.actor.id, eraseAt });
  return { workspaceId, closed: true, eraseAt, next: nextOf(workspaceId) };
};

/** One statement, which decides it for every process within a second. */
export const restoreWorkspace = async (admin: Admin, { at, has }: Given): Promise<CommandOutput> => {
  const { pool, confirm } = admin;
  const workspaceId = idOf(at(0), 'workspace');
  const closed = await readClosed(pool);
  const ids = bothOf(workspaceId).filter((id) => closed.has(id));
  if (ids.length === 0)
    throw new Rejection('not_found', 'No workspace of this id is closed: there is nothing to restore.');
  const isMoved = ids.some((id) => closed.get(id)?.why === 'moved');
  const asked = 'Was it imported nowhere, or is it deleted there? Else both installations publish what is scheduled.';
  if (isMoved && !has('yes') && (await confirm?.(asked)) !== true)
    throw new UsageError(`Nothing was opened. ${asked} Say --yes where nobody can be asked.`);
  if (!(await reopenWorkspaces(pool, ids)))
    throw new Rejection('not_found', 'The erasure of this workspace has begun: there is nothing left to restore.');
  return { workspaceId, open: true };
};
