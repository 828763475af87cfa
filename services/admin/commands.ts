import { callFromSandbox, forgetAccount } from './accounts.ts';
import { listFeedKeys, listFeedUses, rotateFeedKeyOf, verifyExportOf, verifyInstallation } from './audit.ts';
import { writeBundle } from './audit-bundle.ts';
import { diffOf } from './audit-diff.ts';
import { replay } from './audit-replay.ts';
import { replayBundle } from './audit-replay-bundle.ts';
import { setCadence } from './cadence.ts';
import { deleteWorkspace, restoreWorkspace } from './closing.ts';
import type { Admin, CommandOutput, Given } from './context.ts';
import {
  type DataFiles,
  eraseClient,
  listData,
  migrateTables,
  rebuildProjection,
  removeData,
  resetLog,
  settleTarget,
  type Tables,
  uses,
} from './installation.ts';
import { createKey, listKeys, revokeKey, revokeLeaked, rotateKey, rotateOAuthKey } from './keys.ts';
import { mediaQuota } from './media.ts';
import { exportFeed } from './move-export.ts';
import { importWorkspace } from './move-import.ts';
import { checkNetwork } from './network-check.ts';
import { listOfParked, retryParked, skipParked } from './parked.ts';
import { erase, inviteMember, linkMember, linkPerson, proveEmail, removeFactor } from './people.ts';
import { hold, publishingState, resume } from './publishing.ts';
import { setQuota } from './quota.ts';
import { defineReport, listReports, removeReport, runReport } from './reports.ts';
import { declareRestored, trustRestored } from './restored.ts';
import {
  addMember,
  changeRole,
  createWorkspace,
  endSessions,
  listMembers,
  listWorkspaces,
  removeMember,
  renameWorkspace,
  session,
} from './workspaces.ts';

/** The table of the operator's commands. `<x>` is required, `--y` too unless it stands in brackets. */

interface Words {
  readonly usage: string;
  readonly about: string;
}
export type Command = Words &
  (
    | { readonly run: (admin: Admin, given: Given) => Promise<CommandOutput> }
    /** A command that needs no database. */
    | { readonly onDisk: (files: DataFiles, given: Given) => CommandOutput | Promise<CommandOutput> }
    /** A command that works on the tables before anything else does. */
    | { readonly onTables: (tables: Tables, given: Given) => Promise<CommandOutput> }
  );

