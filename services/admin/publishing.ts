import { tenantIdOf } from '#domain/ids.ts';
import { everyWorkspace, holdPublishing, readHolds, resumePublishing } from '#runtime/work/publishing-hold.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import { modeOf, workspaceOf } from './find.ts';

/** Lets nothing go out, and lets it go out again, while the processes run: each sees it within a second. */

/** A workspace, or all; the read models may stand still while publishing is held, so only a named one is looked for. */
const scopeOf = async (admin: Admin, { flag }: Given): Promise<string> => {
  const named = flag('workspace');
  if (named === undefined) return everyWorkspace;
  const { id } = await workspaceOf(admin, named);
  return tenantIdOf(id, modeOf(flag('mode') ?? 'live'));
};

const holdState = async ({ pool, publishing, note }: Admin, scope: string): Promise<CommandOutput> => {
  const holds = await readHolds(pool);
  const hold = holds.get(everyWorkspace) ?? holds.get(scope) ?? null;
  if (publishing.bySetting)
    note('PUBLISHING=hold is set here: processes that started with it hold until they start without.');
  return {
    ...(scope === everyWorkspace ? { workspaces: 'all' } : { workspaceId: scope }),
    publishing: hold === null ? 'on' : 'hold',
    since: hold?.since ?? null,
    by: hold?.by ?? null,
    heldAlone: [...holds.keys()].filter((one) => one !== everyWorkspace).length,
  };
};

export const hold = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const scope = await scopeOf(admin, given);
  await holdPublishing(admin.pool, scope, admin.operator.actor.id);
  return holdState(admin, scope);
};

export const resume = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const scope = await scopeOf(admin, given);
  await resumePublishing(admin.pool, scope);
  return holdState(admin, scope);
};

export const publishingState = async (admin: Admin, given: Given): Promise<CommandOutput> =>
  holdState(admin, await scopeOf(admin, given));
