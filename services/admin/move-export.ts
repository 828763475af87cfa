import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { BlobError } from '#contracts/ports/blob-store.ts';
import { media } from '#domain/media.ts';
import { subjectOf } from '#projections/feed/erasure.ts';
import { hasNumbered } from '#projections/feed/moments.ts';
import { isInFeed, textsOf } from '#projections/feed/read.ts';
import { view } from '#projections/shapes.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { closeWorkspaces, readClosed } from '#runtime/work/closed-workspaces.ts';
import { idOf, kindOf } from '#schemas/topics.ts';
import { feedOf, linesInto, type Walked, writeExport } from './audit.ts';
import { keptFilesOf } from './audit-streams.ts';
import type { Admin, CommandOutput, Given, Shown } from './context.ts';
import {
  type BlobLine,
  blobsFile,
  dataKeysFile,
  type FinalManifest,
  hashesOf,
  type MovedKey,
  readPassphrase,
  requestsFile,
  type Stays,
  wrapKeys,
} from './move-folder.ts';

/**
 * The export after which another installation goes on with a workspace. The workspace is closed here first: nothing of it is
 * published and no call is answered any more, so that no post goes out in both. If we die at any point behind that, the workspace
 * stays closed, and the same command into another folder exports it again.
 */

/** A process learns within this that the workspace is closed, and an append that it had begun is stored. Milliseconds. */
const quietMs = 20_000;
/** How long targets that are under way are waited for. The wall lets none of them call once the workspace is closed. */
const settleMs = 30_000;
const numberMs = 60_000;
const lookMs = 250;
const pageEvents = 500;

export interface FinalExport {
  readonly folder: string;
  readonly passphrase: Buffer;
  readonly withFiles: boolean;
}

export interface ExportPaces {
  readonly quietMs: number;
  readonly settleMs: number;
}

/** @throws UsageError where the folder holds anything */
export const exportFeed = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const folder = path.resolve(given.flag('to') ?? '');
  await mkdir(folder, { recursive: true });
  if ((await readdir(folder)).length > 0) throw new UsageError(`${folder} is not empty: name a new folder by --to.`);
  const keyFile = given.flag('key-file');
  if (!given.has('final')) {
    if (keyFile === undefined && !given.has('without-files'))
      return writeExport(admin, await feedOf(admin, given), folder);
    throw new UsageError(
      '--key-file and --without-files are of an export with --final, which another installation imports.',
    );
  }
  if (keyFile === undefined)
    throw new UsageError(
      '--final needs --key-file: a file with a passphrase, under which the data keys are wrapped for the way.',
    );
  const passphrase = readPassphrase(keyFile);
  return writeFinalExport(admin, await feedOf(admin, given), {
    ...{ folder, passphrase, withFiles: !given.has('without-files') },
  });
};

/** @throws Error that says what to do next */
export const writeFinalExport = async (
  admin: Admin,
  workspaceId: string,
  { folder, passphrase, withFiles }: FinalExport,
  paces: ExportPaces = { quietMs, settleMs },
): Promise<Shown> => {
  await close(admin, workspaceId);
  faultPoint('export:after-close');
  await quiet(admin, workspaceId, paces);
  await numbered(admin);
  const seen = new Seen();
  let stays: readonly Stays[] = [];
  const write = async (size: number): Promise<object> => {
    await writeRequests(admin, workspaceId, folder);
    const blobs = await writeBlobs(admin, seen.assets, { folder, withFiles });
    const files = await hashesOf(folder);
    const wrapped = wrapKeys(passphrase, await keysOf(admin, seen.subjects), { workspaceId, files });
    await writeFile(path.join(folder, dataKeysFile), `${JSON.stringify(wrapped, null, 2)}\n`);
    if (seen.expired > 0)
      throw new Error(
        `A rule of retention dropped ${seen.expired} of ${size} events: they are no longer there to be moved. Remove the rule before the next move; this workspace can only be exported as a proof, without --final.`,
      );
    stays = (await staysOf(admin, workspaceId, seen, blobs)).filter(({ count }) => count > 0);
    const manifest: Pick<FinalManifest, 'final' | 'withFiles' | 'streams' | 'stays' | 'files'> = {
      ...{ final: true, withFiles, streams: seen.streams, stays, files },
    };
    return manifest;
  };
  const made = await writeExport(admin, workspaceId, folder, { see: (one) => seen.add(one), write });
  return {
    ...made,
    keys: seen.subjects.size,
    streams: Object.values(seen.streams).reduce((sum, count) => sum + count, 0),
    stays,
    next: `in the other installation, with its processes stopped: npm run audit -- import ${folder} --key-file FILE. To go on here instead: npm run admin -- workspace restore ${workspaceId}`,
  };
};

