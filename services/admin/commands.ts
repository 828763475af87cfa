import type { Admin, CommandOutput, Given } from './context.ts';
import { type DataFiles, listData, removeData } from './data.ts';
import { eraseClient, rebuildProjection, settleTarget, uses } from './installation.ts';
import { createKey, listKeys, revokeKey, rotateKey } from './keys.ts';
import { mediaQuota } from './media.ts';
import { listOfParked, retryParked, skipParked } from './parked.ts';
import { defineReport, listReports, removeReport, runReport } from './reports.ts';
import {
  addMember,
  changeRole,
  createWorkspace,
  listMembers,
  listWorkspaces,
  removeMember,
  renameWorkspace,
  session,
} from './workspaces.ts';

/** The table of what an operator can do. `<x>` must be given, `--y` too unless it stands in brackets. */

interface Words {
  readonly usage: string;
  readonly about: string;
}
export type Command = Words &
  (
    | { readonly run: (admin: Admin, given: Given) => Promise<CommandOutput> }
    /** One that needs no database. */
    | { readonly onDisk: (files: DataFiles, given: Given) => CommandOutput }
  );

export const commands: readonly Command[] = [
  {
    usage: 'workspace create --name NAME [--timezone ZONE] [--owner NAME]',
    about: 'a workspace with an Owner and its sandbox twin',
    run: createWorkspace,
  },
  { usage: 'workspace list', about: 'all workspaces, their twins beside them', run: listWorkspaces },
  {
    usage: 'workspace rename <workspace> [--name NAME] [--timezone ZONE]',
    about: 'changes name or zone, also of the twin',
    run: renameWorkspace,
  },
  {
    usage: 'member add --name NAME --role ROLE [--workspace ID]',
    about: 'ROLE: owner, manager, creator or viewer',
    run: addMember,
  },
  { usage: 'member list [--workspace ID]', about: 'members and their roles', run: listMembers },
  { usage: 'member role <member> <role>', about: 'another role, from the next call of their keys on', run: changeRole },
  { usage: 'member remove <member>', about: 'their keys and sessions lose all power', run: removeMember },
  {
    usage: 'key create --mode MODE [--member ID] [--name NAME] [--scopes A,B] [--days N] [--workspace ID]',
    about: 'MODE: test or live; default: the Owner’s, all scopes, 365 days. The secret is shown once',
    run: createKey,
  },
  { usage: 'key list [--workspace ID]', about: 'keys, without their secrets', run: listKeys },
  { usage: 'key rotate <key>', about: 'a new secret, shown once; the former works 24 hours more', run: rotateKey },
  { usage: 'key revoke <key>', about: 'ends a key within a second', run: revokeKey },
  {
    usage: 'session <member> [--mode MODE]',
    about: 'a first-party session token for 15 minutes, shown once; MODE: live (the default) or test',
    run: session,
  },
  {
    usage: 'media quota [--bytes N] [--workspace ID]',
    about:
      'what the media of a workspace and its sandbox take and may take; with --bytes sets it, default takes it back',
    run: mediaQuota,
  },
  {
    usage:
      'report define --name NAME [--report ID] [--kind KIND] [--window WINDOW] [--formats A,B] [--client ID] [--account ID] [--platform PLATFORM] [--every PERIOD] [--weekday N] [--day N] [--hour N] [--workspace ID] [--mode MODE]',
    about:
      'KIND: workspace, client or account; WINDOW: last_30_days (the default), last_7_days, last_90_days, last_week or last_month; formats: pdf, csv, json; PERIOD: day, week or month, at --hour of the workspace, on --weekday (1 = Monday) or --day of the month. --report replaces what one is',
    run: defineReport,
  },
  { usage: 'report list [--workspace ID] [--mode MODE]', about: 'saved reports and their last runs', run: listReports },
  { usage: 'report run <report> [--formats A,B]', about: 'asks for a run; its days end yesterday', run: runReport },
  { usage: 'report remove <report>', about: 'ends its schedule and deletes its exports', run: removeReport },
  {
    usage: 'data list',
    about: 'databases of data folders that were removed, kept aside on this machine',
    onDisk: listData,
  },
  { usage: 'data remove <name>', about: 'removes one of them for good', onDisk: removeData },
  { usage: 'secrets', about: 'versions of SECRET_KEY and what still needs each', run: uses },
  {
    usage: 'target settle <target> <outcome> [--external-id ID] [--permalink URL] [--reason TEXT] [--segment N]',
    about:
      'what became of a target, or of the N-th segment of its thread, whose outcome stayed unknown: published or failed',
    run: settleTarget,
  },
  {
    usage: 'client erase <client>',
    about: 'destroys the key of its personal data; nothing brings it back',
    run: eraseClient,
  },
  {
    usage: 'parked list [--group GROUP]',
    about: 'streams that a consumer group set aside, oldest first, and why',
    run: listOfParked,
  },
  {
    usage: 'parked retry <group> [--stream STREAM]',
    about: 'has what is parked tried again, in the order of its revisions; shows what stays parked',
    run: retryParked,
  },
  {
    usage: 'parked skip <group> <event>',
    about: 'leaves out the first parked event of a stream for good, and has those behind it tried again',
    run: skipParked,
  },
  {
    usage: 'rebuild <projection>',
    about: 'makes its read models anew from the streams, beside live traffic',
    run: rebuildProjection,
  },
];
