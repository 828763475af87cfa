import { createHash } from 'node:crypto';
import { createReadStream, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { type EventToAppend, maxAppendBytes, workspaceOf } from '#contracts/ports/event-store.ts';
import { emptyFrontier, type Frontier, leafOf, rootOf } from '#domain/tree.ts';
import { type FeedMove, takeOverFeed } from '#projections/feed/moves.ts';
import { isInFeed } from '#projections/feed/read.ts';
import { grow } from '#projections/feed/tree.ts';
import { faultPoint } from '#runtime/process/fault-point.ts';
import { UsageError } from '#runtime/process/usage-error.ts';
import { requireWholeExport } from './audit.ts';
import type { Admin, CommandOutput, Given, Shown } from './context.ts';
import {
  type BlobLine,
  blobsFile,
  dataKeysFile,
  type EventLine,
  eventsFile,
  type FinalManifest,
  hashesOf,
  linesOf,
  type MovedKey,
  readPassphrase,
  requestsFile,
  sha256OfFile,
  unwrapKeys,
} from './move-folder.ts';
import { settleMove } from './move-settle.ts';

/**
 * Takes over a workspace that another installation has exported for the last time. Everything is verified before anything is written.
 * The row of the move comes first: from then on no process of this installation starts and publishing is held, so that nobody
 * reads half a workspace. Every step behind it changes nothing when it is repeated: keys and files are there or not, an append
 * with the same ids succeeds again, and deciders yield nothing twice. So the same command goes on after any death.
 */

const maxEvents = 500;
/** Of one append, with room for what a store counts beside. */
const maxBytes = maxAppendBytes - 16 * 1_024;

interface ReadExport {
  readonly folder: string;
  readonly manifest: FinalManifest;
  /** Of the manifest. */
  readonly digest: string;
  readonly keys: readonly MovedKey[];
  readonly root: string;
}

export const importWorkspace = async (admin: Admin, given: Given): Promise<CommandOutput> => {
  const read = await readExport(path.resolve(given.at(0)), {
    passphrase: readPassphrase(given.flag('key-file') ?? ''),
    key: given.flag('key'),
  });
  await requireStopped(admin);
  return importExport(admin, read);
};

const jsonOf = <T>(folder: string, name: string): T => JSON.parse(readFileSync(path.join(folder, name), 'utf8')) as T;

/** @throws Error or UsageError that says what is wrong; nothing was written */
export const readExport = async (
  folder: string,
  { passphrase, key }: { readonly passphrase: Buffer; readonly key?: string | undefined },
): Promise<ReadExport> => {
  if (!existsSync(path.join(folder, 'manifest.json')))
    throw new UsageError(`${folder} is no export, or one that did not end: it has no manifest.json.`);
  const manifest = jsonOf<FinalManifest>(folder, 'manifest.json');
  if (manifest.final !== true || !existsSync(path.join(folder, dataKeysFile)))
    throw new UsageError(
      'This export was made without --final: its workspace goes on where it is, and would publish in both installations. Export it there with --final --key-file FILE.',
    );
  const hashes = await hashesOf(folder);
  for (const name of new Set([...Object.keys(hashes), ...Object.keys(manifest.files)]))
    if (hashes[name] !== manifest.files[name])
      throw new Error(`${name} is not the file that was exported. Nothing was imported: copy the export again.`);
  const keys = unwrapKeys(passphrase, jsonOf(folder, dataKeysFile), manifest);
  const { root, events } = await requireWholeExport(folder, { key });
  if (events !== manifest.size) throw new Error(`the manifest names ${manifest.size} events, and there are ${events}`);
  await requireFiles(folder, manifest);
  const digest = createHash('sha256')
    .update(readFileSync(path.join(folder, 'manifest.json')))
    .digest('hex');
  return { folder, manifest, digest, keys, root };
};

const requireFiles = async (folder: string, { withFiles, workspaceId }: FinalManifest): Promise<void> => {
  for await (const { key, sha256, missing } of linesOf<BlobLine>(folder, blobsFile)) {
    if (key.split('/')[0] !== workspaceId) throw new Error(`the file ${key} is none of this workspace`);
    if (!withFiles || missing === true) continue;
    const file = path.join(folder, 'files', sha256);
    if (!/^[0-9a-f]{64}$/.test(sha256) || !existsSync(file) || (await sha256OfFile(file)) !== sha256)
      throw new Error(
        `files/${sha256} is not the file that was exported. Nothing was imported: copy the export again.`,
      );
  }
};

/** Names under which the processes are connected. */
const processes = ['api', 'projections', 'publisher', 'outcomes', 'webhooks', 'media', 'insights', 'reports', 'relay'];

/** @throws UsageError */
const requireStopped = async ({ pool }: Admin): Promise<void> => {
  const { rows } = await pool.query<{ readonly name: string }>(
    `select distinct application_name as name from pg_stat_activity
     where datname = current_database() and application_name = any($1::text[]) order by 1`,
    [processes],
  );
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(', ');
  throw new UsageError(
    `Stop all processes first (npm start, or each of them): ${names} would read half a workspace. Nothing was imported.`,
  );
};

/** @throws Error; the same command goes on where this one ended */
export const importExport = async (admin: Admin, read: ReadExport): Promise<Shown> => {
  const { manifest, root, digest, keys } = read;
  const { workspaceId, size } = manifest;
  if (!(await begin(admin, read))) return { workspaceId, events: size, root, imported: 'before, from this export' };
  faultPoint('import:after-begin');
  for (const { subject, key } of keys)
    await admin.dataKeys.adopt(subject, key === null ? null : Buffer.from(key, 'base64'));
  faultPoint('import:after-keys');
  const files = await putFiles(admin, read);
  const position = await appendFeed(admin, read);
  for await (const line of linesOf<EventLine>(read.folder, requestsFile)) await appendRun(admin, [line]);
  faultPoint('import:after-events');
  await requireSameFeed(admin, read);
  const settled = await settleMove(admin, read.folder, manifest);
  faultPoint('import:after-settled');
  await takeOverFeed(admin.pool, admin.secrets, {
    ...{ workspaceId, epoch: manifest.epoch, size, root, position, now: admin.operator.clock() },
    note: readFileSync(path.join(read.folder, 'checkpoint.txt'), 'utf8'),
    verifiers: jsonOf<{ keys: readonly { verifier: string }[] }>(read.folder, 'keys.json').keys.map(
      ({ verifier }) => verifier,
    ),
    moves: existsSync(path.join(read.folder, 'moves.json'))
      ? jsonOf<{ moves: readonly FeedMove[] }>(read.folder, 'moves.json').moves
      : [],
  });
  return {
    ...{ workspaceId, events: size, root, digest, keys: keys.length, files },
    became: settled,
    next: `start the processes, make an Owner who signs in (npm run admin -- member add, then member link), connect the accounts again, then: npm run admin -- publishing resume --workspace ${workspaceId}`,
  };
};

/**
 * Notes the move, and holds publishing: both or neither.
 * @returns false: this export was imported before
 * @throws Error: the workspace is there
 */
const begin = async (admin: Admin, { manifest, digest }: ReadExport): Promise<boolean> => {
  const { pool, operator } = admin;
  const { workspaceId, size } = manifest;
  const find = async () => {
    const { rows } = await pool.query<{ readonly digest: string; readonly imported_at: Date | null }>(
      'select digest, imported_at from ops.workspace_moves where workspace_id = $1',
      [workspaceId],
    );
    return rows[0];
  };
  const known = await find();
  const { rowCount: erased } = await pool.query('select from ops.workspace_erasures where workspace_id = $1', [
    workspaceId,
  ]);
  if (erased !== 0)
    throw new Error(
      `Workspace ${workspaceId} was erased in this installation, and its numbers are taken. Nothing was imported: import it into another one.`,
    );
  if (known === undefined && (await hasEvents(admin, workspaceId)))
    throw new Error(
      `Workspace ${workspaceId} is in this installation already. Nothing was imported: an import fills an empty place alone.`,
    );
  if (known !== undefined && known.digest !== digest)
    throw new Error(
      `Workspace ${workspaceId} came here from another export, of ${known.imported_at?.toISOString() ?? 'an import that has not ended: go on with that export'}. Nothing was imported.`,
    );
  await pool.query(
    `with move as (
       insert into ops.workspace_moves (workspace_id, digest, size) values ($1, $2, $3) on conflict do nothing returning 1
     )
     insert into ops.publishing_holds (scope, since, set_by) select $1::text, now(), $4 from move on conflict do nothing`,
    [workspaceId, digest, size, `the import by ${operator.actor.id}`],
  );
  return known?.imported_at == null;
};

const hasEvents = async ({ eventStore }: Admin, workspaceId: string): Promise<boolean> => {
  for (let after: bigint | null = null; ; ) {
    const { events, next, isEnd } = await eventStore.readWorkspace(workspaceId, { after, limit: 1 });
    if (events.length > 0) return true;
    if (isEnd) return false;
    after = next;
  }
};

/** A file that is there already is written over by the same bytes. */
const putFiles = async ({ blobs, signal, note }: Admin, { folder, manifest }: ReadExport): Promise<number> => {
  let put = 0;
  for await (const { key, contentType, bytes, sha256, missing } of linesOf<BlobLine>(folder, blobsFile)) {
    if (!manifest.withFiles || missing === true) continue;
    await blobs.put(key, createReadStream(path.join(folder, 'files', sha256)), { contentType, bytes, signal });
    faultPoint('import:after-file');
    put += 1;
  }
  if (!manifest.withFiles)
    note(`The export has no files: copy those below ${manifest.workspaceId}/ from the former store of files yourself.`);
  return put;
};

const eventOf = ({ id, type, data, metadata, encoding }: EventLine): EventToAppend => {
  const bytes = Buffer.from(metadata, encoding);
  const { partitionKey } = JSON.parse(bytes.toString('utf8')) as { readonly partitionKey: string };
  const workspaceId = workspaceOf(bytes);
  return {
    ...{ id, type, data: Buffer.from(data, encoding), metadata: bytes, partitionKey },
    ...(workspaceId === null ? {} : { workspaceId }),
  };
};

/** Appends events that follow each other in one stream. @returns the position of the last one */
const appendRun = async ({ eventStore }: Admin, run: readonly EventLine[]): Promise<bigint> => {
  const [first] = run as [EventLine];
  const expected = first.revision === 0 ? 'none' : BigInt(first.revision - 1);
  const { revision, position } = await eventStore.append(first.stream, expected, run.map(eventOf));
  if (position !== null) return position;
  // A repeat: the store may no longer know where it put the event, and has it.
  const [stored] = await eventStore.read(first.stream, { from: revision, limit: 1 });
  if (stored === undefined) throw new Error(`the store does not show event ${revision} of ${first.stream}`);
  return stored.position;
};

const bytesOf = ({ data, metadata, type }: EventLine): number => 2 * (data.length + metadata.length + type.length);

/** The runs of the feed: events that follow each other in it and in one stream. The same after a death as before. */
async function* runsOf(lines: AsyncIterable<EventLine>): AsyncGenerator<readonly EventLine[]> {
  let run: EventLine[] = [];
  let bytes = 0;
  for await (const line of lines) {
    const isFull = run.length >= maxEvents || bytes + bytesOf(line) > maxBytes;
    if (run.length > 0 && (isFull || run[0]?.stream !== line.stream)) {
      yield run;
      run = [];
      bytes = 0;
    }
    run.push(line);
    bytes += bytesOf(line);
  }
  if (run.length > 0) yield run;
}

/** Runs behind which the times of the origin and the progress are written. */
const runsOfStep = 200;

/** Appends all events in the order of the feed, one after another: no other order gives them the same numbers. */
const appendFeed = async (admin: Admin, { folder, manifest: { workspaceId, size } }: ReadExport): Promise<bigint> => {
  const { pool, signal, note } = admin;
  const { rows } = await pool.query<{ readonly appended: string }>(
    'select appended from ops.workspace_moves where workspace_id = $1',
    [workspaceId],
  );
  const appended = Number(rows[0]?.appended ?? 0);
  let position = -1n;
  let step: EventLine[] = [];
  let runs = 0;
  const end = async (): Promise<void> => {
    const last = step.at(-1)?.sequence;
    if (last === undefined) return;
    await pool.query(
      `with times as (
         insert into ops.moved_times (workspace_id, sequence, at)
         select $1, s, t from unnest($3::int8[], $4::timestamptz[]) as m (s, t) on conflict do nothing
       )
       update ops.workspace_moves set appended = $2 where workspace_id = $1`,
      [workspaceId, last, step.map(({ sequence }) => sequence), step.map(({ at }) => at)],
    );
    note(`${last} of ${size} events`);
    step = [];
    runs = 0;
  };
  for await (const run of runsOf(linesOf<EventLine>(folder, eventsFile))) {
    signal.throwIfAborted();
    const last = run.at(-1)?.sequence ?? 0;
    // The last run is appended again, for its position.
    if (last <= appended && last < size) continue;
    position = await appendRun(admin, run);
    faultPoint('import:after-append');
    step.push(...run);
    runs += 1;
    if (runs >= runsOfStep) await end();
  }
  await end();
  return position;
};

/** What was stored here has the root that was signed there. */
const requireSameFeed = async ({ eventStore }: Admin, { manifest, root }: ReadExport): Promise<void> => {
  let frontier: Frontier = emptyFrontier;
  for (let after: bigint | null = null; frontier.size < manifest.size; ) {
    const page = await eventStore.readWorkspace(manifest.workspaceId, { after, limit: maxEvents });
    const left = manifest.size - frontier.size;
    const leaves = page.events.filter(({ stream }) => isInFeed(stream)).map(leafOf);
    frontier = grow(frontier, leaves.slice(0, left)).frontier;
    if (page.isEnd) break;
    after = page.next;
  }
  const found = rootOf(frontier).toString('base64');
  if (frontier.size !== manifest.size || found !== root)
    throw new Error(
      `The store has ${frontier.size} events with the root ${found}, and ${manifest.size} with ${root} were exported. The import has not ended, and no process starts: restore this installation from its backup.`,
    );
};