const close = async (admin: Admin, workspaceId: string): Promise<void> => {
  const { pool, operator } = admin;
  const before = (await readClosed(pool)).get(workspaceId);
  if (before?.why === 'deleting')
    throw new Error(
      `This workspace is to be erased at ${before.eraseAt}: take that back first, with npm run admin -- workspace restore ${workspaceId}.`,
    );
  await closeWorkspaces(pool, [workspaceId], { why: 'moved', by: operator.actor.id, eraseAt: null });
};

/** Waits until nothing is written any more but what a network answers. */
const quiet = async (admin: Admin, workspaceId: string, paces: ExportPaces): Promise<void> => {
  const { pool, note, signal } = admin;
  const { rows } = await pool.query<{ readonly ms: number }>(
    'select (extract(epoch from now() - since) * 1000)::float8 as ms from ops.closed_workspaces where workspace_id = $1',
    [workspaceId],
  );
  const leftMs = paces.quietMs - (rows[0]?.ms ?? 0);
  note('The workspace is closed: nothing of it is published here, and its keys are answered workspace_closed.');
  if (leftMs > 0) {
    note(`Waiting ${Math.ceil(leftMs / 1_000)} s for what had begun.`);
    await delay(leftMs, undefined, { signal });
  }
  const until = performance.now() + paces.settleMs;
  for (;;) {
    const open = await underWay(admin, workspaceId);
    if (open === 0) return;
    if (performance.now() >= until)
      return note(
        `${open} targets are in the middle of publishing: the import records their outcome as unknown, and their networks are asked there.`,
      );
    await delay(lookMs, undefined, { signal });
  }
};

const underWay = async ({ pool }: Admin, workspaceId: string): Promise<number> => {
  const { rows } = await pool.query<{ readonly n: number }>(
    `select count(*)::int as n from ${view('post_targets')} t where t.workspace_id = $1 and t.status = 'publishing'`,
    [workspaceId],
  );
  return rows[0]?.n ?? 0;
};

/** Waits until the feed has all that the store has. @throws Error that says what to do next */
export const numbered = async ({ pool, eventStore, signal }: Admin): Promise<void> => {
  const head = await eventStore.head();
  const until = performance.now() + numberMs;
  while (!(await hasNumbered(pool, head))) {
    if (performance.now() > until)
      throw new Error(
        'The feed is not numbered up to the end of the store: start the projections (or npm start), and run the same command again (an export into another folder). The workspace stays closed.',
      );
    await delay(lookMs, undefined, { signal });
  }
};

/** What is gathered while the events are written. */
class Seen {
  readonly streams: Record<string, number> = {};
  readonly types: Record<string, number> = {};
  /** Whose data keys seal members of its events. */
  readonly subjects = new Set<string>();
  readonly assets = new Set<string>();
  expired = 0;

  add({ row: { stream, revision, type }, event }: Walked): void {
    const kind = kindOf(stream);
    this.types[type] = (this.types[type] ?? 0) + 1;
    if (revision === 0n) {
      this.streams[kind] = (this.streams[kind] ?? 0) + 1;
      if (kind === 'media') this.assets.add(idOf(stream));
    }
    if (event === null) this.expired += 1;
    else if (Buffer.from(event.data).includes('"$sealed"')) this.subjects.add(subjectOf(event.data));
  }
}

/** @throws MissingKey: SECRET_KEY lacks the version of one */
const keysOf = async ({ dataKeys }: Admin, subjects: ReadonlySet<string>): Promise<readonly MovedKey[]> => {
  const keys: MovedKey[] = [];
  for (const subject of [...subjects].sort())
    keys.push({ subject, key: (await dataKeys.forReading(subject))?.toString('base64') ?? null });
  return keys;
};

