import { tenantIdOf } from '#domain/ids.ts';
import { workspace } from '#domain/workspace.ts';
import { monthBegin, monthOf } from '#domain/zones.ts';
import { countedTargets } from '#projections/queries/quota-targets.ts';
import { execute } from '#runtime/eventing/execute.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { maxPostingQuota } from '#schemas/quota.ts';
import { contextOf } from '#services/workflows/provision.ts';
import { adoptTargets } from '#services/workflows/quota/adopt.ts';
import { type Admin, type CommandOutput, type Given, shown } from './context.ts';
import { modeOf, workspaceOf } from './find.ts';

/** How many targets a workspace may publish in a month. */

const limitOf = (text: string): number | null => {
  if (text === 'none') return null;
  const limit = Number(text);
  if (!/^\d{1,7}$/.test(text) || limit > maxPostingQuota) {
    throw new UsageError(`<limit> is a whole number of targets, at most ${maxPostingQuota}, or none.`);
  }
  return limit;
};

/**
 * Sets the quota, and then gives places to the targets that are due already. If we die in between, the sweeper of the
 * outcomes gives them theirs; the same command again does it, too.
 */
export const setQuota = async (admin: Admin, { at, flag }: Given): Promise<CommandOutput> => {
  const limit = limitOf(at(0));
  const mode = modeOf(flag('mode') ?? 'live');
  const { id: liveId, timezone } = await workspaceOf(admin, flag('workspace'));
  const { store, pool, operator, signal } = admin;
  const workspaceId = tenantIdOf(liveId, mode);
  const context = contextOf(operator, workspaceId);
  const { positions } = operator;
  await execute(store, workspace, workspaceId, { type: 'SetPostingQuota', limit }, context, { positions });
  faultPoint('quota:after-set');
  await shown(admin);
  if (limit !== null) {
    const from = monthBegin(monthOf(context.now, timezone), timezone);
    const by = { store, context, rules: { timezone, quota: limit } };
    await adoptTargets(by, (after) => countedTargets(pool, workspaceId, from, after), signal);
  }
  return { workspaceId, mode, limit: limit ?? 'none' };
};