export const commands: readonly Command[] = [
  {
    usage: 'workspace create --name NAME [--timezone ZONE] [--owner NAME]',
    about: 'creates a workspace with an Owner and a sandbox twin',
    run: createWorkspace,
  },
  { usage: 'workspace list', about: 'lists all workspaces with their sandbox twins', run: listWorkspaces },
  {
    usage: 'workspace rename <workspace> [--name NAME] [--timezone ZONE]',
    about: 'changes the name or zone of a workspace and of its twin',
    run: renameWorkspace,
  },
  {
    usage: 'workspace delete <workspace> [--name NAME] [--days N] [--receipt FILE]',
    about:
      'closes a workspace and its twin: nothing is published, and its keys are answered workspace_closed. NAME is its name, so that no other is meant. For N days, 30 if you name none, workspace restore takes that back; behind them the same command erases all of it, and shows the signed receipt, also into FILE and FILE.twin. Goes on after a death. Of events in Postgres alone',
    run: deleteWorkspace,
  },
  {
    usage: 'workspace restore <workspace> [--yes]',
    about:
      'opens a workspace again that workspace delete or an export with --final has closed. Behind an export it asks first, unless --yes is there: where another installation has imported it, it would publish twice',
    run: restoreWorkspace,
  },
  {
    usage: 'member add --name NAME --role ROLE [--workspace ID]',
    about: 'adds a member; ROLE: owner, manager, creator or viewer',
    run: addMember,
  },
  { usage: 'member list [--workspace ID]', about: 'lists members and their roles', run: listMembers },
  {
    usage: 'member role <member> <role>',
    about: 'gives a member another role, from the next call of their keys on',
    run: changeRole,
  },
  {
    usage: 'member remove <member>',
    about:
      'removes a member; their keys and sessions stop working. Shows what the member leaves: keys, links, webhook endpoints and recycled posts that have not ended',
    run: removeMember,
  },
  {
    usage: 'member invite --role ROLE [--email ADDRESS] [--workspace ID]',
    about: 'makes a link by which a person joins the team; works once, for 7 days',
    run: inviteMember,
  },
  {
    usage: 'member link <member> [--email ADDRESS]',
    about: 'makes a link by which a person signs in as a member that was made for keys alone; works once, for 7 days',
    run: linkMember,
  },
  {
    usage: 'person link <address> [--for PURPOSE]',
    about:
      'makes a link for a person; PURPOSE: reset (the default), a new password within an hour; sign_in, once within a day',
    run: linkPerson,
  },
  {
    usage: 'person prove <address>',
    about:
      'your word that the account with this address, as it is now, is of the person who has the address; ends nothing of it',
    run: proveEmail,
  },
  {
    usage: 'person factor-off <address>',
    about: 'turns off the second factor of a person who has lost the app and the recovery codes',
    run: removeFactor,
  },
  {
    usage: 'person erase <person>',
    about: 'erases a person, by address or id, who is a member of no workspace; the data cannot be recovered',
    run: erase,
  },
  {
    usage:
      'key create --mode MODE [--member ID] [--name NAME] [--scopes A,B] [--clients A,B] [--days N] [--workspace ID]',
    about:
      'creates a key; MODE: test or live; default: of the Owner, all scopes, all clients, 365 days. A key with --clients sees only what belongs to these clients. Shows the secret once',
    run: createKey,
  },
  { usage: 'key list [--workspace ID]', about: 'lists keys without their secrets', run: listKeys },
  {
    usage: 'key rotate <key>',
    about: 'makes a new secret and shows it once; the former one works for another 24 hours',
    run: rotateKey,
  },
  { usage: 'key revoke <key>', about: 'ends a key within a second', run: revokeKey },
  {
    usage: 'key revoke-leaked <file>',
    about: 'ends every key whose secret stands in the file, such as the report of a scanner; a secret is never shown',
    run: revokeLeaked,
  },
  {
    usage: 'session end <member>',
    about: 'ends at once the session tokens of a member that the command session made; their browsers stay signed in',
    run: endSessions,
  },
  {
    usage: 'session <member> [--mode MODE]',
    about: 'makes a first-party session token for 15 minutes and shows it once; MODE: live (the default) or test',
    run: session,
  },
  {
    usage: 'media quota [--bytes N] [--workspace ID]',
    about:
      'shows the media bytes and the quota of a workspace and its sandbox; --bytes N sets the quota, --bytes default resets it',
    run: mediaQuota,
  },
  {
    usage: 'cadence set [--platform PLATFORM] [--interval MINUTES] [--per-day N] [--mode MODE] [--workspace ID]',
    about:
      'sets how often each account of a workspace may publish, on one network or on all without a rule of their own; what is left out is not limited. It holds for attempts to publish that begin a second after the read models show it, for which the command waits a moment. MODE: live (the default) or test',
    run: setCadence,
  },
  {
    usage: 'quota set <limit> [--mode MODE] [--workspace ID]',
    about:
      'sets how many targets a workspace may publish in one month: a number, or none; MODE: live (the default) or test, its sandbox',
    run: setQuota,
  },
  {
    usage:
      'report define --name NAME [--report ID] [--kind KIND] [--window WINDOW] [--formats A,B] [--client ID] [--account ID] [--platform PLATFORM] [--every PERIOD] [--weekday N] [--day N] [--hour N] [--no-bom] [--workspace ID] [--mode MODE]',
    about:
      'KIND: workspace, client or account; WINDOW: last_30_days (the default), last_7_days, last_90_days, last_week or last_month; formats: pdf, csv, json; PERIOD: day, week or month, at --hour of the workspace, on --weekday (1 = Monday) or --day of the month; --no-bom: csv files begin without U+FEFF. --report replaces the definition of a saved report',
    run: defineReport,
  },
  {
    usage: 'report list [--workspace ID] [--mode MODE]',
    about: 'lists saved reports and their last runs',
    run: listReports,
  },
  { usage: 'report run <report> [--formats A,B]', about: 'requests a run; its window ends yesterday', run: runReport },
  { usage: 'report remove <report>', about: 'ends its schedule and deletes its exports', run: removeReport },
  {
    usage: 'data list',
    about: 'lists databases of removed data folders that this machine still keeps',
    onDisk: listData,
  },
  { usage: 'data remove <name>', about: 'deletes such a database for good', onDisk: removeData },
  {
    usage: 'oauth rotate',
    about: 'publishes a new key for access tokens, which signs after some minutes; tokens of the former one stay valid',
    run: rotateOAuthKey,
  },
  { usage: 'secrets', about: 'lists the versions of SECRET_KEY and what still needs each', run: uses },
  {
    usage: 'restored trust <account>',
    about:
      'your word, after a restore, that of the targets of this account that are due later none is out: they go out without a question to the network. For networks that cannot be asked',
    run: trustRestored,
  },
  {
    usage: 'restored --store-as-of TIME [--again]',
    about:
      'says that the database or the store was restored from a copy of that time: holds publishing, records every target that was due since as unknown, and has networks asked before anything older goes out. May be repeated',
    run: declareRestored,
  },
  {
    usage: 'target settle <target> <outcome> [--external-id ID] [--permalink URL] [--reason TEXT] [--segment N]',
    about:
      'records the outcome, published or failed, of a target whose outcome is unknown, or of the N-th segment of its thread',
    run: settleTarget,
  },
  {
    usage: 'publishing hold [--workspace ID] [--mode MODE]',
    about:
      'lets no post, hand-over, undo, first comment or copy out, of all workspaces or of one; processes go on, and networks are still asked. Every process sees it within a second, and it outlives a start',
    run: hold,
  },
  {
    usage: 'publishing resume [--workspace ID] [--mode MODE]',
    about: 'lets go out what became due meanwhile, in its order; a workspace that is held alone stays held',
    run: resume,
  },
  {
    usage: 'publishing show [--workspace ID] [--mode MODE]',
    about: 'says whether publishing is held, since when and by whom',
    run: publishingState,
  },
  {
    usage: 'network check <network> --account ID [--media FILE] [--set SETTINGS] [--leave-it] [--yes]',
    about:
      'publishes one real post on a connected account and deletes it again, to prove that this installation can; asks first, unless --yes is there. --media is a picture or video of this machine, --set the overrides of the network: boardId=1&title=A. --leave-it deletes nothing: a network that lets no program delete a post is checked only so',
    run: checkNetwork,
  },
  {
    usage: 'network call <account> <what>',
    about:
      'has the sandbox call the api about an account of a test key, as its network does: deauthorized, delete_data or post_state',
    run: callFromSandbox,
  },
  {
    usage: 'account forget <account>',
    about:
      'disconnects an account and deletes its profile and the permission to act for it, where its owner asks for that; the history keeps the former name encrypted until client erase',
    run: forgetAccount,
  },
  {
    usage: 'client erase <client>',
    about: 'destroys the key of the client’s personal data; the data cannot be recovered',
    run: eraseClient,
  },
  {
    usage: 'parked list [--group GROUP]',
    about: 'lists the streams that a consumer group parked, oldest first, and why',
    run: listOfParked,
  },
  {
    usage: 'parked retry <group> [--stream STREAM]',
    about: 'has the group try its parked events again, in the order of their revisions; shows those that stay parked',
    run: retryParked,
  },
  {
    usage: 'parked skip <group> <event>',
    about: 'leaves out the first parked event of a stream for good, and has the group try the later ones again',
    run: skipParked,
  },
  {
    usage: 'migrate [--dry-run]',
    about:
      'brings the tables to this release, as the start of any process does; --dry-run shows the files that would run',
    onTables: migrateTables,
  },
  {
    usage: 'log reset [--yes]',
    about:
      'deletes the topics of Kafka, after the event store was restored to an earlier day; all processes must be stopped. Asks first, unless --yes is there',
    run: resetLog,
  },
  {
    usage: 'rebuild <projection> [--anew]',
    about:
      'rebuilds its read models from the streams, beside live traffic; all: every read model and the analytics at once, and after a death the same command goes on with what was left, unless --anew is there. Exit code 0: rebuilt; 1: not, or not all; 2: not understood',
    run: rebuildProjection,
  },
  {
    usage: 'audit export --to DIR [--final] [--key-file FILE] [--without-files] [--workspace ID] [--test]',
    about:
      'writes all events with what proves them, and verify-export.mjs, which needs Node alone. --final closes the workspace here for ever, so that another installation imports it: nothing of it is published and no key works any more; FILE has the passphrase, of 16 characters or more, under which the data keys are wrapped. What cannot move is listed',
    run: exportFeed,
  },
  {
    usage: 'audit import <folder> --key-file FILE [--key KEY]',
    about:
      'takes over a workspace from an export with --final, over any event store; all processes must be stopped. KEY is a public key of the origin. The same command goes on after a death. Publishing of the workspace is held until publishing resume. To move the sandbox as well, export --test --final and import that first',
    run: importWorkspace,
  },
  {
    usage: 'audit verify-export <folder> [--key KEY] [--checkpoint FILE] [--expired KINDS]',
    about: 'names every event of an export that was changed, left out, put in or moved; needs no installation',
    onDisk: (_files, given) => verifyExportOf(given),
  },
  {
    usage: 'audit verify [--workspace ID] [--test] [--state FILE] [--expired KINDS]',
    about:
      'holds the log, rows, boundaries, approvals, deliveries, figures and files against the events; goes on where FILE says; KINDS: streams of which the store drops events by a rule',
    run: verifyInstallation,
  },
  {
    usage: 'audit replay <stream> [--at MOMENT] [--follow] [--workspace ID] [--test]',
    about:
      'shows the events of a stream, or of all with the word workspace, up to an instant or an event of the feed, or as they come',
    run: replay,
  },
  {
    usage: 'audit bundle <target> [--to FILE]',
    about: 'writes the events and the recorded answers of one target into a file, without secrets, persons and texts',
    run: writeBundle,
  },
  {
    usage: 'audit replay-bundle <file>',
    about: 'plays a bundle against the deciders and the sandbox of this release, and names where the outcome differs',
    run: replayBundle,
  },
  {
    usage: 'audit diff <from> <to> [--workspace ID] [--test] [--limit N] [--exit-code]',
    about:
      'shows what differs between two moments, each an event of the feed or an instant: 200 things, or N up to 10,000; with --exit-code it ends with 1 where anything does',
    run: diffOf,
  },
  {
    usage: 'audit reads [--workspace ID] [--test]',
    about: 'lists who read what of the feed, the newest hours first, 1,000 at most',
    run: listFeedUses,
  },
  { usage: 'audit keys', about: 'lists the public keys that sign checkpoints', run: listFeedKeys },
  {
    usage: 'audit rotate-key',
    about: 'signs checkpoints with a new key; those of former ones are verified as before',
    run: rotateFeedKeyOf,
  },
];