/** Streams of calls stand in no feed; a repeat of a call is recognised by them. */
const writeRequests = async ({ eventStore, signal }: Admin, workspaceId: string, folder: string): Promise<void> => {
  const lines = linesInto(path.join(folder, requestsFile));
  for (let after: bigint | null = null; ; ) {
    signal.throwIfAborted();
    const { events, next, isEnd } = await eventStore.readWorkspace(workspaceId, { after, limit: pageEvents });
    await lines.write(
      events
        .filter(({ stream }) => !isInFeed(stream))
        .map((event) => {
          const { id, stream, revision, type } = event;
          return JSON.stringify({ id, stream, revision: Number(revision), type, ...textsOf(event) });
        }),
    );
    if (isEnd) break;
    after = next;
  }
  await lines.end();
};

const writeBlobs = async (
  admin: Admin,
  assets: ReadonlySet<string>,
  { folder, withFiles }: Pick<FinalExport, 'folder' | 'withFiles'>,
): Promise<readonly BlobLine[]> => {
  const lines = linesInto(path.join(folder, blobsFile));
  if (withFiles) await mkdir(path.join(folder, 'files'), { recursive: true });
  const missing: BlobLine[] = [];
  for (const id of assets) {
    const { events } = await admin.store.load(media, id);
    for (const file of keptFilesOf(events)) {
      admin.signal.throwIfAborted();
      const isThere =
        !withFiles || (await copied(admin, file.key, path.join(folder, 'files', file.sha256), file.sha256));
      const line: BlobLine = isThere ? file : { ...file, missing: true };
      if (!isThere) missing.push(line);
      await lines.write([JSON.stringify(line)]);
    }
  }
  await lines.end();
  return missing;
};

/** False: the file is gone, or another one lies there. */
const copied = async ({ blobs, signal, note }: Admin, key: string, to: string, sha256: string): Promise<boolean> => {
  try {
    const { body } = await blobs.get(key, { signal });
    const hash = createHash('sha256');
    await pipeline(
      body,
      async function* (chunks) {
        for await (const chunk of chunks) {
          hash.update(chunk as Buffer);
          yield chunk;
        }
      },
      createWriteStream(to),
    );
    if (hash.digest('hex') === sha256) return true;
    note(`the file ${key} is not the one that was stored: it does not move`);
    return false;
  } catch (error) {
    if (!(error instanceof BlobError) || error.code !== 'not_found') throw error;
    note(`the file ${key} is not there: it does not move`);
    return false;
  }
};

/** What cannot go with the workspace as it is. */
const staysOf = async (
  { pool }: Admin,
  workspaceId: string,
  { types, streams }: Seen,
  missing: readonly BlobLine[],
): Promise<readonly Stays[]> => {
  const { rows } = await pool.query<{ readonly credentials: number; readonly deliveries: number }>(
    `select (select count(*) from ops.network_credentials where workspace_id = $1)::int as credentials,
       (select count(*) from ops.webhook_queue where workspace_id = $1)::int as deliveries`,
    [workspaceId],
  );
  const of = (name: string): number => types[name] ?? streams[name] ?? 0;
  return [
    {
      ...{ what: 'credentials of networks', count: rows[0]?.credentials ?? 0 },
      becomes: 'the accounts ask their owners for a new consent; what is due is held until publishing is resumed there',
    },
    {
      ...{ what: 'persons behind members', count: of('MemberIdentified') },
      becomes: 'they belong to this installation: nobody is signed in there until an Owner is made for them, keys work',
    },
    {
      ...{ what: 'secrets of webhooks', count: of('webhook') },
      becomes: 'derived from SECRET_KEY: each endpoint signs with a new secret there, and the former one ends',
    },
    {
      ...{
        what: 'links to connect, to join and to approve',
        count: of('invite') + of('teaminvite') + of('ApprovalLinkCreated'),
      },
      becomes: 'derived from SECRET_KEY: those that are open are revoked there, make new ones',
    },
    {
      ...{ what: 'apps and their tokens', count: of('grant') },
      becomes: 'tokens are of this installation: persons authorize their apps again',
    },
    {
      ...{ what: 'files that are lost here', count: missing.length },
      becomes: 'their media stay without them there',
    },
    {
      ...{ what: 'files of reports', count: of('ReportRunCompleted') },
      becomes: 'run the reports again there',
    },
    {
      ...{ what: 'deliveries of webhooks that wait', count: rows[0]?.deliveries ?? 0 },
      becomes: 'still sent from here; there endpoints get what happens after the import',
    },
  ];
};
