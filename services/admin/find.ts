import { Rejection } from '#domain/decider.ts';
import { type LiveWorkspace, listLiveWorkspaces } from '#projections/models/workspaces.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import type { Mode } from '#schemas/common.ts';
import { uuidPattern } from '#schemas/common.ts';
import { tourName } from '#services/workflows/provision.ts';
import { type Admin, caughtUp } from './context.ts';

/** Finds the resource that an argument names. */

const form = new RegExp(uuidPattern);

/** @throws UsageError */
export const idOf = (text: string, what: string): string => {
  const id = text.toLowerCase();
  if (!form.test(id)) throw new UsageError(`${JSON.stringify(text)} is no id of a ${what}.`);
  return id;
};

/** @throws UsageError */
export const modeOf = (text: string): Mode => {
  if (text !== 'live' && text !== 'test') throw new UsageError('--mode is test or live.');
  return text;
};

export const liveWorkspaces = async (admin: Admin): Promise<readonly LiveWorkspace[]> => {
  await caughtUp(admin);
  return listLiveWorkspaces(admin.pool);
};

/** The named workspace, else the only one, tours aside. */
export const workspaceOf = async (admin: Admin, named: string | undefined): Promise<LiveWorkspace> => {
  const all = await liveWorkspaces(admin);
  const isMeant = ({ id, name }: LiveWorkspace): boolean =>
    named === undefined ? name !== tourName : id === idOf(named, 'workspace');
  const [only, second] = all.filter(isMeant);
  if (second !== undefined) {
    const list = all.map(({ id, name }) => `  ${id}  ${name}`).join('\n');
    throw new UsageError(`Say which: --workspace ID. There are:\n${list}`);
  }
  if (only !== undefined) return only;
  throw new Rejection(
    'not_found',
    named === undefined
      ? 'There is no workspace yet: make one with workspace create --name NAME.'
      : 'There is no such workspace: workspace list shows them.',
  );
};

/** The live workspace of a member. */
export const workspaceOfMember = async (admin: Admin, memberId: string): Promise<LiveWorkspace> => {
  const found = (await liveWorkspaces(admin)).find(({ members }) => members[memberId] !== undefined);
  if (found === undefined) throw new Rejection('not_found', 'There is no such member: member list shows them.');
  return found;
};
